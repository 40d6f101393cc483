// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"syscall"

	"github.com/callbraid/callbraid/internal/greys"
)

// Serve reads replies, and sends heartbeats, until the connection or ctx ends; then it has
// closed the connection, which ends what the server does for it, and every Run. The error
// is never nil: ctx's, ErrClosed, ErrConsole, ErrSilent, a *ProtocolError, a *VersionError,
// or the network's, with the peer. It is called once.
func (c *Client) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { c.end(ctx.Err()) })
	defer stop()
	var beating sync.WaitGroup
	beating.Go(c.beat)
	c.end(c.read())
	beating.Wait()
	return fmt.Errorf("GP server %v: %w", c.conn.RemoteAddr(), c.whyEnded())
}

// read reads replies until one can't be. How long it waits is up to the heartbeats: a peer
// that sends none, or one that never ends, does not answer them.
func (c *Client) read() error {
	in := &input{from: c.conn, room: greys.RoomOf(c.conn)}
	for {
		if err := firstByte(in); err != nil {
			return readError(in, err)
		}
		a, err := in.nextAnswer(c.config.MaxFrame)
		long := (*longError)(nil)
		if err != nil && !errors.As(err, &long) {
			return readError(in, err)
		}
		if err := c.pass(a, long); err != nil {
			return err
		}
		if long != nil {
			if err := in.skip(long.length); err != nil {
				return readError(in, err)
			}
			c.count(func(s *Stats) { s.Bytes += uint64(long.length) })
		}
	}
}

// firstByte waits for the first byte of all, by which text is told from a reply: that
// begins with the first byte of a number that counts up from 1.
func firstByte(in *input) error {
	if in.received > 0 {
		return nil
	}
	if err := in.read(1); err != nil {
		return err
	}
	if greys.IsHTTP(in.buf[in.begin:in.end]) {
		return fmt.Errorf("%w: it begins with %s", greys.ErrHTTP, excerpt(in.buf[in.begin:in.end]))
	}
	if isConsole(in.buf[in.begin]) {
		return fmt.Errorf("%w: it begins with %s", ErrConsole, excerpt(in.buf[in.begin:in.end]))
	}
	return nil
}

// isConsole says that what begins with a byte is text, or the mark of the text console that
// a reply has ended.
func isConsole(first byte) bool {
	const endOfReply = 0x04
	return first >= ' ' && first <= '~' || first == '\r' || first == '\n' || first == '\t' || first == endOfReply
}

// readError is what an error of reading means.
func readError(in *input, err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("byte %d: %w", in.offset(), ErrClosed)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("byte %d, inside a reply: %w", in.offset(), ErrClosed)
	}
	return err
}

// pass takes a reply in, of which long says, if it is not nil, that its data are read past.
func (c *Client) pass(a Answer, long *longError) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Frames++
	c.stats.Bytes += answerHeader + uint64(len(a.Data))
	if c.hasLastResp && a.RespID != c.lastResp+1 {
		c.stats.Gaps++
	}
	c.lastResp, c.hasLastResp = a.RespID, true
	if a.Code == VersionUnsupported {
		return failure(a.Code, a.Data, c.config.Version)
	}
	if long != nil {
		return c.giveUp(a, long)
	}
	c.give(a)
	return nil
}

// giveUp ends the request of a reply that is too long, alone: its header says where the next
// one begins. Heartbeats, whose answers come behind it, bound how long that takes. An error
// is that its header is none: nothing was asked that it could be a reply to, or no frame is
// so long. The lock is held.
func (c *Client) giveUp(a Answer, long *longError) error {
	q, running := c.running[a.SendID]
	_, left := c.left[a.SendID]
	switch {
	case long.length > MaxMaxFrame:
		return long.err
	case running:
		c.stats.Dropped++
		c.stats.LastDropped = long.err
		q.end(long.err)
		delete(c.running, a.SendID)
		if !a.Code.ends() {
			c.left[a.SendID] = struct{}{}
		}
	case left, slices.Contains(c.beats, a.SendID):
		c.give(a)
	default:
		return long.err
	}
	return nil
}

// give gives a reply to whoever waits for it. The lock is held.
func (c *Client) give(a Answer) {
	q, running := c.running[a.SendID]
	if running && q.add(a.Code, a.Data, c.config.MaxWaiting) {
		if a.Code.ends() {
			delete(c.running, a.SendID)
		}
		return
	}
	if running { // it has no room
		delete(c.running, a.SendID)
		c.left[a.SendID] = struct{}{}
	}
	_, left := c.left[a.SendID]
	switch {
	case left:
		c.stats.Late++
		if a.Code.ends() {
			delete(c.left, a.SendID)
		}
	case !c.beaten(a.SendID):
		c.stats.Unasked++
	}
}
