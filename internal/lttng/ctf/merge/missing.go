// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"math"
	"slices"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// addLosses adds marks for the losses before and in the open packet. The promise of the stream was before. The packet
// begins at begin.
func (s *Stream) addLosses(before, begin int64) {
	if before == math.MinInt64 {
		before = begin
	}
	tail := s.tail
	s.tail = nil
	for i, lost := range s.reader.Losses {
		if lost.Kind == ctf.LostPackets {
			s.addLoss(&Loss{Stream: s, Cause: LostPackets, Count: lost.Count, From: before, To: begin}, 0, 0)
			continue
		}
		first, from := uint64(0), before
		if lost.Count > 0 {
			first, from = s.full(before)
		}
		if first > 0 && i == 0 {
			s.addEarlier(before, begin)
		}
		s.addDiscarded(lost.Count, first, from)
	}
	if tail != nil {
		s.endTail(tail, begin)
	}
	s.sortMarks()
}

// sortMarks puts the marks in the order of their places and times. Unknown times are last.
func (s *Stream) sortMarks() {
	slices.SortStableFunc(s.marks, func(a, b mark) int { return cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.time, b.time)) })
}

// addDiscarded adds marks for events discarded after this number of events of the packet. If the packet is full, the
// loss ends in the next one.
func (s *Stream) addDiscarded(count, first uint64, from int64) {
	loss := &Loss{Stream: s, Cause: Discarded, Count: count, From: from, To: unknownEnd}
	if first == 0 && !s.isFull() {
		loss.To = s.endOfPacket()
		s.addLoss(loss, 0, afterAll)
		return
	}
	s.tail = loss
	s.marks = append(s.marks, mark{head: headLossBegin, after: first, time: from, loss: loss})
}

// endTail adds the mark for the end of a loss at the end of the previous packet. If the open packet follows, its first
// event may have begun while events were discarded: a thread reads the clock, loses its processor, and gets room when
// it continues. So the loss ends with the second event.
func (s *Stream) endTail(tail *Loss, begin int64) {
	after, at := uint64(0), begin
	if s.follows() {
		after, at = s.second()
	}
	tail.To = max(tail.From, at)
	s.marks = append(s.marks, endOf(tail, after))
}

// closeTail ends such a loss at the promise, without a packet.
func (s *Stream) closeTail() {
	s.tail.To = max(s.tail.From, s.promise)
	s.marks = append(s.marks, endOf(s.tail, 0))
	s.tail = nil
}

// endOf returns the mark for the end of a loss.
func endOf(loss *Loss, after uint64) mark {
	return mark{head: headLossEnd, after: after, time: loss.To, loss: loss}
}

// second returns the place and the time of the packet's second event, or the packet's end if it has none.
func (s *Stream) second() (after uint64, at int64) {
	if s.clock != nil && s.peekAt() == nil {
		defer s.peek.Finish()
		for read := uint64(0); s.peek.Next(); read++ {
			if read == 1 {
				return read, s.time(s.peek.Event.Clock)
			}
		}
	}
	return afterAll, s.endOfPacket()
}

// addLoss adds marks for a loss after these numbers of events of the packet.
func (s *Stream) addLoss(loss *Loss, first, last uint64) {
	loss.To = max(loss.To, loss.From)
	s.marks = append(s.marks, mark{head: headLossBegin, after: first, time: loss.From, loss: loss}, endOf(loss, last))
}

// addEarlier adds marks for a loss before the packet's second event. When no buffer is free at the end of a full
// packet, tracers count the discarded events with that packet or with the next one. In the second case the stacks at
// the end of the previous packet are not reliable. After a packet that a timer ended, events may be missing for the
// same reason. The first event may have begun before the others were discarded: see endTail.
func (s *Stream) addEarlier(before, begin int64) {
	if begin < before || begin == before && !s.finished.any {
		return
	}
	after, at := s.second()
	s.addLoss(&Loss{Stream: s, Cause: Discarded, From: before, To: at}, 0, after)
}

// fullShare is the share of a full packet that is free, at most. An event that needs more is rare.
const fullShare = 8

// isFull reports whether the open packet may have ended because an event did not fit.
func (s *Stream) isFull() bool {
	p := &s.reader.Packet
	return p.Size-min(p.Size, p.Content) < p.Size/fullShare
}

// follows reports whether the packet begins at the end of the previous one, so that one was full. After a tracer has
// emptied a buffer, the next packet begins with its first event.
func (s *Stream) follows() bool {
	p := &s.reader.Packet
	return s.finished.any && p.Has(metadata.RoleClock) && p.Has(metadata.RolePacketEnd) && p.Begin == s.finished.end
}

// endOfPacket returns the end of the packet. Without a field for it, that is the time of its last event, which is not known
// yet.
func (s *Stream) endOfPacket() int64 {
	if s.timed(metadata.RolePacketEnd) {
		return s.time(s.reader.Packet.End)
	}
	return unknownEnd
}

// slackBits is the maximum padding of an event for its alignment.
const slackBits = 64

// full returns the number of events that the tracer certainly wrote before it discarded any, and the time of the last
// of them. The tracer discards an event that does not fit, so only after less room is left than the largest event
// needs. If there is always more room, full returns 0 and before.
func (s *Stream) full(before int64) (uint64, int64) {
	known := s.largest
	events, clock := s.readAhead()
	if s.largest > known {
		events, clock = s.readAhead()
	}
	if events == 0 {
		return 0, before
	}
	return events, s.time(clock)
}

// readAhead reads the packet with a second reader. It returns the number of events up to the first one after which
// less room is left than the largest known event needs, and the time of that event, or 0 if there is none. It stores
// only these and the size of the largest event, because a packet may have very many events.
func (s *Stream) readAhead() (events, clock uint64) {
	if s.clock == nil || s.peekAt() != nil {
		return 0, 0
	}
	defer s.peek.Finish()
	size, room := s.reader.Packet.Size, s.largest+slackBits
	read, at := uint64(0), s.peek.Offset()
	for s.peek.Next() {
		read++
		next := s.peek.Offset()
		s.largest = max(s.largest, next-at)
		at = next
		if events == 0 && size-min(size, at) < room {
			events, clock = read, s.peek.Event.Clock
		}
	}
	return events, clock
}

// peekAt opens the packet with the second reader.
func (s *Stream) peekAt() error {
	if s.peek == nil {
		s.peek = ctf.NewReader(s.merger.trace)
	}
	return s.peek.Begin(s.packet)
}
