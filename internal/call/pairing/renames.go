// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"cmp"
	"slices"
	"strings"
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// rename is a callevent.Rename with the stream's number for the name.
type rename struct {
	sequence uint64
	// from is the least sequence of the rename and of those after it. Where a later one holds,
	// this one makes no difference. So they are sorted by time and by from, and the first ones
	// hold for an event.
	from        uint64
	time        int64
	name, order uint32
	// first and provisional are those of the callevent.Rename.
	first, provisional bool
}

// holds reports whether the lane had this name, or a later one, at the event.
func (r *rename) holds(sequence uint64, time int64) bool {
	return sequence >= r.from || time >= r.time
}

// history has the names of a lane.
type history struct {
	lane uint64
	// renames are sorted by time, and then by sequence number.
	renames []rename
	// forgotten: the earliest are no longer there.
	forgotten bool
	// provisional is the number of provisional renames.
	provisional int
	// before are the renames before the current batch, or nil if it changes none. Open frames
	// may need other names.
	before []rename
}

const (
	// keptRenames is the number of renames of a lane that are always remembered. Beyond it the
	// past ones are forgotten. maxRenames bounds the others: some programs rename their threads
	// with every request, and events wait for seconds.
	keptRenames = 64
	maxRenames  = 4096

	renameBytes  = int(unsafe.Sizeof(rename{}))
	historyBytes = int(unsafe.Sizeof(history{})) + nameOverhead
)

