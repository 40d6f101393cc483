// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/callbraid/callbraid/internal/greys"
)

// Client asks a server. Its methods may be called from many goroutines; its fields are not
// changed then.
type Client struct {
	// Dial makes a connection to the server. The client closes it.
	Dial func(ctx context.Context) (net.Conn, error)
	Config

	malformed, unanswered, repeated, lost atomic.Uint64
}

// Stats are what went wrong, since the client was made.
type Stats struct {
	// Malformed is how many commands were given up for an answer that is not understood.
	Malformed uint64
	// Unanswered is how many commands were aborted, and the server did not say in time that
	// they ended. It ends them when it sees that the connection is closed.
	Unanswered uint64
	// Repeated is how many trees were left out: the server tells one again when a method that
	// is traced has called another one that is.
	Repeated uint64
	// Lost is how often the server lost a command, which was asked for again if nothing of
	// it had been handed on.
	Lost uint64
}

// Stats gives the numbers of now.
func (c *Client) Stats() Stats {
	return Stats{Malformed: c.malformed.Load(), Unanswered: c.unanswered.Load(), Repeated: c.repeated.Load(), Lost: c.lost.Load()}
}

// Run asks for a command, on a connection of its own, and calls each for every answer, in
// order; an answer is valid until each returns. It gives nil when the command has ended by
// itself, ctx's error when ctx has ended, after having aborted the command, and otherwise
// an *[Error], also where ctx has ended before the command was sent. What a command put into classes stays there until a [greys.ResetCommand],
// however it ended.
//
// While each does not return nothing is read, and the server does not wait idly: it tries
// to send over and over, in the traced program.
func (c *Client) Run(ctx context.Context, command greys.Command, each func(greys.Reply)) error {
	line, err := AppendLine(nil, command)
	if err != nil {
		return &Error{Command: string(line), Err: err}
	}
	config := c.withDefaults()
	sent := false
	for try := 1; ; try++ {
		talk, err := c.try(ctx, config, line, command, each)
		sent = sent || talk.running
		switch {
		case err == nil || err == ctx.Err() && sent:
			return err
		case errors.Is(err, ErrLost):
			c.lost.Add(1)
			if talk.replies == 0 && try < maxTries {
				config.SettleTime *= 2
				continue
			}
		case errors.As(err, new(*SyntaxError)):
			c.malformed.Add(1)
		}
		return &Error{Peer: talk.peer(), Command: string(line), Sent: sent, Err: err}
	}
}

// maxTries is how often a command is asked for that the server loses.
const maxTries = 3

// try asks for a command on a new connection. It gives the conversation as it was at its end.
func (c *Client) try(ctx context.Context, config Config, line []byte, command greys.Command, each func(greys.Reply)) (*conversation, error) {
	conn, err := c.dial(ctx, config)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return &conversation{}, err
	}
	defer conn.Close() // what was sent has been answered, or is of no interest
	talk := &conversation{connection: newConnection(conn, config)}
	forget := talk.interruptedBy(ctx)
	err = talk.run(line, command, each)
	forget()
	c.repeated.Add(uint64(talk.repeated))
	if errors.Is(err, errInterrupted) {
		if talk.running && !talk.abort() {
			c.unanswered.Add(1)
		}
		err = ctx.Err()
	}
	return talk, err
}

func (c *Client) dial(ctx context.Context, config Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, config.ConnectTimeout, ErrTimeout)
	defer cancel()
	conn, err := c.Dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return conn, nil
}

// peer is the address of the server; empty: there was no connection.
func (c *conversation) peer() string {
	switch {
	case c.connection == nil:
		return ""
	case c.RemoteAddr() == nil:
		return "(no address)"
	}
	return c.RemoteAddr().String()
}
