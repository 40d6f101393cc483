// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"context"
	"fmt"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// Run sends a command and calls each for every answer, in order, until the server ends it: then the error is nil. If
// ctx ends first, the error is ctx's. GP has no message to cancel a request, so later replies are ignored. Every other
// error includes the peer and the command: a *CodeError; javamethods.ErrUnsupported if GP or Config.Codes has no such
// request; ErrTooSlow; ErrTooMany; a *ProtocolError if the last reply was invalid or a required answer is missing; or
// the reason why the connection ended. An answer is valid until each returns. Serve has to run at the same time.
func (c *Client) Run(ctx context.Context, command javamethods.Command, each func(javamethods.Reply)) error {
	err := c.run(ctx, command, each)
	if err == nil || err == ctx.Err() {
		return err
	}
	return fmt.Errorf("GP server %v, %s: %w", c.conn.RemoteAddr(), nameOf(command), err)
}

func (c *Client) run(ctx context.Context, command javamethods.Command, each func(javamethods.Reply)) error {
	requestType, data, err := AppendCommand(nil, command, c.config.Codes)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err // otherwise an abandoned request would be sent
	}
	r := &reception{client: c, command: command, each: each, decoder: newDecoder(c.config.Location, c.config.MaxTolerated, &c.tolerating)}
	if answer := c.answered(command); answer != nil {
		r.handle(answer.Code, answer.Data)
		return r.err
	}
	q := newQueue(c.conn)
	defer q.close()
	id, err := c.register(q)
	if err != nil {
		return err
	}
	defer c.abandon(id)
	if err := c.write(Request{Version: c.config.Version, SendID: id, Type: requestType, Data: data}); err != nil {
		return err
	}
	return c.receive(ctx, q, r)
}

// answered returns the probe's answer if it is a complete answer to the command; nil means that the request has to be
// sent.
func (c *Client) answered(command javamethods.Command) *Answer {
	if _, is := command.(javamethods.VersionCommand); !is {
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

// register assigns an ID and a queue to a new request.
func (c *Client) register(q *queue) (id int32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return 0, c.err
	case len(c.running)+len(c.abandoned) >= c.config.MaxRequests:
		return 0, fmt.Errorf("%w: %d", ErrTooMany, c.config.MaxRequests)
	}
	id = c.nextID()
	c.running[id] = q
	return id, nil
}

// abandon marks a request as abandoned if the server has not ended it.
func (c *Client) abandon(id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, running := c.running[id]; running {
		delete(c.running, id)
		c.abandoned[id] = struct{}{}
	}
}

// write sends a request. An error ends the connection, because a part of the request may have been sent.
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

// receive handles replies until the request, the connection or ctx ends. It still handles replies that arrived before
// the end of the connection.
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
		replies, why := q.popAll(buffer)
		buffer = replies
		for len(replies) > 0 && ctx.Err() == nil {
			var code ReturnCode
			var data []byte
			if code, data, replies = nextWaiting(replies); r.handle(code, data) {
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

// reception handles the replies to one request.
type reception struct {
	client  *Client
	command javamethods.Command
	each    func(javamethods.Reply)
	decoder *decoder
	// err is the result of the request.
	err error
}

// handle processes a reply and reports whether it was the last.
func (r *reception) handle(code ReturnCode, data []byte) (last bool) {
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
