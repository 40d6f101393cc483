// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/socket"
	"github.com/callbraid/callbraid/internal/greys"
)

// connection reads lines and the ends of answers from a server, and sends lines. One goroutine uses it; only the
// context's callback interrupts it from another one.
type connection struct {
	net.Conn
	config Config
	// buf holds received bytes that are not processed yet, from begin to end.
	buf        []byte
	begin, end int
	// searched is the number of held bytes that were searched for a line break without success.
	searched int
	received int64
	sent     int64
	// memory counts the bytes of buf.
	memory greys.Reservation
	// prompt is the server's prompt at the end of an answer, with its carriage return; empty means none, or not known
	// yet.
	prompt []byte

	// mu guards the fields that interrupt changes.
	mu          sync.Mutex
	interrupted bool
}

const firstBuffer = 64 << 10

func newConnection(conn net.Conn, config Config) *connection {
	c := &connection{Conn: conn, config: config, buf: make([]byte, firstBuffer), memory: greys.ReservationOf(conn)}
	_ = c.memory.Resize(firstBuffer) // on an error, the connection is about to end
	return c
}

// interruptedBy makes reads and writes return when ctx ends. The caller calls forget exactly once, even if ctx has
// ended; it allows reads and writes again.
func (c *connection) interruptedBy(ctx context.Context) (forget func()) {
	ran := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ran)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.interrupted = true
		c.SetDeadline(time.Now()) // fails only if the connection is closed
	})
	return func() {
		if !stop() {
			<-ran
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.interrupted = false
	}
}

// deadline sets a deadline after wait; 0 means none. It does nothing after an interruption.
func (c *connection) deadline(set func(time.Time) error, wait time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.interrupted:
		return nil // the deadline has passed
	case wait == 0:
		return set(time.Time{})
	}
	return set(time.Now().Add(wait))
}

// send writes bytes within a time.
func (c *connection) send(bytes []byte, wait time.Duration) error {
	err := c.deadline(c.SetWriteDeadline, wait)
	if err == nil {
		var n int
		n, err = c.Write(bytes)
		c.sent += int64(n)
	}
	if err != nil {
		return c.ifNotInterrupted(&TransferError{Offset: c.sent, Expected: "the server to accept a command", Err: transferCause(err)})
	}
	return nil
}

// ifNotInterrupted returns err, or errInterrupted if the context has ended: that is the cause then.
func (c *connection) ifNotInterrupted(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.interrupted {
		return errInterrupted
	}
	return err
}

// transferCause maps an error of the network to its cause.
func transferCause(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrTimeout
	case socket.IsClosed(err), errors.Is(err, net.ErrClosed):
		return ErrClosed
	default:
		return err
	}
}

// Reasons why nothing was read or written.
var (
	errNothing     = errors.New("nothing arrived in time")
	errInterrupted = errors.New("the context has ended")
)

// maxEmptyReads is the number of consecutive reads that may return neither bytes nor an error.
const maxEmptyReads = 100

// read waits for bytes, at most for wait; 0 means without limit. It returns errNothing if none arrived.
func (c *connection) read(wait time.Duration) error {
	if err := c.growBuffer(); err != nil {
		return err
	}
	if err := c.deadline(c.SetReadDeadline, wait); err != nil {
		return transferCause(err)
	}
	for range maxEmptyReads {
		n, err := c.Read(c.buf[c.end:])
		c.end += n
		c.received += int64(n)
		switch {
		case n > 0:
			return nil // the next read returns the error again
		case errors.Is(err, os.ErrDeadlineExceeded):
			return c.ifNotInterrupted(errNothing)
		case err != nil:
			return transferCause(err)
		}
	}
	return io.ErrNoProgress
}

// offset returns the stream offset of the first byte that is not processed yet.
func (c *connection) offset() int64 { return c.received - int64(c.end-c.begin) }

// growBuffer makes space behind the held bytes. They are less than a line, whose length is limited.
func (c *connection) growBuffer() error {
	held := c.buf[c.begin:c.end]
	switch {
	case len(held) > c.config.MaxLineBytes:
		return withOffset(c.offset(), unexpected(fmt.Sprintf("a line of at most %d bytes", c.config.MaxLineBytes), held))
	case c.begin > 0:
		c.begin, c.end = 0, copy(c.buf, held)
	case c.end == len(c.buf):
		if err := c.memory.Resize(2 * len(c.buf)); err != nil {
			return err
		}
		grown := make([]byte, 2*len(c.buf))
		c.end = copy(grown, held)
		c.buf = grown
	}
	return nil
}

// lines calls each with every complete line, without its line break, and the line's offset.
func (c *connection) lines(each func(line []byte, offset int64) error) error {
	for {
		held := c.buf[c.begin:c.end]
		length := bytes.IndexByte(held[c.searched:], '\n')
		if length < 0 {
			c.searched = len(held)
			return nil
		}
		length += c.searched
		line, offset := held[:length], c.offset()
		c.begin, c.searched = c.begin+length+1, 0
		if err := each(line, offset); err != nil {
			return err
		}
	}
}

// ending tells whether the received bytes end an answer.
type ending uint8

const (
	notEnded ending = iota
	maybeEnded
	ended
)

// ending examines the bytes behind the last line. A final byte 0x04 ends an answer if the prompt stands before it.
// Without a prompt it ends the answer if it stands alone and endsAlone is true; otherwise it may be part of a text that
// continues. With a prompt, every other 0x04 is part of a text. Rest are the bytes behind the last line that belong to
// the answer.
func (c *connection) ending(endsAlone bool) (is ending, rest []byte) {
	tail := c.buf[c.begin:c.end]
	if len(tail) == 0 || tail[len(tail)-1] != EndOfReply {
		return notEnded, nil
	}
	rest = tail[:len(tail)-1]
	if len(c.prompt) == 0 {
		if len(rest) == 0 && endsAlone {
			return ended, rest
		}
		return maybeEnded, rest
	}
	if rest, isPrompt := bytes.CutSuffix(rest, c.prompt); isPrompt {
		return ended, rest
	}
	return notEnded, nil
}

// learnPrompt stores the bytes behind the last line as the prompt if they look like one: a carriage return, a few
// characters, and the end of the answer.
func (c *connection) learnPrompt() {
	tail := c.buf[c.begin:c.end]
	if n := len(tail) - 1; n > 1 && n < promptBytes && tail[0] == '\r' && tail[n] == EndOfReply {
		c.prompt = bytes.Clone(tail[:n])
	}
}

// promptBytes is the maximum length of a prompt with its carriage return and 0x04.
const promptBytes = 64

// discard drops all held bytes.
func (c *connection) discard() { c.begin, c.end, c.searched = 0, 0, 0 }
