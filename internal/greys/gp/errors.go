// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"errors"
	"fmt"

	"github.com/callbraid/callbraid/internal/greys"
)

var (
	// ErrConsole says that who answers is the text console of the released servers.
	ErrConsole = errors.New("this is the Greys text console, not GP")
	// ErrClosed says that the connection was closed.
	ErrClosed = errors.New("the connection was closed")
	// ErrSilent says that the server did not answer heartbeats.
	ErrSilent = errors.New("the server answers no heartbeats")
	// ErrTooSlow says that replies came faster than whoever asked took them.
	ErrTooSlow = errors.New("replies came faster than they were taken")
	// ErrTooMany says that too many requests are under way.
	ErrTooMany = errors.New("too many requests are under way")
)

// ProtocolError says where bytes stand that the protocol, or a limit, does not allow.
type ProtocolError struct {
	Offset   int64  // from the first byte received, or, in data, from its first one
	Expected string // what is allowed there
	Got      string // what stands there
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("byte %d: expected %s, got %s", e.Offset, e.Expected, e.Got)
}

// CodeError is a return code that says a failure. It wraps greys.ErrUnsupported for
// [TypeUnsupported], and greys.ErrRefused for all that are not [VersionUnsupported].
type CodeError struct {
	Code ReturnCode
	// Text is the beginning of the reply's data; empty: none.
	Text string
}

// VersionError says that the server doesn't speak our version of the protocol. Nothing can
// be asked on the connection.
type VersionError struct {
	// Ours is the version that was said.
	Ours uint16
	// Theirs is what the server says, its own version; empty: nothing.
	Theirs string
}

func (e *VersionError) Error() string {
	theirs := "does not say which it knows"
	if e.Theirs != "" {
		theirs = fmt.Sprintf("says %q", e.Theirs)
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

// Unwrap gives the reason in the words of package greys.
func (e *CodeError) Unwrap() error {
	if e.Code == TypeUnsupported {
		return greys.ErrUnsupported
	}
	return greys.ErrRefused
}

// failure is what a return code that says one, and the data with it, mean.
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

// maxFailureText is how much of the data of a failure an error says.
const maxFailureText = 256
