// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"cmp"
	"slices"
	"strings"
	"unsafe"

	"github.com/callbraid/callbraid/internal/callevent"
)

// rename is a callevent.Rename with the stream's number for the name.
type rename struct {
	sequence uint64
	// from is the least sequence of the rename and of those after it: where one of
	// those holds, whether this one does makes no difference. So they are sorted by
	// time and by from, and those that hold for an event are the first ones.
	from uint64
	time int64
	name uint32
	// first is that of the callevent.Rename; fresh: open frames may have to be
	// called by it.
	first, fresh bool
}

// holds reports whether the lane had been renamed at the event.
func (r *rename) holds(sequence uint64, time int64) bool {
	return sequence >= r.from || time >= r.time
}

// history is what a lane is called from when on.
type history struct {
	lane uint64
	// renames are sorted by time, and by number where that is equal.
	renames []rename
	// forgotten: the earliest are no longer there.
	forgotten bool
	// fresh: at least one of them is, unless it was forgotten.
	fresh bool
}

const (
	// keptRenames is how many renames of a lane are remembered in any case: beyond
	// it those are forgotten that hold for no event any more. maxRenames bounds
	// those that are still to come: there are programs that rename their threads
	// with every request, and events wait for others for seconds.
	keptRenames = 64
	maxRenames  = 4096

	renameBytes  = int(unsafe.Sizeof(rename{}))
	historyBytes = int(unsafe.Sizeof(history{})) + nameOverhead
)

// last is the index of the last rename that holds for an event, by its number and
// its time as the source's clock showed it; -1: none.
func (h *history) last(sequence uint64, time int64) int {
	low, high := 0, len(h.renames)
	for low < high {
		if middle := int(uint(low+high) / 2); h.renames[middle].holds(sequence, time) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low - 1
}

// at is the index of the rename that says what the lane is called at an event: the
// last that holds, or before all the lane's first. It is -1 where that is not known.
func (h *history) at(sequence uint64, time int64) int {
	i := h.last(sequence, time)
	if i < 0 && h.renames[0].first {
		return 0
	}
	return i
}

// follow lets the lane know of its history, which may be nil.
func (l *lane) follow(h *history) {
	if h == nil {
		return
	}
	last := &h.renames[len(h.renames)-1]
	l.history, l.from, l.name = h, last.from, last.name
}

// nameBefore is what the lane is called at an event whose number is below l.from:
// by its history, or as the event says.
func (l *lane) nameBefore(e *event, sequence uint64) uint32 {
	if l.history != nil {
		if i := l.history.at(sequence, e.time); i >= 0 {
			return l.history.renames[i].name
		}
	}
	return e.lane
}

// learnRenames takes the renames of the batch, and gives open frames the names that
// were heard of late.
func (s *Stream) learnRenames(b *callevent.Batch) {
	for i := range b.Renames {
		s.names.learnRename(&b.Renames[i], s.next)
	}
	for i := range b.Renames {
		// Once for all of a lane.
		h := s.names.histories[b.Renames[i].Lane]
		if !h.fresh {
			continue
		}
		if index, ok := s.laneIDs[h.lane]; ok {
			l := &s.lanes[index]
			l.follow(h)
			s.renameFrames(l)
		}
		h.settle()
	}
}

// renameFrames gives the open frames of a lane the fresh names that hold for them. A
// frame's own time is told by its start, which is less than the clock's resolution
// behind it but where that went back, or stood for longer.
func (s *Stream) renameFrames(l *lane) {
	renames := l.history.renames
	fresh := slices.IndexFunc(renames, func(r rename) bool { return r.fresh })
	if fresh < 0 {
		return
	}
	for depth := len(l.frames) - 1; depth >= 0; depth-- {
		f := &l.frames[depth]
		i := l.history.at(f.sequence, f.start-s.offset)
		if i < fresh {
			// None below was entered later.
			return
		}
		if renames[i].fresh {
			f.name = renames[i].name
		}
	}
}

// settle says that the renames have been applied.
func (h *history) settle() {
	for i := range h.renames {
		h.renames[i].fresh = false
	}
	h.fresh = false
}

// learnRename puts a rename to its lane's, unless it is there. next is the number
// that is next of the stream.
func (n *names) learnRename(told *callevent.Rename, next uint64) {
	h := n.histories[told.Lane]
	if h == nil {
		h = &history{lane: told.Lane}
		n.histories[told.Lane] = h
		n.bytes += historyBytes
	}
	r := rename{
		sequence: told.Sequence, from: told.Sequence, time: told.Time, first: told.First, fresh: true,
		name: n.laneName(callevent.Lane{ID: told.Lane, Name: told.Name}),
	}
	i, there := slices.BinarySearchFunc(h.renames, r, n.compareRenames)
	if there {
		return
	}
	// Not each time: when there is no room.
	if l := len(h.renames); l >= maxRenames || l >= keptRenames && l == cap(h.renames) {
		i -= n.forgetRenames(h, next)
	}
	if h.forgotten && i <= 0 {
		// It is one of those that are forgotten.
		return
	}
	h.insert(i, r)
	n.bytes += renameBytes
}

// insert puts a rename at its place.
func (h *history) insert(i int, r rename) {
	if i < len(h.renames) {
		r.from = min(r.from, h.renames[i].from)
	}
	h.renames = slices.Insert(h.renames, i, r)
	h.fresh = true
	for i--; i >= 0 && h.renames[i].from > r.from; i-- {
		h.renames[i].from = r.from
	}
}

// forgetRenames forgets those that hold for no event from next on because a later
// one does, and gives their number. Where there are too many, the earliest quarter is
// forgotten in any case.
func (n *names) forgetRenames(h *history, next uint64) (forgotten int) {
	forgotten = max(0, h.last(next, beforeAll))
	if len(h.renames) >= maxRenames {
		forgotten = max(forgotten, maxRenames/4)
	}
	if forgotten > len(h.renames)/2 {
		h.renames = slices.Clone(h.renames[forgotten:])
	} else {
		h.renames = slices.Delete(h.renames, 0, forgotten)
	}
	h.forgotten = h.forgotten || forgotten > 0
	n.bytes -= forgotten * renameBytes
	return forgotten
}

// compareRenames orders by time and number; by all the rest too, so that the order
// in which they are heard of doesn't matter, whatever is said.
func (n *names) compareRenames(a, b rename) int {
	if c := cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.sequence, b.sequence)); c != 0 {
		return c
	}
	switch {
	case a.first != b.first && a.first:
		return -1
	case a.first != b.first:
		return 1
	case a.name == b.name:
		return 0
	}
	return strings.Compare(n.laneNames[a.name].name, n.laneNames[b.name].name)
}
