// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"slices"
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// reuse says that another thread has got the ID of a lane. Where the thread that had it
// had open calls, both may go on, and events don't say whose they are. From there on the
// lane is shared:
//
//   - The calls that were open are truncated.
//   - A call that is entered has no parent, a trace of its own, and no thread's name.
//   - A call ends with the exit of its function, when the function is open once. Where it
//     is open more than once nobody knows which of its calls an exit ends, so all of them
//     are truncated.
//   - An exception that is thrown belongs to no call. One that leaves a call ends it.
//
// When no call is open any more, neither of those that were truncated nor of later ones,
// no thread is inside a call, and the lane is no longer shared. That is not known after a
// break: a lane that is shared then stays so, and so does one where a break ended calls
// before the lane was reused.
type reuse struct {
	// order is that of the latest rename that said so.
	order uint32
	// pending: the lane is not past the rename. The first event of the other thread can be
	// that with the number from, or at the time at; the rename says sequence and time.
	pending        bool
	from, sequence uint64
	at, time       int64

	shared bool
	// open are the calls of a shared lane by function: those that have frames, and those
	// that were truncated but whose exits are still to come.
	open map[uint32]openCalls
	// total is how many there are.
	total int
	// breaks is how many breaks the stream had when the lane was looked at last.
	breaks uint64
}

// openCalls are the open calls of a function on a shared lane.
type openCalls struct {
	n int32
	// unsure: there were several at once, so an exit may be any one's.
	unsure bool
}

const (
	reuseBytes = int(unsafe.Sizeof(reuse{})) + nameOverhead
	// maxShared bounds the functions that are open on a shared lane. When there are more
	// the lane is shared until names are forgotten.
	maxShared = 4096
)

// isShared reports whether calls of several threads are on the lane.
func (l *lane) isShared() bool { return l.reuse != nil && l.reuse.shared }

// learnReuse notes that another thread has a lane. Hearing of it again changes where it
// begins, as long as the lane has not gone past it.
func (s *Stream) learnReuse(told *callevent.Rename) {
	n := &s.names
	r := n.reuses[told.Lane]
	if r == nil {
		r = &reuse{}
		n.reuses[told.Lane] = r
		n.takeForLanes(reuseBytes)
		if index, ok := s.laneIDs[told.Lane]; ok {
			s.lanes[index].reuse = r
		}
	} else if told.Order < r.order || told.Order == r.order && !r.pending {
		return
	}
	from, at := told.Sequence, told.Time-callevent.ReuseMarginTime
	if from != callevent.MaxSequence {
		from -= min(from, callevent.ReuseMargin)
	}
	if r.pending {
		// The earlier one is the safe one.
		from, at = min(from, r.from), min(at, r.at)
	}
	r.order, r.pending, r.from, r.at = told.Order, true, from, at
	r.sequence, r.time = told.Sequence, told.Time
}

// pairReused pairs the event of a lane that another thread has got, or will get, and
// reports whether it did.
func (s *Stream) pairReused(l *lane, e *event, sequence uint64, attributes []attribute) bool {
	r := l.reuse
	if r.pending && (sequence >= r.from || e.time >= r.at) {
		s.share(l)
		r.pending = sequence < r.sequence && e.time < r.time
	}
	if !r.shared {
		return false
	}
	s.pairShared(l, e, sequence, attributes)
	return true
}

// share makes the lane shared, if calls are open on it, or may be.
func (s *Stream) share(l *lane) {
	r := l.reuse
	if r.shared || len(l.frames) == 0 && !l.cut {
		return
	}
	r.open, r.total, r.breaks = map[uint32]openCalls{}, 0, s.breaks
	for i := range l.frames {
		r.enter(l.frames[i].function)
	}
	if l.cut {
		r.total++
	}
	s.truncate(l, 0, callevent.CauseThreadReused, s.last)
	r.shared = true
}

// enter counts a call that is entered, and reports whether its exit will be known.
func (r *reuse) enter(function uint32) (sure bool) {
	r.total++
	if _, there := r.open[function]; !there && len(r.open) >= maxShared {
		return false
	}
	calls := r.open[function]
	calls.n++
	calls.unsure = calls.unsure || calls.n > 1
	r.open[function] = calls
	return !calls.unsure
}

// exit counts a call that ends. It reports false for one that nothing is known of.
func (r *reuse) exit(function uint32) bool {
	calls, there := r.open[function]
	if !there {
		return false
	}
	r.total--
	if calls.n--; calls.n == 0 {
		delete(r.open, function)
	} else {
		r.open[function] = calls
	}
	return true
}

// pairShared pairs an event of a lane that several threads have.
func (s *Stream) pairShared(l *lane, e *event, sequence uint64, attributes []attribute) {
	r := l.reuse
	if r.breaks != s.breaks {
		// Calls may have been entered that nobody has seen.
		r.breaks = s.breaks
		r.total++
	}
	switch e.kind {
	case callevent.KindEnter:
		sure := r.enter(e.function)
		s.enter(l, e, sequence, nil)
		s.out.Counters.DroppedAttributes += uint64(len(attributes))
		if !sure {
			for s.endShared(l, e.function, &outcome{end: s.last, truncated: callevent.CauseThreadReused}) {
			}
		}
	case callevent.KindExit, callevent.KindUnwind:
		if !r.exit(e.function) {
			s.orphan(attributes)
			return
		}
		o := outcome{end: s.last, line: e.line, attributes: attributes}
		if e.kind == callevent.KindUnwind {
			o = outcome{end: s.last, unwound: true, errorType: s.names.exceptions[e.exception], attributes: attributes}
		}
		if !s.endShared(l, e.function, &o) {
			s.out.Counters.DroppedAttributes += uint64(len(attributes))
		}
		if r.total == 0 {
			r.shared, r.open = false, nil
		}
	default:
		s.orphan(attributes)
	}
}

// endShared ends the latest call of the function on a shared lane, and reports whether
// there is one.
func (s *Stream) endShared(l *lane, function uint32, o *outcome) bool {
	if s.names.functions[function].open == 0 {
		return false
	}
	for i := len(l.frames) - 1; i >= 0; i-- {
		if f := &l.frames[i]; f.function == function {
			s.conclude(l, f, nil, &belongings{}, o)
			l.frames = slices.Delete(l.frames, i, i+1)
			if len(l.frames) == 0 {
				s.slim(l)
			}
			return true
		}
	}
	return false
}
