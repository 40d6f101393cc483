// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package heap counts the objects of a Ruby process: objects created and destroyed, dumps of all
// objects, and allocations by class and file. Every count is bounded. It knows no messages.
package heap

import (
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/saturating"
)

// Objects counts objects that were created and destroyed, by class.
type Objects struct {
	classes *names.Names
	tracked tracked
	// Created and destroyed are by the numbers of classes.
	Created, Destroyed Counts
}

// Counts are numbers by the numbers of names.
type Counts []int64

// count adds n to the number of a name.
func (c *Counts) count(name int32, n uint64) {
	for int(name) >= len(*c) {
		*c = append(*c, 0)
	}
	(*c)[name] = saturating.Add((*c)[name], n)
}

// NewObjects returns no objects, with room for maxTracked objects.
func NewObjects(classes *names.Names, maxTracked int) *Objects {
	return &Objects{classes: classes, tracked: newTracked(maxTracked)}
}

func (o *Objects) Create(id uint64, class []byte) {
	number := o.classes.ClassNumber(class)
	o.Created.count(number, 1)
	o.tracked.track(id, number)
}

// Tracked returns how many objects are tracked.
func (o *Objects) Tracked() int { return o.tracked.len() }

// Evicted returns how many tracked objects were evicted because of the limit.
func (o *Objects) Evicted() int64 { return o.tracked.forgotten }

func (o *Objects) Destroy(id uint64) { o.Destroyed.count(o.tracked.remove(id), 1) }

// tracked has the classes of objects in two generations. When the young generation is half of the
// limit, it becomes the old generation, and the previous old generation is evicted. An object is
// in one of them.
type tracked struct {
	half       int
	young, old generation
	// most is the largest size of each generation so far.
	most [2]int
	// forgotten counts objects that were evicted.
	forgotten int64
	// dump is the number of the last dump that has begun.
	dump uint32
}

// generation has objects by their IDs.
type generation map[uint64]trackedObject

// trackedObject is an object of a class. It existed when the dump with a number began.
type trackedObject struct {
	class int32
	dump  uint32
}

func newTracked(limit int) tracked {
	return tracked{half: max(limit/2, 1), young: generation{}, old: generation{}}
}

func (t *tracked) track(id uint64, class int32) {
	if _, again := t.young[id]; !again && len(t.young) >= t.half {
		t.forgotten += int64(len(t.old))
		t.memory()
		t.old, t.young = t.young, t.old
		t.most[0], t.most[1] = t.most[1], t.most[0]
		clear(t.young)
	}
	delete(t.old, id)
	t.young[id] = trackedObject{class: class, dump: t.dump}
}

// remove removes an object and returns its class.
func (t *tracked) remove(id uint64) int32 {
	for _, g := range t.generations() {
		if o, ok := g[id]; ok {
			delete(g, id)
			return o.class
		}
	}
	return names.Unknown
}

func (t *tracked) generations() [2]generation { return [...]generation{t.young, t.old} }

// trackedForEachDumped is the most tracked objects for each dumped object. Beyond it a dump
// removes nothing.
const trackedForEachDumped = 32

// dumpBegins begins a dump of all objects.
func (t *tracked) dumpBegins() { t.dump++ }

// dumped marks an object of the dump.
func (t *tracked) dumped(id uint64) {
	for _, g := range t.generations() {
		if o, ok := g[id]; ok {
			g[id] = trackedObject{class: o.class, dump: t.dump}
			return
		}
	}
}

// dumpEnds removes the objects that existed before a complete dump and are not in it. Their
// destruction was in a lost message, or the server didn't report objects at that time.
func (t *tracked) dumpEnds(objects uint64) {
	if uint64(t.len()) > trackedForEachDumped*objects {
		return
	}
	for _, g := range t.generations() {
		for id, o := range g {
			if o.dump != t.dump && o.class != names.Hidden {
				delete(g, id)
			}
		}
	}
}

func (t *tracked) len() int { return len(t.young) + len(t.old) }

// memory returns the approximate memory of the objects. Generations keep the space of their
// largest size.
func (t *tracked) memory() int {
	t.most[0], t.most[1] = max(t.most[0], len(t.young)), max(t.most[1], len(t.old))
	return bytesOfTracked * (t.most[0] + t.most[1])
}

// bytesOfTracked is the approximate memory of a tracked object.
const bytesOfTracked = 36

// memory returns the approximate memory of the counts.
func (c Counts) memory() int { return 8 * cap(c) }

// Memory returns the approximate memory of the objects and their counts.
func (o *Objects) Memory() int { return o.tracked.memory() + o.Created.memory() + o.Destroyed.memory() }
