// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// Client runs commands at a server. Many goroutines may call its methods. Its fields do not change during a call.
type Client struct {
	// Dial connects to the server. The client closes the connection.
	Dial func(ctx context.Context) (net.Conn, error)
	Config

	malformed, unanswered, repeated, lost atomic.Uint64
}

// Stats count faults since the client was made.
type Stats struct {
	// Malformed is the number of commands that failed on an answer with unknown syntax.
	Malformed uint64
	// Unanswered is the number of aborted commands whose end the server did not confirm in time. The server ends them
	// when it sees the closed connection.
	Unanswered uint64
	// Repeated is the number of ignored trees: the server repeats a tree when a traced method has called another traced
	// method.
	Repeated uint64
	// Lost is how often the server lost a command. The client sends a lost command again if no answer was delivered.
	Lost uint64
}

// Stats returns the current counts.
func (c *Client) Stats() Stats {
	return Stats{Malformed: c.malformed.Load(), Unanswered: c.unanswered.Load(), Repeated: c.repeated.Load(), Lost: c.lost.Load()}
}

// Run sends a command on a new connection and calls each for every answer, in order. An answer is valid until each
// returns. Run returns nil after the command ended by itself. It returns ctx's error if ctx ended while the command
// ran: the command is then aborted, and answers that the server has written before are still delivered. Any other error is an *[Error], also if ctx ended before the command was sent. The
// instrumentation of a command stays in the classes until a [javamethods.ResetCommand], however the command ended.
//
// Nothing is read while each runs. The server then retries to send in a busy loop, inside the traced program.
func (c *Client) Run(ctx context.Context, command javamethods.Command, each func(javamethods.Reply)) error {
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
			if talk.replies() == 0 && try < maxTries {
				config.SettleTime *= 2
				continue
			}
		case errors.As(err, new(*SyntaxError)):
			c.malformed.Add(1)
		}
		return &Error{Peer: talk.peer(), Command: string(line), Sent: sent, Err: err}
	}
}

// maxTries is the number of attempts for a command that the server loses.
const maxTries = 3

// try runs a command on a new connection. It returns the final state of the conversation.
func (c *Client) try(ctx context.Context, config Config, line []byte, command javamethods.Command, each func(javamethods.Reply)) (*conversation, error) {
	conn, err := c.dial(ctx, config)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return &conversation{}, err
	}
	defer conn.Close() // all replies have arrived, or are not needed
	talk := &conversation{connection: newConnection(conn, config)}
	forget := talk.interruptedBy(ctx)
	err = talk.run(line, command, each)
	forget()
	if errors.Is(err, errInterrupted) {
		if talk.running && !talk.abort() {
			c.unanswered.Add(1)
		}
		err = ctx.Err()
	}
	c.repeated.Add(uint64(talk.repeated()))
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

// peer returns the address of the server; empty means that there was no connection.
func (c *conversation) peer() string {
	switch {
	case c.connection == nil:
		return ""
	case c.RemoteAddr() == nil:
		return "(no address)"
	}
	return c.RemoteAddr().String()
}
