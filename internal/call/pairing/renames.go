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
	// from is the least sequence of the rename and of those after it: where one of
	// those holds, whether this one does makes no difference. So they are sorted by
	// time and by from, and those that hold for an event are the first ones.
	from        uint64
	time        int64
	name, order uint32
	// first and provisional are those of the callevent.Rename.
	first, provisional bool
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
	// provisional is how many are.
	provisional int
	// before are those that there were before the batch that is being taken, and nil
	// where they are the same: open frames may have to be called otherwise.
	before []rename
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

// lastOf is the index of the last rename that holds for an event, by its number and
// its time as the source's clock showed it; -1: none.
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

// nameOf is the index of the rename that says what the lane is called at an event: the
// last that holds, or before all the lane's first. It is -1 where that is not known.
func nameOf(renames []rename, sequence uint64, time int64) int {
	i := lastOf(renames, sequence, time)
	if i < 0 && len(renames) > 0 && renames[0].first {
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

// nameBefore is what the lane is called at an event whose number is below l.from: by
// its history, or as the event says. Where a rename may have been forgotten that holds
// for it, it has no name.
func (s *Stream) nameBefore(l *lane, e *event, sequence uint64) uint32 {
	if l.history == nil {
		return e.lane
	}
	if i := nameOf(l.history.renames, sequence, e.time); i >= 0 {
		return l.history.renames[i].name
	}
	if l.history.forgotten {
		return s.names.laneName(callevent.Lane{ID: l.id})
	}
	return e.lane
}

// learnRenames takes the renames of the batch, and gives open frames the names that
// were heard of late.
func (s *Stream) learnRenames(b *callevent.Batch) {
	for i := range b.Renames {
		s.learnRename(&b.Renames[i])
		if b.Renames[i].Reused {
			s.learnReuse(&b.Renames[i])
		}
	}
	for i := range b.Renames {
		// Once for all of a lane.
		h := s.names.histories[b.Renames[i].Lane]
		if h.before == nil {
			continue
		}
		if index, ok := s.laneIDs[h.lane]; ok {
			l := &s.lanes[index]
			l.follow(h)
			if !l.isShared() {
				s.renameFrames(l)
			}
		}
		h.before = nil
	}
}

// renameFrames gives the open frames of a lane the names that other renames than before
// say. A frame's own time is told by its start, which is less than the clock's
// resolution behind it but where that went back, or stood for longer.
func (s *Stream) renameFrames(l *lane) {
	before, now := l.history.before, l.history.renames
	same := 0
	for same < len(before) && same < len(now) && before[same].isThat(&now[same]) {
		same++
	}
	for depth := len(l.frames) - 1; depth >= 0; depth-- {
		f := &l.frames[depth]
		was, is := nameOf(before, f.sequence, f.start-s.offset), nameOf(now, f.sequence, f.start-s.offset)
		if was < same && is < same {
			// Both are the same one, and none below was entered later.
			return
		}
		if is >= 0 && (was < 0 || !before[was].isThat(&now[is])) {
			f.name = now[is].name
		}
	}
}

// isThat reports whether two renames are the same.
func (r *rename) isThat(other *rename) bool {
	a, b := *r, *other
	a.from, b.from = 0, 0
	return a == b
}

// learnRename puts a rename to its lane's, unless it is there, or something better is.
func (s *Stream) learnRename(told *callevent.Rename) {
	n := &s.names
	h := n.histories[told.Lane]
	if h == nil {
		h = &history{lane: told.Lane}
		n.histories[told.Lane] = h
		n.takeForLanes(historyBytes)
	}
	r := rename{
		sequence: told.Sequence, from: told.Sequence, time: told.Time, order: told.Order, first: told.First, provisional: told.Provisional,
		name: n.laneName(callevent.Lane{ID: told.Lane, Name: told.Name}),
	}
	i, there := slices.BinarySearchFunc(h.renames, r, n.compareRenames)
	if there || r.provisional && h.isBetter(r.order) {
		return
	}
	if h.forgotten && i <= 0 {
		s.refuseRename(h, &r)
		return
	}
	if h.before == nil {
		h.before = append(make([]rename, 0, len(h.renames)), h.renames...)
	}
	if !r.provisional && h.provisional > 0 {
		i -= n.giveWay(h, r.order, i)
	}
	// Not each time: when there is no room.
	if l := len(h.renames); l >= maxRenames || l >= keptRenames && l == cap(h.renames) {
		if i -= s.makeRoomForRename(h); i < 0 {
			s.refuseRename(h, &r)
			return
		}
	}
	h.insert(i, r)
	n.takeForLanes(renameBytes)
}

// isBetter reports whether a rename of the order is known that is not provisional.
func (h *history) isBetter(order uint32) bool {
	return slices.ContainsFunc(h.renames, func(r rename) bool { return r.order == order && !r.provisional })
}

// refuseRename counts a rename that is one of those that were forgotten, or among them,
// unless it is over. Of a provisional one something better is told.
func (s *Stream) refuseRename(h *history, r *rename) {
	if !r.provisional && !h.renames[0].holds(s.next, s.earliest()) {
		s.out.Counters.DroppedRenames++
	}
}

// insert puts a rename at its place.
func (h *history) insert(i int, r rename) {
	h.renames = slices.Insert(h.renames, i, r)
	h.from(i)
	if r.provisional {
		h.provisional++
	}
}

// from makes those before i hold from the number that they have to, as i is another.
func (h *history) from(i int) {
	for ; i >= 0; i-- {
		r := &h.renames[i]
		r.from = r.sequence
		if i+1 < len(h.renames) {
			r.from = min(r.from, h.renames[i+1].from)
		}
	}
}

// giveWay takes out the provisional renames of the order, and gives how many of them
// were before i.
func (n *names) giveWay(h *history, order uint32, i int) (before int) {
	for j := len(h.renames) - 1; j >= 0; j-- {
		if r := &h.renames[j]; !r.provisional || r.order != order {
			continue
		}
		h.renames = slices.Delete(h.renames, j, j+1)
		h.from(j - 1)
		h.provisional--
		n.takeForLanes(-renameBytes)
		if j < i {
			before++
		}
	}
	return before
}

// earliest is the earliest time, by the source's clock, of an event from next on that
// doesn't set the clock anew.
func (s *Stream) earliest() int64 {
	if s.last < s.settings.MaxClockJump {
		return beforeAll
	}
	return s.last - s.settings.MaxClockJump - s.offset
}

// over is how many renames of the lane hold for no event from next on because a later
// one does.
func (s *Stream) over(h *history) int {
	return max(0, lastOf(h.renames, s.next, s.earliest()))
}

// makeRoomForRename forgets the renames that are over, and gives how many there were.
// Where there are too many that are not, it forgets the earliest quarter in any case.
func (s *Stream) makeRoomForRename(h *history) (forgotten int) {
	over := s.over(h)
	forgotten = over
	if len(h.renames) >= maxRenames {
		forgotten = max(over, maxRenames/4)
	}
	s.out.Counters.DroppedRenames += uint64(forgotten - over)
	s.names.forgetRenames(h, forgotten)
	return forgotten
}

// forgetRenames forgets the first renames of a lane.
func (n *names) forgetRenames(h *history, first int) {
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
	n.takeForLanes(-first * renameBytes)
}

// compareRenames orders by time and number, and where those are equal by what was heard
// of earlier; by all the rest too, so that the order in which they are heard of doesn't
// matter, whatever is said.
func (n *names) compareRenames(a, b rename) int {
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
	return strings.Compare(n.laneNames[a.name].name, n.laneNames[b.name].name)
}

func trueFirst(a bool) int {
	if a {
		return -1
	}
	return 1
}
