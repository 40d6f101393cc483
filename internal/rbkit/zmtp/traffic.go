// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"fmt"
	"time"
)

// Message is the parts of a message, at least one. It lies in the buffer of its
// connection, and is gone when the next one is received.
type Message [][]byte

// traffic is a connection after its handshake.
type traffic struct {
	*connection
	minor byte // agreed
	// answer sends the answer to a PING.
	answer func(pong []byte) error
	// other takes commands besides PING, PONG and ERROR; nil: they are passed over.
	other func(command) error

	silence silence
	patience
	parts   []span  // of the message that is received, from the first byte held
	message Message // parts, as they are handed on
	spent   int     // bytes of the buffer that the message and what stood in it take
	out     []byte  // used again
	broken  error
}

// span is where a part lies.
type span struct{ begin, end int }

func newTraffic(g greeted) *traffic {
	t := &traffic{connection: g.connection, minor: g.minor}
	t.answer = t.write
	t.silence = silence{interval: t.options.Heartbeat, timeout: t.options.Timeout, asks: g.minor > 0}
	return t
}

// use does something under a context, unless the connection is broken. It is broken
// after an error, and when the context has ended meanwhile.
func (t *traffic) use(ctx context.Context, do func() error) error {
	if t.broken != nil {
		return t.fail(StageTraffic, &BrokenError{Err: t.broken})
	}
	if ctx.Err() != nil {
		return t.fail(StageTraffic, context.Cause(ctx))
	}
	release := t.under(ctx)
	err := do()
	closed := release()
	switch {
	case err != nil:
		t.breaks(err)
		return t.fail(StageTraffic, err)
	case closed:
		t.breaks(context.Cause(ctx))
	}
	return nil
}

// breaks closes the connection, of which it is not known any more where it stands.
func (t *traffic) breaks(err error) {
	t.broken = err
	_ = t.conn.Close() // err says more
}

// receive waits for a message. The one before is gone.
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
			if commands, err = t.passOver(commands + int(h.size)); err != nil {
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

// passOver frees the place of commands that stood before a message. Inside of a message
// they stay where they are, so there may not be many.
func (t *traffic) passOver(commands int) (left int, err error) {
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

// assembled is the message of the parts, which all have come.
func (t *traffic) assembled() Message {
	t.message = t.message[:0]
	held := t.in.held()
	for _, p := range t.parts {
		t.message = append(t.message, held[p.begin:p.end:p.end])
	}
	return t.message
}

// frame waits for the next frame, and gives its header and where its body begins. total
// is the size of the parts before it.
func (t *traffic) frame(total int) (header, int, error) {
	at := t.spent
	if err := t.need(at+1, "a frame"); err != nil {
		return header{}, 0, err
	}
	flags := t.in.held()[at]
	if wrong := checkFlags(flags); wrong != nil {
		return header{}, 0, t.wrong(at, wrong)
	}
	body := at + headerSize(flags)
	if err := t.need(body, "the header of a frame"); err != nil {
		return header{}, 0, err
	}
	h, wrong := parseHeader(t.in.held()[at:body])
	if wrong == nil {
		wrong = t.checkSize(h, total)
	}
	if wrong != nil {
		return header{}, 0, t.wrong(at, wrong)
	}
	return h, body, t.need(body+int(h.size), "the rest of a frame")
}

// wrong is the error of a frame, moved to where that stands.
func (t *traffic) wrong(at int, err *ProtocolError) error {
	err.Offset += t.in.offset() + int64(at)
	return err
}

// checkSize says whether a frame is within the limits, before any of it is waited for.
func (t *traffic) checkSize(h header, total int) *ProtocolError {
	limits := t.options.Limits
	what, room := "a frame of at most %d bytes", limits.Frame
	switch {
	case h.flags&flagCommand != 0:
		what, room = "a command of at most %d bytes", maxCommand
	case len(t.parts) >= limits.Parts:
		return &ProtocolError{Expected: fmt.Sprintf("a message of at most %d parts", limits.Parts), Got: "one more"}
	case room > limits.Message-total:
		what, room = "a message of which at most %d bytes are to come", limits.Message-total
	}
	if h.size > uint64(room) {
		return &ProtocolError{Offset: 1, Expected: fmt.Sprintf(what, room), Got: fmt.Sprintf("a size of %d", h.size)}
	}
	return nil
}

// need waits until n bytes are held.
func (t *traffic) need(n int, what string) error {
	for len(t.in.held()) < n {
		var err error
		if len(t.in.held()) == 0 {
			err = t.idle()
		} else {
			err = t.fill(t.due(t.in.received, t.options.Timeout), what)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// idle waits for the first byte of a frame for as long as it takes, while the other side
// shows that it is there. Only the time that is waited counts: whoever handles a message
// may take long.
func (t *traffic) idle() error {
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

// command obeys a command.
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
