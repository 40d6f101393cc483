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
	// said is what of the counts above the receiver's own counters were told.
	said said
}

func newProcess(env *environment, of *origin) *process {
	limits := env.config.limitsOfServer()
	classes := newNames(limits.MaxClasses)
	p := &process{
		env: env, origin: of, classes: classes,
		stats:       stats{},
		objects:     newObjects(classes, limits.MaxTrackedObjects),
		records:     objectRecords{env: env, origin: of},
		allocations: newAllocations(classes, &limits),
		samples:     samples{env: env, origin: of},
		snapshots:   snapshots{env: env, origin: of},

		interruption: interruption{ctx: env.Delivering},

		classesArePart: limits.MaxClasses < env.config.Limits.MaxClasses,
		sitesArePart:   limits.MaxSites < env.config.Limits.MaxSites,
	}
	p.dumps = dumps{classes: classes, tracked: &p.objects.tracked, maxObjects: limits.MaxDumpObjects}
	if env.spans != nil {
		p.cycles.finished = func(c *cycle) { env.spans.Add(cycleParcel{cycle: *c, origin: p.origin}) }
	}
	if env.logs != nil {
		p.dumps.finished = func(d *dump) {
			p.records.flush()
			env.saidDump(p, d)
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
