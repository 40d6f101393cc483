// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import "github.com/callbraid/callbraid/internal/call/callevent"

// sweepShare is the share of the bound of names, one of so many, that names of lanes
// may take beyond what was in use when those that were not were forgotten last. There
// are programs that rename their threads with every request.
const sweepShare = 8

// boundNames keeps what names take below their bound:
//
//  1. Names of lanes that nothing has any more are forgotten.
//  2. Where those that something has take half of the bound, renames that are still to
//     come are forgotten but for the last of each lane.
//  3. Where the functions and exceptions are too many, or the lanes themselves, all
//     begins anew.
func (s *Stream) boundNames() {
	n, limit := &s.names, s.settings.MaxNameBytes
	if n.laneBytes-n.sweptBytes > limit/sweepShare {
		s.sweepLaneNames()
		if n.laneBytes > limit/2 {
			s.dropRenames()
			s.sweepLaneNames()
		}
	}
	if n.bytes > limit {
		s.forgetNames()
	}
}

// dropRenames forgets all renames but the last of each lane. Those that were over are
// forgotten already.
func (s *Stream) dropRenames() {
	for _, h := range s.names.histories {
		s.out.Counters.DroppedRenames += uint64(len(h.renames) - 1)
		s.names.forgetRenames(h, len(h.renames)-1)
	}
}

// sweepLaneNames forgets the renames that are over and the names of lanes that nothing
// has any more. The others get new numbers, so that the memory is free.
func (s *Stream) sweepLaneNames() {
	n := &s.names
	for _, h := range n.histories {
		n.forgetRenames(h, s.over(h))
	}
	old := n.laneNames
	n.laneNames, n.laneNameIDs = nil, map[callevent.Lane]uint32{}
	moved := make([]uint32, len(old))
	move := func(name *uint32) {
		if moved[*name] == 0 {
			kept := &old[*name]
			n.laneNames = append(n.laneNames, *kept)
			moved[*name] = uint32(len(n.laneNames))
			n.laneNameIDs[callevent.Lane{ID: kept.id, Name: kept.name}] = moved[*name] - 1
		}
		*name = moved[*name] - 1
	}
	for _, h := range n.histories {
		for i := range h.renames {
			move(&h.renames[i].name)
		}
	}
	for i := range s.lanes {
		l := &s.lanes[i]
		l.follow(l.history)
		for j := range l.frames {
			move(&l.frames[j].name)
		}
	}
	s.window.each(func(e *event) {
		if e.kind != callevent.KindSkip {
			move(&e.lane)
		}
	})
	for i := range old {
		if moved[i] == 0 {
			n.takeForLanes(-len(old[i].name) - nameOverhead)
		}
	}
	n.sweptBytes = n.laneBytes
}
