// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package process is one life of an Rbkit server: it reads the events of its messages, pairs garbage
// collections, and passes objects to package heap and stacks to package profile. It knows no
// connection.
package process

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/heap"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/interruption"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/profile"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/records"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/saturating"
)

// Process is one life of a server. It reads all events of its messages. The lock of its server
// guards it.
type Process struct {
	settings *Settings
	Origin   *origin.Origin
	// now is the time at which the current message arrived.
	now time.Time

	Traffic
	// dialect is the dialect of its messages; 0: no message has arrived.
	dialect rbkit.Dialect
	// last is the number of the last message, if counted.
	last    uint64
	counted bool
	unknown int64

	classes *names.Names
	stats   Stats
	// statsReceived says that statistics arrived since the last call of NewStats.
	statsReceived bool
	cycles        cycles
	objects       *heap.Objects
	dumps         heap.Dumps
	records       records.Objects
	allocations   *heap.Allocations
	samples       profile.Samples
	snapshots     profile.Snapshots
	interruption  interruption.Interruption
	// totalsCounted are the totals that the receiver's own counters have.
	totalsCounted counters.Totals
}

// Traffic counts messages of a process, their bytes and events, and lost messages.
type Traffic struct{ Messages, Bytes, Events, Lost int64 }

// Settings are the settings of the processes of one server. A process calls the functions while
// it reads.
type Settings struct {
	// MaxClasses, MaxFiles and MaxSites bound classes, files, and pairs of them.
	MaxClasses, MaxFiles, MaxSites int
	// ClassesArePart says that the part of max_metric_points bounds the classes, and SitesArePart
	// that it bounds the sites.
	ClassesArePart, SitesArePart bool
	// MaxTrackedObjects bounds the objects with a known class, and MaxDumpObjects the objects of a
	// dump whose references are checked.
	MaxTrackedObjects, MaxDumpObjects int
	Profiles                          profile.Settings
	Records                           records.Settings
	// Measured says that a pipeline accepts metrics. Nothing else needs objects that are created
	// and destroyed.
	Measured bool
	// Delivering ends when the time of the shutdown is over.
	Delivering context.Context
	// CycleEnded receives complete garbage collections; nil: no pipeline accepts spans.
	CycleEnded func(*origin.Origin, *Cycle)
	// DumpEnded receives dumps of all objects; nil: no pipeline accepts log records, and references
	// are not checked.
	DumpEnded func(of *origin.Origin, d *heap.Dump, classes *names.Names)
}

// ErrShutdown is the error of a message that is not read because the collector is shut down.
var ErrShutdown = errors.New("the collector is shut down")

// New returns a process of which nothing is known. hold counts its memory, and returns an
// error if the process has to be freed.
func New(s *Settings, of *origin.Origin, hold func() error) *Process {
	classes := names.New(s.MaxClasses)
	p := &Process{
		settings: s, Origin: of, classes: classes,
		stats:        Stats{},
		objects:      heap.NewObjects(classes, s.MaxTrackedObjects),
		records:      records.NewObjects(&s.Records, of),
		allocations:  heap.NewAllocations(classes, s.MaxFiles, s.MaxSites),
		samples:      profile.NewSamples(&s.Profiles, of),
		snapshots:    profile.NewSnapshots(&s.Profiles, of),
		interruption: interruption.New(s.Delivering, ErrShutdown, hold),
	}
	p.dumps = heap.NewDumps(p.objects, s.MaxDumpObjects)
	if s.CycleEnded != nil {
		p.cycles.finished = func(c *Cycle) { s.CycleEnded(p.Origin, c) }
	}
	if s.DumpEnded != nil {
		p.dumps.Finished = func(d *heap.Dump) {
			p.records.Deliver()
			s.DumpEnded(p.Origin, d, p.classes)
		}
	}
	return p
}

// SetOrigin replaces the origin, once the server has identified itself. Open parcels are
// delivered with the previous origin.
func (p *Process) SetOrigin(of *origin.Origin) {
	p.snapshots.SetOrigin(of)
	p.samples.SetOrigin(of)
	p.records.SetOrigin(of)
	p.Origin = of
}

