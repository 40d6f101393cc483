// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// Position is how far the events of a stream were given out.
type Position struct {
	// Known says that the stream's packets have sequence numbers, and the rest holds.
	Known bool
	// Next is the sequence number of the packet that is read next, or now.
	Next uint64
	// Events is how many events of that packet were given out.
	Events uint64
	// After says that a packet was read before that one: Discarded is its counter of
	// discarded events and End its end, a value of the clock.
	After          bool
	Discarded, End uint64
}

// whole is what is known of the last packet of a stream that was read to its end.
type whole struct {
	// any says that there was one, numbered that it had a sequence number.
	any, numbered            bool
	sequence, discarded, end uint64
}

// Position returns how far the stream's events were given out.
func (s *Stream) Position() Position {
	at := Position{Known: s.whole.numbered, After: s.whole.numbered, Next: s.whole.sequence + 1, Discarded: s.whole.discarded, End: s.whole.end}
	if s.packet != nil && s.reader.Packet.Has(metadata.RoleSequence) {
		at.Known, at.Next, at.Events = true, s.reader.Packet.Sequence, s.read
		if s.head == headEvent && !(s.merger.used && s.merger.last == s) && s.read > 0 {
			at.Events-- // it waits
		}
	}
	if s.packet == nil && s.resume != nil && s.resume.Known {
		// The packet to go on with has not come yet.
		at.Known, at.Next, at.Events = true, s.resume.Next, s.resume.Events
	}
	return at
}

// Resume has the stream go on at a position, in a Merger that has not read what is
// before it: packets and events that were given out then are passed over. It must come
// before all packets.
func (s *Stream) Resume(at Position) {
	if !at.Known {
		return
	}
	s.resume = &at
	if at.After {
		s.reader.Continue(ctf.Past{Sequence: at.Next - 1, Discarded: at.Discarded, End: at.End})
		s.whole = whole{any: true, numbered: true, sequence: at.Next - 1, discarded: at.Discarded, end: at.End}
	}
}

// Again says that the stream's packets come again from some point on, as they do after
// another connection was made: those that were given before are passed over. Where
// packets have no sequence numbers, those are that end no later than the last one,
// and a loss of cause Interrupted stands before the next. A stream that has ended goes on
// with it, unless Next has returned its StreamEnd.
func (s *Stream) Again() {
	if s.over {
		return
	}
	if s.head == headEnd {
		s.idle()
	}
	s.ended = false
	s.tell(input{kind: inputAgain})
}

// again says whether a packet was read before; if only in part, skip is how many of its
// events.
func (s *Stream) again(packet []byte) (skip uint64, again bool, err error) {
	if s.resume == nil {
		return 0, false, nil
	}
	if s.peek == nil {
		s.peek = ctf.NewReader(s.merger.trace)
	}
	if err := s.peek.Begin(packet); err != nil {
		return 0, false, err
	}
	p := &s.peek.Packet
	s.peek.Finish()
	switch {
	case !p.Has(metadata.RoleSequence):
		if p.End <= s.whole.end {
			return 0, true, nil
		}
		if s.open == nil {
			s.openLoss(Interrupted)
		}
	case !s.resume.Known:
	case p.Sequence < s.resume.Next:
		return 0, true, nil
	case p.Sequence == s.resume.Next:
		skip = s.resume.Events
	}
	s.resume = nil
	return skip, false, nil
}
