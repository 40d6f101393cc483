// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greys

import (
	"bytes"
	"errors"
)

// Reasons for which a command ends without having done what it was asked for. What clients
// give wraps one of them where it fits, with the server's own words.
var (
	// ErrUnsupported says that the server, or its protocol, doesn't know the command.
	ErrUnsupported = errors.New("the server does not support it")
	// ErrRefused says that the server knows the command, and could not carry it out.
	ErrRefused = errors.New("the server could not carry it out")
	// ErrSessionTimedOut says that the server ended the session for its silence.
	ErrSessionTimedOut = errors.New("the server ended the session for its silence")
	// ErrHTTP says that an HTTP server listens at the port.
	ErrHTTP = errors.New("an HTTP server answers, not Greys")
)

// IsHTTP reports whether bytes that came first are the answer of an HTTP server: its status
// line, or the HTML page that some send without one.
func IsHTTP(received []byte) bool {
	for _, begin := range []string{"HTTP/", "<html", "<!doctype"} {
		if len(received) >= len(begin) && bytes.EqualFold(received[:len(begin)], []byte(begin)) {
			return true
		}
	}
	return false
}
