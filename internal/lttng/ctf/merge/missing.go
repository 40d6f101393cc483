// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// addLosses adds marks for the losses before and in the open packet. The promise of the stream was before. The packet
// begins at begin.
func (s *Stream) addLosses(before, begin int64) {
	if before == math.MinInt64 {
		before = begin
	}
	for i, lost := range s.reader.Losses {
		loss := &Loss{Stream: s, Cause: Discarded, Count: lost.Count, From: before}
		first, last := mark{head: headLossBegin, loss: loss}, mark{head: headLossEnd, loss: loss}
		if lost.Kind == ctf.LostPackets {
			loss.Cause = LostPackets
			loss.To = begin
		} else {
			last.after = afterAll
			loss.To = s.endOf()
			if lost.Count > 0 {
				first.after, loss.From = s.full(before)
			}
			if first.after > 0 && i == 0 {
				s.addEarlier(before, begin)
			}
		}
		loss.To = max(loss.To, loss.From)
		if first.time = loss.From; loss.To != unknownEnd {
			last.time = loss.To
		}
		s.marks = append(s.marks, first, last)
	}
}

// addEarlier adds marks for a loss before the packet's first event. When no buffer is free at the end of a full
// packet, tracers count the discarded events with that packet or with the next one. In the second case the stacks at
// the end of the previous packet are not reliable. After a packet that a timer ended, events may be missing for the
// same reason.
func (s *Stream) addEarlier(before, begin int64) {
	if begin < before || begin == before && !s.finished.any {
		return
	}
	loss := &Loss{Stream: s, Cause: Discarded, From: before, To: begin}
	s.marks = append(s.marks, mark{head: headLossBegin, time: before, loss: loss}, mark{head: headLossEnd, time: begin, loss: loss})
}

// follows reports whether the packet begins at the end of the previous one, so that one was full. After a tracer has
// emptied a buffer, the next packet begins with its first event.
func (s *Stream) follows() bool {
	p := &s.reader.Packet
	return s.finished.any && p.Has(metadata.RoleClock) && p.Has(metadata.RolePacketEnd) && p.Begin == s.finished.end
}

// unknownEnd is the end of a loss whose end is not known yet.
const unknownEnd = math.MaxInt64

// endOf returns the end of the packet. Without a field for it, that is the time of its last event, which is not known
// yet.
func (s *Stream) endOf() int64 {
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
