// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"bytes"
	"context"
	"errors"
	"net"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/rbkit"
)

// identity is what tells the lives of a server apart, beside the numbers of messages.
type identity struct {
	// hello is what the server says of itself; nil: it was not asked, or didn't answer.
	hello *rbkit.HandshakeReply
	// local is the process, if it is on this machine.
	local *localProcess
}

// startTolerance is how far the time at which a process was started may seem to move when
// the machine's clock is set.
const startTolerance = 2 * time.Second

// isOther reports whether a server that was before is another process now. What is not
// known of one of them says nothing: then the numbers of messages do.
func (before identity) isOther(now identity) bool {
	if b, n := before.hello, now.hello; b != nil && n != nil &&
		(b.PID != n.PID || b.ServerVersion != n.ServerVersion || b.Dialect != n.Dialect) {
		return true
	}
	return before.local != nil && now.local != nil &&
		now.local.started.Sub(before.local.started).Abs() > startTolerance
}

// meeting is the time in which a server is asked who it is. What it publishes meanwhile is
// kept, so that all of it has the same resource.
type meeting struct {
	goesOn bool
	// number tells it from others of the server.
	number int
	// anew says that it is not the process that it was.
	anew bool
	kept []keptMessage
	// size is what the messages take in memory, about.
	size int
}

// keptMessage is a message that came at a time.
type keptMessage struct {
	data []byte
	at   time.Time
}

// bytesOfKept is what a message takes beside its bytes, about.
const bytesOfKept = 64

// begin begins one. A server that is there is another one if it is met anew.
func (m *meeting) begin(anew bool) { *m = meeting{goesOn: true, number: m.number + 1, anew: anew} }

// end ends it, and gives the messages that were kept.
func (m *meeting) end() (kept []keptMessage) {
	kept = m.kept
	*m = meeting{number: m.number}
	return kept
}

// keepAll keeps messages that had been kept before.
func (m *meeting) keepAll(messages []keptMessage) {
	m.kept = messages
	for i := range messages {
		m.size += len(messages[i].data) + bytesOfKept
	}
}

// keep copies a message, if there is room for it in so many bytes. One always has room.
func (m *meeting) keep(message []byte, at time.Time, most int) bool {
	size := len(message) + bytesOfKept
	if len(m.kept) > 0 && m.size+size > most {
		return false
	}
	m.kept = append(m.kept, keptMessage{bytes.Clone(message), at})
	m.size += size
	return true
}

// meet asks the server who it is, as long as that is not known.
func (s *server) meet(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.meeting.goesOn {
		number, peer := s.meeting.number, s.peer
		s.mu.Unlock()
		who := s.ask(ctx, peer)
		s.mu.Lock()
		if s.meeting.goesOn && s.meeting.number == number {
			s.settle(who)
		}
	}
}

// ask asks the server who it is, again while there is time: the socket that answers may be
// there a moment after the one that publishes.
func (s *server) ask(ctx context.Context, peer net.Addr) identity {
	if s.control == nil {
		return identity{}
	}
	until, pauses := s.env.now().Add(s.env.config.Timeout), backoff.New(s.env.config.Reconnect)
	for {
		if hello, ok := s.control.handshake(ctx); ok {
			return identity{hello: &hello, local: findLocal(peer, &hello)}
		}
		pause := pauses.Pause()
		if s.env.now().Add(pause).After(until) {
			return identity{}
		}
		select {
		case <-ctx.Done():
			return identity{}
		case <-time.After(pause):
		}
	}
}

// settle ends a meeting: it is known who the server is, or will not be. Messages that came
// meanwhile are handled, up to one of yet another life. The lock is held.
func (s *server) settle(who identity) {
	other := s.process == nil || s.meeting.anew || s.who.isOther(who)
	if other {
		s.begin(who)
	} else if who.hello != nil {
		s.who = who
		s.process.samples.state(who.hello)
	}
	s.met = who
	if who.hello != nil {
		s.said = who.hello
	}
	if s.control != nil {
		s.control.switched.connected(other)
	}
	s.known()
	if !s.connected {
		s.connected, s.untold = true, true
		s.seldom(&s.connects, s.logger.Info, "Connected to the server", about(who.hello)...)
		s.env.saidConnected(s.process.origin)
	}
	kept := s.meeting.end()
	for i, m := range kept {
		if !s.handle(m.data, m.at) {
			s.meeting.keepAll(kept[i:])
			return
		}
	}
}

// known says of the component's health whether it is known who the server is, where it can be
// asked. The lock is held.
func (s *server) known() {
	if s.control != nil && s.said == nil {
		s.health.Failed(errUnknown)
		return
	}
	s.health.Up()
}

var errUnknown = errors.New("it publishes, and doesn't answer at the address of request")

// readOn begins another life of the server at an event that says so, and has it go through
// the rest of a message that came at a time. It has been there since the connection was
// made, and said then who it is; its messages have numbers that the life before might have
// had. The lock is held.
func (s *server) readOn(r *rbkit.Reader, at time.Time) error {
	s.begin(s.met)
	if s.control != nil {
		s.control.switched.connectedToOther()
	}
	s.process.now = at
	return s.process.readOn(r)
}
