// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package pace keeps the data connections of a run near to each other. An agent spreads its events
// evenly over its connections, but the receiver may read one of them faster. Events of a faster
// connection must wait in the processor, which bounds their number and their time. So a connection
// that is ahead is not read for a while.
//
// Sequence numbers have no gaps. So the missing numbers below the highest one received are on other
// connections, and the lead of a connection is known exactly.
package pace

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/stream"
)

const (
	// defaultPatience is the patience of a Group.
	defaultPatience = 100 * time.Millisecond
	// socketBytes is more than the sockets of a connection hold.
	socketBytes = 16 << 20
)

// Group is the data connections of a run, for many goroutines.
type Group struct {
	stream *stream.Stream
	// lead is how many sequence numbers may be missing.
	lead int64
	// backlog is how many bytes an agent can have sent on a connection before the receiver reads
	// them: those in sockets, and those in the buffers of the agent.
	backlog uint64
	// patience is how long the other connections have nothing to handle, and nothing arrives,
	// before a connection no longer waits for them: the missing numbers are lost, or late in
	// the agent.
	patience time.Duration
	// forgiven is how many of the missing numbers no connection waits for any more.
	forgiven atomic.Int64
	changed  hq.Signal

	mu      sync.Mutex
	members map[*Member]struct{}
	// watched are the backlogs that wake a connection, with the number of them in watching.
	watched  map[*Backlog]struct{}
	watching atomic.Int32
}

// NewGroup makes the group of a run. lead is how many sequence numbers may be missing below the
// highest one before a connection waits, buffers the size of the agent's buffers in bytes.
func NewGroup(s *stream.Stream, lead, buffers int) *Group {
	return &Group{
		stream: s, lead: int64(lead), backlog: uint64(socketBytes + buffers), patience: defaultPatience,
		members: map[*Member]struct{}{}, watched: map[*Backlog]struct{}{},
	}
}

// Changed wakes connections that wait, to check again. It is called when events were packed, when
// a connection has handled all that arrived, and when one is not to be read any more.
func (g *Group) Changed() { g.changed.Notify() }

// NextChange returns a channel that the next Changed closes.
func (g *Group) NextChange() <-chan struct{} { return g.changed.Next() }

// Member is one connection of a group.
type Member struct {
	group *Group
	// idle reports whether the connection has handled all that has arrived.
	idle func() bool
	// position is the sequence number of the events or the marker that it handles.
	position atomic.Uint64
	// bytes is how many bytes have arrived.
	bytes atomic.Uint64
	waits atomic.Bool
}

// NewMember makes a member that has not joined yet. idle reports whether the connection has handled
// all that has arrived; MayBeIdle is called when that becomes true.
func (g *Group) NewMember(idle func() bool) *Member { return &Member{group: g, idle: idle} }

// Join adds the member: others wait for it.
func (m *Member) Join() {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	m.group.members[m] = struct{}{}
}

// Leave removes the member, if it has joined.
func (m *Member) Leave() {
	m.group.mu.Lock()
	delete(m.group.members, m)
	m.group.mu.Unlock()
	m.group.settle(m)
	m.group.Changed()
}

// Arrived counts bytes that have arrived.
func (m *Member) Arrived(bytes int) {
	m.bytes.Add(uint64(bytes))
	m.group.settle(m)
}

// MayBeIdle wakes connections that wait for this one: it may have handled all that has arrived.
func (m *Member) MayBeIdle() {
	m.group.settle(m)
	m.group.Changed()
}

// MoveTo sets the sequence number that the connection handles.
func (m *Member) MoveTo(sequence uint64) {
	m.position.Store(sequence)
	m.group.Changed()
}

// Position is the sequence number that the connection handles.
func (m *Member) Position() uint64 { return m.position.Load() }

// Waits reports whether the connection waits for others.
func (m *Member) Waits() bool { return m.waits.Load() }

// Waiting is how a connection waits for others.
type Waiting struct {
	Now func() time.Time
	// Attend does other work that is due while the connection is not read, and returns when it
	// is due again, or zero.
	Attend func(now time.Time) time.Time
	// Stop, Full and Cancelled end the wait when they are closed.
	Stop, Full, Cancelled <-chan struct{}
}

// Await returns the first of the events that can be packed now, at least one. Before, it waits if
// too many numbers are missing below them:
//
//  1. If few enough are missing below the last event, all can be packed.
//  2. Else only those before a gap in their own numbers can: the next call is for the others.
//  3. The first event becomes the position of the connection: no connection behind it waits for it.
//  4. It waits until few enough numbers are missing, or no connection is further behind.
//  5. If the others have had nothing to handle for the time of patience, the missing numbers are
//     forgiven: they are lost, or late in the agent.
//
// The connection that is furthest behind never waits, so one always continues.
func (m *Member) Await(events []bytefrog.Event, w *Waiting) []bytefrog.Event {
	m.group.takeForgivenBack()
	if m.missing(events) <= m.group.lead {
		return events
	}
	events = events[:untilGap(events, m.group.lead)]
	m.MoveTo(bytefrog.Unwrap(m.group.stream.Next(), events[0].Sequence))
	m.wait(events, w)
	return events
}

// missing is how many numbers that are not forgiven are missing once the events are packed.
func (m *Member) missing(events []bytefrog.Event) int64 {
	return m.missingAtAll(events) - m.group.forgiven.Load()
}

func (m *Member) missingAtAll(events []bytefrog.Event) int64 {
	s := m.group.stream
	next := bytefrog.Unwrap(s.Next(), events[len(events)-1].Sequence) + 1
	return s.MissingBelow(next, uint64(len(events)))
}

