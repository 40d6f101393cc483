// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import "time"

// Advance sets the time since any fixed moment. It never decreases. A caller may stop it while it does not call Next,
// so that no stream is overtaken because of that. The caller must also call Advance after it appended metadata.
func (m *Merger) Advance(now time.Duration) {
	m.now = max(m.now, now)
	if len(m.unresolved) == 0 {
		return
	}
	streams := m.unresolved
	m.unresolved = nil
	for _, s := range streams {
		s.unresolved = false
		s.proceed()
	}
}

// Next returns the next result. It returns Nothing if that is not known yet, and after an error.
//
// The steps: (1) while the stream of the last event has another one that is older than all other streams, return
// that, or else the event of the stream that is first now. Otherwise (2) find the head of that stream and its place.
// (3) Return the results outside the order of time. (4) Return the head of the first stream, or (5) if it has none, wait
// for it or overtake it.
func (m *Merger) Next() Kind {
	if s := m.last; m.running && s.reader.Next() {
		s.read++
		s.key = s.clock.UnixNano(s.reader.Event.Clock)
		if s.key >= m.Time && (s.key < m.bound.time || s.key == m.bound.time && s.rank < m.bound.rank) {
			m.Time = s.key
			return Event
		}
		m.used = false
		if s.key >= m.Time && m.runNext(s) {
			return Event
		}
		m.updateOrder(s)
	}
	return m.next()
}

// runNext moves a running stream behind its next event, and runs the stream that is first now, if it has an event. It
// returns false if that needs the other steps.
func (m *Merger) runNext(s *Stream) bool {
	m.order.putFirst(key{s.key, s.rank})
	first := m.streams[m.order.keys[0].rank.number()]
	if !first.canRun() || first.key < m.Time {
		return false
	}
	m.changeTo(first)
	m.Time, m.passed, m.used, m.bound = first.key, first.key, true, m.order.second()
	m.Event = &first.reader.Event
	return true
}

// next performs steps 2 to 5 of Next.
func (m *Merger) next() Kind {
	m.stopRunning()
	m.awaited, m.Late = false, false
	if m.used {
		m.used = false
		m.last.findHead()
		m.updateOrder(m.last)
	}
	for {
		if len(m.out) > 0 {
			return m.nextOutput()
		}
		if m.err != nil || len(m.order.keys) == 0 {
			return Nothing
		}
		s := m.streams[m.order.keys[0].rank.number()]
		switch {
		case s.head == headNone:
			if !m.overtake() {
				return Nothing
			}
		case s.key < m.passed && !s.behind():
			m.fallBehind(s, Disordered, s.key)
		default:
			return m.returnHead(s)
		}
	}
}

// nextOutput returns the first result outside the order of time.
func (m *Merger) nextOutput() Kind {
	o := m.out[0]
	n := copy(m.out, m.out[1:])
	m.out[n] = output{}
	m.out = m.out[:n]
	m.Stream, m.Time, m.Loss, m.Packet = o.stream, o.time, o.loss, o.packet
	return o.kind
}

// returnHead returns the head of the first stream.
func (m *Merger) returnHead(s *Stream) Kind {
	if s.head == headEnd {
		// The stream's end has no time of its own.
		m.Stream, m.Time = s, m.passed
		m.order.remove(s.rank.number())
		m.streams[s.rank.number()], s.over = nil, true
		m.ended++
		return StreamEnd
	}
	if m.last != s || m.Stream != s {
		m.changeTo(s)
	}
	m.Time, m.used = s.key, true
	m.Late = s.key < m.passed
	m.passed = max(m.passed, s.key)
	switch s.head {
	case headLossBegin, headLossEnd:
		m.Loss = s.headLoss
		if s.head == headLossBegin {
			return LossBegin
		}
		return LossEnd
	}
	if event := &s.reader.Event; m.Event != event {
		m.Event = event
	}
	if m.Late {
		s.late.Count++
	} else if s.canRun() {
		m.running, m.bound = true, m.order.second()
	}
	return Event
}

// changeTo makes a stream the last one. Only the last stream has the values of a large event in memory.
func (m *Merger) changeTo(s *Stream) {
	if m.last != nil && m.last != s {
		m.last.reader.Unload()
	}
	s.reader.Reload()
	m.last, m.Stream = s, s
}
