// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"slices"
	"time"
)

// settle gives a stream whose head or promise has changed its place in the order. One
// that lags behind and has nothing is waited for by nobody.
func (m *Merger) settle(s *Stream) {
	m.stopRunning()
	if s.late != nil && s.key >= m.passed {
		m.catchUp(s)
	}
	if s.late != nil && s.head == headNone {
		m.order.remove(s.number)
		return
	}
	m.order.put(key{s.key, s.number})
}

// stopRunning ends the run of the stream that the last event is of.
func (m *Merger) stopRunning() {
	if m.running {
		m.running = false
		m.passed = max(m.passed, m.Time)
	}
}

// fallBehind begins the interval in which the order isn't known.
func (m *Merger) fallBehind(s *Stream, cause Cause, from int64) {
	s.late = &Loss{Stream: s, Cause: cause, From: from, To: unknownEnd}
	m.out = append(m.out, output{kind: LossBegin, stream: s, time: m.passed, loss: s.late})
}

// catchUp ends it.
func (m *Merger) catchUp(s *Stream) {
	s.late.To = max(s.late.From, m.passed)
	m.out = append(m.out, output{kind: LossEnd, stream: s, time: m.passed, loss: s.late})
	s.late = nil
}

// overtake finds the streams that others wait for, and passes by those that said
// nothing for too long. It returns whether there was one.
func (m *Merger) overtake() bool {
	waiting := lastKey
	for _, k := range m.order.keys {
		if head := m.streams[k.number].head; head != headNone && head != headEnd && k.less(waiting) {
			waiting = k
		}
	}
	if waiting == lastKey {
		return false
	}
	var passed []*Stream
	for _, k := range m.order.keys {
		s := m.streams[k.number]
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
	slices.SortFunc(passed, func(a, b *Stream) int { return cmp.Compare(a.number, b.number) })
	for _, s := range passed {
		m.passBy(s, Overtaken)
	}
	return len(passed) > 0
}

// passBy lets the others go on without a stream that they wait for.
func (m *Merger) passBy(s *Stream, cause Cause) {
	m.fallBehind(s, cause, max(s.key, m.passed))
	m.order.remove(s.number)
}

// Deadline is when, on the clock of Advance, a stream is overtaken that the last Next
// has waited for; false if none would be.
func (m *Merger) Deadline() (time.Duration, bool) { return m.deadline, m.awaited }
