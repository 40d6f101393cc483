// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/callbraid/callbraid/internal/componentkit/socket"
)

// Reasons for the end of a transfer, besides the cause of a context and errors of the network.
var (
	// ErrClosed: the connection was closed.
	ErrClosed = errors.New("the connection was closed")
	// ErrTimeout: the other side sent or accepted too few bytes for too long.
	ErrTimeout = errors.New("time ran out")
)

// Stage is the stage of a connection.
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

// Error is the error of each operation on a connection. Err is
//
//   - a *ProtocolError: the other side broke the protocol or the limits.
//   - a *RefusedError: the other side refused the connection.
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

// ProtocolError has the position of bytes that the protocol, or a limit, does not allow.
type ProtocolError struct {
	Offset   int64  // of the wrong field, from the first byte that was received
	Expected string // the allowed bytes
	Got      string // the received bytes
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("byte %d: expected %s, got %s", e.Offset, e.Expected, e.Got)
}

// RefusedError is the ERROR command of the other side (RFC 23, 24).
type RefusedError struct {
	Reason string // as received; libzmq sends the status code of ZAP (RFC 27)
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused by the peer, with the reason %q", e.Reason)
}

// TransferError is the error of bytes that were not transferred.
type TransferError struct {
	Offset int64  // in the direction of the transfer
	What   string // the expected bytes
	Err    error  // ErrClosed, ErrTimeout, the cause of the context, or the network's error
}

func (e *TransferError) Error() string {
	return fmt.Sprintf("byte %d: expected %s, got: %v", e.Offset, e.What, e.Err)
}

func (e *TransferError) Unwrap() error { return e.Err }

// BrokenError is the error of a call after an earlier error of the connection. It does not
// unwrap: the earlier cause is not the cause of this call.
type BrokenError struct {
	Err error // the earlier error
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("the connection is unusable after an earlier error: %v", e.Err)
}

// transferCause returns the cause of a connection's error: that of the context, if the
// context has ended, because its end closes the connection.
func transferCause(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrTimeout
	case socket.IsClosed(err), errors.Is(err, net.ErrClosed):
		return ErrClosed
	default:
		return err
	}
}