// takeForgivenBack reduces the forgiven numbers when some have arrived after all.
func (g *Group) takeForgivenBack() {
	if forgiven := g.forgiven.Load(); forgiven > 0 {
		if missing := g.stream.Missing(); missing < forgiven {
			g.forgiven.CompareAndSwap(forgiven, missing)
		}
	}
}

// untilGap is how many events, at least one, come before an event that is further ahead of the
// first than all events and lead more.
func untilGap(events []bytefrog.Event, lead int64) int {
	most := int64(len(events)) + lead
	for i := range events {
		if int64(int32(events[i].Sequence-events[0].Sequence)) > most {
			return i
		}
	}
	return len(events)
}

// wait is steps 4 and 5 of Await.
func (m *Member) wait(events []bytefrog.Event, w *Waiting) {
	g := m.group
	if !g.anyBehind(m) {
		return
	}
	m.waits.Store(true)
	defer m.waits.Store(false)
	g.Changed() // another may wait for this one
	timer := time.NewTimer(g.patience)
	defer timer.Stop()
	backlog := m.OthersBacklog()
	received, since := g.stream.Received(), w.Now()
	for {
		changed := g.changed.Next()
		if m.missing(events) <= g.lead || !g.anyBehind(m) {
			return
		}
		now := w.Now()
		if n := g.stream.Received(); n != received || !g.othersIdle(m, backlog) {
			received, since = n, now
		} else if now.Sub(since) >= g.patience {
			g.forgiven.Store(m.missingAtAll(events))
			return
		}
		again := since.Add(g.patience)
		if due := w.Attend(now); !due.IsZero() && due.Before(again) {
			again = due
		}
		timer.Reset(max(again.Sub(now), time.Millisecond))
		select {
		case <-changed:
		case <-timer.C:
		case <-w.Stop:
			return
		case <-w.Full:
			return
		case <-w.Cancelled:
			return
		}
	}
}

// anyBehind reports whether another connection is further behind.
func (g *Group) anyBehind(m *Member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for other := range g.members {
		if other != m && other.position.Load() < m.position.Load() {
			return true
		}
	}
	return false
}

// othersIdle reports whether the other connections have nothing to handle that m could wait for.
// A connection that is held up by the pipeline has. These have not:
//   - a connection that waits and is not behind m: it waits for m, or for one that m waits for
//   - a connection that never runs dry, if it has handled its backlog.
func (g *Group) othersIdle(m *Member, backlog *Backlog) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for other := range g.members {
		waitsToo := other.waits.Load() && other.position.Load() >= m.position.Load()
		if other != m && !waitsToo && !other.idle() && !backlog.handledBytes(other) {
			return false
		}
	}
	return true
}

// Backlog is all that an agent can have sent on other connections at a moment. It is for one
// goroutine.
type Backlog struct {
	group *Group
	// behind are the connections that have not handled it, with the bytes that had arrived. The lock of the
	// group guards it.
	behind map[*Member]uint64
	// wake, if not nil, is called once when a connection has handled the rest of the backlog.
	wake func()
}

// OthersBacklog is the backlog of the other connections now.
func (m *Member) OthersBacklog() *Backlog {
	g := m.group
	g.mu.Lock()
	defer g.mu.Unlock()
	b := &Backlog{group: g, behind: map[*Member]uint64{}}
	for other := range g.members {
		if other != m {
			b.behind[other] = other.bytes.Load()
		}
	}
	return b
}

// IsHandled reports whether the connections have handled the backlog, or have left.
func (b *Backlog) IsHandled() bool {
	b.group.mu.Lock()
	defer b.group.mu.Unlock()
	for other := range b.behind {
		b.settle(other)
	}
	if len(b.behind) == 0 {
		b.unwatch()
	}
	return len(b.behind) == 0
}

// settle removes a connection that has handled the backlog or has left. The caller holds the lock.
func (b *Backlog) settle(other *Member) {
	_, still := b.group.members[other]
	if !still || b.handledBytes(other) || other.idle() {
		delete(b.behind, other)
	}
}

// WakeWhenHandled has wake called once when the backlog is handled, unless IsHandled reports that first. wake must
// not use the group, except Changed.
func (b *Backlog) WakeWhenHandled(wake func()) {
	b.group.mu.Lock()
	defer b.group.mu.Unlock()
	b.wake = wake
	b.group.watched[b] = struct{}{}
	b.group.watching.Store(int32(len(b.group.watched)))
	// A connection may have handled it before it was watched.
	for other := range b.behind {
		b.settle(other)
	}
	b.wakeIfHandled()
}

// wakeIfHandled calls wake if the backlog is handled. The caller holds the lock.
func (b *Backlog) wakeIfHandled() {
	if len(b.behind) == 0 {
		b.unwatch()
		b.wake()
	}
}

// unwatch ends the watch of the backlog. The caller holds the lock.
func (b *Backlog) unwatch() {
	delete(b.group.watched, b)
	b.group.watching.Store(int32(len(b.group.watched)))
}

// settle wakes the connections whose backlogs m was the last to handle. It costs one atomic load while no backlog is
// watched.
func (g *Group) settle(m *Member) {
	if g.watching.Load() == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for b := range g.watched {
		if _, behind := b.behind[m]; behind {
			b.settle(m)
			b.wakeIfHandled()
		}
	}
}

// handledBytes reports whether more bytes have arrived on a connection than the agent can have sent.
func (b *Backlog) handledBytes(m *Member) bool {
	before, ok := b.behind[m]
	return ok && m.bytes.Load()-before >= b.group.backlog
}
