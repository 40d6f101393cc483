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
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/socket"
)

// progress is the number of bytes that must arrive within one time-out. It is also the growth of a buffer before more
// bytes arrive.
const progress = 64 << 10

// transfer sends and receives on a connection, with deadlines, under a context. It is a replySource.
//
// Each deadline covers progress bytes. So a large reply has enough time, but a reply that drips does not.
type transfer struct {
	conn      net.Conn
	timeout   time.Duration
	room      func(bytes int) error // see ViewerOptions.Room
	ctx       context.Context       // of the current command
	interrupt interrupter
	buf       []byte // result of next, reused
	got       int    // bytes of the reply so far
	due       int    // the deadline moves when got reaches it
}

// begin begins a command. The end of ctx ends its reads and writes.
func (t *transfer) begin(ctx context.Context) {
	t.ctx, t.got, t.due = ctx, 0, progress
	t.interrupt.set(ctx, t.conn)
}

// end ends the command. The end of its context has no effect afterwards.
func (t *transfer) end() {
	t.interrupt.unset()
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

// data reads n bytes into dst. If dst is too small, it grows while bytes arrive.
func (t *transfer) data(dst []byte, n int) ([]byte, error) {
	if cap(dst) >= n {
		return t.read(dst, n, nil) // the caller has the memory already
	}
	return t.read(dst, n, t.room)
}

// read reads n bytes into dst. It calls room while dst grows, unless room is nil.
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

// maxEmptyReads is the maximum number of consecutive reads without bytes and without an error.
const maxEmptyReads = 100

// extend sets the deadline one time-out from now.
func (t *transfer) extend() error {
	if err := t.conn.SetDeadline(time.Now().Add(t.timeout)); err != nil {
		return err
	}
	// The end of the context sets a deadline in the past. If that happened first, this call has just replaced it, so
	// check the context.
	return context.Cause(t.ctx)
}

// transferCause returns the reason for an error of a connection that ctx can interrupt.
func transferCause(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrTimeout
	case socket.IsClosed(err):
		return ErrClosed
	default:
		return err
	}
}
