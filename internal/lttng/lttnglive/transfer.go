// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"time"
)

// progress is how many bytes have to come within one time-out. It is also how much a
// buffer grows before more has come.
const progress = 64 << 10

// transfer sends and receives on a connection, with deadlines, under a context. It
// is a replySource.
//
// A deadline covers each progress bytes, so that a reply of any size has the time it
// needs, and one that drips does not.
type transfer struct {
	conn    net.Conn
	timeout time.Duration
	room    func(bytes int) error // see ViewerOptions.Room
	ctx     context.Context       // of the command under way
	wake    wake
	buf     []byte // of what next gives; used again
	got     int    // bytes of the reply
	due     int    // when got reaches it the deadline moves
}

// begin begins a command: from now on the end of ctx ends reads and writes.
func (t *transfer) begin(ctx context.Context) {
	t.ctx, t.got, t.due = ctx, 0, progress
	t.wake.set(ctx, t.conn)
}

// end ends the command. Nothing of it is left when it returns.
func (t *transfer) end() {
	t.wake.unset()
	t.ctx = nil
}

// send sends a request.
func (t *transfer) send(request []byte) error {
	if err := t.extend(); err != nil {
		return &TransferError{Wanted: len(request), Err: transferCause(t.ctx, err)}
	}
	n, err := t.conn.Write(request)
	if err != nil {
		return &TransferError{Offset: n, Wanted: len(request) - n, Err: transferCause(t.ctx, err)}
	}
	return nil
}

func (t *transfer) next(n int) (b []byte, err error) {
	t.buf, err = t.read(t.buf, n, t.room)
	return t.buf, err
}

func (t *transfer) offset() int { return t.got }

// data reads n bytes into dst. Where dst has no room for them it grows as they come.
func (t *transfer) data(dst []byte, n int) ([]byte, error) {
	if cap(dst) >= n {
		return t.read(dst, n, nil) // the caller has made room
	}
	return t.read(dst, n, t.room)
}

// read is data with what makes room; nil: there is room.
func (t *transfer) read(dst []byte, n int, room func(bytes int) error) ([]byte, error) {
	dst = dst[:0]
	for empty := 0; len(dst) < n; {
		end := min(n, cap(dst))
		if end == len(dst) {
			dst = slices.Grow(dst, min(n-len(dst), progress))
			end = min(n, cap(dst))
		}
		m, err := t.conn.Read(dst[len(dst):end])
		dst = dst[:len(dst)+m]
		t.got += m
		if empty++; m > 0 {
			empty = 0
		}
		if err == nil && empty >= maxEmptyReads {
			err = io.ErrNoProgress
		}
		if err == nil && t.got >= t.due {
			err = t.extend()
			t.due = t.got + progress
			if err == nil && room != nil {
				err = room(t.got)
			}
		}
		if err != nil && len(dst) < n {
			return dst, &TransferError{Reply: true, Offset: t.got, Wanted: n - len(dst), Err: transferCause(t.ctx, err)}
		}
	}
	return dst, nil
}

// maxEmptyReads is how often a connection may give nothing and no error.
const maxEmptyReads = 100

// extend sets the deadline one time-out from now.
func (t *transfer) extend() error {
	if err := t.conn.SetDeadline(time.Now().Add(t.timeout)); err != nil {
		return err
	}
	// The end of the context sets a deadline that has passed. If that came first it
	// has just been undone.
	return context.Cause(t.ctx)
}

// transferCause is what an error of a connection means, under the context that ends
// what waits on it.
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

// isClosed says that err is what is seen when the other side has closed.
func isClosed(err error) bool {
	for _, target := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
