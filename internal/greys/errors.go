// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greys

import (
	"bytes"
	"errors"
)

// Reasons why a command failed. Errors of clients wrap one of them where it fits, with the words of the server.
var (
	// ErrUnsupported means that the server or its protocol does not know the command.
	ErrUnsupported = errors.New("the server does not support it")
	// ErrRefused means that the server knows the command and could not carry it out.
	ErrRefused = errors.New("the server could not carry it out")
	// ErrSessionTimedOut means that the server ended an idle session.
	ErrSessionTimedOut = errors.New("the server ended the session because it was idle")
	// ErrHTTP means that an HTTP server listens at the port.
	ErrHTTP = errors.New("an HTTP server answers, not Greys")
)

// IsHTTP reports whether the first received bytes are from an HTTP server: a status line, or an HTML page without one.
func IsHTTP(received []byte) bool {
	for _, begin := range []string{"HTTP/", "<html", "<!doctype"} {
		if len(received) >= len(begin) && bytes.EqualFold(received[:len(begin)], []byte(begin)) {
			return true
		}
	}
	return false
}
