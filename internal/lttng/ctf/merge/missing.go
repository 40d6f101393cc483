// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// addLosses makes marks of the losses before and in the packet that was begun. Nothing
// of the stream is older than before; the packet begins at begin.
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

// addEarlier makes marks of a loss before the packet's first event. Tracers count what
// they discard at the end of a packet that was full, for want of a free one, now with
// that packet and now with the next: then what was open at its end is not known any
// more. One that was ended by a timer may be followed by nothing for the same reason.
func (s *Stream) addEarlier(before, begin int64) {
	if begin < before || begin == before && !s.whole.any {
		return
	}
	loss := &Loss{Stream: s, Cause: Discarded, From: before, To: begin}
	s.marks = append(s.marks, mark{head: headLossBegin, time: before, loss: loss}, mark{head: headLossEnd, time: begin, loss: loss})
}

// follows says that the packet was begun because the one before was full: at that one's
// end. A tracer that empties a buffer begins the next packet with its first event.
func (s *Stream) follows() bool {
	p := &s.reader.Packet
	return s.whole.any && p.Has(metadata.RoleClock) && p.Has(metadata.RolePacketEnd) && p.Begin == s.whole.end
}

// unknownEnd is the end of a loss as long as it isn't known.
const unknownEnd = math.MaxInt64

// endOf is when the packet ends. Without a field for it, that is at its last event,
// which isn't known yet.
func (s *Stream) endOf() int64 {
	if s.timed(metadata.RolePacketEnd) {
		return s.time(s.reader.Packet.End)
	}
	return unknownEnd
}

// slackBits is what the alignment of an event may take beside the event.
const slackBits = 64

// full returns how many events of the packet were surely written before the tracer
// discarded any, and when the last of them was. An event is discarded where it has no
// room: not before there was less left than the largest event takes. If that is never
// so, before is the answer.
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

// readAhead reads the packet ahead. It returns how many events there are up to the
// first one behind which less is left than the largest event known so far takes, and
// the time of that; 0 if there is none. It keeps no more than that, and the size of
// the largest event: a packet may have very many.
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

// peekAt begins to read the packet ahead.
func (s *Stream) peekAt() error {
	if s.peek == nil {
		s.peek = ctf.NewReader(s.merger.trace)
	}
	return s.peek.Begin(s.packet)
}
