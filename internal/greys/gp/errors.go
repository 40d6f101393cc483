// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"errors"
	"fmt"

	"github.com/callbraid/callbraid/internal/javamethods"
)

var (
	// ErrConsole means that the server speaks the text console of the released servers.
	ErrConsole = errors.New("this is the Greys text console, not GP")
	// ErrClosed means that the connection was closed.
	ErrClosed = errors.New("the connection was closed")
	// ErrSilent means that the server did not answer heartbeats.
	ErrSilent = errors.New("the server answers no heartbeats")
	// ErrTooSlow means that replies arrived faster than the caller processed them.
	ErrTooSlow = errors.New("replies arrive faster than they are processed")
	// ErrTooMany means that too many requests are open.
	ErrTooMany = errors.New("too many requests are open")
)

// ProtocolError reports bytes that the protocol or a limit does not allow.
type ProtocolError struct {
	Offset   int64  // from the first received byte, or inside data from its first byte
	Expected string // the allowed bytes at that position
	Got      string // the received bytes
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("byte %d: expected %s, got %s", e.Offset, e.Expected, e.Got)
}

// CodeError is the error for the return code of a failure. It wraps javamethods.ErrUnsupported for [TypeUnsupported],
// and javamethods.ErrRefused for all codes except [VersionUnsupported].
type CodeError struct {
	Code ReturnCode
	// Text is the beginning of the reply's data; empty means none.
	Text string
}

// VersionError means that the server does not support the client's version of the protocol. The connection is then
// unusable.
type VersionError struct {
	// Ours is the version in the request.
	Ours uint16
	// Theirs is the version that the server reports; empty means none.
	Theirs string
}

func (e *VersionError) Error() string {
	theirs := "does not report its own version"
	if e.Theirs != "" {
		theirs = fmt.Sprintf("reports %q", e.Theirs)
	}
	return fmt.Sprintf("return code %v: the server does not know version %#04x of the protocol, and %s", VersionUnsupported, e.Ours, theirs)
}

func (e *CodeError) Error() string {
	text := fmt.Sprintf("return code %v: %v", e.Code, e.Unwrap())
	if e.Text != "" {
		text += fmt.Sprintf(": %q", e.Text)
	}
	return text
}

// Unwrap returns the reason as an error of package greys.
func (e *CodeError) Unwrap() error {
	if e.Code == TypeUnsupported {
		return javamethods.ErrUnsupported
	}
	return javamethods.ErrRefused
}

// failure returns the error for a failing return code and its data.
func failure(code ReturnCode, data []byte, version uint16) error {
	text := string(data[:min(len(data), maxFailureText)])
	if text == nothing {
		text = ""
	}
	if code == VersionUnsupported {
		return &VersionError{Ours: version, Theirs: text}
	}
	return &CodeError{Code: code, Text: text}
}

// maxFailureText is the maximum number of bytes of a failure's data in an error.
const maxFailureText = 256
