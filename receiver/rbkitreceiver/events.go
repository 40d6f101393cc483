// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"errors"

	"github.com/callbraid/callbraid/internal/rbkit"
)

// read goes through the events of a message, and tells each to what it is about. An error
// is why there are no more of them. over says that the process is another one from the
// event on that the reader stands at.
func (p *process) read(r *rbkit.Reader) (over bool, err error) {
	p.header(r.Header())
	for r.Next() {
		if p.interruption.came() {
			return false, p.interruption.why
		}
		e := r.Event()
		if e.Kind == rbkit.GCStats && p.stats.fell(e.Stats) {
			return true, nil
		}
		p.event(e)
	}
	return false, p.readUpTo(r.Header(), r.Err())
}

// readOn is read from the event on that the reader stands at.
func (p *process) readOn(r *rbkit.Reader) error {
	p.header(r.Header())
	p.event(r.Event())
	for r.Next() {
		if p.interruption.came() {
			return p.interruption.why
		}
		p.event(r.Event())
	}
	return p.readUpTo(r.Header(), r.Err())
}

// readUpTo is told why there are no more events of a message. Behind what is wrong others
// may have stood, but not where a message only ends too early: that is all that was sent.
// Nor is anything known to be missing where a message has no number and others have: if it
// was the server's, the number of the next one says so.
func (p *process) readUpTo(h rbkit.Header, err error) error {
	var bad *rbkit.ProtocolError
	switch {
	case !errors.As(err, &bad) || bad.Problem == rbkit.Truncated:
	case p.counted && !h.Counted:
	default:
		p.missed()
	}
	return err
}

// missed is told that events did not come.
func (p *process) missed() {
	p.cycles.breakOff()
	p.snapshots.last = 0
}

// mostLost is how many messages are lost in one gap at most: it takes a server years to send
// more, so that numbers which say so are made up.
const mostLost = 1 << 32

// header counts messages that did not come.
func (p *process) header(h rbkit.Header) {
	if !h.Counted {
		return
	}
	if p.counted && h.Counter > p.last+1 {
		p.lost = sum(p.lost, min(h.Counter-p.last-1, mostLost))
		p.missed()
	}
	p.last, p.counted = h.Counter, true
}

func (p *process) event(e *rbkit.Event) {
	if e.Kind == rbkit.DumpedObject {
		p.dumpedObject(e)
		return
	}
	p.events++
	switch e.Kind {
	case rbkit.ObjectCreated:
		if p.env.measured {
			p.objects.create(e.Object.ID, e.Object.Class)
		}
	case rbkit.ObjectDestroyed:
		if p.env.measured {
			p.objects.destroy(e.Object.ID)
		}
	case rbkit.GCStart, rbkit.GCEndMark, rbkit.GCEndSweep:
		p.cycles.event(int64(e.Time), e.Kind)
	case rbkit.GCStats:
		p.stats.set(e.Stats)
		p.toldStats = true
	case rbkit.ObjectSpaceDump:
		p.dumps.part(int64(e.Time), e.Part, p.now)
	case rbkit.CPUSample:
		p.samples.add(int64(e.Time), e.Frames, p.now)
	case rbkit.AllocationSnapshot:
		p.allocated(int64(e.Time), e.Snapshot)
	default:
		p.unknown++
	}
}

// dumpedObject is told of an object of the last part of a dump.
func (p *process) dumpedObject(e *rbkit.Event) {
	if p.env.config.DumpReferences && p.env.logs != nil && !p.env.eventsOff[eventObject] {
		p.records.add(e, p.now)
	}
	p.dumps.object(&e.Object)
}

// allocated is told of what was allocated since the last snapshot.
func (p *process) allocated(millis int64, s rbkit.Snapshot) {
	p.snapshots.begin(millis, s.Size())
	for id, frames := range s.AllStacks() {
		p.snapshots.stack(id, frames)
	}
	p.allocations.begin()
	for a := range s.AllAllocations() {
		if p.interruption.came() {
			return
		}
		if p.env.measured {
			p.allocations.add(&a)
		}
		p.snapshots.allocation(&a, &p.interruption)
	}
}