// Follows reports whether a message may be of this process: numbers never fall, and the
// dialect, as far as it is known, stays the same.
func (p *Process) Follows(dialect rbkit.Dialect, h rbkit.Header) bool {
	if p.dialect != 0 && dialect != 0 && p.dialect != dialect {
		return false
	}
	return !p.counted || !h.Counted || h.Counter > p.last
}

// BeginMessage counts a message of so many bytes before its events are read. dialect is 0 if the
// message has none.
func (p *Process) BeginMessage(dialect rbkit.Dialect, bytes int, now time.Time) {
	p.dialect = cmp.Or(dialect, p.dialect)
	p.Messages++
	p.Bytes += int64(bytes)
	p.now = now
}

// DeliverDue delivers data that is old enough.
func (p *Process) DeliverDue(now time.Time) {
	p.now = now
	p.snapshots.Deliver()
	p.samples.DeliverDue(now)
	p.dumps.FinishDue(now)
	p.records.Deliver()
}

// Deliver delivers all data. No more events follow, or some were missed.
func (p *Process) Deliver() {
	p.snapshots.Deliver()
	p.breakSequence()
	p.samples.Deliver()
	p.dumps.Finish()
	p.records.Deliver()
}

// ReadEvents reads the events of a message. over says that the reader is at an event of
// another process.
func (p *Process) ReadEvents(r *rbkit.Reader) (over bool, err error) {
	p.interruption.Begin()
	p.noteHeader(r.Header())
	for r.Next() {
		if p.interruption.IsDue() {
			return false, p.interruption.Reason
		}
		e := r.Event()
		if e.Kind == rbkit.GCStats && p.stats.fell(e.Stats) {
			return true, nil
		}
		p.handleEvent(e)
	}
	return false, p.endMessage(r.Header(), cmp.Or(p.interruption.Reason, r.Err()))
}

// ReadFrom reads the current event of the reader and the rest of its message, which arrived at a
// time.
func (p *Process) ReadFrom(r *rbkit.Reader, at time.Time) error {
	p.now = at
	p.interruption.Begin()
	p.noteHeader(r.Header())
	p.handleEvent(r.Event())
	for r.Next() {
		if p.interruption.IsDue() {
			return p.interruption.Reason
		}
		p.handleEvent(r.Event())
	}
	return p.endMessage(r.Header(), cmp.Or(p.interruption.Reason, r.Err()))
}

