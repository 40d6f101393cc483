// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
)

// WrongPeerError means that the peer of a new connection is no relay daemon, or another port of one. Err is the error of
// the command.
type WrongPeerError struct {
	Got string // the peer, as far as it is known
	Err error
}

func (e *WrongPeerError) Error() string {
	return fmt.Sprintf("expected a relay daemon's port for viewers, which is 5344 unless lttng-relayd has the option --live-port; got %s: %v", e.Got, e.Err)
}

func (e *WrongPeerError) Unwrap() error { return e.Err }

// lttngPorts are the default ports of LTTng's daemons that do not serve viewers. They do not reply to viewers.
var lttngPorts = map[string]string{
	"5342": "port 5342, the relay daemon's port for control connections of session daemons",
	"5343": "port 5343, the relay daemon's port for data connections of session daemons",
	"5345": "port 5345, the session daemon's port for log agents",
}

// wrongPeer returns err, with the kind of the peer if the first bytes of its reply or its port show that it does not
// serve viewers.
func wrongPeer(peer string, reply []byte, err error) error {
	_, port, _ := net.SplitHostPort(peer)
	got := ""
	switch {
	case bytes.HasPrefix(reply, []byte("SSH-")):
		got = "an SSH server"
	case bytes.HasPrefix(reply, []byte("HTTP/")):
		got = "an HTTP server"
	case bytes.HasPrefix(reply, []byte{0x15, 0x03}):
		got = "a TLS server"
	case len(reply) > 0 || errors.Is(err, context.Canceled):
	case lttngPorts[port] != "":
		got = lttngPorts[port]
	case errors.Is(err, ErrTimeout):
		got = "a peer that does not reply"
	}
	if got == "" {
		return err
	}
	return &WrongPeerError{Got: got, Err: err}
}
