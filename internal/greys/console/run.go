// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"fmt"
	"time"

	"github.com/callbraid/callbraid/internal/greys"
)

// conversation is a connection on which one command runs:
//
//	made loud   the server was told to draw prompts, and has; only for commands that put
//	            something into classes, since only then it says what their patterns match
//	running     the command was sent, and its answers come
//	over        it has ended by itself, or is given up, and the connection with it
//	aborted     the context has ended while it ran: 0x04 was sent, and what comes is thrown
//	            away until the end, for a bounded time
type conversation struct {
	*connection
	// running says that the command was sent, or part of it.
	running bool
	// replies is how many answers were handed on, repeated how many left out as repetitions.
	replies, repeated int
}

// run asks for a command. It gives errInterrupted where the context has ended.
func (c *conversation) run(line []byte, command greys.Command, each func(greys.Reply)) error {
	if !endsByItself(command) {
		if err := c.makeLoud(); err != nil {
			return fmt.Errorf("%q, which comes first: %w", setLoud, err)
		}
	}
	c.running = true
	d, err := c.ask(line, command, each)
	c.replies, c.repeated = d.replies, d.repeated
	if err == nil && isLost(command, d, len(c.prompt) > 0) {
		return ErrLost
	}
	return err
}

// makeLoud has the server draw prompts and say what patterns match. One that can't goes on
// without.
func (c *conversation) makeLoud() error {
	_, err := c.ask([]byte(setLoud), greys.SessionsCommand{}, func(greys.Reply) {})
	if err != nil && !errors.Is(err, greys.ErrRefused) && !errors.Is(err, greys.ErrUnsupported) {
		return err
	}
	switch err := c.read(c.config.SettleTime); {
	case err == nil:
		return at(c.offset(), wrong("nothing behind the end of an answer", c.buf[c.begin:c.end]))
	case err != errNothing:
		return err
	}
	return nil
}

// isLost reports whether a command that has ended can't have done so by itself: it never
// does, or it has to say something first.
func isLost(command greys.Command, d *decoder, loud bool) bool {
	answers := d.replies + d.repeated
	if d.affected {
		answers--
	}
	limited := func(limit greys.Limit) bool { return limit == 0 || loud && !d.affected || answers == 0 }
	switch c := command.(type) {
	case greys.MonitorCommand:
		return true
	case greys.TraceCommand:
		return limited(c.Limit)
	case greys.StackCommand:
		return limited(c.Limit)
	case greys.RecordCommand:
		return limited(c.Limit)
	}
	return false
}

// ask sends a line, and reads what the server says to it, to the end.
func (c *conversation) ask(line []byte, command greys.Command, each func(greys.Reply)) (*decoder, error) {
	d := &decoder{output: output{each: each, clock: clock{zone: c.config.Zone}}, limit: int64(c.config.MaxReplyBytes), room: greys.RoomOf(c.Conn)}
	d.block = newBlock(command, &d.output)
	if err := c.send(append(line, '\n'), c.config.WriteTimeout); err != nil {
		return d, err
	}
	return d, c.listen(d, newPatience(command, c.config, len(c.prompt) > 0))
}

// listen reads what the server says to a command, to the end.
func (c *conversation) listen(d *decoder, p *patience) error {
	for {
		if !c.running {
			c.learnPrompt()
		}
		is, rest := c.ending(d.endsAlone())
		if is == ended {
			return c.finish(d, rest)
		}
		wait := p.wait(d, c.offset() < c.received)
		quiet := is == maybeEnded || c.offset() == c.received && d.mayBeComplete()
		if quiet && (wait == 0 || wait > c.config.QuietTime) {
			wait = c.config.QuietTime
		}
		switch err := c.read(wait); {
		case err == nil:
			err = c.lines(d.take)
			if err != nil {
				return err
			}
		case err == errNothing && p.over():
			return d.transfer(c.received, p.expected.what, ErrTimeout)
		case err == errNothing && is == maybeEnded, errors.Is(err, ErrClosed) && (is == maybeEnded || d.failed != nil):
			_, rest = c.ending(d.endsAlone()) // what is held has been moved
			return c.finish(d, rest)
		case err == errNothing && quiet:
			if err := d.quiet(c.offset()); err != nil {
				return err
			}
		case err == errNothing:
		case errors.Is(err, errInterrupted), errors.As(err, new(*SyntaxError)):
			return err
		default:
			return d.transfer(c.received, p.expected.what, err)
		}
	}
}

