// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package heap

import (
	"time"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/saturating"
)

// Dumps puts the parts of dumps of all objects together, one dump at a time.
type Dumps struct {
	classes *names.Names
	// tracked are the objects of which a dump says whether they are still there.
	tracked *tracked
	// maxObjects is of how many objects references are checked.
	maxObjects int
	open       *Dump
	// Live has the objects of the last complete dump by class.
	Live LiveCounts
	// Complete and incomplete count dumps, uncounted those that don't say how many objects
	// they have, and unchecked those with too many for their references to be checked.
	Complete, Incomplete, Uncounted, Unchecked int64
	// Finished is told of a dump that has ended; nil: nobody wants to know, and references
	// are not checked.
	Finished func(*Dump)
}

// LiveCounts are objects and their bytes by the numbers of classes.
type LiveCounts struct{ Objects, Bytes Counts }

// Dump is one dump.
type Dump struct {
	Correlation uint64
	// Millis is the time of its first part.
	Millis int64
	// touched is when its last part came, by the receiver's clock.
	touched time.Time
	// Announced is how many objects it has by what it says, if counted; expected how many
	// its parts have, and received how many came.
	Announced, Expected, Received uint64
	Counted                       bool
	Bytes                         int64
	Live                          LiveCounts
	References                    references
}

// Complete reports whether exactly the announced objects arrived.
func (d *Dump) Complete() bool {
	return d.Counted && d.Received == d.Announced && d.Received == d.Expected
}

// over reports whether the announced objects arrived, or more. A part belongs to one dump
// as a whole.
func (d *Dump) over() bool {
	return d.Counted && d.Received >= d.Announced && d.Received >= d.Expected
}

// dumpPatience is how long a dump waits for its next part. All observed servers send the
// parts in one message.
const dumpPatience = time.Minute

// NewDumps returns the dumps of a process with these objects.
func NewDumps(objects *Objects, maxObjects int) Dumps {
	return Dumps{classes: objects.classes, tracked: &objects.tracked, maxObjects: maxObjects}
}

// BeginPart begins a part of a dump.
func (d *Dumps) BeginPart(millis int64, p rbkit.Part, now time.Time) {
	if d.open != nil && d.open.Correlation != p.Correlation {
		d.Finish()
	}
	if d.open == nil {
		d.open = &Dump{Correlation: p.Correlation, Millis: millis, Announced: p.Objects, Counted: p.Counted}
		d.tracked.dumpBegins()
		if d.Finished != nil {
			d.open.References = newReferences(d.maxObjects)
		}
	}
	d.open.touched = now
	d.open.Expected += uint64(p.Here)
	if d.open.over() { // nothing could end a dump without objects
		d.Finish()
	}
}

// CountObject handles an object of the last part.
func (d *Dumps) CountObject(o *rbkit.Object) {
	open, class := d.open, d.classes.ClassNumber(o.Class)
	open.Received++
	open.Bytes = saturating.Add(open.Bytes, o.Size)
	open.Live.Objects.count(class, 1)
	open.Live.Bytes.count(class, o.Size)
	open.References.object(o)
	d.tracked.dumped(o.ID)
	if open.over() {
		d.Finish()
	}
}

// FinishDue ends a dump that has waited too long for its next part.
func (d *Dumps) FinishDue(now time.Time) {
	if d.open != nil && now.Sub(d.open.touched) >= dumpPatience {
		d.Finish()
	}
}

// Finish ends the dump that is open, if there is one.
func (d *Dumps) Finish() {
	if d.open == nil {
		return
	}
	done := d.open
	d.open = nil
	switch {
	case done.Complete():
		d.Complete++
		d.Live = done.Live
		d.tracked.dumpEnds(done.Received)
	case done.Counted:
		d.Incomplete++
	default:
		d.Uncounted++
	}
	if done.References.overflow {
		d.Unchecked++
	}
	if d.Finished != nil {
		d.Finished(done)
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
	Total   int64
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
	r.Total += int64(o.References.Len())
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

// Nowhere returns the number of references to objects outside of the dump, and of objects
// that have such references. known is false if references were not checked.
func (r *references) Nowhere() (dangling, objects int64, known bool) {
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

// Memory returns how many bytes the dumps take, about.
func (d *Dumps) Memory() int {
	bytes := d.Live.memory()
	if d.open == nil {
		return bytes
	}
	bytes += d.open.Live.memory()
	if r := &d.open.References; r.seen != nil {
		bytes += 8*len(r.seen.slots) + bytesOfReference*cap(r.waiting)
	}
	return bytes
}

// memory returns how many bytes the counts take, about.
func (l *LiveCounts) memory() int { return l.Objects.memory() + l.Bytes.memory() }
