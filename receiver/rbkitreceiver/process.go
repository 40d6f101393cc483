// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"time"

	"github.com/callbraid/callbraid/internal/rbkit"
)

// process is one life of a server: it is told of all events, as a visitor of its messages,
// and tells each thing that it is about. It knows no connections. Its server's lock is held
// by whoever uses it.
type process struct {
	env    *environment
	origin *origin
	// now is when the message under way came.
	now time.Time

	messages, bytes, events, lost int64
	// next is the number that the next message should have, if counted.
	next    uint64
	counted bool
	unknown int64

	classes     *names
	stats       stats
	cycles      cycles
	objects     *objects
	dumps       dumps
	records     objectRecords
	allocations *allocations
	samples     samples
	snapshots   snapshots
	// said is what of the counts above the receiver's own counters were told.
	said said
}

var _ rbkit.Visitor = (*process)(nil)

func newProcess(env *environment, of *origin) *process {
	limits := &env.config.Limits
	classes := newNames(limits.MaxClasses)
	p := &process{
		env: env, origin: of, classes: classes,
		stats:       stats{},
		objects:     newObjects(classes, limits.MaxTrackedObjects),
		dumps:       dumps{classes: classes, maxObjects: limits.MaxDumpObjects},
		records:     objectRecords{env: env, origin: of},
		allocations: newAllocations(classes, limits),
		samples:     samples{env: env, origin: of},
		snapshots:   snapshots{env: env, origin: of},
	}
	if env.spans != nil {
		p.cycles.finished = func(c *cycle) { env.spans.Add(cycleParcel{cycle: *c, origin: of, resource: of.resource}) }
	}
	if env.logs != nil {
		p.dumps.finished = func(d *dump) {
			p.records.flush()
			env.saidDump(p, d)
		}
	}
	return p
}

// follows reports whether a message may be of this process: numbers never fall.
func (p *process) follows(h rbkit.Header) bool {
	return !p.counted || !h.HasCounter || h.Counter >= p.next
}

// message is told of a message before its events are: when it came, and how long it is.
func (p *process) message(bytes int, now time.Time) {
	p.messages++
	p.bytes += int64(bytes)
	p.now = now
}

// attend hands on what is old enough.
func (p *process) attend(now time.Time) {
	p.now = now
	p.samples.attend(now)
	p.dumps.attend(now)
	p.records.flush()
}

// finish hands on everything: nothing follows.
func (p *process) finish() {
	p.samples.flush()
	p.dumps.finish()
	p.records.flush()
}

// Message counts messages that did not come.
func (p *process) Message(h rbkit.Header) {
	if !h.HasCounter {
		return
	}
	if p.counted && h.Counter > p.next {
		p.lost = plus(p.lost, h.Counter-p.next, 1)
	}
	p.next, p.counted = h.Counter+1, true
}

// ObjectCreated counts an object.
func (p *process) ObjectCreated(_ int64, id uint64, class []byte) { p.objects.create(id, class) }

// ObjectDestroyed counts an object.
func (p *process) ObjectDestroyed(_ int64, id uint64) { p.objects.destroy(id) }

// GC is told of a part of a garbage collection.
func (p *process) GC(millis int64, what rbkit.Type) { p.cycles.event(millis, what) }

// GCStats keeps the statistics.
func (p *process) GCStats(_ int64, all []rbkit.Stat) { p.stats.set(all) }

// DumpPart begins a part of a dump.
func (p *process) DumpPart(millis int64, part rbkit.DumpPart) {
	p.records.millis = millis
	p.dumps.part(millis, part, p.now)
}

// DumpObject is told of an object of a dump.
func (p *process) DumpObject(o *rbkit.DumpedObject) {
	if p.env.config.DumpReferences && p.env.logs != nil {
		p.records.add(o, p.now)
	}
	p.dumps.object(o)
}

// CPUSample is told of what ran.
func (p *process) CPUSample(millis int64, frames []rbkit.Frame) {
	p.samples.add(millis, frames, p.now)
}

// SnapshotBegin begins a snapshot of allocations.
func (p *process) SnapshotBegin(millis int64) { p.snapshots.begin(millis) }

// SnapshotStack is told of a stack of a snapshot.
func (p *process) SnapshotStack(id uint64, frames []rbkit.Frame) { p.snapshots.stack(id, frames) }

// SnapshotAllocation is told of what was allocated.
func (p *process) SnapshotAllocation(a *rbkit.Allocation) {
	p.allocations.add(a)
	p.snapshots.allocation(a)
}

// SnapshotEnd ends a snapshot.
func (p *process) SnapshotEnd() { p.snapshots.end() }

// Unknown counts an event that is not known.
func (p *process) Unknown(int64, uint64) { p.unknown++ }
