// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tracefile

import "slices"

// Key identifies a span, by its trace and its own ID. 0 is no span.
type Key uint64

// interval is the time of a slice with everything inside it, or of neighbours with the same parent.
type interval struct {
	start, end uint64
	// self is 0 for neighbours.
	self, parent Key
	// chunk is the number of the chunk that has the begin.
	chunk uint32
}

// leastCompacted is the number of intervals above which a lane joins neighbours.
const leastCompacted = 64

// lane knows which times of a track are occupied, and so which slices the track accepts.
//
// It has the outermost slices that have no caller yet, sorted by time. A caller replaces its callees. Neighbours
// with the same parent are joined when there are many, because only their parent lies around one of them. So a lane
// has about as many intervals as the thread has open calls.
type lane struct {
	intervals []interval
	compactAt int
	// trace is that of the last slice.
	trace uint64
}

// place is where a slice fits: it replaces the intervals from first to before last, its callees.
type place struct{ first, last int }

// fit returns the place of a slice, or false if the lane has no place for it:
//
//  1. All intervals that overlap the slice must be inside it.
//  2. None of them may be the slice's parent or sibling: they overlap, but one does not call the other. In a strict
//     lane, where the time does not show who calls, all of them must be callees.
//  3. At an equal time, the outer begin comes before the inner begin, and an end before the next begin. So the slice
//     needs to write its event before that of an interval, which must be in the same chunk.
func (l *lane) fit(x *interval, strict bool) (p place, ok bool) {
	n := len(l.intervals)
	if n == 0 || l.intervals[n-1].end <= x.start {
		return place{n, n}, true
	}
	p.first = n - 1
	for p.first > 0 && l.intervals[p.first-1].end > x.start {
		p.first--
	}
	p.last = p.first
	for p.last < n && l.intervals[p.last].start < x.end {
		p.last++
	}
	for _, in := range l.intervals[p.first:p.last] {
		if in.start < x.start || in.end > x.end || in.parent == x.parent || in.self != 0 && in.self == x.parent ||
			strict && in.parent != x.self || in.start == x.start && in.chunk != x.chunk {
			return p, false
		}
	}
	if p.last < n {
		if next := l.intervals[p.last]; next.start == x.end && next.chunk != x.chunk {
			return p, false
		}
	}
	return p, true
}

// put occupies the time of a slice at its place. It returns how many more intervals there are.
func (l *lane) put(x *interval, p place) int {
	before := len(l.intervals)
	switch {
	case p.first < p.last:
		l.intervals[p.first] = *x
		l.intervals = append(l.intervals[:p.first+1], l.intervals[p.last:]...)
		return len(l.intervals) - before
	case p.first == before:
		l.intervals = append(l.intervals, *x)
	default:
		l.intervals = slices.Insert(l.intervals, p.first, *x)
	}
	if len(l.intervals) > max(l.compactAt, leastCompacted) {
		l.compact()
	}
	return len(l.intervals) - before
}

// compact joins neighbours with the same parent.
func (l *lane) compact() {
	joined := l.intervals[:1]
	for _, in := range l.intervals[1:] {
		if last := &joined[len(joined)-1]; last.parent == in.parent {
			last.end, last.self = in.end, 0
		} else {
			joined = append(joined, in)
		}
	}
	l.intervals = joined
	l.compactAt = 2 * len(joined)
}

// pending reports whether the last slice waits for its caller.
func (l *lane) pending() bool {
	n := len(l.intervals)
	return n > 0 && l.intervals[n-1].parent != 0
}
