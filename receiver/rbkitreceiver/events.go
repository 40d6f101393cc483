// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import "github.com/callbraid/callbraid/internal/rbkit"

// read goes through the events of a message, and tells each to what it is about. An error
// is why there are no more of them. over says that the process is another one from the
// event on that the reader stands at.
func (p *process) read(r *rbkit.Reader) (over bool, err error) {
	p.header(r.Header())
	for r.Next() {
		if p.interruption.came() {
			return false, errShutdown
		}
		e := r.Event()
		if e.Kind == rbkit.GCStats && p.stats.fell(e.Stats) {
			return true, nil
		}
		p.event(e)
	}
	return false, r.Err()
}

// readOn is read from the event on that the reader stands at.
func (p *process) readOn(r *rbkit.Reader) error {
	p.header(r.Header())
	p.event(r.Event())
	for r.Next() {
		if p.interruption.came() {
			return errShutdown
		}
		p.event(r.Event())
	}
	return r.Err()
}

// header counts messages that did not come.
func (p *process) header(h rbkit.Header) {
	if !h.Counted {
		return
	}
	if p.counted && h.Counter > p.next {
		p.lost = plus(p.lost, h.Counter-p.next, 1)
	}
	p.next, p.counted = h.Counter+1, true
}

func (p *process) event(e *rbkit.Event) {
	if e.Kind == rbkit.DumpedObject {
		p.dumpedObject(&e.Object)
		return
	}
	p.events++
	switch e.Kind {
	case rbkit.ObjectCreated:
		p.objects.create(e.Object.ID, e.Object.Class)
	case rbkit.ObjectDestroyed:
		p.objects.destroy(e.Object.ID)
	case rbkit.GCStart, rbkit.GCEndMark, rbkit.GCEndSweep:
		p.cycles.event(int64(e.Time), e.Kind)
	case rbkit.GCStats:
		p.stats.set(e.Stats)
	case rbkit.ObjectSpaceDump:
		p.records.millis = int64(e.Time)
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
func (p *process) dumpedObject(o *rbkit.Object) {
	if p.env.config.DumpReferences && p.env.logs != nil {
		p.records.add(o, p.now)
	}
	p.dumps.object(o)
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
		p.allocations.add(&a)
		p.snapshots.allocation(&a, &p.interruption)
	}
}
