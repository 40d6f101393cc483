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
	"syscall"
	"time"

	"github.com/callbraid/callbraid/internal/greys"
)

// connection reads lines from a server, and the end of what it says to a command, and sends
// lines. It is for one goroutine, but for the context that interrupts it.
type connection struct {
	net.Conn
	config Config
	// buf holds what was received and is not done with, from begin to end.
	buf        []byte
	begin, end int
	// searched is how many of the bytes held have no line break.
	searched int
	received int64
	sent     int64
	// room is that of buf.
	room greys.Room
	// prompt is what the server draws at the end of an answer, with the carriage return;
	// empty: nothing, or it is not known yet.
	prompt []byte

	// mu is held for what interrupt changes.
	mu          sync.Mutex
	interrupted bool
}

const firstBuffer = 64 << 10

func newConnection(conn net.Conn, config Config) *connection {
	c := &connection{Conn: conn, config: config, buf: make([]byte, firstBuffer), room: greys.RoomOf(conn)}
	_ = c.room.Hold(firstBuffer) // where there is none, the connection is about to end
	return c
}

// interruptedBy has what waits for the server return when ctx ends. Forget has what comes
// next wait again; it is called once, whether ctx has ended or not.
func (c *connection) interruptedBy(ctx context.Context) (forget func()) {
	ran := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ran)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.interrupted = true
		c.SetDeadline(time.Now()) // fails only where the connection is closed
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

// deadline has set take a time from now, 0: none, unless the context has ended.
func (c *connection) deadline(set func(time.Time) error, wait time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.interrupted:
		return nil // it has passed
	case wait == 0:
		return set(time.Time{})
	}
	return set(time.Now().Add(wait))
}

// send sends bytes within a time.
func (c *connection) send(bytes []byte, wait time.Duration) error {
	err := c.deadline(c.SetWriteDeadline, wait)
	if err == nil {
		var n int
		n, err = c.Write(bytes)
		c.sent += int64(n)
	}
	if err != nil {
		return c.ifNotInterrupted(&TransferError{Offset: c.sent, What: "the server to take a command", Err: transferCause(err)})
	}
	return nil
}

// ifNotInterrupted is err, or that the context has ended, which is why then.
func (c *connection) ifNotInterrupted(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.interrupted {
		return errInterrupted
	}
	return err
}

// transferCause is what an error of the network means.
func transferCause(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ErrTimeout
	}
	for _, target := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, target) {
			return ErrClosed
		}
	}
	return err
}

// Why nothing was read or written.
var (
	errNothing     = errors.New("nothing came in time")
	errInterrupted = errors.New("the context has ended")
)

// maxEmptyReads is how often a connection may give nothing and no error.
const maxEmptyReads = 100

// read waits for bytes, for a time; 0: for ever. It gives errNothing where none came.
func (c *connection) read(wait time.Duration) error {
	if err := c.makeRoom(); err != nil {
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
			return nil // an error comes again
		case errors.Is(err, os.ErrDeadlineExceeded):
			return c.ifNotInterrupted(errNothing)
		case err != nil:
			return transferCause(err)
		}
	}
	return io.ErrNoProgress
}

// offset is that of the first byte that is not done with.
func (c *connection) offset() int64 { return c.received - int64(c.end-c.begin) }

// makeRoom has room behind what is held: less than a line, which is bounded.
func (c *connection) makeRoom() error {
	held := c.buf[c.begin:c.end]
	switch {
	case len(held) > c.config.MaxLineBytes:
		return at(c.offset(), wrong(fmt.Sprintf("a line of at most %d bytes", c.config.MaxLineBytes), held))
	case c.begin > 0:
		c.begin, c.end = 0, copy(c.buf, held)
	case c.end == len(c.buf):
		if err := c.room.Hold(2 * len(c.buf)); err != nil {
			return err
		}
		grown := make([]byte, 2*len(c.buf))
		c.end = copy(grown, held)
		c.buf = grown
	}
	return nil
}

// lines hands on each line that is complete, without its end, with its offset.
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

// ending is whether what was received ends an answer.
type ending uint8

const (
	notEnded ending = iota
	maybeEnded
	ended
)

// ending looks at what stands behind the last line. A byte 0x04 at its end ends an answer
// where the prompt stands before it, or, where no prompt is drawn, where it stands alone and
// endsAlone. Otherwise it may be part of a text whose rest comes; where there is a prompt it
// is. Rest is what stands there and belongs to the answer.
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

// learnPrompt takes what stands behind the last line for the prompt, if it looks like one: a
// carriage return, a few characters, and the end of the answer.
func (c *connection) learnPrompt() {
	tail := c.buf[c.begin:c.end]
	if n := len(tail) - 1; n > 1 && n < promptBytes && tail[0] == '\r' && tail[n] == EndOfReply {
		c.prompt = bytes.Clone(tail[:n])
	}
}

// promptBytes is how long a prompt may be, with what stands around it.
const promptBytes = 64

// forget is done with all that is held.
func (c *connection) forget() { c.begin, c.end, c.searched = 0, 0, 0 }
