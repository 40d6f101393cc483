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

// pendingEvents are the events of one connection that wait for names. The connection is read
// meanwhile. They are for one goroutine.
type pendingEvents struct {
	// events has reserved memory for its capacity.
	events []pendingEvent
	memory *runmemory.Memory
	// wait is the longest time that an event waits.
	wait time.Duration
	// tried is the time of the last try for all events. arrivals is the count of new names at that time.
	tried    time.Time
	arrivals uint32
	// asked: overdue events may not be packed yet. again is the time to ask again, or zero: a wake-up is the time.
	asked bool
	again time.Time
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
)

// minPending is the least capacity while an event waits.
const minPending = 16

// add adds an event, or reports false if there is no memory. Half of the run's memory is left for the
// names that events wait for.
func (p *pendingEvents) add(e numbered, now time.Time) bool {
	if len(p.events) == cap(p.events) && !p.resize(max(minPending, cap(p.events)+cap(p.events)/4)) {
		return false
	}
	p.events = append(p.events, pendingEvent{numbered: e, since: now})
	return true
}

// resize changes the capacity to n events, not fewer than there are, if there is memory.
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

// drop drops all events, returns their memory, and returns their number.
func (p *pendingEvents) drop() (events int) {
	events = len(p.events)
	p.memory.Return(cap(p.events) * pendingBytes)
	p.events = nil
	return events
}

// due reports whether names have arrived since the last try.
func (p *pendingEvents) due(arrivals uint32, now time.Time) bool {
	if len(p.events) == 0 {
		return false
	}
	return arrivals != p.arrivals && now.Sub(p.tried) >= p.pause()
}

// pause is the least time between two tries.
func (p *pendingEvents) pause() time.Duration {
	return RetryPause * time.Duration(1+len(p.events)/pendingShare)
}

// overdue reports whether some have waited long enough.
func (p *pendingEvents) overdue(now time.Time) bool {
	return len(p.events) > 0 && now.Sub(p.events[0].since) >= p.wait
}

// wake is the time of the next try, or zero: the next name or the next wake-up is the time.
func (p *pendingEvents) wake(arrivals uint32, now time.Time) time.Time {
	if len(p.events) == 0 {
		return time.Time{}
	}
	wake := p.events[0].since.Add(p.wait)
	if p.asked && p.overdue(now) {
		wake = p.again
	}
	if arrivals != p.arrivals {
		wake = earliest(wake, p.tried.Add(p.pause()))
	}
	return wake
}

// earliest is the earlier of two times, of which zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// try calls pack with each event, and keeps the events for which pack reports false. force is true for an event that
// had waited long enough at the time until.
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
