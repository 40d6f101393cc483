// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math"

	"github.com/callbraid/callbraid/internal/ctf"
	"github.com/callbraid/callbraid/internal/ctf/metadata"
)

// addLosses makes marks of the losses before and in the packet that was begun. Nothing
// of the stream is older than before; the packet begins at begin.
func (s *Stream) addLosses(before, begin int64) {
	if before == math.MinInt64 {
		before = begin
	}
	for _, lost := range s.reader.Losses {
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
		}
		loss.To = max(loss.To, loss.From)
		if first.time = loss.From; loss.To != unknownEnd {
			last.time = loss.To
		}
		s.marks = append(s.marks, first, last)
	}
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
	events := s.sizes()
	room := s.largest + slackBits
	for i, e := range events {
		if e.left < room {
			return uint64(i + 1), s.time(e.clock)
		}
	}
	return 0, before
}

// writtenEvent is an event of a packet: its time, and how many bits were left behind it.
type writtenEvent struct{ clock, left uint64 }

// sizes reads the packet ahead, and the size of its largest event.
func (s *Stream) sizes() []writtenEvent {
	if s.peek == nil {
		s.peek = ctf.NewReader(s.merger.trace)
	}
	events := s.written[:0]
	if s.clock == nil || s.peek.Begin(s.packet) != nil {
		return events
	}
	size := s.reader.Packet.Size
	for at := s.peek.Offset(); s.peek.Next(); {
		next := s.peek.Offset()
		s.largest = max(s.largest, next-at)
		at = next
		events = append(events, writtenEvent{s.peek.Event.Clock, size - min(size, at)})
	}
	s.written = events
	return events
}
