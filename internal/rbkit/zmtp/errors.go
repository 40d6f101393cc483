// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// Why a transfer ended, besides the cause of a context and errors of the network.
var (
	// ErrClosed says that the connection was closed.
	ErrClosed = errors.New("the connection was closed")
	// ErrTimeout says that the other side sent or took nothing, or too little, for too
	// long.
	ErrTimeout = errors.New("time ran out")
)

// Stage is how far a connection has come.
type Stage uint8

// The stages of a connection, in order.
const (
	StageGreeting Stage = iota
	StageHandshake
	StageTraffic
)

func (s Stage) String() string {
	switch s {
	case StageGreeting:
		return "greeting"
	case StageHandshake:
		return "handshake"
	default:
		return "traffic"
	}
}

// Error is the error of everything that is done with a connection. Err is
//
//   - a *ProtocolError: the other side sent what the protocol or the limits don't allow.
//   - a *RefusedError: the other side said that it will not talk to us.
//   - a *TransferError: bytes did not get through in one direction.
//   - a *BrokenError: an earlier error left the connection unusable.
//   - the cause of a context that had ended before.
type Error struct {
	Peer  string // the address of the other side
	Stage Stage
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("ZMTP peer %s, %s: %v", e.Peer, e.Stage, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// ProtocolError says where bytes stand that the protocol, or a limit, does not allow.
type ProtocolError struct {
	Offset   int64  // of the wrong field, from the first byte that was received
	Expected string // what is allowed there
	Got      string // what stands there
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("byte %d: expected %s, got %s", e.Offset, e.Expected, e.Got)
}

// RefusedError is the ERROR command of the other side (RFC 23, 24).
type RefusedError struct {
	Reason string // as it was sent; libzmq gives the status code of ZAP (RFC 27)
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused by the peer, with the reason %q", e.Reason)
}

// TransferError says that bytes did not get through.
type TransferError struct {
	Offset int64  // of the connection, in the direction that is meant
	What   string // what was under way
	Err    error  // ErrClosed, ErrTimeout, the cause of the context, or the network's error
}

func (e *TransferError) Error() string {
	return fmt.Sprintf("byte %d: expected %s, got: %v", e.Offset, e.What, e.Err)
}

func (e *TransferError) Unwrap() error { return e.Err }

// BrokenError says that a connection cannot be used, since it is not known where it
// stands. It doesn't unwrap: an earlier cause is not this one's.
type BrokenError struct {
	Err error // that broke it
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("the connection is of no use since: %v", e.Err)
}

// transferCause is what an error of a connection means, under the context whose end
// closes it.
func transferCause(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrTimeout
	case isClosed(err):
		return ErrClosed
	default:
		return err
	}
}

// isClosed says that err is what is seen when a connection was closed, by either side.
func isClosed(err error) bool {
	for _, target := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
