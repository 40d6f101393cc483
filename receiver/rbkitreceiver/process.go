// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"cmp"
	"errors"
	"time"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/heap"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/interruption"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/profile"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/saturating"
)

// process is one life of a server. It reads all events of its messages and knows no
// connection. The lock of its server guards it.
type process struct {
	out    *outputs
	origin *origin.Origin
	// now is the time at which the current message arrived.
	now time.Time

	messages, bytes, events, lost int64
	// dialect is the dialect of its messages; 0: no message has arrived.
	dialect rbkit.Dialect
	// last is the number of the last message, if counted.
	last    uint64
	counted bool
	unknown int64

	classes *names.Names
	stats   stats
	// statsReceived says that statistics arrived since the server looked at them.
	statsReceived bool
	cycles        cycles
	objects       *heap.Objects
	dumps         heap.Dumps
	records       objectRecords
	allocations   *heap.Allocations
	samples       profile.Samples
	snapshots     profile.Snapshots
	interruption  interruption.Interruption
	// classesArePart says that its part of max_metric_points allows fewer classes than
	// max_classes, and sitesArePart the same of sites.
	classesArePart, sitesArePart bool
	// totalsCounted are the totals that the receiver's own counters have.
	totalsCounted counters.Totals
}

func newProcess(out *outputs, of *origin.Origin, hold func() error) *process {
	limits := out.config.limitsOfServer()
	classes := names.New(limits.MaxClasses)
	profiles := profile.Settings{
		Kit: out.Kit, Interval: out.config.ProfileInterval,
		MaxFrames: limits.MaxFrames, MaxStacks: limits.MaxProfileStacks, MaxBytes: limits.MaxQueuedSampleBytes / 2,
	}
	if out.profiles != nil {
		profiles.Deliver = func(p profile.Parcel) { out.profiles.Add(p) }
	}
	p := &process{
		out: out, origin: of, classes: classes,
		stats:       stats{},
		objects:     heap.NewObjects(classes, limits.MaxTrackedObjects),
		records:     objectRecords{out: out, origin: of},
		allocations: heap.NewAllocations(classes, limits.MaxFiles, limits.MaxSites),
		samples:     profile.NewSamples(&profiles, of),
		snapshots:   profile.NewSnapshots(&profiles, of),

		interruption: interruption.New(out.Delivering, errShutdown, hold),

		classesArePart: limits.MaxClasses < out.config.Limits.MaxClasses,
		sitesArePart:   limits.MaxSites < out.config.Limits.MaxSites,
	}
	p.dumps = heap.NewDumps(p.objects, limits.MaxDumpObjects)
	if out.spans != nil {
		p.cycles.finished = func(c *cycle) { out.spans.Add(cycleParcel{cycle: *c, origin: p.origin}) }
	}
	if out.logs != nil {
		p.dumps.Finished = func(d *heap.Dump) {
			p.records.deliver()
			out.recordDump(p.origin, d, p.classes)
		}
	}
	return p
}

// setOrigin replaces the origin, once the server has identified itself. Open parcels are
// delivered with the previous origin.
func (p *process) setOrigin(of *origin.Origin) {
	p.snapshots.SetOrigin(of)
	p.samples.SetOrigin(of)
	p.records.deliver()
	p.origin, p.records.origin = of, of
}

// follows reports whether a message may be of this process: numbers never fall, and the
// dialect, as far as it is known, stays the same.
func (p *process) follows(dialect rbkit.Dialect, h rbkit.Header) bool {
	if p.dialect != 0 && dialect != 0 && p.dialect != dialect {
		return false
	}
	return !p.counted || !h.Counted || h.Counter > p.last
}

// beginMessage counts a message of so many bytes before its events are read.
func (p *process) beginMessage(bytes int, now time.Time) {
	p.messages++
	p.bytes += int64(bytes)
	p.now = now
}

// deliverDue delivers data that is old enough.
func (p *process) deliverDue(now time.Time) {
	p.now = now
	p.snapshots.Deliver()
	p.samples.DeliverDue(now)
	p.dumps.FinishDue(now)
	p.records.deliver()
}

// deliver delivers all data. No more events follow, or some were missed.
func (p *process) deliver() {
	p.snapshots.Deliver()
	p.breakSequence()
	p.samples.Deliver()
	p.dumps.Finish()
	p.records.deliver()
}

// readEvents reads the events of a message. over says that the reader is at an event of
// another process.
func (p *process) readEvents(r *rbkit.Reader) (over bool, err error) {
	p.interruption.Begin()
	p.header(r.Header())
	for r.Next() {
		if p.interruption.IsDue() {
			return false, p.interruption.Reason
		}
		e := r.Event()
		if e.Kind == rbkit.GCStats && p.stats.fell(e.Stats) {
			return true, nil
		}
		p.event(e)
	}
	return false, p.endMessage(r.Header(), cmp.Or(p.interruption.Reason, r.Err()))
}