// finish reads what stands before the end, and the end.
func (c *conversation) finish(d *decoder, rest []byte) error {
	offset := c.offset()
	c.forget()
	if len(rest) > 0 {
		if err := d.take(rest, offset); err != nil {
			return err
		}
	}
	return d.finish(c.received)
}

// abort has the server end the command, and waits until it says that it has. It reports
// whether it has.
func (c *conversation) abort() bool {
	over := time.Now().Add(c.config.AbortTimeout)
	if c.send([]byte{EndOfReply}, c.config.AbortTimeout) != nil {
		return false
	}
	for {
		c.begin = max(c.begin, c.end-promptBytes)
		is, _ := c.ending(true)
		wait := time.Until(over)
		if is == maybeEnded {
			wait = min(wait, c.config.QuietTime)
		}
		if is == ended {
			return true
		}
		if wait <= 0 {
			return false
		}
		if err := c.read(wait); err != nil {
			return is == maybeEnded && (err == errNothing || err == ErrClosed)
		}
	}
}

// patience is how long a server may say nothing.
type patience struct {
	command greys.Command
	config  Config
	// loud is whether the server says what patterns match.
	loud bool
	// until is when a command that ends by itself has to have ended; zero: never.
	until time.Time
	// expected is what has to come, since is since when.
	expected expectation
	since    time.Time
	// limit is how long that may take; 0: for ever.
	limit time.Duration
}

// expectation is what has to come, after so many answers.
type expectation struct {
	what    string
	replies int
}

func newPatience(command greys.Command, config Config, loud bool) *patience {
	p := &patience{command: command, config: config, loud: loud}
	if endsByItself(command) {
		p.until = time.Now().Add(config.ListTimeout)
	}
	return p
}

// endsByItself reports whether a command ends when it has said what there is.
func endsByItself(command greys.Command) bool {
	switch command.(type) {
	case greys.MonitorCommand, greys.TraceCommand, greys.StackCommand, greys.RecordCommand:
		return false
	}
	return true
}

// takesLong reports whether the server looks at all classes before it says anything.
func takesLong(command greys.Command) bool {
	switch command.(type) {
	case greys.ClassesCommand, greys.MethodsCommand:
		return true
	}
	return false
}

// wait is how long may be waited for more bytes; 0: for ever. Partly says that part of a line
// has come. What takes longer than it may does not get more time because bytes of it come.
func (p *patience) wait(d *decoder, partly bool) time.Duration {
	what, limit := p.next(d, partly)
	if e := (expectation{what, d.replies}); e != p.expected || p.since.IsZero() {
		p.expected, p.since = e, time.Now()
	}
	p.limit = limit
	switch {
	case !p.until.IsZero():
		return max(1, min(time.Until(p.until), time.Until(p.since.Add(limit))))
	case limit == 0:
		return 0
	}
	return max(1, time.Until(p.since.Add(limit)))
}

// listAnswer is what a command has to get that looks at all classes first.
const listAnswer = "an answer"

// next is what has to come, and within which time; 0: any.
func (p *patience) next(d *decoder, partly bool) (what string, limit time.Duration) {
	switch {
	case d.failed != nil:
		return "the end of why it is refused", p.config.AnswerTimeout
	case partly || d.open():
		return "the rest of an answer", p.config.AnswerTimeout
	case d.lines == 0 && takesLong(p.command):
		return listAnswer, p.config.ListTimeout
	case endsByItself(p.command):
		return "the next answer, or the end", p.config.AnswerTimeout
	case p.loud && !d.affected:
		return "what the patterns match", p.config.AnswerTimeout
	}
	if m, ok := p.command.(greys.MonitorCommand); ok {
		return "the table of a cycle", m.Cycle + p.config.AnswerTimeout
	}
	return "an answer", 0
}

// over reports whether what is waited for has taken too long.
func (p *patience) over() bool {
	now := time.Now()
	return p.limit > 0 && !now.Before(p.since.Add(p.limit)) || !p.until.IsZero() && !now.Before(p.until)
}
