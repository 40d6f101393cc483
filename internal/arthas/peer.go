// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"time"
)

// recognize connects to a server that does not speak HTTP, and returns the kind of the server as an error, or nil. It
// connects directly, as the HTTP client reports only a word of such an answer.
func recognize(ctx context.Context, server string) error {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" {
		return nil
	}
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), "80")
	}
	// Arthas' telnet port waits a second for the begin of a request.
	const patience = 3 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil
	}
	defer conn.Close()
	end := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer end()
	// A console answers an empty line with its prompt.
	if _, err := conn.Write([]byte("\n")); err != nil {
		return nil
	}
	const most = 4096
	received := make([]byte, 0, most)
	for len(received) < most {
		n, err := conn.Read(received[len(received):most])
		received = received[:len(received)+n]
		if other := otherProtocol(received); other != nil || err != nil {
			return other
		}
	}
	return nil
}

// otherProtocol recognizes a server by the begin of its data.
func otherProtocol(received []byte) error {
	const (
		telnetIAC   = 0xff
		greysPrompt = "ga?>"
		greysEnd    = 0x04
	)
	switch {
	case len(received) > 0 && received[0] == telnetIAC:
		return ErrTelnet
	case bytes.Contains(received, []byte(greysPrompt)), bytes.IndexByte(received, greysEnd) >= 0:
		return ErrGreys
	default:
		return nil
	}
}