// readFrom reads the current event of the reader and the rest of its message.
func (p *process) readFrom(r *rbkit.Reader) error {
	p.header(r.Header())
	p.event(r.Event())
	for r.Next() {
		if p.interruption.IsDue() {
			return p.interruption.Reason
		}
		p.event(r.Event())
	}
	return p.endMessage(r.Header(), cmp.Or(p.interruption.Reason, r.Err()))
}

// endMessage handles the error with which a message ended. More events may have followed a
// malformed one, so the sequence breaks. A truncated message has no more events. A message
// without a number, where others have numbers, breaks nothing: if the server sent it, the
// next number shows it.
func (p *process) endMessage(h rbkit.Header, err error) error {
	var bad *rbkit.ProtocolError
	switch {
	case !errors.As(err, &bad) || bad.Problem == rbkit.Truncated:
	case p.counted && !h.Counted:
	default:
		p.breakSequence()
	}
	return err
}

// breakSequence drops open pairs because events were missed.
func (p *process) breakSequence() {
	p.cycles.dropOpen()
	p.snapshots.BreakSequence()
}

// mostLost bounds the lost messages of one gap. A server needs years to send more, so such
// numbers are wrong.
const mostLost = 1 << 32

// header counts lost messages.
func (p *process) header(h rbkit.Header) {
	if !h.Counted {
		return
	}
	if p.counted && h.Counter > p.last+1 {
		p.lost = saturating.Add(p.lost, min(h.Counter-p.last-1, mostLost))
		p.breakSequence()
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
			p.objects.Create(e.Object.ID, e.Object.Class)
		}
	case rbkit.ObjectDestroyed:
		if p.out.measured {
			p.objects.Destroy(e.Object.ID)
		}
	case rbkit.GCStart, rbkit.GCEndMark, rbkit.GCEndSweep:
		p.cycles.event(int64(e.Time), e.Kind)
	case rbkit.GCStats:
		p.stats.set(e.Stats)
		p.statsReceived = true
	case rbkit.ObjectSpaceDump:
		p.dumps.BeginPart(int64(e.Time), e.Part, p.now)
	case rbkit.CPUSample:
		p.samples.Count(int64(e.Time), e.Frames, p.now)
	case rbkit.AllocationSnapshot:
		p.allocated(int64(e.Time), e.Snapshot)
	default:
		p.unknown++
	}
}

// dumpedObject handles an object of the last part of a dump.
func (p *process) dumpedObject(e *rbkit.Event) {
	if p.out.config.DumpReferences && p.out.logs != nil && !p.out.eventsOff[eventObject] {
		p.records.append(e, p.now)
	}
	p.dumps.CountObject(&e.Object)
}

// allocated handles a snapshot of allocations.
func (p *process) allocated(millis int64, s rbkit.Snapshot) {
	p.snapshots.BeginEvent(millis, s.Size())
	for id, frames := range s.AllStacks() {
		p.snapshots.AddStack(id, frames)
	}
	p.allocations.BeginSnapshot()
	for a := range s.AllAllocations() {
		if p.interruption.IsDue() {
			return
		}
		if p.out.measured {
			p.allocations.Count(&a)
		}
		p.snapshots.AddAllocation(&a, &p.interruption)
	}
}

// held returns how many bytes the process takes, about.
func (p *process) held() int {
	return p.classes.Memory() + p.objects.Memory() + p.dumps.Memory() + p.allocations.Memory() +
		p.samples.Memory() + p.snapshots.Memory() + p.records.bytes
}

// totals returns the counts of the process.
func (p *process) totals() counters.Totals {
	return counters.Totals{
		Messages: p.messages, Bytes: p.bytes, Events: p.events, Lost: p.lost, Unknown: p.unknown,
		Folded:    p.classes.Folded + p.allocations.Files.Folded + p.allocations.Folded,
		Forgotten: p.objects.Evicted(),
		NoStart:   p.cycles.noStart, NoEnd: p.cycles.noEnd, StepsBack: p.cycles.stepsBack,
		Complete: p.dumps.Complete, Incomplete: p.dumps.Incomplete, Uncounted: p.dumps.Uncounted, Unchecked: p.dumps.Unchecked,
		SamplesDropped: p.samples.TooDeep + p.snapshots.Dropped, StacksDropped: p.snapshots.TooDeep + p.snapshots.Crowded,
	}
}
