// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"slices"
	"time"
)

// fallBehind opens a loss: until catchUp, the stream's place in the order is unknown.
func (m *Merger) fallBehind(s *Stream, cause Cause, from int64) {
	s.late = &Loss{Stream: s, Cause: cause, From: from, To: unknownEnd}
	m.out = append(m.out, output{kind: LossBegin, stream: s, time: m.passed, loss: s.late})
}

// overtake finds the streams for which others wait, and overtakes those that sent nothing for MaxDelay. It returns
// whether it overtook one.
func (m *Merger) overtake() bool {
	waiting := lastKey
	for _, k := range m.order.keys {
		if head := m.streams[k.rank.number()].head; head != headNone && head != headEnd && k.less(waiting) {
			waiting = k
		}
	}
	if waiting == lastKey {
		return false
	}
	var passed []*Stream
	for _, k := range m.order.keys {
		s := m.streams[k.rank.number()]
		if s.head != headNone || waiting.less(k) {
			continue
		}
		if !s.awaited {
			s.awaited, s.since = true, m.now
		}
		switch until := s.since + m.options.MaxDelay; {
		case m.options.MaxDelay <= 0:
		case until <= m.now:
			passed = append(passed, s)
		case !m.awaited || until < m.deadline:
			m.awaited, m.deadline = true, until
		}
	}
	slices.SortFunc(passed, func(a, b *Stream) int { return cmp.Compare(a.rank, b.rank) })
	for _, s := range passed {
		m.passBy(s, Overtaken)
	}
	return len(passed) > 0
}

// passBy lets the other streams continue without a stream for which they wait.
func (m *Merger) passBy(s *Stream, cause Cause) {
	m.fallBehind(s, cause, max(s.key, m.passed))
	m.order.remove(s.rank.number())
}

// PassBy makes the others continue without the stream, as if MaxDelay were over, with a loss of this cause. The
// caller uses it if it has no memory for the stream's packet, or if the packet will not arrive soon. PassBy returns
// false if no stream waits for this one, or if it is late already. Call it after Next has returned Nothing.
func (s *Stream) PassBy(cause Cause) bool {
	if s.merger.err != nil || s.late != nil || !s.Awaited() {
		return false
	}
	s.merger.passBy(s, cause)
	return true
}

// Deadline returns the time, on the clock of Advance, at which the Merger overtakes the next stream for which the
// last Next waited. It returns false if there is none.
func (m *Merger) Deadline() (time.Duration, bool) { return m.deadline, m.awaited }
