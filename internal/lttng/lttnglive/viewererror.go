// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"errors"
	"fmt"
)

// Why a transfer ended, besides the cause of a context and errors of the network.
var (
	// ErrClosed says that the other side closed the connection.
	ErrClosed = errors.New("the connection was closed")
	// ErrTimeout says that the other side sent or took nothing, or too little, for too
	// long.
	ErrTimeout = errors.New("time ran out")
	// ErrDetached says that a session was used after it was detached.
	ErrDetached = errors.New("the session was detached")
)

// CommandError is the error of every command of a viewer. Err is
//
//   - a *StatusError: the relay daemon answered that it can't. The connection can be
//     used further.
//   - a *ProtocolError: it answered what the protocol or the limits don't allow.
//   - a *TransferError: the request or the reply did not get through.
//   - a *BrokenError: an earlier command left the connection unusable.
//   - ErrDetached, or the cause of a context that ended before anything was sent.
type CommandError struct {
	Peer    string // the address of the relay daemon
	Command Command
	Err     error
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("relay daemon %s, %s: %v", e.Peer, e.Command, e.Err)
}

func (e *CommandError) Unwrap() error { return e.Err }

// StatusError is a relay daemon's answer that it can't do what it was asked for.
// Status is an AttachStatus, IndexError, PacketError, MetadataError, NewStreamsError,
// a CreateSessionStatus or a DetachStatus.
type StatusError struct {
	Status fmt.Stringer
}

func (e *StatusError) Error() string { return fmt.Sprintf("expected OK, got %s", e.Status) }

// TransferError says that a request or a reply did not get through.
type TransferError struct {
	Reply  bool  // of the reply; otherwise of the request
	Offset int   // bytes that got through
	Wanted int   // bytes that were still expected, at least
	Err    error // ErrClosed, ErrTimeout, the cause of the context, or the network's error
}

func (e *TransferError) Error() string {
	what := "request"
	if e.Reply {
		what = "reply"
	}
	return fmt.Sprintf("byte %d of the %s: expected %d more bytes to get through, got: %v", e.Offset, what, e.Wanted, e.Err)
}

func (e *TransferError) Unwrap() error { return e.Err }

// BrokenError says that a connection cannot be used, since it is not known where in
// a request or reply it stands. It doesn't unwrap: an earlier command's cause is not
// this one's.
type BrokenError struct {
	Err error // of the command that broke it
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("the connection is of no use since: %v", e.Err)
}