// lastOf is the index of the last rename that holds for an event, by its number and its time on
// the source's clock; -1: none.
func lastOf(renames []rename, sequence uint64, time int64) int {
	low, high := 0, len(renames)
	for low < high {
		if middle := int(uint(low+high) / 2); renames[middle].holds(sequence, time) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low - 1
}

// nameOf is the index of the rename with the lane's name at an event: the last that holds, or
// the lane's first name. It is -1 if the name is not known.
func nameOf(renames []rename, sequence uint64, time int64) int {
	i := lastOf(renames, sequence, time)
	if i < 0 && len(renames) > 0 && renames[0].first {
		return 0
	}
	return i
}

// renames are the histories of the lanes of a stream, by the lanes' IDs.
type renames struct {
	names     *names
	histories map[uint64]*history
}

// position is how far a stream has come: the next number, and the earliest time by the
// source's clock that a later event can have.
type position struct {
	next     uint64
	earliest int64
}

// nameAt is the number of the lane's name at an event, or of no name if the rename that
// holds for it may be forgotten. It reports false where only the event says the name.
func (h *history) nameAt(e *event, sequence uint64, n *names) (name uint32, known bool) {
	if h == nil {
		return 0, false
	}
	if i := nameOf(h.renames, sequence, e.time); i >= 0 {
		return h.renames[i].name, true
	}
	if h.forgotten {
		return n.laneName(callevent.Lane{ID: h.lane}), true
	}
	return 0, false
}

// isThat reports whether two renames are the same.
func (r *rename) isThat(other *rename) bool {
	a, b := *r, *other
	a.from, b.from = 0, 0
	return a == b
}

// accept adds a rename to its lane's history, unless it is there, or one of its order that
// is not provisional. Where it changes the history, before is set.
func (r *renames) accept(from *callevent.Rename, at position, c *Counters) {
	h := r.histories[from.Lane]
	if h == nil {
		h = &history{lane: from.Lane}
		r.histories[from.Lane] = h
		r.names.chargeLanes(historyBytes)
	}
	one := rename{
		sequence: from.Sequence, from: from.Sequence, time: from.Time, order: from.Order, first: from.First, provisional: from.Provisional,
		name: r.names.laneName(callevent.Lane{ID: from.Lane, Name: from.Name}),
	}
	i, there := slices.BinarySearchFunc(h.renames, one, r.compare)
	if there || one.provisional && h.isBetter(one.order) {
		return
	}
	if h.forgotten && i <= 0 {
		h.refuse(&one, at, c)
		return
	}
	if h.before == nil {
		h.before = append(make([]rename, 0, len(h.renames)), h.renames...)
	}
	if !one.provisional && h.provisional > 0 {
		i -= r.removeProvisional(h, one.order, i)
	}
	// Not each time: when there is no room.
	if l := len(h.renames); l >= maxRenames || l >= keptRenames && l == cap(h.renames) {
		if i -= r.makeRoom(h, at, c); i < 0 {
			h.refuse(&one, at, c)
			return
		}
	}
	h.insert(i, one)
	r.names.chargeLanes(renameBytes)
}

// isBetter reports whether a rename of the order is known that is not provisional.
func (h *history) isBetter(order uint32) bool {
	return slices.ContainsFunc(h.renames, func(r rename) bool { return r.order == order && !r.provisional })
}

// refuse counts a rename that belongs to the forgotten ones, unless it holds for no event
// any more. A provisional one does not count, because a better one follows.
func (h *history) refuse(r *rename, at position, c *Counters) {
	if !r.provisional && !h.renames[0].holds(at.next, at.earliest) {
		c.DroppedRenames++
	}
}

// insert inserts a rename at its index.
func (h *history) insert(i int, r rename) {
	h.renames = slices.Insert(h.renames, i, r)
	h.from(i)
	if r.provisional {
		h.provisional++
	}
}

// from updates the field from of the renames up to index i.
func (h *history) from(i int) {
	for ; i >= 0; i-- {
		r := &h.renames[i]
		r.from = r.sequence
		if i+1 < len(h.renames) {
			r.from = min(r.from, h.renames[i+1].from)
		}
	}
}

// removeProvisional removes the provisional renames of the order. It returns how many of
// them were before i.
func (r *renames) removeProvisional(h *history, order uint32, i int) (before int) {
	for j := len(h.renames) - 1; j >= 0; j-- {
		if one := &h.renames[j]; !one.provisional || one.order != order {
			continue
		}
		h.renames = slices.Delete(h.renames, j, j+1)
		h.from(j - 1)
		h.provisional--
		r.names.chargeLanes(-renameBytes)
		if j < i {
			before++
		}
	}
	return before
}

// past is the number of renames that hold for no later event, because a later one does.
func (h *history) past(at position) int {
	return max(0, lastOf(h.renames, at.next, at.earliest))
}

// makeRoom forgets the renames of the lane that are past, and returns how many. If there
// are too many others it forgets at least the earliest quarter.
func (r *renames) makeRoom(h *history, at position, c *Counters) (forgotten int) {
	past := h.past(at)
	forgotten = past
	if len(h.renames) >= maxRenames {
		forgotten = max(past, maxRenames/4)
	}
	c.DroppedRenames += uint64(forgotten - past)
	r.forget(h, forgotten)
	return forgotten
}

// forget forgets the first renames of a lane.
func (r *renames) forget(h *history, first int) {
	for i := range h.renames[:first] {
		if h.renames[i].provisional {
			h.provisional--
		}
	}
	if first > len(h.renames)/2 {
		h.renames = slices.Clone(h.renames[first:])
	} else {
		h.renames = slices.Delete(h.renames, 0, first)
	}
	h.forgotten = h.forgotten || first > 0
	r.names.chargeLanes(-first * renameBytes)
}

// forgetPast forgets the past renames of all lanes.
func (r *renames) forgetPast(at position) {
	for _, h := range r.histories {
		r.forget(h, h.past(at))
	}
}

// forgetAllButLast forgets all renames except the last of each lane. The past ones were
// forgotten before.
func (r *renames) forgetAllButLast(c *Counters) {
	for _, h := range r.histories {
		c.DroppedRenames += uint64(len(h.renames) - 1)
		r.forget(h, len(h.renames)-1)
	}
}

// moveNames moves the names of all renames in a sweep.
func (r *renames) moveNames(sweep *laneSweep) {
	for _, h := range r.histories {
		for i := range h.renames {
			sweep.move(&h.renames[i].name)
		}
	}
}

// compare orders by time, sequence number and order, and then by all other fields,
// so that the order of arrival makes no difference.
func (r *renames) compare(a, b rename) int {
	c := cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.sequence, b.sequence), cmp.Compare(a.order, b.order))
	switch {
	case c != 0:
		return c
	case a.provisional != b.provisional:
		return trueFirst(a.provisional)
	case a.first != b.first:
		return trueFirst(a.first)
	case a.name == b.name:
		return 0
	}
	return strings.Compare(r.names.laneNames[a.name].name, r.names.laneNames[b.name].name)
}

func trueFirst(a bool) int {
	if a {
		return -1
	}
	return 1
}
