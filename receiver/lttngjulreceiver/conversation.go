// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

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

	"github.com/callbraid/callbraid/internal/componentkit/slots"
	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// inputBytes is how much of a connection is read ahead. Long lists of names are read into
// their own memory.
const inputBytes = 512

// conversation is a connection with an agent: one command at a time, each in one write
// and with a deadline for all of it. It belongs to one goroutine, but for wake and hurry.
type conversation struct {
	conn net.Conn
	// slot is that of conn; nil in tests of conversations alone.
	slot *slots.Slot
	// begun is when the connection was there.
	begun time.Time
	with  lttngagent.Agent
	in    *bufio.Reader
	// purse has the bytes of the budget that what was read takes.
	purse *purse
	// out is used for each command; told says that the last was sent, whole.
	out  []byte
	told bool

	mu sync.Mutex
	// deadline is that of what goes on; idle says that this is waiting for nothing.
	deadline time.Time
	idle     bool
	// woken says that the next wait, or this one, is over.
	woken bool
	// latest is when all has to be over, if the receiver shuts down.
	latest time.Time
}

func newConversation(conn net.Conn, of *inventories) *conversation {
	c := &conversation{conn: conn, begun: time.Now()}
	c.purse = of.open(c.interrupt)
	c.in = bufio.NewReaderSize(&metered{conn, c.purse}, inputBytes)
	return c
}

// close closes the connection, and gives back what was held for it.
func (c *conversation) close() {
	_ = c.conn.Close()
	c.purse.close()
}

// errLeft: the agent closed the connection while it was asked nothing.
var errLeft = errors.New("the agent closed the connection")

// unaskedError: an agent sends something without being asked.
type unaskedError struct{}

func (unaskedError) Error() string {
	return "byte 0: expected nothing before the next command, got something"
}

// silentError: an agent has not done what it has to in its time.
type silentError struct {
	what    string
	timeout time.Duration
	// cut says that it had less, because the receiver is shut down.
	cut bool
	// err says how far it was.
	err error
}

func (e *silentError) Error() string {
	if e.cut {
		return fmt.Sprintf("expected %s before a shutdown's time for agents is over: %v", e.what, e.err)
	}
	return fmt.Sprintf("expected %s within %v: %v", e.what, e.timeout, e.err)
}

func (e *silentError) Unwrap() error { return e.err }

// registration reads what the agent says of itself.
func (c *conversation) registration(timeout time.Duration) (lttngagent.Registration, error) {
	c.begin(timeout)
	b := make([]byte, lttngagent.RegistrationSize)
	if _, err := c.in.Peek(1); err == nil && c.in.Buffered() < len(b) && c.slot != nil {
		c.slot.Sent()
	}
	n, err := io.ReadFull(c.in, b)
	if err != nil {
		if timedOut(err) {
			return lttngagent.Registration{}, &silentError{what: fmt.Sprintf("a registration of %d bytes", len(b)), timeout: timeout, err: fmt.Errorf("got %d", n)}
		}
		return lttngagent.Registration{}, err
	}
	return lttngagent.ParseRegistration(b)
}

// tell sends a command.
func (c *conversation) tell(command lttngagent.Command, timeout time.Duration) error {
	c.begin(timeout)
	return c.send(command, timeout)
}

// order sends a command that is answered with a code, and gives the code.
func (c *conversation) order(command lttngagent.Command, timeout time.Duration) (lttngagent.Code, error) {
	c.begin(timeout)
	if err := c.send(command, timeout); err != nil {
		return 0, err
	}
	code, err := c.with.ReadCode(c.in)
	return code, c.late(err, "an answer to "+command.Type().String(), timeout)
}

// list asks for the agent's loggers.
func (c *conversation) list(limits lttngagent.Limits, timeout time.Duration) (lttngagent.ListReply, error) {
	c.begin(timeout)
	if err := c.send(lttngagent.List{}, timeout); err != nil {
		return lttngagent.ListReply{}, err
	}
	reply, err := c.with.ReadList(c.in, limits)
	var large *lttngagent.TooLargeError
	if errors.As(err, &large) {
		if skipped := c.skip(large.Rest); skipped != nil {
			err = skipped
		}
	}
	return reply, c.late(err, "a list of loggers", timeout)
}

