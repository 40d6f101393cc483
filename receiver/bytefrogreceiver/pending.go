// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"time"
	"unsafe"

	"github.com/callbraid/callbraid/internal/callevent"
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

// pending are the events of one connection that wait for names. The connection
// is read on meanwhile. It is for one goroutine.
type pending struct {
	events []pendingEvent
	budget *budget
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
	// pendingPause is the least time between two tries, for each pendingShare of
	// events: trying again is never most of the work.
	pendingPause = 5 * time.Millisecond
	pendingShare = 32 << 10
	// pendingPoll is how often a connection that nothing comes on looks for names
	// that came on others.
	pendingPoll = 20 * time.Millisecond
)

// add takes an event, or reports false when there is no room. Half of the budget is
// left for the names that events wait for.
func (p *pending) add(e numbered, now time.Time) bool {
	if !p.budget.takeOfHalf(pendingBytes) {
		return false
	}
	p.events = append(p.events, pendingEvent{numbered: e, since: now})
	return true
}

// due reports whether some might have a name by now.
func (p *pending) due(arrivals uint32, now time.Time) bool {
	if len(p.events) == 0 {
		return false
	}
	pause := pendingPause * time.Duration(1+len(p.events)/pendingShare)
	return arrivals != p.arrivals && now.Sub(p.tried) >= pause
}

// overdue reports whether some have waited long enough.
func (p *pending) overdue(now time.Time) bool {
	return len(p.events) > 0 && now.Sub(p.events[0].since) >= p.wait
}

// wake is when to look again.
func (p *pending) wake(now time.Time) time.Time {
	if len(p.events) == 0 {
		return time.Time{}
	}
	return now.Add(min(pendingPoll, p.wait))
}

// try gives each event to pack, and keeps those that it doesn't take; force says
// that an event had waited long enough at the time until, and is to be packed as it
// is.
func (p *pending) try(arrivals uint32, now, until time.Time, pack func(e *numbered, force bool) bool) {
	p.tried, p.arrivals = now, arrivals
	kept := p.events[:0]
	for i := range p.events {
		e := &p.events[i]
		if !pack(&e.numbered, until.Sub(e.since) >= p.wait) {
			kept = append(kept, *e)
		}
	}
	p.budget.give((len(p.events) - len(kept)) * pendingBytes)
	p.events = kept
	if len(kept) == 0 {
		p.events = nil
	}
}
