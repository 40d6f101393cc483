// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"fmt"
)

// Reasons why a transfer ended, besides errors of the network.
var (
	// ErrClosed means that the connection was closed.
	ErrClosed = errors.New("the connection was closed")
	// ErrTimeout means that the server sent or accepted nothing for too long, or that a command took too long.
	ErrTimeout = errors.New("time ran out")
	// ErrSilent means that the server has sent nothing at all. It wraps ErrTimeout.
	ErrSilent = fmt.Errorf("the server accepts connections and sends nothing: %w", ErrTimeout)
	// ErrLost means that the server ended a command without a reason. It does that to a command that arrives while it
	// ends another one. The client can send the command again.
	ErrLost = errors.New("the server lost the command")
)

// Error is the error of a command. Err is one of these:
//
//   - a *[SyntaxError]: the answer has an unknown syntax, or is too long.
//   - a *[TransferError]: bytes were not sent or not received.
//   - [ErrLost].
//   - an error that wraps [javamethods.ErrUnsupported], [javamethods.ErrRefused] or [javamethods.ErrSessionTimedOut],
//     with the server's words.
//   - before the command was sent: the error of Dial, of the command itself, or of the context.
type Error struct {
	Peer    string // the address of the server; empty if there was no connection
	Command string // the line that was sent
	// Sent means that at least a part of the line was sent: the server may have started the command.
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

// SyntaxError is the error for text that a server never sends.
type SyntaxError struct {
	Offset   int64  // of the line, from the first byte of the connection
	Expected string // the allowed text at that position
	Got      string // the received text, shortened
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line at byte %d: expected %s, got %s", e.Offset, e.Expected, e.Got)
}

// TransferError is the error for bytes that were not sent or not received.
type TransferError struct {
	Offset   int64  // from the first byte of the connection, in the direction of the transfer
	Expected string // the expected bytes or step
	Err      error  // ErrClosed, ErrTimeout, ErrSilent, or the network's error
	// FirstLine is the first received line if no answer was read; empty if no line arrived.
	FirstLine string
}

func (e *TransferError) Error() string {
	first := ""
	if e.FirstLine != "" {
		first = fmt.Sprintf(" (the server sent %q: another service may listen at the port)", e.FirstLine)
	}
	return fmt.Sprintf("byte %d: expected %s, got: %v%s", e.Offset, e.Expected, e.Err, first)
}

func (e *TransferError) Unwrap() error { return e.Err }
