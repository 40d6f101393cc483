// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import "unsafe"

// maxGroups bounds the groups of repeated calls that a caller remembers.
const maxGroups = 16

// repeats has the later calls of a group of repeated calls. The record of the group is that of its
// first call, until its end.
type repeats struct {
	// calls counts the first call too. least, greatest and total are times of all calls.
	calls                  uint64
	least, greatest, total int64
	// leftOut sums those of the later calls.
	leftOut LeftOut
}

// include adds a call.
func (r *repeats) include(took int64, leftOut *LeftOut) {
	r.calls++
	r.least, r.greatest, r.total = min(r.least, took), max(r.greatest, took), r.total+took
	r.leftOut.include(leftOut)
}

// group is a group of repeated calls of a function.
type group struct {
	function uint32
	// record is the place of its record.
	record uint32
}

// callerGroups are the latest groups of an open caller, the one with the latest call last. It has no
// pointers.
type callerGroups struct {
	// caller is the sequence number of the caller's entry.
	caller uint64
	// below is the place of the groups of a lower caller of the same trace, or noGroups. In free
	// memory it is the next free place.
	below  uint32
	count  uint32
	latest [maxGroups]group
}

// noGroups is the place of no groups.
const noGroups = ^uint32(0)

const callerGroupsBytes = int(unsafe.Sizeof(callerGroups{}))

// remember adds a new group. Beyond maxGroups the group with the oldest call is forgotten, so its
// function begins another one.
func (g *callerGroups) remember(function, record uint32) {
	if g.count == maxGroups {
		copy(g.latest[:], g.latest[1:])
		g.count--
	}
	g.latest[g.count] = group{function, record}
	g.count++
}

// moveToEnd makes number i the group with the latest call.
func (g *callerGroups) moveToEnd(i int) {
	if last := int(g.count) - 1; i != last {
		moved := g.latest[i]
		copy(g.latest[i:last], g.latest[i+1:last+1])
		g.latest[last] = moved
	}
}

// openGroups are the groups of repeated calls whose callers are open. Each trace has a stack of
// them, by caller. Callers that have ended leave the stack when their trace needs it next.
type openGroups struct {
	all []callerGroups
	// free is the first free place, or noGroups; used is the number of others.
	free uint32
	used int
}

func newOpenGroups() openGroups { return openGroups{free: noGroups} }

// of returns the groups of a caller. top is the top of its trace's stack. All calls that entered
// after the caller have ended.
func (o *openGroups) of(top *uint32, caller uint64) *callerGroups {
	for *top != noGroups && o.all[*top].caller > caller {
		o.pop(top)
	}
	if *top == noGroups || o.all[*top].caller != caller {
		o.push(top, caller)
	}
	return &o.all[*top]
}

func (o *openGroups) push(top *uint32, caller uint64) {
	place := o.free
	if place == noGroups {
		place = uint32(len(o.all))
		o.all = append(o.all, callerGroups{})
	} else {
		o.free = o.all[place].below
	}
	g := &o.all[place]
	g.caller, g.below, g.count = caller, *top, 0
	*top = place
	o.used++
}

func (o *openGroups) pop(top *uint32) {
	g := &o.all[*top]
	next := g.below
	g.below, o.free = o.free, *top
	*top = next
	o.used--
}

// forget empties the stack of a trace.
func (o *openGroups) forget(top *uint32) {
	for *top != noGroups {
		o.pop(top)
	}
}

// heldBytes is the memory of the groups that traces have.
func (o *openGroups) heldBytes() int { return o.used * callerGroupsBytes }

// bytes is about all memory.
func (o *openGroups) bytes() int { return cap(o.all) * callerGroupsBytes }

// rests reports whether memory is free, and no trace has groups.
func (o *openGroups) rests() bool { return o.used == 0 && len(o.all) > 0 }

// trim frees the memory if no trace has groups.
func (o *openGroups) trim() {
	if o.rests() {
		*o = newOpenGroups()
	}
}
