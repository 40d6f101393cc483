// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// findHead finds the stream's next head.
func (s *Stream) findHead() {
	for s.merger.err == nil {
		switch {
		case len(s.marks) > 0 && s.marks[0].after <= s.read:
			s.useMark()
			return
		case s.packet == nil:
			if !s.nextInput() {
				return
			}
		case s.reader.Next():
			s.read++
			s.head, s.key = headEvent, s.merger.passed
			if s.clock != nil {
				s.key = s.clock.UnixNano(s.reader.Event.Clock)
			}
			return
		case s.reader.Err() != nil:
			s.fail(s.index, s.reader.Err())
			if s.merger.err == nil {
				s.finish()
				s.markDamage()
			}
		default:
			s.finish()
		}
	}
}

// useMark makes the first mark the head. The head is never older than the previous one.
func (s *Stream) useMark() {
	mark := s.marks[0]
	s.marks = s.marks[:copy(s.marks, s.marks[1:])]
	s.head, s.headLoss = mark.head, mark.loss
	if mark.time != unknownEnd {
		s.key = max(s.key, mark.time)
	}
	switch {
	case s.known && s.clock == nil:
		s.key = s.merger.passed // the key of an idle stream without clock is the end of all time
	case s.late == nil:
		s.key = max(s.key, s.merger.passed)
	}
	if mark.head == headLossEnd && mark.loss.To == unknownEnd {
		mark.loss.To = s.key
	}
}

// nextInput processes the next input. If it cannot continue, it sets the head and returns false.
func (s *Stream) nextInput() bool {
	if s.queue.empty() {
		if !s.ended {
			s.idle()
			return false
		}
		if s.open != nil {
			s.closeOpen(s.promise)
			return true
		}
		if s.tail != nil {
			s.closeTail()
			return true
		}
		s.head, s.key = headEnd, max(s.promise, s.merger.passed)
		return false
	}
	in := *s.queue.front()
	switch in.kind {
	case inputPromise:
		if !s.usePromise(in) {
			s.merger.awaitMetadata(s)
			s.idle()
			return false
		}
	case inputLoss:
		if s.open == nil {
			s.openLoss(in.cause)
		}
	case inputReplay:
		if s.finished.any {
			s.resume = &Position{Known: s.finished.numbered, Next: s.finished.sequence + 1}
		}
	case inputPacket:
		s.begin(in)
	}
	s.queue.pop()
	return true
}

// usePromise returns false if the stream class of the promise is not known yet. The promise of an ended stream has no
// effect.
func (s *Stream) usePromise(in input) bool {
	class := classOf(s.merger.trace, in.class)
	if class == nil {
		return s.ended
	}
	s.known, s.clock = true, class.Clock
	s.addStopped()
	if s.clock != nil {
		s.promise = max(s.promise, s.time(in.cycles))
	}
	if s.tail != nil {
		s.closeTail()
	}
	if s.open != nil {
		s.closeOpen(s.promise)
	}
	return true
}

// openLoss opens a loss. The next packet or promise closes it.
func (s *Stream) openLoss(cause Cause) {
	s.open = &Loss{Stream: s, Cause: cause, From: s.promise, To: unknownEnd}
	s.marks = append(s.marks, mark{head: headLossBegin, time: s.promise, loss: s.open})
}

// closeOpen closes that loss.
func (s *Stream) closeOpen(at int64) {
	s.open.To = max(s.open.From, at)
	s.marks = append(s.marks, mark{head: headLossEnd, time: at, loss: s.open})
	s.open = nil
}

// begin opens the next packet, unless it was read before.
func (s *Stream) begin(in input) {
	skip, read, err := s.alreadyRead(in.packet, in.index)
	if err == nil && !read {
		err = s.reader.Begin(in.packet)
	}
	if err == nil && !read && in.index != nil {
		err = in.index.check(&s.reader.Packet)
	}
	switch {
	case err != nil:
		s.fail(in.index, err)
		if s.merger.err == nil {
			s.returnPacket(in.packet)
			s.markDamage()
		}
		return
	case read:
		s.returnPacket(in.packet)
		return
	}
	p := &s.reader.Packet
	s.packet, s.index, s.read, s.known, s.clock = in.packet, in.index, 0, true, p.Class.Clock
	if sequence, numbered := sequenceOf(p, in.index); numbered && !s.first.Known && !s.finished.any {
		s.first = FirstPacket{Known: true, Sequence: sequence, Begin: p.Begin, Hash: HashOf(in.packet)}
	}
	if p.Has(metadata.RoleStreamInstance) {
		s.rank = s.rank.of(p.Class.ID, p.Instance)
	}
	before, begin := s.promise, s.promise
	if s.timed(metadata.RoleClock) {
		begin = s.time(p.Begin)
	}
	if s.open != nil {
		s.closeOpen(begin)
	}
	s.addStopped()
	s.addLosses(before, begin)
	s.addStop(before, begin)
	s.promise = max(s.promise, begin)
	for s.read < skip && s.reader.Next() {
		s.read++
	}
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

// finish returns the packet to the caller after its last event.
func (s *Stream) finish() {
	p := &s.reader.Packet
	if s.timed(metadata.RolePacketEnd) {
		s.promise = max(s.promise, s.time(p.End))
	}
	if s.clock != nil && s.read > 0 {
		s.promise = max(s.promise, s.time(s.reader.Event.Clock))
	}
	for i := range s.marks {
		s.marks[i].after = 0
	}
	s.stopped = s.stopsTracing()
	sequence, numbered := sequenceOf(p, s.index)
	s.finished = finishedPacket{any: true, numbered: numbered, sequence: sequence, discarded: s.reader.Past().Discarded, end: p.End}
	s.reader.Finish()
	s.returnPacket(s.packet)
	s.packet, s.index, s.read = nil, nil, 0
}

// fail ends the trace because of an unreadable packet, unless the caller skips such packets.
func (s *Stream) fail(at *Index, err error) {
	if damaged := s.merger.options.Damaged; damaged != nil && at != nil {
		damaged(s, at, err)
		return
	}
	s.merger.fail(s, err)
}

// markDamage opens a loss after an unreadable packet.
func (s *Stream) markDamage() {
	if s.open == nil {
		s.openLoss(Damaged)
	}
}

// returnPacket makes Next return the packet to the caller.
func (s *Stream) returnPacket(packet []byte) {
	m := s.merger
	m.waiting -= len(packet)
	m.out = append(m.out, output{kind: PacketEnd, stream: s, time: m.passed, packet: packet})
}
