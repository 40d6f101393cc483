// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"fmt"
	"time"

	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// conversation is a connection on which one command runs. It has these states:
//
//	made loud   the server draws prompts; only for commands that instrument classes, because
//	            the server reports how much their patterns match only then
//	running     the command was sent, and its answers arrive
//	over        the command ended by itself or failed; the connection ends with it
//	aborted     the context ended while the command ran: 0x04 was sent, and the answers that the
//	            server had begun still arrive until the end, for a limited time
type conversation struct {
	*connection
	// running means that at least a part of the command was sent.
	running bool
	// decoder reads the answers of the current command; nil means that there was none so far.
	decoder *decoder
}

// replies returns the number of delivered answers to the command.
func (c *conversation) replies() int {
	if !c.running {
		return 0
	}
	return c.decoder.replies
}

// repeated returns the number of ignored repetitions of answers.
func (c *conversation) repeated() int {
	if !c.running {
		return 0
	}
	return c.decoder.repeated
}

// run runs a command. It returns errInterrupted if the context has ended.
func (c *conversation) run(line []byte, command javamethods.Command, each func(javamethods.Reply)) error {
	if !endsByItself(command) {
		if err := c.makeLoud(); err != nil {
			return fmt.Errorf("first command %q: %w", setLoud, err)
		}
	}
	c.running = true
	d, err := c.ask(line, command, each)
	if err == nil && isLost(command, d, len(c.prompt) > 0) {
		return ErrLost
	}
	return err
}

// makeLoud makes the server draw prompts and report how much patterns match. It ignores the refusal of a server that
// cannot.
func (c *conversation) makeLoud() error {
	_, err := c.ask([]byte(setLoud), javamethods.SessionsCommand{}, func(javamethods.Reply) {})
	if err != nil && !errors.Is(err, javamethods.ErrRefused) && !errors.Is(err, javamethods.ErrUnsupported) {
		return err
	}
	switch err := c.read(c.config.SettleTime); {
	case err == nil:
		return withOffset(c.offset(), unexpected("nothing behind the end of an answer", c.buf[c.begin:c.end]))
	case err != errNothing:
		return err
	}
	return nil
}

// isLost reports whether a command cannot have ended by itself: either it never does, or an answer has to precede its
// end.
func isLost(command javamethods.Command, d *decoder, loud bool) bool {
	answers := d.replies + d.repeated
	if d.affected {
		answers--
	}
	limited := func(limit javamethods.Limit) bool { return limit == 0 || loud && !d.affected || answers == 0 }
	switch c := command.(type) {
	case javamethods.MonitorCommand:
		return true
	case javamethods.TraceCommand:
		return limited(c.Limit)
	case javamethods.StackCommand:
		return limited(c.Limit)
	case javamethods.RecordCommand:
		return limited(c.Limit)
	}
	return false
}

// ask sends a line and reads the server's answers up to the end.
func (c *conversation) ask(line []byte, command javamethods.Command, each func(javamethods.Reply)) (*decoder, error) {
	d := &decoder{output: output{each: each, clock: clock{zone: c.config.Zone}}, limit: int64(c.config.MaxReplyBytes), memory: greys.ReservationOf(c.Conn)}
	d.block = newBlock(command, &d.output)
	c.decoder = d
	if err := c.send(append(line, '\n'), c.config.WriteTimeout); err != nil {
		return d, err
	}
	return d, c.listen(d, newAnswerTimer(command, c.config, len(c.prompt) > 0))
}

// newBlock returns the block that reads the answers to a command.
func newBlock(command javamethods.Command, o *output) block {
	switch c := command.(type) {
	case javamethods.VersionCommand:
		return &versionBlock{output: o}
	case javamethods.SessionsCommand:
		return &sessionBlock{output: o}
	case javamethods.MonitorCommand:
		return &monitorBlock{output: o}
	case javamethods.TraceCommand:
		return &treeBlock{output: o}
	case javamethods.StackCommand:
		return &stackBlock{output: o}
	case javamethods.RecordCommand, javamethods.RecordsCommand:
		return &recordsBlock{output: o}
	case javamethods.RecordDetailCommand:
		return &detailBlock{output: o}
	case javamethods.ClassesCommand:
		return &classBlock{output: o}
	case javamethods.MethodsCommand:
		return &methodsBlock{output: o}
	case javamethods.ResetCommand:
		return noBlock{}
	default:
		panic(fmt.Sprintf("greys: unknown command %T", c))
	}
}