// endMessage handles the error with which a message ended. More events may have followed a
// malformed one, so the sequence breaks. A truncated message has no more events. A message
// without a number, where others have numbers, breaks nothing: if the server sent it, the
// next number shows it.
func (p *Process) endMessage(h rbkit.Header, err error) error {
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
func (p *Process) breakSequence() {
	p.cycles.dropOpen()
	p.snapshots.BreakSequence()
}

// mostLost bounds the lost messages of one gap. A server needs years to send more, so such
// numbers are wrong.
const mostLost = 1 << 32

// noteHeader counts lost messages.
func (p *Process) noteHeader(h rbkit.Header) {
	if !h.Counted {
		return
	}
	if p.counted && h.Counter > p.last+1 {
		p.Lost = saturating.Add(p.Lost, min(h.Counter-p.last-1, mostLost))
		p.breakSequence()
	}
	p.last, p.counted = h.Counter, true
}

func (p *Process) handleEvent(e *rbkit.Event) {
	if e.Kind == rbkit.DumpedObject {
		p.handleDumpedObject(e)
		return
	}
	p.Events++
	switch e.Kind {
	case rbkit.ObjectCreated:
		if p.settings.Measured {
			p.objects.Create(e.Object.ID, e.Object.Class)
		}
	case rbkit.ObjectDestroyed:
		if p.settings.Measured {
			p.objects.Destroy(e.Object.ID)
		}
	case rbkit.GCStart, rbkit.GCEndMark, rbkit.GCEndSweep:
		p.cycles.handleEvent(int64(e.Time), e.Kind)
	case rbkit.GCStats:
		p.stats.replaceBy(e.Stats)
		p.statsReceived = true
	case rbkit.ObjectSpaceDump:
		p.dumps.BeginPart(int64(e.Time), e.Part, p.now)
	case rbkit.CPUSample:
		p.samples.Count(int64(e.Time), e.Frames, p.now)
	case rbkit.AllocationSnapshot:
		p.readSnapshot(int64(e.Time), e.Snapshot)
	default:
		p.unknown++
	}
}

// handleDumpedObject handles an object of the last part of a dump.
func (p *Process) handleDumpedObject(e *rbkit.Event) {
	if p.records.AreWanted() {
		p.records.AppendObject(e, p.now)
	}
	p.dumps.CountObject(&e.Object)
}

// readSnapshot handles a snapshot of allocations.
func (p *Process) readSnapshot(millis int64, s rbkit.Snapshot) {
	p.snapshots.BeginEvent(millis, s.Size())
	for id, frames := range s.AllStacks() {
		p.snapshots.AddStack(id, frames)
	}
	p.allocations.BeginSnapshot()
	for a := range s.AllAllocations() {
		if p.interruption.IsDue() {
			return
		}
		if p.settings.Measured {
			p.allocations.Count(&a)
		}
		p.snapshots.AddAllocation(&a, &p.interruption)
	}
}

// Memory returns the approximate memory of the process.
func (p *Process) Memory() int {
	return p.classes.Memory() + p.objects.Memory() + p.dumps.Memory() + p.allocations.Memory() +
		p.samples.Memory() + p.snapshots.Memory() + p.records.Memory()
}

// SetServerState handles a reply of the server.
func (p *Process) SetServerState(h *rbkit.HandshakeReply) { p.samples.SetState(h) }

// NewStats returns the last statistics, if they arrived since the last call.
func (p *Process) NewStats() (of Stats, arrived bool) {
	arrived, p.statsReceived = p.statsReceived, false
	return p.stats, arrived
}

// CountTotals adds the counts since the last call to the receiver's own counters.
func (p *Process) CountTotals(to *counters.Counters) {
	now := p.totals()
	to.CountSince(&p.totalsCounted, &now)
	p.totalsCounted = now
}

// totals returns the counts of the process.
func (p *Process) totals() counters.Totals {
	return counters.Totals{
		Messages: p.Messages, Bytes: p.Bytes, Events: p.Events, Lost: p.Lost, Unknown: p.unknown,
		Folded:    p.classes.Folded + p.allocations.Files.Folded + p.allocations.Folded,
		Forgotten: p.objects.Evicted(),
		NoStart:   p.cycles.noStart, NoEnd: p.cycles.noEnd, StepsBack: p.cycles.stepsBack,
		Complete: p.dumps.Complete, Incomplete: p.dumps.Incomplete, Uncounted: p.dumps.Uncounted, Unchecked: p.dumps.Unchecked,
		SamplesDropped: p.samples.TooDeep + p.snapshots.Dropped, StacksDropped: p.snapshots.TooDeep + p.snapshots.Crowded,
	}
}

// State is the state of a process at one time, for metrics.
type State struct {
	Traffic
	Origin         *origin.Origin
	Samples        int64
	Stats          Stats
	Marking, Whole Histogram
	// Classes and Files are texts by the numbers of names. An entry never changes.
	Classes, Files     []string
	Created, Destroyed heap.Counts
	Tracked            int
	Live               heap.LiveCounts
	Sites              map[heap.Site]heap.Allocated
	// Ended says that the process has ended, so its current state is unknown.
	Ended bool
}

// State returns a copy of the state.
func (p *Process) State() State {
	return State{
		Traffic: p.Traffic, Origin: p.Origin, Samples: p.samples.Received,
		Stats: maps.Clone(p.stats), Marking: p.cycles.marking, Whole: p.cycles.whole,
		Classes: p.classes.Texts, Files: p.allocations.Files.Texts,
		Created: slices.Clone(p.objects.Created), Destroyed: slices.Clone(p.objects.Destroyed),
		Tracked: p.objects.Tracked(),
		Live:    p.dumps.Live, // the next dump makes another one
		Sites:   maps.Clone(p.allocations.Sites),
	}
}
