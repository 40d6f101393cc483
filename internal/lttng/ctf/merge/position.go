// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"hash/fnv"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
)

// Position is the position in a stream after the returned events.
type Position struct {
	// Known is set if the stream's packets have sequence numbers, or places. Otherwise the other fields are invalid.
	Known bool
	// Next is the sequence number of the current or next packet, or the lower bound of its place.
	Next uint64
	// Events is the number of returned events of that packet.
	Events uint64
	// After is set if a packet was read before that one. Discarded is its counter of discarded events and End its
	// end, a value of the clock.
	After          bool
	Discarded, End uint64
	// First is the first packet that was read of the stream.
	First FirstPacket
}

// FirstPacket shows whether a stream is the one of a position. The first packets of two recordings can have the same
// sequence number, or place. They rarely have the same begin, and very rarely the same content.
type FirstPacket struct {
	Known           bool
	Sequence, Begin uint64
	// Hash is that of its content. 0: not known.
	Hash uint64
}

// IsOther reports whether a packet is another one with the same sequence number or place. It compares the parts that are
// known of both.
func (f FirstPacket) IsOther(packet FirstPacket) bool {
	return f.Known && packet.Known && f.Sequence == packet.Sequence &&
		(f.Begin != packet.Begin || f.Hash != 0 && packet.Hash != 0 && f.Hash != packet.Hash)
}

// HashedBytes is the number of bytes at the begin of a packet's content that HashOf uses.
const HashedBytes = 1 << 10

// HashOf returns the hash of a packet, for FirstPacket.
func HashOf(content []byte) uint64 {
	h := fnv.New64a()
	h.Write(content[:min(len(content), HashedBytes)])
	return h.Sum64()
}

// finishedPacket describes the last packet of a stream that was read to its end.
type finishedPacket struct {
	// any is set if there was one, numbered if it had a sequence number.
	any, numbered            bool
	sequence, discarded, end uint64
}

// Position returns the position after the returned events of the stream.
func (s *Stream) Position() Position {
	at := Position{
		Known: s.finished.numbered, After: s.finished.numbered, Next: s.finished.sequence + 1, Discarded: s.finished.discarded,
		End: s.finished.end, First: s.first,
	}
	if sequence, numbered := s.currentSequence(); numbered {
		at.Known, at.Next, at.Events = true, sequence, s.read
		if s.head == headEvent && !(s.merger.used && s.merger.last == s) && s.read > 0 {
			at.Events-- // Next has not returned it yet
		}
	}
	if s.packet == nil && s.resume != nil && s.resume.Known {
		// The packet at the resumed position has not arrived yet.
		at.Known, at.Next, at.Events = true, s.resume.Next, s.resume.Events
	}
	return at
}

// Continues reports whether a Merger that resumes at Position returns each event once: the position is known, or no
// event was returned.
func (s *Stream) Continues() bool {
	return s.Position().Known || !s.finished.any && s.read == 0
}

// currentSequence returns the sequence number or the place of the open packet.
func (s *Stream) currentSequence() (uint64, bool) {
	if s.packet == nil {
		return 0, false
	}
	return sequenceOf(&s.reader.Packet, s.index)
}

// Resume continues the stream at a position of another Merger: it skips packets and events before it. Call it before
// the first packet.
func (s *Stream) Resume(at Position) {
	if !at.Known {
		return
	}
	s.resume, s.first = &at, at.First
	if at.After {
		s.reader.Continue(ctf.Past{Sequence: at.Next - 1, Discarded: at.Discarded, End: at.End})
		s.finished = finishedPacket{any: true, numbered: true, sequence: at.Next - 1, discarded: at.Discarded, end: at.End}
	}
}

// Replay announces that the stream's packets start again at an earlier one, as they do on a new connection. The
// stream skips packets that it has read. Packets without sequence numbers are skipped if they end no later than the
// last one, and a loss of cause Interrupted precedes the next packet. A stream that has ended continues, unless Next
// has returned its StreamEnd.
func (s *Stream) Replay() {
	if s.over {
		return
	}
	if s.head == headEnd {
		s.idle()
	}
	s.ended = false
	s.enqueue(input{kind: inputReplay})
}

// alreadyRead reports whether a packet was read before. If only a part of it was, skip is the number of events in
// that part.
func (s *Stream) alreadyRead(packet []byte, index *Index) (skip uint64, read bool, err error) {
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
	sequence, numbered := sequenceOf(p, index)
	switch {
	case !numbered:
		if p.End <= s.finished.end {
			return 0, true, nil
		}
		if s.open == nil {
			s.openLoss(Interrupted)
		}
	case !s.resume.Known:
	case sequence < s.resume.Next:
		return 0, true, nil
	case sequence == s.resume.Next:
		skip = s.resume.Events
	}
	s.resume = nil
	return skip, false, nil
}
