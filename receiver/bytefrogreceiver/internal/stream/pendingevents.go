// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"time"
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/runmemory"
)

// numbered is a call event whose method, thread and exception are still IDs.
type numbered struct {
	sequence  uint64
	ticks     int64
	method    uint32
	exception uint32
	line      uint16
	thread    uint16
	kind      callevent.Kind
}

// pendingEvents are the events of one connection that wait for names. The connection
// is read on meanwhile. It is for one goroutine.
type pendingEvents struct {
	// events has memory for as many as it has room for.
	events []pendingEvent
	memory *runmemory.Memory
	// wait is how long an event waits.
	wait time.Duration
	// tried is when all of them were tried last, with the names that had arrived.
	tried    time.Time
	arrivals uint32
}

type pendingEvent struct {
	numbered
	since time.Time
}

const (
	pendingBytes = int(unsafe.Sizeof(pendingEvent{}))
	// RetryPause is the least time between two tries to name waiting events, for each pendingShare of
	// events: trying again is never most of the work.
	RetryPause   = 5 * time.Millisecond
	pendingShare = 32 << 10
	// pendingPoll is how often a connection that nothing comes on looks for names
	// that came on others.
	pendingPoll = 20 * time.Millisecond
)

// minPending is how many events there is room for at least where one waits.
const minPending = 16

// add takes an event, or reports false when there is no room. Half of the run's memory is
// left for the names that events wait for.
func (p *pendingEvents) add(e numbered, now time.Time) bool {
	if len(p.events) == cap(p.events) && !p.resize(max(minPending, cap(p.events)+cap(p.events)/4)) {
		return false
	}
	p.events = append(p.events, pendingEvent{numbered: e, since: now})
	return true
}

// resize makes room for n events, which are not fewer than there are, if there is memory.
func (p *pendingEvents) resize(n int) bool {
	more := (n - cap(p.events)) * pendingBytes
	if more > 0 && !p.memory.ReserveOfHalf(more) {
		return false
	}
	events := make([]pendingEvent, len(p.events), n)
	copy(events, p.events)
	p.events = events
	if more < 0 {
		p.memory.Return(-more)
	}
	return true
}

// drop drops all events, gives their memory back, and says how many they were.
func (p *pendingEvents) drop() (events int) {
	events = len(p.events)
	p.memory.Return(cap(p.events) * pendingBytes)
	p.events = nil
	return events
}

// due reports whether some might have a name by now.
func (p *pendingEvents) due(arrivals uint32, now time.Time) bool {
	if len(p.events) == 0 {
		return false
	}
	pause := RetryPause * time.Duration(1+len(p.events)/pendingShare)
	return arrivals != p.arrivals && now.Sub(p.tried) >= pause
}

// overdue reports whether some have waited long enough.
func (p *pendingEvents) overdue(now time.Time) bool {
	return len(p.events) > 0 && now.Sub(p.events[0].since) >= p.wait
}

// wake is when to look again.
func (p *pendingEvents) wake(now time.Time) time.Time {
	if len(p.events) == 0 {
		return time.Time{}
	}
	return now.Add(min(pendingPoll, p.wait))
}

// try gives each event to pack, and keeps those that it doesn't take; force says
// that an event had waited long enough at the time until, and is to be packed as it
// is.
func (p *pendingEvents) try(arrivals uint32, now, until time.Time, pack func(e *numbered, force bool) bool) {
	p.tried, p.arrivals = now, arrivals
	kept := p.events[:0]
	for i := range p.events {
		e := &p.events[i]
		if !pack(&e.numbered, until.Sub(e.since) >= p.wait) {
			kept = append(kept, *e)
		}
	}
	p.events = kept
	switch n := len(kept); {
	case n == 0:
		p.drop()
	case n <= cap(kept)/4 && n > minPending:
		p.resize(n)
	}
}
