// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// pastDeadline is a deadline that has passed.
var pastDeadline = time.Unix(1, 0)

// inputBytes is the size of the read buffer. Long lists of names are read into their own memory.
const inputBytes = 512

// conversation is a connection with an agent. It sends one command at a time, in one write, with a deadline for command
// and answer. One goroutine owns it; others may call wake, interrupt and finishBy.
type conversation struct {
	conn net.Conn
	// begun is a time when the connection existed.
	begun time.Time
	agent lttngagent.Agent
	in    *bufio.Reader
	// charge holds memory of the budget for received data.
	charge *charge
	// out is the buffer of commands. sent: the last command was sent completely.
	out  []byte
	sent bool

	mu sync.Mutex
	// deadline is the deadline of the current operation. idle: the operation is a wait.
	deadline time.Time
	idle     bool
	// woken ends the current wait, or else the next one.
	woken bool
	// shutdownBy is the deadline of all operations once the shutdown has begun.
	shutdownBy time.Time
}

func newConversation(conn net.Conn, names *nameMemory) *conversation {
	c := &conversation{conn: conn, begun: time.Now()}
	c.charge = names.open(c.interrupt)
	c.in = bufio.NewReaderSize(&metered{conn, c.charge}, inputBytes)
	return c
}

// close closes the connection and frees its memory.
func (c *conversation) close() {
	_ = c.conn.Close()
	c.charge.close()
}

// errAgentClosed: the agent closed the connection between commands.
var errAgentClosed = errors.New("the agent closed the connection")

// UnexpectedDataError: an agent sent data without a command.
type UnexpectedDataError struct{}

func (UnexpectedDataError) Error() string {
	return "byte 0: expected nothing before the next command, got something"
}

// TimeoutError: an agent exceeded a timeout.
type TimeoutError struct {
	expected string
	timeout  time.Duration
	// CutShort: the shutdown shortened the timeout.
	CutShort bool
	// err has the progress of the operation.
	err error
}

func (e *TimeoutError) Error() string {
	if e.CutShort {
		return fmt.Sprintf("expected %s before a shutdown's time for agents is over: %v", e.expected, e.err)
	}
	return fmt.Sprintf("expected %s within %v: %v", e.expected, e.timeout, e.err)
}

func (e *TimeoutError) Unwrap() error { return e.err }

// registration reads the registration of the agent. It calls sent if only a part of it has arrived.
func (c *conversation) registration(timeout time.Duration, sent func()) (lttngagent.Registration, error) {
	c.startTimeout(timeout)
	b := make([]byte, lttngagent.RegistrationSize)
	if _, err := c.in.Peek(1); err == nil && c.in.Buffered() < len(b) {
		sent()
	}
	n, err := io.ReadFull(c.in, b)
	if err != nil {
		if timedOut(err) {
			return lttngagent.Registration{}, &TimeoutError{expected: fmt.Sprintf("a registration of %d bytes", len(b)), timeout: timeout, err: fmt.Errorf("got %d", n)}
		}
		return lttngagent.Registration{}, err
	}
	return lttngagent.ParseRegistration(b)
}

// send sends a command that has no answer.
func (c *conversation) send(command lttngagent.Command, timeout time.Duration) error {
	c.startTimeout(timeout)
	return c.sendAfterSilence(command, timeout)
}

// ask sends a command and returns the code of its answer.
func (c *conversation) ask(command lttngagent.Command, timeout time.Duration) (lttngagent.Code, error) {
	c.startTimeout(timeout)
	if err := c.sendAfterSilence(command, timeout); err != nil {
		return 0, err
	}
	code, err := c.agent.ReadCode(c.in)
	return code, c.withTimeout(err, "an answer to "+command.Type().String(), timeout)
}

// list asks for the agent's loggers.
func (c *conversation) list(limits lttngagent.Limits, timeout time.Duration) (lttngagent.ListReply, error) {
	c.startTimeout(timeout)
	if err := c.sendAfterSilence(lttngagent.List{}, timeout); err != nil {
		return lttngagent.ListReply{}, err
	}
	reply, err := c.agent.ReadList(c.in, limits)
	var large *lttngagent.TooLargeError
	if errors.As(err, &large) {
		if skipped := c.skip(large.Rest); skipped != nil {
			err = skipped
		}
	}
	return reply, c.withTimeout(err, "a list of loggers", timeout)
}

