// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"cmp"
	"slices"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// never is beyond every sequence number.
const never = ^uint64(0)

const (
	// maxPending bounds the barriers that are ahead, maxHeard those that are
	// remembered because every batch may name them again.
	maxPending = 4096
	maxHeard   = 1024
)

// barriers are those of a stream.
type barriers struct {
	// pending are ahead of the stream's next number, sorted by From.
	pending []callevent.Barrier
	// heard have been obeyed; the oldest are forgotten.
	heard []callevent.Barrier
	// stop is the first pending From, or never.
	stop uint64
}

// note puts a barrier ahead to the others, unless it is there.
func (b *barriers) note(barrier callevent.Barrier) {
	i, there := slices.BinarySearchFunc(b.pending, barrier, compareBarriers)
	if there {
		return
	}
	b.pending = slices.Insert(b.pending, i, barrier)
	b.stop = b.pending[0].From
}

// pop takes out the first pending barrier.
func (b *barriers) pop() callevent.Barrier {
	first := b.pending[0]
	b.pending = slices.Delete(b.pending, 0, 1)
	b.stop = never
	if len(b.pending) > 0 {
		b.stop = b.pending[0].From
	}
	return first
}

// hear reports whether the barrier is heard of for the first time.
func (b *barriers) hear(barrier callevent.Barrier) bool {
	// Most often it is the last one.
	for i := len(b.heard) - 1; i >= 0; i-- {
		if compareBarriers(b.heard[i], barrier) == 0 {
			return false
		}
	}
	if len(b.heard) == maxHeard {
		b.heard = slices.Delete(b.heard, 0, 1)
	}
	b.heard = append(b.heard, barrier)
	return true
}

// compareBarriers orders by place. Causes don't matter: two barriers at one
// place are the same, but that the end comes after a break.
func compareBarriers(a, b callevent.Barrier) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Kind, b.Kind))
}

// learnBarrier obeys the barrier now, if all before it has been paired, or
// when that is so.
func (s *Stream) learnBarrier(b callevent.Barrier) {
	for len(s.barriers.pending) >= maxPending && !s.ended && b.From > s.next {
		s.giveUp(s.barriers.stop)
	}
	switch {
	case s.ended:
	case b.From > s.next:
		s.barriers.note(b)
	default:
		s.obey(b)
		// An interval goes on to its end.
		s.cross()
		s.advance()
	}
}

// cross obeys the pending barriers that stand before the next number.
func (s *Stream) cross() {
	for !s.ended && s.barriers.stop <= s.next {
		s.obey(s.barriers.pop())
	}
}

// obey ends what the barrier says: rule 4 and rule 5. All numbers below From
// have been paired or given up; if the barrier is heard of late, later ones too.
func (s *Stream) obey(b callevent.Barrier) {
	if !s.barriers.hear(b) {
		return
	}
	if b.Kind == callevent.BarrierEnd {
		s.truncateBefore(never, b.Cause)
		s.ended = true
		return
	}
	s.out.Counters.Breaks[b.Cause]++
	s.truncateBefore(b.To, b.Cause)
	if b.To > s.next {
		s.skipTo(b.To)
	}
}

// skipTo goes on to the number to, past a break: what waits below it is not
// paired, and what is missing is remembered.
func (s *Stream) skipTo(to uint64) {
	for s.window.count > 0 && s.window.first() < to {
		waits := s.window.first()
		s.passed.add(passed{from: s.next, to: waits, inBreak: true})
		s.next = waits + 1
		s.discard(waits)
		s.out.Counters.InBreak++
	}
	s.passed.add(passed{from: s.next, to: to, inBreak: true})
	s.next, s.fresh = to, false
}

// discard takes the lowest waiting event out, with what belongs to it.
func (s *Stream) discard(sequence uint64) {
	if s.window.at(sequence).attributes {
		s.takeAttributes(sequence)
	}
	s.window.remove(sequence)
}
