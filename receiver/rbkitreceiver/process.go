// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"errors"
	"time"

	"github.com/callbraid/callbraid/internal/rbkit"
)

// process is one life of a server: it goes through all events of its messages, and tells
// each thing that they are about. It knows no connections. Its server's lock is held
// by whoever uses it.
type process struct {
	out    *outputs
	origin *origin
	// now is when the message under way came.
	now time.Time

	messages, bytes, events, lost int64
	// dialect is that of its messages; 0: none has come.
	dialect rbkit.Dialect
	// last is the number of the last message, if counted.
	last    uint64
	counted bool
	unknown int64

	classes *names
	stats   stats
	// toldStats says that statistics came since the server looked at them.
	toldStats    bool
	cycles       cycles
	objects      *objects
	dumps        dumps
	records      objectRecords
	allocations  *allocations
	samples      samples
	snapshots    snapshots
	interruption interruption
	// classesArePart says that its part of max_metric_points allows fewer classes than
	// max_classes, and sitesArePart the same of sites.
	classesArePart, sitesArePart bool
	// totalsCounted are the totals that the receiver's own counters have.
	totalsCounted totals
}

func newProcess(out *outputs, of *origin) *process {
	limits := out.config.limitsOfServer()
	classes := newNames(limits.MaxClasses)
	p := &process{
		out: out, origin: of, classes: classes,
		stats:       stats{},
		objects:     newObjects(classes, limits.MaxTrackedObjects),
		records:     objectRecords{out: out, origin: of},
		allocations: newAllocations(classes, &limits),
		samples:     samples{out: out, origin: of},
		snapshots:   snapshots{out: out, origin: of},

		interruption: interruption{ctx: out.Delivering},

		classesArePart: limits.MaxClasses < out.config.Limits.MaxClasses,
		sitesArePart:   limits.MaxSites < out.config.Limits.MaxSites,
	}
	p.dumps = dumps{classes: classes, tracked: &p.objects.tracked, maxObjects: limits.MaxDumpObjects}
	if out.spans != nil {
		p.cycles.finished = func(c *cycle) { out.spans.Add(cycleParcel{cycle: *c, origin: p.origin}) }
	}
	if out.logs != nil {
		p.dumps.finished = func(d *dump) {
			p.records.flush()
			out.recordDump(p.origin, d, p.classes)
		}
	}
	return p
}

// introduce gives the process another origin: its server has said who it is only now. Parcels that
// are open are handed on with the origin before.
func (p *process) introduce(of *origin) {
	p.snapshots.handOn()
	p.samples.flush()
	p.records.flush()
	p.origin, p.records.origin, p.samples.origin, p.snapshots.origin = of, of, of, of
}

// follows reports whether a message may be of this process: numbers never fall, and the
// dialect, as far as it is known, stays the same.
func (p *process) follows(dialect rbkit.Dialect, h rbkit.Header) bool {
	if p.dialect != 0 && dialect != 0 && p.dialect != dialect {
		return false
	}
	return !p.counted || !h.Counted || h.Counter > p.last
}

// message is told of a message before its events are: when it came, and how long it is.
func (p *process) message(bytes int, now time.Time) {
	p.messages++
	p.bytes += int64(bytes)
	p.now = now
}

// handOnDue hands on what is old enough.
func (p *process) handOnDue(now time.Time) {
	p.now = now
	p.snapshots.handOn()
	p.samples.handOnDue(now)
	p.dumps.handOnDue(now)
	p.records.flush()
}

// finish hands on everything: nothing follows, or not what follows upon it.
func (p *process) finish() {
	p.snapshots.handOn()
	p.missed()
	p.samples.flush()
	p.dumps.finish()
	p.records.flush()
}

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
		if p.out.measured {
			p.objects.create(e.Object.ID, e.Object.Class)
		}
	case rbkit.ObjectDestroyed:
		if p.out.measured {
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
	if p.out.config.DumpReferences && p.out.logs != nil && !p.out.eventsOff[eventObject] {
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
		if p.out.measured {
			p.allocations.add(&a)
		}
		p.snapshots.allocation(&a, &p.interruption)
	}
}

// held returns how many bytes the process takes, about.
func (p *process) held() int {
	return p.classes.held() + p.objects.held() + p.dumps.held() + p.allocations.held() +
		p.samples.held() + p.snapshots.held() + p.records.bytes
}

// totals returns what the process counted of itself.
func (p *process) totals() totals {
	return totals{
		messages: p.messages, bytes: p.bytes, events: p.events, lost: p.lost, unknown: p.unknown,
		folded:    p.classes.folded + p.allocations.files.folded + p.allocations.folded,
		forgotten: p.objects.tracked.forgotten,
		noStart:   p.cycles.noStart, noEnd: p.cycles.noEnd, stepsBack: p.cycles.stepsBack,
		complete: p.dumps.complete, incomplete: p.dumps.incomplete, uncounted: p.dumps.uncounted, unchecked: p.dumps.unchecked,
		samplesDropped: p.samples.deep + p.snapshots.dropped, stacksDropped: p.snapshots.deep + p.snapshots.crowded,
	}
}
