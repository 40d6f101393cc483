// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"context"
	"fmt"
	"time"

	"github.com/callbraid/callbraid/internal/greys"
)

// Run asks, and calls each for every answer in order, until the server says that there are
// no more: nil; or until ctx ends: ctx's error (the server is not told, which GP has no way
// for: what it goes on to send is ignored). Otherwise the error has the peer and the command:
// a *CodeError, or greys.ErrUnsupported where GP, or Config.Codes, has no such request;
// ErrTooSlow, ErrTooMany; a *ProtocolError, where the last reply was not understood, or was
// none where there has to be one; or what ended the connection. An answer is valid until
// each returns. Somebody has to Serve.
func (c *Client) Run(ctx context.Context, command greys.Command, each func(greys.Reply)) error {
	err := c.run(ctx, command, each)
	if err == nil || err == ctx.Err() {
		return err
	}
	return fmt.Errorf("GP server %v, %s: %w", c.conn.RemoteAddr(), nameOf(command), err)
}

func (c *Client) run(ctx context.Context, command greys.Command, each func(greys.Reply)) error {
	requestType, data, err := AppendCommand(nil, command, c.config.Codes)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err // what nobody waits for would be sent, and be under way
	}
	r := &reception{client: c, command: command, each: each, decoder: newDecoder(c.config.Location, c.config.MaxTolerated, &c.tolerating)}
	if answer := c.answered(command); answer != nil {
		r.reply(answer.Code, answer.Data)
		return r.err
	}
	q := newQueue(c.conn)
	defer q.close()
	id, err := c.begin(q)
	if err != nil {
		return err
	}
	defer c.leave(id)
	if err := c.write(Request{Version: c.config.Version, SendID: id, Type: requestType, Data: data}); err != nil {
		return err
	}
	return c.receive(ctx, q, r)
}

// answered is what a probe got to a command, if it ended with that; nil: it has to be asked.
func (c *Client) answered(command greys.Command) *Answer {
	if _, is := command.(greys.VersionCommand); !is {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := c.version
	c.version = nil
	if answer == nil || c.err != nil || !answer.Code.ends() {
		return nil
	}
	return answer
}

// begin has replies of a new request go to a queue.
func (c *Client) begin(q *queue) (id int32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return 0, c.err
	case len(c.running)+len(c.left) >= c.config.MaxRequests:
		return 0, fmt.Errorf("%w: %d", ErrTooMany, c.config.MaxRequests)
	}
	id = c.nextID()
	c.running[id] = q
	return id, nil
}

// leave says that nobody waits any more for replies to a request, if it has not ended.
func (c *Client) leave(id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, running := c.running[id]; running {
		delete(c.running, id)
		c.left[id] = struct{}{}
	}
}

// write writes a request. An error ends the connection, of which a part may be written.
func (c *Client) write(r Request) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.out = AppendRequest(c.out[:0], r)
	err := c.conn.SetWriteDeadline(time.Now().Add(c.config.WriteTimeout))
	if err == nil {
		_, err = c.conn.Write(c.out)
	}
	if err != nil {
		c.end(fmt.Errorf("writing a request of type %#04x: %w", uint16(r.Type), err))
		return c.whyEnded()
	}
	return nil
}

// receive takes replies until the request, the connection or ctx has ended. Replies that
// had come when the connection ended count.
func (c *Client) receive(ctx context.Context, q *queue, r *reception) error {
	var buffer []byte
	for over := false; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-q.ready:
		case <-c.ended:
			over = true
		}
		replies, why := q.take(buffer)
		buffer = replies
		for len(replies) > 0 && ctx.Err() == nil {
			var code ReturnCode
			var data []byte
			if code, data, replies = nextWaiting(replies); r.reply(code, data) {
				return r.err
			}
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case why != nil:
			return why
		case over:
			return c.whyEnded()
		}
	}
}

// reception is what becomes of replies to one request.
type reception struct {
	client  *Client
	command greys.Command
	each    func(greys.Reply)
	decoder *decoder
	// err is with what the request ended.
	err error
}

// reply takes one, and says that it was the last.
func (r *reception) reply(code ReturnCode, data []byte) (last bool) {
	if !code.succeeded() {
		r.err = failure(code, data, r.client.config.Version)
		return true
	}
	tolerated, err := r.decoder.decode(r.command, data, r.each)
	if err != nil {
		r.client.count(func(s *Stats) { s.Dropped++; s.LastDropped = fmt.Errorf("%s: %w", nameOf(r.command), err) })
	} else if tolerated {
		r.client.count(func(s *Stats) { s.Tolerated++ })
	}
	if !code.ends() {
		return false
	}
	if r.err = err; err == nil {
		r.err = r.decoder.finish(r.command)
	}
	return true
}

func (c *Client) count(add func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(&c.stats)
}