// skip reads bytes that nobody wants, and holds none of them.
func (c *conversation) skip(bytes int) error {
	for bytes > 0 {
		n, err := c.in.Discard(min(bytes, inputBytes))
		// What was skipped is given back, which always succeeds.
		_ = c.purse.settle(c.purse.taken - n)
		if bytes -= n; err != nil {
			return fmt.Errorf("%d bytes before the end of a list that is too large: %w", bytes, err)
		}
	}
	return nil
}

// send sends a command, before which nothing may have come.
func (c *conversation) send(command lttngagent.Command, timeout time.Duration) error {
	c.told = false
	if c.in.Buffered() > 0 {
		return unaskedError{}
	}
	return c.write(command, timeout)
}

// write sends a command in one piece.
func (c *conversation) write(command lttngagent.Command, timeout time.Duration) error {
	var err error
	if c.out, err = c.with.AppendCommand(c.out[:0], command); err != nil {
		return err
	}
	_, err = c.conn.Write(c.out)
	c.told = err == nil
	return c.late(err, "that "+command.Type().String()+" is read", timeout)
}

// late makes of an error that time was over what says so.
func (c *conversation) late(err error, what string, timeout time.Duration) error {
	if timedOut(err) {
		return &silentError{what: what, timeout: timeout, cut: c.isCut(), err: err}
	}
	return err
}

// isCut reports whether what goes on has no more time than a shutdown leaves.
func (c *conversation) isCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.latest.IsZero() && c.deadline.Equal(c.latest)
}

func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// wait waits until then, or until wake is called. The error is that of a connection that
// ends, or of an agent that sends something.
func (c *conversation) wait(until time.Time) error {
	c.mu.Lock()
	if c.woken {
		until = past
	}
	c.woken = false
	c.set(until)
	c.idle = true
	c.mu.Unlock()
	_, err := c.in.Peek(1)
	c.mu.Lock()
	c.idle, c.woken = false, false
	c.mu.Unlock()
	if err == nil {
		return unaskedError{}
	}
	switch {
	case timedOut(err):
		return nil
	case errors.Is(err, io.EOF):
		return errLeft
	default:
		return err
	}
}

// begin begins something that has a timeout.
func (c *conversation) begin(timeout time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(time.Now().Add(timeout))
}

// set sets the deadline. The lock is held.
func (c *conversation) set(deadline time.Time) {
	if !c.latest.IsZero() && c.latest.Before(deadline) {
		deadline = c.latest
	}
	c.deadline = deadline
	// An error is that of a connection that is closed, which whatever waits will find.
	_ = c.conn.SetDeadline(deadline)
}

// wake ends a wait: the one that goes on, or the next.
func (c *conversation) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.woken = true
	if c.idle {
		c.set(past)
	}
}

// interrupt ends what goes on, or the next wait: the agent is to be closed.
func (c *conversation) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.woken = true
	if !c.deadline.IsZero() {
		c.set(past)
	}
}

// hurry leaves what goes on, and all that follows, no more time than till then.
func (c *conversation) hurry(latest time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest = latest
	if !c.deadline.IsZero() {
		c.set(c.deadline)
	}
}

const (
	// quiet is how long an agent sends nothing that has done what it was told.
	quiet = time.Second
	// bytesOfCode is an answer to what takes something back.
	bytesOfCode = 4
)

// takeBack tells an agent commands, the last first, whose answers cannot be told from what
// else it sends. It reports whether the agent has sent as much as those are and is quiet,
// or has closed the connection. Nothing else can be done with the connection then. Its end
// is not sent before: Python's agent answers that, over and over.
func (c *conversation) takeBack(undo []lttngagent.Command, timeout time.Duration) bool {
	end := time.Now().Add(timeout)
	c.begin(timeout)
	for _, command := range slices.Backward(undo) {
		if c.write(command, timeout) != nil {
			return false
		}
	}
	b := make([]byte, inputBytes)
	for got := 0; ; {
		c.begin(min(quiet, time.Until(end)))
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
