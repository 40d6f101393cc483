// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// connection is a connection between an agent and its daemon.
type connection struct {
	agent *Agent
	net.Conn
	reader *bufio.Reader
	fault  faults
}

func newConnection(a *Agent, conn net.Conn) *connection {
	return &connection{agent: a, Conn: conn, reader: bufio.NewReader(conn), fault: faults{agent: a}}
}

func (c *connection) register() error {
	o := c.agent.options
	if o.Dialect == lttngagent.RFC {
		return nil // there is no registration
	}
	return c.fault.registration(c.Conn, lttngagent.NewRegistration(o.Domain, o.PID).AppendTo(nil))
}

// execute reads a request, executes and answers it. After an error the connection is unusable.
func (c *connection) execute(ctx context.Context) error {
	command, err := c.command()
	var wrong *lttngagent.ProtocolError
	var unsupported *lttngagent.UnsupportedError
	switch {
	case errors.As(err, &wrong), errors.As(err, &unsupported):
		return c.fail(ctx, err)
	case err != nil:
		return err
	}
	c.agent.options.Log("agent %d received: %s", c.agent.options.PID, describe(command))
	return c.answer(ctx, command)
}

// command reads a command that the agent supports.
func (c *connection) command() (lttngagent.Command, error) {
	q, err := c.read()
	if err != nil {
		return nil, err
	}
	o := c.agent.options
	command, err := q.Command(o.Dialect)
	if err != nil {
		return nil, err
	}
	return command, lttngagent.Agent{Dialect: o.Dialect, Domain: o.Domain}.Supports(command)
}

// read reads a request. Python's agent treats the result of one read as the whole message.
func (c *connection) read() (lttngagent.Request, error) {
	dialect := c.agent.options.Dialect
	if c.agent.options.Domain != lttngagent.Python {
		return dialect.ReadRequest(c.reader)
	}
	const headerSize = 16
	header, err := c.readOnce(headerSize)
	if err != nil {
		return lttngagent.Request{}, err
	}
	message := header
	const readable = 1 << 20 // no daemon sends more
	if size := binary.BigEndian.Uint64(header); size > 0 && size <= readable {
		payload, err := c.readOnce(int(size))
		if err != nil {
			return lttngagent.Request{}, err
		}
		message = append(message, payload...)
	}
	return dialect.ReadRequest(bufio.NewReader(bytes.NewReader(message)))
}

func (c *connection) readOnce(n int) ([]byte, error) {
	b := make([]byte, n)
	got, err := c.Conn.Read(b)
	if err == nil && got < n {
		err = &lttngagent.ProtocolError{Expected: fmt.Sprintf("%d bytes in one read", n), Got: strconv.Itoa(got)}
	}
	return b[:got], err
}

// fail behaves like real agents after a request that they cannot answer.
func (c *connection) fail(ctx context.Context, why error) error {
	c.agent.count(func(s *Stats) { s.Unanswered++ })
	if c.agent.options.Domain == lttngagent.Python {
		return fmt.Errorf("the agent of Python closes the connection: %w", why)
	}
	c.agent.options.Log("agent %d: its thread ends, and the connection stays open without replies: %v", c.agent.options.PID, why)
	<-ctx.Done()
	return ctx.Err()
}

// answer executes the command and sends the reply.
func (c *connection) answer(ctx context.Context, command lttngagent.Command) error {
	if err := wait(ctx, c.agent.options.ReplyDelay); err != nil {
		return err
	}
	if _, done := command.(lttngagent.RegistrationDone); done {
		c.agent.release.Do(func() { close(c.agent.released) })
		c.agent.answered(command, 0)
		return nil
	}
	reply, listed := c.agent.appendReply(nil, command)
	whole, err := c.fault.write(c.Conn, reply, listed)
	if whole {
		c.agent.answered(command, listed)
	}
	return err
}

// wait waits for a time, or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// describe returns a description of a command for the log.
func describe(command lttngagent.Command) string {
	switch c := command.(type) {
	case lttngagent.Enable:
		return fmt.Sprintf("%s %q, levels: %s %d, filter: %q", c.Type(), c.Logger, c.Levels.Type(), c.Levels.Level(), c.Filter)
	case lttngagent.Disable:
		return fmt.Sprintf("%s %q", c.Type(), c.Logger)
	case lttngagent.EnableContext:
		return fmt.Sprintf("%s %s", c.Type(), c.Context)
	case lttngagent.DisableContext:
		return fmt.Sprintf("%s %s", c.Type(), c.Context)
	default:
		return command.Type().String()
	}
}
