// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// makeRoom gives up what has been waited for longest until the window has room
// for the number, or the number is the next.
func (s *Stream) makeRoom(sequence uint64) {
	for !s.ended && sequence > s.next && s.window.exceeds(uint64(s.settings.MaxEvents), sequence) {
		s.giveUp(sequence)
	}
}

// maxMissing is the most that a gap counts as: numbers are up to 2^62, and a sum
// of gaps must not overflow because somebody sends nonsense.
const maxMissing = 1 << 32

// giveUp gives up the missing numbers from next to the first that waits, at
// most those below limit, which is a break. There is such a limit, or something
// waits. Numbers in a break that is an interval are not missing, nor are those
// from before the stream was joined.
func (s *Stream) giveUp(limit uint64) {
	to := limit
	if s.window.count > 0 {
		to = min(to, s.window.first())
	}
	if s.lost == 0 {
		s.lost = callevent.CauseGap
		if s.fresh {
			s.lost = callevent.CauseJoined
		}
		s.out.Counters.Breaks[s.lost]++
		s.truncateBefore(s.next, s.lost)
	}
	s.fresh = false
	for !s.ended && s.next < to {
		until := min(to, s.barriers.stop)
		if s.lost == callevent.CauseGap {
			s.out.Counters.Missing += min(until-s.next, maxMissing)
		}
		s.passed.add(passed{from: s.next, to: until})
		s.next = until
		s.cross()
	}
	s.advance()
}

// GiveUpOldest gives up the oldest missing numbers, to hold less. It reports
// false if nothing waits.
func (s *Stream) GiveUpOldest(out *Output) bool {
	s.out = out
	defer s.letGo()
	if s.window.count == 0 {
		return false
	}
	s.giveUp(never)
	s.trim()
	s.window.shrink()
	return true
}

// Due reports whether Expire has something to do: something was missing for too
// long, or memory can be given back.
func (s *Stream) Due(now time.Duration) bool {
	s.window.tighten()
	return !s.ended && s.next < s.arrivals.knownBefore(now-s.settings.MaxWait) || s.window.rests()
}

// Expire gives up what has been missing for longer than MaxWait. now is the
// monotonic time that Take was told, which stands still where waiting is not
// the stream's fault.
func (s *Stream) Expire(now time.Duration, out *Output) {
	s.out = out
	defer s.letGo()
	for overdue := s.arrivals.knownBefore(now - s.settings.MaxWait); !s.ended && s.next < overdue; {
		s.giveUp(overdue)
	}
	s.arrivals.forget(s.next)
	s.trim()
	s.window.shrink()
}

// forgetNames begins anew with names where there are too many: what waits is
// given up to the end, and open frames are truncated.
func (s *Stream) forgetNames() {
	for !s.ended && s.window.count > 0 {
		s.giveUp(never)
	}
	if s.ended {
		s.trim()
		return
	}
	s.truncateBefore(s.next, callevent.CauseLimit)
	s.out.Counters.Breaks[callevent.CauseLimit]++
	for i := range s.lanes {
		s.traces.release(s.lanes[i].continuation)
	}
	s.lanes, s.laneIDs, s.stackBytes = nil, map[uint64]int32{}, 0
	s.names = newNames()
}

// Forget ends all that is known of stacks and names, to hold less.
func (s *Stream) Forget(out *Output) {
	s.out = out
	defer s.letGo()
	if !s.ended {
		s.forgetNames()
		s.window.shrink()
	}
}

// End ends the stream for a reason that is not in its batches: what waits is
// given up to, and open frames are truncated.
func (s *Stream) End(cause callevent.Cause, out *Output) {
	s.out = out
	defer s.letGo()
	for !s.ended && s.window.count > 0 {
		s.giveUp(never)
	}
	if !s.ended {
		s.truncateBefore(never, cause)
		s.ended = true
	}
	s.trim()
}

// trim frees what an ended stream no longer needs; what is left tells that its
// events are old.
func (s *Stream) trim() {
	if !s.ended {
		return
	}
	s.out.Counters.Late += uint64(s.window.count)
	*s = Stream{settings: s.settings, out: s.out, ended: true, next: s.next, passed: s.passed, barriers: barriers{stop: never}}
}
