// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tracefile

import (
	"cmp"
	"slices"
)

// item is a slice, an instant or a value of a chunk. Items have numbers from 1, in the order of their arrival, so callers
// have higher ones than their callees. The message of an item is in the bodies of the chunk, from its offset to that of the
// next item.
type item struct {
	start, end uint64 // equal for instants and values
	offset     uint32
	track      uint32
	// before is the number of the item before it on the track, or 0: of slices the slice, of others the other one.
	before uint32
	// slice is the number of the slice that an instant is in. Others have their own number.
	slice uint32
}

// event is an event of an item: twice the item's number, plus 1 for the end of a slice.
type event uint32

func beginOf(number uint32) event { return event(number << 1) }
func endOf(number uint32) event   { return event(number<<1 | 1) }
func (e event) isEnd() bool       { return e&1 != 0 }
func (e event) number() uint32    { return uint32(e >> 1) }

// position is where an event stands among those of the same time: the classes in their order.
type position uint8

const (
	// begun: the slice began before.
	begun position = iota
	// empty: the slice begins and ends now.
	empty
	// beginning: the slice begins now, and ends later.
	beginning
)

// leastOfGroup is the number of events in a chunk from which on a track has a group of its own.
const leastOfGroup = 64

// sorter sorts the events of a chunk. It keeps its memory.
type sorter struct {
	items []item
	// few are the events of the tracks that have no group.
	few []event
	// Of a track: events of slices and others, both together, and the begins for which the sorter has not found a place.
	slices, others, merged, begins []event
}

// timeOf returns the time of an event.
func (s *sorter) timeOf(e event) uint64 {
	if it := &s.items[e.number()]; !e.isEnd() {
		return it.start
	} else {
		return it.end
	}
}

// sliceOf returns the number of the slice of an event. Instants and values without a slice are as slices without length.
func (s *sorter) sliceOf(e event) uint32 { return s.items[e.number()].slice }

// positionOf returns the position of an event at a time.
func (s *sorter) positionOf(e event, time uint64) position {
	switch in := &s.items[s.sliceOf(e)]; {
	case in.start < time:
		return begun
	case in.start == in.end:
		return empty
	}
	return beginning
}

// compare is the order of events in the file. At equal times, the inner slice ends first, and the outer slice begins first.
func (s *sorter) compare(a, b event) int {
	time := s.timeOf(a)
	if order := cmp.Compare(time, s.timeOf(b)); order != 0 {
		return order
	}
	at, slices := s.positionOf(a, time), cmp.Compare(s.sliceOf(a), s.sliceOf(b))
	if at == beginning {
		slices = -slices
	}
	return cmp.Or(cmp.Compare(at, s.positionOf(b, time)), slices, cmp.Compare(a&1, b&1), cmp.Compare(a, b))
}

// ofFew returns the events of all tracks that have few, in their order. They are valid until the next call.
func (s *sorter) ofFew(tracks []*track) []event {
	s.few = s.few[:0]
	for _, t := range tracks {
		if !t.isBusy() {
			s.few = append(s.few, s.ofTrack(t)...)
		}
	}
	slices.SortFunc(s.few, s.compare)
	return s.few
}

// ofTrack returns the events of a track in their order. They are valid until the next call.
func (s *sorter) ofTrack(t *track) []event {
	s.sortSlices(t.slices)
	if t.others == 0 {
		return s.slices
	}
	s.sortOthers(t.others)
	s.merge()
	return s.merged
}

// sortSlices sorts the events of slices, of which it gets the last one.
//
//  1. Callees arrive before callers. So from the last slice to the first, the events come from the last to the first, if each
//     begin waits until the slices inside have their events.
//  2. If slices arrived in another order, their events are sorted by comparing them, which takes longer.
func (s *sorter) sortSlices(last uint32) {
	s.slices, s.begins = s.slices[:0], s.begins[:0]
	sorted, until := true, ^uint64(0)
	for n := last; n != 0; n = s.items[n].before {
		it := &s.items[n]
		for len(s.begins) > 0 {
			inner := s.begins[len(s.begins)-1]
			start := s.items[inner.number()].start
			if start < it.end {
				break
			}
			s.slices, s.begins, until = append(s.slices, inner), s.begins[:len(s.begins)-1], start
		}
		if it.end >= until && s.compare(endOf(n), s.slices[len(s.slices)-1]) > 0 {
			sorted = false
		}
		s.slices, s.begins, until = append(s.slices, endOf(n)), append(s.begins, beginOf(n)), it.end
	}
	slices.Reverse(s.begins)
	s.slices = append(s.slices, s.begins...)
	slices.Reverse(s.slices)
	if !sorted {
		slices.SortFunc(s.slices, s.compare)
	}
}

// sortOthers sorts instants and values, of which it gets the last one.
func (s *sorter) sortOthers(last uint32) {
	s.others = s.others[:0]
	for n := last; n != 0; n = s.items[n].before {
		s.others = append(s.others, beginOf(n))
	}
	slices.Reverse(s.others)
	slices.SortFunc(s.others, s.compare)
}

// merge merges the events of slices and the others.
func (s *sorter) merge() {
	s.merged = s.merged[:0]
	rest := s.slices
	for _, e := range s.others {
		n := 0
		for n < len(rest) && s.compare(rest[n], e) < 0 {
			n++
		}
		s.merged, rest = append(append(s.merged, rest[:n]...), e), rest[n:]
	}
	s.merged = append(s.merged, rest...)
}
