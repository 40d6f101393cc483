// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"fmt"
	"time"
)

// Message is the parts of a message, at least one. It lies in the buffer of its connection, which
// the next message overwrites.
type Message [][]byte

// traffic is a connection after its handshake.
type traffic struct {
	*connection
	minor byte // agreed
	// answer sends the answer to a PING.
	answer func(pong []byte) error
	// other handles commands other than PING, PONG and ERROR; nil: they are skipped.
	other func(command) error

	silence silence
	patience
	parts   []span  // of the current message, from the first byte held
	message Message // parts, for the caller
	spent   int     // bytes of the buffer up to the end of the message
	out     []byte  // reused
	broken  error
}

// span is the place of a part in the buffer.
type span struct{ begin, end int }

func newTraffic(g greeted) *traffic {
	t := &traffic{connection: g.connection, minor: g.minor}
	t.answer = t.write
	t.silence = silence{interval: t.options.Heartbeat, timeout: t.options.Timeout, asks: g.minor > 0}
	return t
}

// runUnder calls do under a context, unless the connection is broken. An error, or the end of the
// context during the call, breaks it.
func (t *traffic) runUnder(ctx context.Context, do func() error) error {
	// The context first: its end during an earlier call may have broken the connection.
	if ctx.Err() != nil {
		return t.fail(StageTraffic, context.Cause(ctx))
	}
	if t.broken != nil {
		return t.fail(StageTraffic, &BrokenError{Err: t.broken})
	}
	release := t.under(ctx)
	err := do()
	closed := release()
	switch {
	case err != nil:
		t.breakOff(err)
		return t.fail(StageTraffic, err)
	case closed:
		t.breakOff(context.Cause(ctx))
	}
	return nil
}

// breakOff closes the connection, because its position in the protocol is unknown after an error.
func (t *traffic) breakOff(err error) {
	t.broken = err
	_ = t.conn.Close() // err is the cause
}

// receive waits for a message, and overwrites the previous one.
func (t *traffic) receive() (Message, error) {
	t.in.drop(t.spent)
	t.spent = 0
	t.parts = t.parts[:0]
	t.begin()
	commands, total := 0, 0
	for {
		h, at, err := t.frame(total)
		if err != nil {
			return nil, err
		}
		body := span{at, at + int(h.size)}
		t.spent = body.end
		if h.flags&flagCommand != 0 {
			if err := t.command(body); err != nil {
				return nil, err
			}
			if commands, err = t.skipCommands(commands + int(h.size)); err != nil {
				return nil, err
			}
			continue
		}
		t.parts = append(t.parts, body)
		total += int(h.size)
		if h.flags&flagMore == 0 {
			return t.assembled(), nil
		}
	}
}

// skipCommands frees the place of commands before a message. Commands between the parts of a
// message stay in the buffer, so their bytes are bounded.
func (t *traffic) skipCommands(commands int) (left int, err error) {
	if len(t.parts) == 0 {
		t.in.drop(t.spent)
		t.spent = 0
		t.begin()
		return 0, nil
	}
	if commands > maxCommand {
		return 0, &ProtocolError{
			Offset:   t.in.offset() + int64(t.spent),
			Expected: fmt.Sprintf("at most %d bytes of commands between the parts of a message", maxCommand),
			Got:      fmt.Sprint(commands),
		}
	}
	return commands, nil
}

// assembled returns the message of the parts, which have all arrived.
func (t *traffic) assembled() Message {
	t.message = t.message[:0]
	held := t.in.held()
	for _, p := range t.parts {
		t.message = append(t.message, held[p.begin:p.end:p.end])
	}
	return t.message
}

// frame waits for the next frame, and returns its header and the begin of its body. total is the
// size of the parts before it.
func (t *traffic) frame(total int) (header, int, error) {
	at := t.spent
	if err := t.waitForBytes(at+1, "a frame"); err != nil {
		return header{}, 0, err
	}
	flags := t.in.held()[at]
	if wrong := checkFlags(flags); wrong != nil {
		return header{}, 0, t.errorAt(at, wrong)
	}
	body := at + headerSize(flags)
	if err := t.waitForBytes(body, "the header of a frame"); err != nil {
		return header{}, 0, err
	}
	h, wrong := parseHeader(t.in.held()[at:body])
	if wrong == nil {
		wrong = t.checkSize(h, total)
	}
	if wrong != nil {
		return header{}, 0, t.errorAt(at, wrong)
	}
	return h, body, t.waitForBytes(body+int(h.size), "the rest of a frame")
}

// errorAt moves the error of a frame to the position of the frame.
func (t *traffic) errorAt(at int, err *ProtocolError) error {
	err.Offset += t.in.offset() + int64(at)
	return err
}

// checkSize checks the limits for a frame before it waits for its body.
func (t *traffic) checkSize(h header, total int) *ProtocolError {
	limits := t.options.Limits
	what, room := "a frame of at most %d bytes", limits.Frame
	switch {
	case h.flags&flagCommand != 0:
		what, room = "a command of at most %d bytes", maxCommand
	case len(t.parts) >= limits.Parts:
		return &ProtocolError{Expected: fmt.Sprintf("a message of at most %d parts", limits.Parts), Got: "one more"}
	case room > limits.Message-total:
		what, room = "a message with at most %d more bytes", limits.Message-total
	}
	if h.size > uint64(room) {
		return &ProtocolError{Offset: 1, Expected: fmt.Sprintf(what, room), Got: fmt.Sprintf("a size of %d", h.size)}
	}
	return nil
}

// waitForBytes waits until n bytes are held.
func (t *traffic) waitForBytes(n int, what string) error {
	for len(t.in.held()) < n {
		var err error
		if len(t.in.held()) == 0 {
			err = t.waitForFirstByte()
		} else {
			err = t.fill(t.deadline(t.in.received, t.options.Timeout), what)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// waitForFirstByte waits for the first byte of a frame. The wait has no limit while the other
// side answers PING. The time in which the caller handles a message doesn't count.
func (t *traffic) waitForFirstByte() error {
	w := wait{began: time.Now()}
	for {
		deadline, ask := t.silence.deadline(w)
		err := t.fill(deadline, "a frame, or an answer to PING")
		if !ask || !isTimeout(err) {
			return err
		}
		t.out = appendPing(t.out[:0])
		if err := t.answer(t.out); err != nil {
			return err
		}
		w.asked = time.Now()
	}
}

// command carries out a command.
func (t *traffic) command(body span) error {
	c, wrong := parseCommand(t.in.held()[body.begin:body.end], t.in.offset()+int64(body.begin))
	if wrong != nil {
		return wrong
	}
	switch {
	case c.name == commandPing:
		p, wrong := parsePing(c)
		if wrong != nil {
			return wrong
		}
		t.silence.ttl = p.ttl
		t.out = appendCommand(t.out[:0], commandPong, p.context)
		return t.answer(t.out)
	case c.name == commandError:
		return refusal(c)
	case c.name == commandPong || t.other == nil:
		return nil
	default:
		return t.other(c)
	}
}
