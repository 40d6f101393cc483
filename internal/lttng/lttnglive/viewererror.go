// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"errors"
	"fmt"
)

// Reasons for the end of a transfer, besides the cause of a context and errors of the network.
var (
	// ErrClosed means that the other side closed the connection.
	ErrClosed = errors.New("the connection was closed")
	// ErrTimeout means that the other side sent or received nothing, or too little, for too long.
	ErrTimeout = errors.New("time ran out")
	// ErrDetached means that a session was used after Detach.
	ErrDetached = errors.New("the session was detached")
)

// CommandError is the error of every command of a viewer. Err is
//
//   - a *StatusError: the relay daemon refused the command. The connection stays usable.
//   - a *WrongPeerError: the peer of a new connection does not serve viewers.
//   - a *ProtocolError: the reply violates the protocol or the limits.
//   - a *TransferError: the request or the reply was not transferred completely.
//   - a *BrokenError: an earlier command made the connection unusable.
//   - ErrDetached, or the cause of a context that ended before the command.
type CommandError struct {
	Peer    string // the address of the relay daemon
	Command Command
	Err     error
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("relay daemon %s, %s: %v", e.Peer, e.Command, e.Err)
}

func (e *CommandError) Unwrap() error { return e.Err }

// StatusError is a relay daemon's refusal of a command. Status is an AttachStatus, IndexError, PacketError,
// MetadataError, NewStreamsError, a CreateSessionStatus or a DetachStatus.
type StatusError struct {
	Status fmt.Stringer
}

func (e *StatusError) Error() string { return fmt.Sprintf("expected OK, got %s", e.Status) }

// TransferError means that a request or a reply was not transferred completely.
type TransferError struct {
	Reply  bool  // of the reply; otherwise of the request
	Offset int   // transferred bytes
	Wanted int   // missing bytes, at least
	Err    error // ErrClosed, ErrTimeout, the cause of the context, or the network's error
}

func (e *TransferError) Error() string {
	message := "request"
	if e.Reply {
		message = "reply"
	}
	return fmt.Sprintf("byte %d of the %s: expected %d more bytes, got: %v", e.Offset, message, e.Wanted, e.Err)
}

func (e *TransferError) Unwrap() error { return e.Err }

// BrokenError means that a connection is unusable, because its position inside a request or reply is unknown. It has
// no Unwrap method, because the cause of an earlier command is not that of this one.
type BrokenError struct {
	Err error // of the command that broke it
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("the connection is unusable after an earlier error: %v", e.Err)
}
