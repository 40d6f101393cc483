// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"fmt"
	"net"
	"strconv"
)

// ListenAddress returns an error if the value of a field is no host:port to listen on. Without a host it listens on all
// addresses, and port 0 is any free port. The error shows the example.
func ListenAddress(field, value, example string) error {
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		return fmt.Errorf("%s is %q: set it to host:port, such as %s", field, value, example)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%s is %q: set its port to 1 to 65535, or to 0 for any that is free", field, value)
	}
	return nil
}

// DialAddress returns an error if the value of a field is no host:port of a peer, such as "a server". The error shows
// the example.
func DialAddress(field, value, peer, example string) error {
	host, port, err := net.SplitHostPort(value)
	if err != nil || host == "" {
		return fmt.Errorf("%s is %q: set it to host:port of %s, such as %s", field, value, peer, example)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%s is %q: set its port to 1 to 65535", field, value)
	}
	return nil
}
