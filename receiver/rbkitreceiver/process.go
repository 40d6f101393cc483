// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"time"

	"github.com/callbraid/callbraid/internal/rbkit"
)

// process is one life of a server: it goes through all events of its messages, and tells
// each thing that they are about. It knows no connections. Its server's lock is held
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

	classes      *names
	stats        stats
	cycles       cycles
	objects      *objects
	dumps        dumps
	records      objectRecords
	allocations  *allocations
	samples      samples
	snapshots    snapshots
	interruption interruption
	// said is what of the counts above the receiver's own counters were told.
	said said
}

func newProcess(env *environment, of *origin) *process {
	limits := &env.config.Limits
	classes := newNames(limits.MaxClasses)
	p := &process{
		env: env, origin: of, classes: classes,
		stats:       stats{},
		objects:     newObjects(classes, limits.MaxTrackedObjects),
		records:     objectRecords{env: env, origin: of},
		allocations: newAllocations(classes, limits),
		samples:     samples{env: env, origin: of},
		snapshots:   snapshots{env: env, origin: of},

		interruption: interruption{ctx: env.ctx},
	}
	p.dumps = dumps{classes: classes, tracked: &p.objects.tracked, maxObjects: limits.MaxDumpObjects}
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
	return !p.counted || !h.Counted || h.Counter >= p.next
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
	p.snapshots.handOn()
	p.samples.attend(now)
	p.dumps.attend(now)
	p.records.flush()
}

// finish hands on everything: nothing follows.
func (p *process) finish() {
	p.snapshots.handOn()
	p.samples.flush()
	p.dumps.finish()
	p.records.flush()
}