// skip discards received bytes without holding memory for them.
func (c *conversation) skip(bytes int) error {
	for bytes > 0 {
		n, err := c.in.Discard(min(bytes, inputBytes))
		// Freeing the skipped bytes always succeeds.
		_ = c.charge.holdExactly(c.charge.held - n)
		if bytes -= n; err != nil {
			return fmt.Errorf("%d bytes before the end of a list that is too large: %w", bytes, err)
		}
	}
	return nil
}

// sendAfterSilence sends a command. Data that arrived before it is an error, because agents send only answers.
func (c *conversation) sendAfterSilence(command lttngagent.Command, timeout time.Duration) error {
	c.sent = false
	if c.in.Buffered() > 0 {
		return UnexpectedDataError{}
	}
	return c.write(command, timeout)
}

// write sends a command in one write.
func (c *conversation) write(command lttngagent.Command, timeout time.Duration) error {
	var err error
	if c.out, err = c.agent.AppendCommand(c.out[:0], command); err != nil {
		return err
	}
	_, err = c.conn.Write(c.out)
	c.sent = err == nil
	return c.withTimeout(err, "that "+command.Type().String()+" is read", timeout)
}

// withTimeout returns a TimeoutError for an exceeded deadline, and every other error unchanged.
func (c *conversation) withTimeout(err error, what string, timeout time.Duration) error {
	if timedOut(err) {
		return &TimeoutError{expected: what, timeout: timeout, CutShort: c.isCutShort(), err: err}
	}
	return err
}

// isCutShort reports whether the shutdown shortened the current deadline.
func (c *conversation) isCutShort() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.shutdownBy.IsZero() && c.deadline.Equal(c.shutdownBy)
}

func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// wait waits until a time, or until wake is called. It returns an error if the connection
// ends or the agent sends data.
func (c *conversation) wait(until time.Time) error {
	c.mu.Lock()
	if c.woken {
		until = pastDeadline
	}
	c.woken = false
	c.setDeadline(until)
	c.idle = true
	c.mu.Unlock()
	_, err := c.in.Peek(1)
	c.mu.Lock()
	c.idle, c.woken = false, false
	c.mu.Unlock()
	if err == nil {
		return UnexpectedDataError{}
	}
	switch {
	case timedOut(err):
		return nil
	case errors.Is(err, io.EOF):
		return errAgentClosed
	default:
		return err
	}
}

// startTimeout begins an operation that has a timeout.
func (c *conversation) startTimeout(timeout time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setDeadline(time.Now().Add(timeout))
}

// setDeadline sets the deadline. The caller holds the lock.
func (c *conversation) setDeadline(deadline time.Time) {
	if !c.shutdownBy.IsZero() && c.shutdownBy.Before(deadline) {
		deadline = c.shutdownBy
	}
	c.deadline = deadline
	// This fails only on a closed connection, and the next operation reports that.
	_ = c.conn.SetDeadline(deadline)
}

// wake ends the current wait, or else the next one.
func (c *conversation) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.woken = true
	if c.idle {
		c.setDeadline(pastDeadline)
	}
}

// interrupt ends the current operation, or the next wait, before the connection is closed.
func (c *conversation) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.woken = true
	if !c.deadline.IsZero() {
		c.setDeadline(pastDeadline)
	}
}

// finishBy limits the current and all later operations to a deadline.
func (c *conversation) finishBy(latest time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shutdownBy = latest
	if !c.deadline.IsZero() {
		c.setDeadline(c.deadline)
	}
}

const (
	// quietTime is the silence after which an agent has carried out its commands.
	quietTime = time.Second
	// bytesOfCode is the size of an answer to an undo command.
	bytesOfCode = 4
)

// sendUndo sends undo commands, the last first, on a connection that is about to close.
// Their answers look like other data that the agent sends. It returns true if the agent
// sent at least as many bytes as the answers have and became quiet, or closed the
// connection. The connection can't be used afterwards. The receiver doesn't close its side
// first: Python's agent would answer that in a loop.
func (c *conversation) sendUndo(undo []lttngagent.Command, timeout time.Duration) bool {
	end := time.Now().Add(timeout)
	c.startTimeout(timeout)
	for _, command := range slices.Backward(undo) {
		if c.write(command, timeout) != nil {
			return false
		}
	}
	b := make([]byte, inputBytes)
	for got := 0; ; {
		c.startTimeout(min(quietTime, time.Until(end)))
		n, err := c.conn.Read(b)
		got += n
		switch {
		case err == nil && time.Now().Before(end):
		case err == nil:
			return false
		default:
			return got >= bytesOfCode*len(undo) && (timedOut(err) || errors.Is(err, io.EOF))
		}
	}
}
