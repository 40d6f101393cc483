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

// Serve reads replies and sends heartbeats until the connection or ctx ends. Then it has closed the connection, which
// ends all requests at the server and every Run. The error includes the peer and is never nil. It is ctx's error,
// ErrClosed, ErrConsole, ErrSilent, a *ProtocolError, a *VersionError, or an error of the network. Serve may be called
// only once.
func (c *Client) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { c.end(ctx.Err()) })
	defer stop()
	var beating sync.WaitGroup
	beating.Go(c.beat)
	c.end(c.read())
	beating.Wait()
	return fmt.Errorf("GP server %v: %w", c.conn.RemoteAddr(), c.whyEnded())
}

// read reads replies until an error. It has no timeout: a peer that sends nothing, or a reply without end, does not
// answer the heartbeats.
func (c *Client) read() error {
	in := &input{from: c.conn, memory: greys.ReservationOf(c.conn)}
	for {
		if err := firstByte(in); err != nil {
			return readError(in, err)
		}
		a, err := in.nextAnswer(c.config.MaxFrame)
		long := (*longError)(nil)
		if err != nil && !errors.As(err, &long) {
			return readError(in, err)
		}
		if err := c.handleAnswer(a, long); err != nil {
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

// firstByte waits for the first byte of the connection, which distinguishes text from a reply: a reply begins with the
// highest byte of a number that counts up from 1.
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

// isConsole reports whether a byte begins text, or is the text console's end of a reply.
func isConsole(first byte) bool {
	const endOfReply = 0x04
	return first >= ' ' && first <= '~' || first == '\r' || first == '\n' || first == '\t' || first == endOfReply
}

// readError maps a read error to its cause.
func readError(in *input, err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("byte %d: %w", in.offset(), ErrClosed)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("byte %d, inside a reply: %w", in.offset(), ErrClosed)
	}
	return err
}

// handleAnswer handles a reply. If long is not nil, the caller skips the reply's data.
func (c *Client) handleAnswer(a Answer, long *longError) error {
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
		return c.dropLongAnswer(a, long)
	}
	c.deliver(a)
	return nil
}

// dropLongAnswer ends the request of a reply that is too long. The connection survives, because the header contains the
// length. The heartbeats limit how long skipping may take, since their answers follow the reply. An error means that
// the header is invalid: no request has its send_id, or no frame can be so long. The caller holds the lock.
func (c *Client) dropLongAnswer(a Answer, long *longError) error {
	q, running := c.running[a.SendID]
	_, abandoned := c.abandoned[a.SendID]
	switch {
	case long.length > MaxMaxFrame:
		return long.err
	case running:
		c.stats.Dropped++
		c.stats.LastDropped = long.err
		q.end(long.err)
		delete(c.running, a.SendID)
		if !a.Code.ends() {
			c.abandoned[a.SendID] = struct{}{}
		}
	case abandoned, slices.Contains(c.beats, a.SendID):
		c.deliver(a)
	default:
		return long.err
	}
	return nil
}

// deliver passes a reply to its request. The caller holds the lock.
func (c *Client) deliver(a Answer) {
	q, running := c.running[a.SendID]
	if running && q.push(a.Code, a.Data, c.config.MaxWaiting) {
		if a.Code.ends() {
			delete(c.running, a.SendID)
		}
		return
	}
	if running { // its queue is full
		delete(c.running, a.SendID)
		c.abandoned[a.SendID] = struct{}{}
	}
	_, abandoned := c.abandoned[a.SendID]
	switch {
	case abandoned:
		c.stats.Late++
		if a.Code.ends() {
			delete(c.abandoned, a.SendID)
		}
	case !c.answersHeartbeat(a.SendID):
		c.stats.Unasked++
	}
}
