// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"fmt"
)

// Why a transfer ended, besides errors of the network.
var (
	// ErrClosed says that the connection was closed.
	ErrClosed = errors.New("the connection was closed")
	// ErrTimeout says that the server said, or took, nothing for too long, or that a command
	// took too long.
	ErrTimeout = errors.New("time ran out")
	// ErrSilent says that the server has said nothing at all. It wraps ErrTimeout.
	ErrSilent = fmt.Errorf("the server accepts connections and sends nothing: %w", ErrTimeout)
	// ErrLost says that the server ended a command for no reason: it does that to one that
	// comes while it ends another. It can be asked for again.
	ErrLost = errors.New("the server lost the command")
)

// Error is the error of a command. Err is
//
//   - a *[SyntaxError]: the server said what is not understood, or too much.
//   - a *[TransferError]: bytes did not get through.
//   - [ErrLost].
//   - one that wraps [greys.ErrUnsupported], [greys.ErrRefused] or [greys.ErrSessionTimedOut],
//     with the server's words.
//   - that of Dial, what is wrong with the command, or that of the context, none of which
//     comes of a command that was sent.
type Error struct {
	Peer    string // the address of the server; empty: there was no connection
	Command string // the line that was sent
	// Sent says that it was sent, or part of it: the server may have begun with it.
	Sent bool
	Err  error
}

func (e *Error) Error() string {
	if e.Peer == "" {
		return fmt.Sprintf("Greys console, command %q: %v", e.Command, e.Err)
	}
	return fmt.Sprintf("Greys console %s, command %q: %v", e.Peer, e.Command, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// SyntaxError says where text is not what a server says.
type SyntaxError struct {
	Offset   int64  // of the line, from the first byte of the connection
	Expected string // what is allowed there
	Got      string // what stands there, shortened
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line at byte %d: expected %s, got %s", e.Offset, e.Expected, e.Got)
}

// TransferError says that bytes did not get through.
type TransferError struct {
	Offset int64  // from the first byte of the connection, in the direction that is meant
	What   string // what was under way
	Err    error  // ErrClosed, ErrTimeout, ErrSilent, or the network's error
	// Said is the first line that came, where there was no answer; empty: none did.
	Said string
}

func (e *TransferError) Error() string {
	said := ""
	if e.Said != "" {
		said = fmt.Sprintf(" (the server said %q: another service may listen at the port)", e.Said)
	}
	return fmt.Sprintf("byte %d: expected %s, got: %v%s", e.Offset, e.What, e.Err, said)
}

func (e *TransferError) Unwrap() error { return e.Err }
