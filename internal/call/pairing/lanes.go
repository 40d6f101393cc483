// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import "github.com/callbraid/callbraid/internal/call/callevent"

// lane has one stack.
type lane struct {
	id     uint64
	frames []frame
	// throws are the exceptions of all open frames, in the frames' order, and
	// attributes their attributes.
	throws     []Throw
	attributes []attribute
	// continuation is the trace that takes the frames whose parents are in full
	// traces, or noTrace.
	continuation uint32
	// Frames that are entered at the number from or above have the name. Below it the
	// history knows, or where that is nil the event. from is never where it is nil.
	from    uint64
	name    uint32
	history *history
	// counts are the open frames of each function on a deep stack, once one was
	// looked for in vain; nil: not counted. They take much less than the frames.
	counts map[uint32]int32
	// reuse is that of the lane, or nil.
	reuse *reuse
	// cut: a break ended calls that were open, so the thread may be inside them.
	cut bool
}

// lane gives the lane that is called by the number, which it may make.
func (s *Stream) lane(name uint32) *lane {
	n := &s.names.laneNames[name]
	if n.lane != noLane {
		return &s.lanes[n.lane]
	}
	index, ok := s.laneIDs[n.id]
	if !ok {
		if len(s.lanes) >= s.settings.MaxLanes {
			s.forgetLanes()
		}
		index = int32(len(s.lanes))
		s.lanes = append(s.lanes, lane{id: n.id, continuation: noTrace, from: never})
		s.lanes[index].follow(s.names.histories[n.id])
		s.lanes[index].reuse = s.names.reuses[n.id]
		s.laneIDs[n.id] = index
	}
	n.lane = index
	return &s.lanes[index]
}

// forgetLanes makes room where there are too many lanes: those without open
// frames are forgotten, and if that is less than half, all are.
func (s *Stream) forgetLanes() {
	kept := s.lanes[:0]
	busy := 0
	for i := range s.lanes {
		if len(s.lanes[i].frames) > 0 {
			busy++
		}
	}
	for i := range s.lanes {
		l := s.lanes[i]
		if busy > len(s.lanes)/2 {
			s.truncate(&l, 0, callevent.CauseLimit, s.last)
		}
		if len(l.frames) > 0 || l.isShared() && busy <= len(s.lanes)/2 {
			kept = append(kept, l)
		} else {
			s.traces.release(l.continuation)
			s.drop(&l)
		}
	}
	clear(s.lanes[len(kept):])
	s.lanes = kept
	clear(s.laneIDs)
	for i := range s.lanes {
		s.laneIDs[s.lanes[i].id] = int32(i)
	}
	for i := range s.names.laneNames {
		s.names.laneNames[i].lane = noLane
	}
}
