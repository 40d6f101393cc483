// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package heap

import (
	"time"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/saturating"
)

// Dumps assembles dumps of all objects from their parts, one dump at a time.
type Dumps struct {
	classes *names.Names
	// tracked are the objects with a known class. A complete dump shows which of them still exist.
	tracked *tracked
	// maxObjects bounds the objects of a dump whose references are checked.
	maxObjects int
	open       *Dump
	// Live has the objects of the last complete dump by class.
	Live LiveCounts
	// Complete and Incomplete count dumps. Uncounted counts dumps without a number of objects, and
	// Unchecked dumps with too many objects to check their references.
	Complete, Incomplete, Uncounted, Unchecked int64
	// Finished receives each dump that has ended; nil: references are not checked.
	Finished func(*Dump)
}

// LiveCounts are objects and their bytes by the numbers of classes.
type LiveCounts struct{ Objects, Bytes Counts }

// Dump is one dump.
type Dump struct {
	Correlation uint64
	// Millis is the time of its first part.
	Millis int64
	// touched is when its last part arrived, by the receiver's clock.
	touched time.Time
	// Announced is how many objects the server announced, if Counted. Expected is how many objects
	// its parts announced, and Received how many arrived.
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
	if d.open.over() { // a dump without objects has no other end
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
	// seen are the objects that arrived. waiting are references to objects that had not arrived
	// yet.
	seen    *idSet
	waiting []reference
	// objects counts the objects, and Total their references.
	objects uint32
	Total   int64
	// overflow says that there were too many objects or references to check.
	overflow bool
}

// reference is a reference from an object, by its number, to another object.
type reference struct {
	to   uint64
	from uint32
}

// referencesPerObject bounds the references that wait, for each object of the limit.
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
	r.seen.insert(o.ID)
	r.objects++
	for id := range o.References.All() {
		if r.seen.contains(id) {
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
		if r.seen.contains(w.to) {
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

// bytesOfReference is the approximate memory of a reference that waits.
const bytesOfReference = 16

// Memory returns the approximate memory of the dumps.
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

// memory returns the approximate memory of the counts.
func (l *LiveCounts) memory() int { return l.Objects.memory() + l.Bytes.memory() }
