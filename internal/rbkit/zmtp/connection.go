// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"errors"
	"net"
	"time"
)

// connection sends and receives bytes, with deadlines, under a context. One goroutine
// may read while another writes.
type connection struct {
	conn    net.Conn
	peer    string
	options Options
	in      input
	ctx     context.Context // of the current call
	sent    int64           // bytes
}

func newConnection(conn net.Conn, options Options) *connection {
	return &connection{conn: conn, peer: conn.RemoteAddr().String(), options: options.withDefaults(), in: input{room: options.Room}}
}

// under makes the end of ctx close the connection until release is called. release returns
// whether that happened.
func (c *connection) under(ctx context.Context) (release func() (closed bool)) {
	c.ctx = ctx
	stop := context.AfterFunc(ctx, func() {
		// After an error of Close, reads and writes end at their deadlines.
		_ = c.conn.Close()
	})
	return func() bool { return !stop() }
}

// fill waits for more bytes until the deadline; the zero time is none. An error names them as
// what.
func (c *connection) fill(deadline time.Time, what string) error {
	err := c.conn.SetReadDeadline(deadline)
	if err == nil {
		err = c.in.read(c.conn)
	}
	if err != nil {
		return &TransferError{Offset: c.in.received, What: what, Err: transferCause(c.ctx, err)}
	}
	return nil
}

// maxHesitation bounds the time in which a client waits for its server to send first.
const maxHesitation = time.Second

// hesitation is the time until which a client waits for bytes of its server before it sends its
// own. So the client learns the error of the server: a server that finds an error of its client
// may only close the connection. A server that waits for its client receives the bytes then.
func (c *connection) hesitation() time.Time {
	return time.Now().Add(min(maxHesitation, c.options.Timeout/4))
}

// progress is how many bytes have to be transferred within one time-out.
const progress = 64 << 10

// write sends b. Every progress bytes have a time-out of their own.
func (c *connection) write(b []byte) error {
	for len(b) > 0 {
		piece := b[:min(len(b), progress)]
		err := c.conn.SetWriteDeadline(time.Now().Add(c.options.Timeout))
		n := 0
		if err == nil {
			n, err = c.conn.Write(piece)
		}
		c.sent += int64(n)
		if err != nil {
			return &TransferError{Offset: c.sent, What: "the other side to accept data", Err: transferCause(c.ctx, err)}
		}
		b = b[n:]
	}
	return nil
}

// fail returns the error of a stage.
func (c *connection) fail(stage Stage, err error) error {
	return &Error{Peer: c.peer, Stage: stage, Err: err}
}

// isTimeout reports whether a transfer ended at its deadline.
func isTimeout(err error) bool { return errors.Is(err, ErrTimeout) }

// closeOnce closes a connection that may be closed already.
func closeOnce(conn net.Conn) error {
	if err := conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
