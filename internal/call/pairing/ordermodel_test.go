// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// delivery is a batch before it is packed.
type delivery struct {
	events   []happened
	barriers []callevent.Barrier
	renames  []callevent.Rename
	next     uint64
	received int64
}

// model is the model of rules 1, 4 and 5, above the model of calls: the order in which events, breaks and the end
// reach the stacks. It forgets nothing.
type model struct {
	*calls
	resolution int64
	next       uint64
	fresh      bool
	lost       callevent.Cause
	ended      bool
	waiting    map[uint64]happened
	pending    []callevent.Barrier
	heard      []callevent.Barrier
	known      []knownAt
	passed     []passed
	// came are the passed numbers that arrived later.
	came map[uint64]bool
}

// knownAt says that the numbers below number were first known at a time.
type knownAt struct {
	number uint64
	at     time.Duration
}

func newModel(settings *Settings, resolution int64) *model {
	return &model{
		calls: newCalls(settings), resolution: resolution, fresh: true, waiting: map[uint64]happened{}, came: map[uint64]bool{},
	}
}

func (m *model) take(d delivery, now time.Duration) {
	m.counters.Events += uint64(len(d.events))
	if m.settings.MinDuration > 0 && m.settings.MinDuration < m.resolution {
		m.counters.BelowResolution = true
	}
	if !m.ended {
		m.rename(d.renames)
	}
	known := d.next
	for _, b := range d.barriers {
		if m.ended {
			break
		}
		known = max(known, b.From)
		m.hear(b)
	}
	for _, e := range d.events {
		known = max(known, e.sequence+1)
		m.accept(e)
	}
	m.known = append(m.known, knownAt{known, now})
	m.forgetAfterEnd()
}

// hear handles a barrier once, though several batches carry it.
func (m *model) hear(b callevent.Barrier) {
	same := func(other callevent.Barrier) bool {
		return other.From == b.From && other.To == b.To && other.Kind == b.Kind
	}
	if slices.ContainsFunc(m.heard, same) || slices.ContainsFunc(m.pending, same) {
		return
	}
	m.pending = append(m.pending, b)
	m.proceed()
}

func (m *model) accept(e happened) {
	if _, waits := m.waiting[e.sequence]; waits && !m.ended {
		m.counters.Duplicates++
		return
	}
	// Rule 1: max_events. The event e is not missing.
	for !m.ended && e.sequence > m.next {
		low, high := e.sequence, e.sequence
		for n := range m.waiting {
			low, high = min(low, n), max(high, n)
		}
		if high-low < uint64(m.settings.MaxEvents) {
			break
		}
		m.giveUp(low)
	}
	switch {
	case e.sequence < m.next:
		m.old(e.sequence)
	case m.ended:
		m.counters.Late++
	default:
		m.waiting[e.sequence] = e
		m.proceed()
	}
}

// old counts an event whose number has been passed.
func (m *model) old(number uint64) {
	i := slices.IndexFunc(m.passed, func(p passed) bool { return p.from <= number && number < p.to })
	switch {
	case i < 0 || m.came[number]:
		m.counters.Duplicates++
	case m.passed[i].inBreak:
		m.counters.InBreak++
	default:
		m.counters.Late++
	}
	m.came[number] = true
}

// proceed handles the events that are next, and the barriers before them.
func (m *model) proceed() {
	for !m.ended {
		if b, ok := m.barrierBefore(m.next); ok {
			m.obey(b)
			continue
		}
		e, ok := m.waiting[m.next]
		if !ok {
			return
		}
		delete(m.waiting, m.next)
		m.event(e)
		m.next++
		m.fresh, m.lost = false, 0
	}
}

// barrierBefore removes the first pending barrier at or below the number.
func (m *model) barrierBefore(number uint64) (first callevent.Barrier, ok bool) {
	for _, b := range m.pending {
		if b.From <= number && (!ok || compareBarriers(b, first) < 0) {
			first, ok = b, true
		}
	}
	m.pending = slices.DeleteFunc(m.pending, func(b callevent.Barrier) bool { return ok && b == first })
	return first, ok
}

func (m *model) obey(b callevent.Barrier) {
	m.heard = append(m.heard, b)
	switch {
	case b.Kind == callevent.BarrierEnd:
		m.breakNow(b.Cause)
		m.ended = true
		return
	case b.To < m.next:
		m.counters.Breaks[b.Cause]++
		m.breakLate(b.To, b.Cause)
		return
	}
	m.counters.Breaks[b.Cause]++
	m.breakNow(b.Cause)
	if b.To > m.next {
		m.fresh = false
		m.passed = append(m.passed, passed{from: m.next, to: b.To, inBreak: true})
		m.next = b.To
	}
	for n := range m.waiting {
		if n < m.next {
			delete(m.waiting, n)
			m.old(n)
		}
	}
}

// giveUp gives up the missing numbers below to, which is above next.
func (m *model) giveUp(to uint64) {
	if m.lost == 0 {
		m.lost = callevent.CauseGap
		if m.fresh {
			m.lost = callevent.CauseJoined
		}
		m.counters.Breaks[m.lost]++
		m.breakNow(m.lost)
	}
	m.fresh = false
	for !m.ended && m.next < to {
		until := to
		for _, b := range m.pending {
			until = min(until, b.From)
		}
		if m.lost == callevent.CauseGap {
			m.counters.Missing += min(until-m.next, maxMissing)
		}
		m.passed = append(m.passed, passed{from: m.next, to: until})
		m.next = until
		for !m.ended {
			b, ok := m.barrierBefore(m.next)
			if !ok {
				break
			}
			m.obey(b)
		}
	}
	m.proceed()
}

// lowest is the lowest waiting number.
func (m *model) lowest() (low uint64, ok bool) {
	for n := range m.waiting {
		if !ok || n < low {
			low, ok = n, true
		}
	}
	return low, ok
}

func (m *model) giveUpOldest() {
	if low, ok := m.lowest(); ok {
		m.giveUp(low)
	}
	m.forgetAfterEnd()
}

// expire gives up numbers that have been missing for too long: a higher number was known long enough ago.
func (m *model) expire(now time.Duration) {
	var overdue uint64
	for _, k := range m.known {
		if now-k.at >= m.settings.MaxWait {
			overdue = max(overdue, k.number)
		}
	}
	for !m.ended && m.next < overdue {
		to := overdue
		if low, ok := m.lowest(); ok {
			to = min(to, low)
		}
		m.giveUp(to)
	}
	m.forgetAfterEnd()
}

func (m *model) end(cause callevent.Cause) {
	for !m.ended {
		low, ok := m.lowest()
		if !ok {
			m.breakNow(cause)
			m.ended = true
			break
		}
		m.giveUp(low)
	}
	m.forgetAfterEnd()
}

// forgetAfterEnd counts the events that wait behind the end as late.
func (m *model) forgetAfterEnd() {
	if m.ended {
		m.counters.Late += uint64(len(m.waiting))
		clear(m.waiting)
	}
}
