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
	time       int64
	name, rank uint32
	first      bool
	// isNew: the rename is from the current batch. Open frames may need its name.
	isNew bool
}

// history has the names of a lane.
type history struct {
	id uint64
	// renames are sorted by time, and then by rank.
	renames []rename
	// forgotten: the history has lost its earliest renames.
	forgotten bool
	// changed: a rename of the current batch is new.
	changed bool
}

const (
	// keptRenames is the number of renames of a lane that are always remembered. Beyond it the history forgets the past ones.
	// maxRenames bounds the others: some programs rename their threads with every request, and events wait for seconds.
	keptRenames = 64
	maxRenames  = 4096

	// pastMargin is the time, in nanoseconds, by which later events of a lane can be behind the clock of the stream. A traced
	// thread that waits for a buffer sends its event hundreds of milliseconds after the event's time.
	pastMargin = 1_000_000_000

	renameBytes  = int(unsafe.Sizeof(rename{}))
	historyBytes = int(unsafe.Sizeof(history{})) + nameOverhead
)

// lastAt is the index of the last rename that holds at a time on the source's clock; -1: none.
func (h *history) lastAt(time int64) int {
	low, high := 0, len(h.renames)
	for low < high {
		if middle := int(uint(low+high) / 2); h.renames[middle].time <= time {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low - 1
}

// indexAt is the index of the rename with the lane's name at a time: the last that holds, or the lane's first name. It is -1 if
// the name is not known.
func (h *history) indexAt(time int64) int {
	i := h.lastAt(time)
	if i < 0 && len(h.renames) > 0 && h.renames[0].first {
		return 0
	}
	return i
}

// nameAt is the number of the lane's name at a time. If the history may have forgotten the rename that holds then, it is the
// number of no name. nameAt reports false if only the event knows the name.
func (h *history) nameAt(time int64, n *names) (name uint32, known bool) {
	if h == nil {
		return 0, false
	}
	if i := h.indexAt(time); i >= 0 {
		return h.renames[i].name, true
	}
	if h.forgotten {
		return n.laneName(callevent.Lane{ID: h.id}), true
	}
	return 0, false
}

// markOld ends the batch: none of its renames is new any longer.
func (h *history) markOld() {
	h.changed = false
	for i := range h.renames {
		h.renames[i].isNew = false
	}
}

// past is the number of renames that hold for no later event, because a later rename does. No later event has a time before
// earliest.
func (h *history) past(earliest int64) int { return max(0, h.lastAt(earliest)) }

// renames are the histories of the lanes of a stream, by the lanes' IDs.
type renames struct {
	names     *names
	histories map[uint64]*history
}

// accept adds a rename to the history of its lane, unless the history has it already. earliest is the earliest time that later
// events can have.
func (r *renames) accept(from *callevent.Rename, earliest int64, c *Counters) {
	h := r.histories[from.Lane]
	if h == nil {
		h = &history{id: from.Lane}
		r.histories[from.Lane] = h
		r.names.chargeLanes(historyBytes)
	}
	added := rename{
		time: from.Time, rank: from.Rank, first: from.First, isNew: true,
		name: r.names.laneName(callevent.Lane{ID: from.Lane, Name: from.Name}),
	}
	i, found := slices.BinarySearchFunc(h.renames, added, r.compare)
	if found {
		return
	}
	if i == 0 && h.forgotten {
		h.refuse(earliest, c)
		return
	}
	// The history does not look for past renames each time if it has none.
	if l := len(h.renames); l >= maxRenames || l >= keptRenames && l == cap(h.renames) {
		if i -= r.makeRoom(h, earliest, c); i < 0 {
			h.refuse(earliest, c)
			return
		}
	}
	h.renames = slices.Insert(h.renames, i, added)
	h.changed = true
	r.names.chargeLanes(renameBytes)
}

// refuse counts a rename that is earlier than all that are remembered, unless it holds for no later event.
func (h *history) refuse(earliest int64, c *Counters) {
	if h.renames[0].time > earliest {
		c.DroppedRenames++
	}
}

// makeRoom forgets the past renames of the lane, and returns their number. If the lane has too many others, makeRoom forgets at
// least the earliest quarter.
func (r *renames) makeRoom(h *history, earliest int64, c *Counters) (forgotten int) {
	past := h.past(earliest)
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
	if first > len(h.renames)/2 {
		h.renames = slices.Clone(h.renames[first:])
	} else {
		h.renames = slices.Delete(h.renames, 0, first)
	}
	h.forgotten = h.forgotten || first > 0
	r.names.chargeLanes(-first * renameBytes)
}

// forgetPast forgets the past renames of all lanes.
func (r *renames) forgetPast(earliest int64) {
	for _, h := range r.histories {
		r.forget(h, h.past(earliest))
	}
}

// forgetAllButLast forgets all renames except the last of each lane. The past renames are forgotten already.
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

// compare orders by time, then by rank, and then by all other fields, so that the order of arrival makes no difference.
func (r *renames) compare(a, b rename) int {
	c := cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.rank, b.rank))
	switch {
	case c != 0:
		return c
	case a.first != b.first && a.first:
		return -1
	case a.first != b.first:
		return 1
	case a.name == b.name:
		return 0
	}
	return strings.Compare(r.names.laneNames[a.name].name, r.names.laneNames[b.name].name)
}
