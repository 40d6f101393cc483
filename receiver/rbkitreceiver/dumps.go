// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"time"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/saturating"
)

// dumps puts the parts of dumps of all objects together, one dump at a time.
type dumps struct {
	classes *names.Names
	// tracked are the objects of which a dump says whether they are still there.
	tracked *tracked
	// maxObjects is of how many objects references are checked.
	maxObjects int
	open       *dump
	// live has the objects of the last complete dump by class.
	live liveCounts
	// complete and incomplete count dumps, uncounted those that don't say how many objects
	// they have, and unchecked those with too many for their references to be checked.
	complete, incomplete, uncounted, unchecked int64
	// finished is told of a dump that has ended; nil: nobody wants to know, and references
	// are not checked.
	finished func(*dump)
}

// liveCounts are objects and their bytes by the numbers of classes.
type liveCounts struct{ objects, bytes counts }

// dump is one dump.
type dump struct {
	correlation uint64
	// millis is the time of its first part.
	millis int64
	// touched is when its last part came, by the receiver's clock.
	touched time.Time
	// announced is how many objects it has by what it says, if counted; expected how many
	// its parts have, and received how many came.
	announced, expected, received uint64
	counted                       bool
	bytes                         int64
	live                          liveCounts
	references                    references
}

// complete reports whether exactly the announced objects arrived.
func (d *dump) complete() bool {
	return d.counted && d.received == d.announced && d.received == d.expected
}

// over reports whether the announced objects arrived, or more. A part belongs to one dump
// as a whole.
func (d *dump) over() bool {
	return d.counted && d.received >= d.announced && d.received >= d.expected
}

// dumpPatience is how long a dump waits for its next part. All observed servers send the
// parts in one message.
const dumpPatience = time.Minute

// part begins a part of a dump.
func (d *dumps) part(millis int64, p rbkit.Part, now time.Time) {
	if d.open != nil && d.open.correlation != p.Correlation {
		d.finish()
	}
	if d.open == nil {
		d.open = &dump{correlation: p.Correlation, millis: millis, announced: p.Objects, counted: p.Counted}
		d.tracked.dumpBegins()
		if d.finished != nil {
			d.open.references = newReferences(d.maxObjects)
		}
	}
	d.open.touched = now
	d.open.expected += uint64(p.Here)
	if d.open.over() { // nothing could end a dump without objects
		d.finish()
	}
}

// object handles an object of the last part.
func (d *dumps) object(o *rbkit.Object) {
	open, class := d.open, d.classes.ClassNumber(o.Class)
	open.received++
	open.bytes = saturating.Add(open.bytes, o.Size)
	open.live.objects.count(class, 1)
	open.live.bytes.count(class, o.Size)
	open.references.object(o)
	d.tracked.dumped(o.ID)
	if open.over() {
		d.finish()
	}
}

// finishDue ends a dump that has waited too long for its next part.
func (d *dumps) finishDue(now time.Time) {
	if d.open != nil && now.Sub(d.open.touched) >= dumpPatience {
		d.finish()
	}
}

// finish ends the dump that is open, if there is one.
func (d *dumps) finish() {
	if d.open == nil {
		return
	}
	done := d.open
	d.open = nil
	switch {
	case done.complete():
		d.complete++
		d.live = done.live
		d.tracked.dumpEnds(done.received)
	case done.counted:
		d.incomplete++
	default:
		d.uncounted++
	}
	if done.references.overflow {
		d.unchecked++
	}
	if d.finished != nil {
		d.finished(done)
	}
}

// references finds objects that refer to objects outside of their dump.
type references struct {
	max int
	// seen are the objects that arrived. waiting are references to objects that had not.
	seen    *idSet
	waiting []reference
	// objects is how many objects there were, and total how many references they had.
	objects uint32
	total   int64
	// overflow says that there were more than are checked.
	overflow bool
}

// reference is one from an object, by its number, to another.
type reference struct {
	to   uint64
	from uint32
}

// referencesPerObject is how many references for each object are remembered.
const referencesPerObject = 4

func newReferences(maxObjects int) references {
	return references{max: maxObjects, seen: newIDSet()}
}

func (r *references) object(o *rbkit.Object) {
	r.total += int64(o.References.Len())
	if r.overflow || r.seen == nil {
		return
	}
	if r.seen.len() >= r.max {
		r.giveUp()
		return
	}
	r.seen.add(o.ID)
	r.objects++
	for id := range o.References.All() {
		if r.seen.has(id) {
			continue
		}
		if len(r.waiting) >= referencesPerObject*r.max {
			r.giveUp()
			return
		}
		r.waiting = append(r.waiting, reference{to: id, from: r.objects})
	}
}

// giveUp frees the memory after an overflow.
func (r *references) giveUp() { r.overflow, r.seen, r.waiting = true, nil, nil }

// nowhere returns the number of references to objects outside of the dump, and of objects
// that have such references. known is false if references were not checked.
func (r *references) nowhere() (dangling, objects int64, known bool) {
	last := uint32(0)
	for _, w := range r.waiting {
		if r.seen.has(w.to) {
			continue
		}
		dangling++
		if w.from != last {
			objects++
			last = w.from
		}
	}
	return dangling, objects, r.seen != nil
}

// bytesOfReference is the memory of a reference that waits, about.
const bytesOfReference = 16

// held returns how many bytes the dumps take, about.
func (d *dumps) held() int {
	bytes := d.live.held()
	if d.open == nil {
		return bytes
	}
	bytes += d.open.live.held()
	if r := &d.open.references; r.seen != nil {
		bytes += 8*len(r.seen.slots) + bytesOfReference*cap(r.waiting)
	}
	return bytes
}

// held returns how many bytes the counts take, about.
func (l *liveCounts) held() int { return l.objects.held() + l.bytes.held() }