// listen reads the server's answers to a command up to the end.
func (c *conversation) listen(d *decoder, p *answerTimer) error {
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
			err = c.lines(d.readLine)
			if err != nil {
				return err
			}
		case err == errNothing && p.expired():
			return d.transferError(c.received, p.expected.text, ErrTimeout)
		case err == errNothing && is == maybeEnded, errors.Is(err, ErrClosed) && (is == maybeEnded || d.failed != nil):
			_, rest = c.ending(d.endsAlone()) // read may have moved the held bytes
			return c.finish(d, rest)
		case err == errNothing && quiet:
			if err := d.quiet(c.offset()); err != nil {
				return err
			}
		case err == errNothing:
		case errors.Is(err, errInterrupted), errors.As(err, new(*SyntaxError)):
			return err
		default:
			return d.transferError(c.received, p.expected.text, err)
		}
	}
}

// finish reads the bytes before the end, and handles the end.
func (c *conversation) finish(d *decoder, rest []byte) error {
	offset := c.offset()
	c.discard()
	if len(rest) > 0 {
		if err := d.readLine(rest, offset); err != nil {
			return err
		}
	}
	return d.finish(c.received)
}

// abort asks the server to end the command and waits for the end. It reports whether the end arrived. The server may
// have written answers before it read the request: they are delivered. After an unreadable answer, bytes are discarded.
func (c *conversation) abort() bool {
	over := time.Now().Add(c.config.AbortTimeout)
	// If the server has closed the connection, this fails. Answers that have arrived can still be read.
	_ = c.send([]byte{EndOfReply}, c.config.AbortTimeout)
	readable := true
	for {
		readable = readable && c.lines(c.decoder.readLine) == nil
		if !readable {
			c.begin, c.searched = max(c.begin, c.end-promptBytes), 0
		}
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

// answerTimer computes how long the server may send nothing.
type answerTimer struct {
	command javamethods.Command
	config  Config
	// loud means that the server reports how much patterns match.
	loud bool
	// until is the deadline of a command that ends by itself; zero means none.
	until time.Time
	// expected is the next expected part of the answer, since the time since.
	expected expectation
	since    time.Time
	// limit is the time allowed for it; 0 means no limit.
	limit time.Duration
}

// expectation is a part of an answer, after a number of replies.
type expectation struct {
	text    string
	replies int
}

func newAnswerTimer(command javamethods.Command, config Config, loud bool) *answerTimer {
	p := &answerTimer{command: command, config: config, loud: loud}
	if endsByItself(command) {
		p.until = time.Now().Add(config.ListTimeout)
	}
	return p
}

// endsByItself reports whether a command ends after it has listed everything.
func endsByItself(command javamethods.Command) bool {
	switch command.(type) {
	case javamethods.MonitorCommand, javamethods.TraceCommand, javamethods.StackCommand, javamethods.RecordCommand:
		return false
	}
	return true
}

// takesLong reports whether the server looks at all classes before it sends anything.
func takesLong(command javamethods.Command) bool {
	switch command.(type) {
	case javamethods.ClassesCommand, javamethods.MethodsCommand:
		return true
	}
	return false
}

// wait returns how long the client may wait for more bytes; 0 means without limit. Partly means that a part of a line
// has arrived. New bytes of the same expected part do not extend the time.
func (p *answerTimer) wait(d *decoder, partly bool) time.Duration {
	text, limit := p.next(d, partly)
	if e := (expectation{text, d.replies}); e != p.expected || p.since.IsZero() {
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

// next returns the next expected part and its time limit; 0 means no limit.
func (p *answerTimer) next(d *decoder, partly bool) (expected string, limit time.Duration) {
	switch {
	case d.failed != nil:
		return "the end of the refusal", p.config.AnswerTimeout
	case partly || d.open():
		return "the rest of an answer", p.config.AnswerTimeout
	case d.lines == 0 && takesLong(p.command):
		return listAnswer, p.config.ListTimeout
	case endsByItself(p.command):
		return "the next answer, or the end", p.config.AnswerTimeout
	case p.loud && !d.affected:
		return "the counts of matched classes and methods", p.config.AnswerTimeout
	}
	if m, ok := p.command.(javamethods.MonitorCommand); ok {
		return "the table of a cycle", m.Cycle + p.config.AnswerTimeout
	}
	return "an answer", 0
}

// expired reports whether the expected part has taken too long.
func (p *answerTimer) expired() bool {
	now := time.Now()
	return p.limit > 0 && !now.Before(p.since.Add(p.limit)) || !p.until.IsZero() && !now.Before(p.until)
}
