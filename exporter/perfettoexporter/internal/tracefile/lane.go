// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tracefile

import (
	"slices"
	"sort"
)

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

const (
	// leastCompacted is the number of intervals above which a lane joins neighbours.
	leastCompacted = 64
	// maxIntervalsOfLane is the number of intervals at which a lane forgets the oldest half, if it cannot join them. It is the
	// default of the processor's limits.max_frames.
	maxIntervalsOfLane = 1 << 14
	// maxIntervalsBehind is the number of intervals behind a slice above which it is too late for the lane. Each of them has
	// to be moved.
	maxIntervalsBehind = 1 << 10
	// near is the number of the last intervals among which most slices have their place.
	near = 8
)

// lane knows which times of a track are occupied, and so which slices the track accepts.
//
// It has the outermost slices that have no caller yet, sorted by time. A caller replaces its callees. Neighbours
// with the same parent are joined when there are many, because only their parent lies around one of them. So a lane
// has about as many intervals as the thread has open calls.
//
// Senders choose the order of slices, so the number of intervals and the time of each step are bounded.
type lane struct {
	intervals []interval
	compactAt int
	// closed is a time before which the lane accepts no slice, because it has forgotten the intervals.
	closed uint64
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
//  4. The slice must not begin before the lane's closed time, and not end before more than maxIntervalsBehind intervals.
//
// The place has the intervals that overlap the slice in any case, unless rule 4 refuses it.
func (l *lane) fit(x *interval, strict bool) (p place, ok bool) {
	n := len(l.intervals)
	if n == 0 || l.intervals[n-1].end <= x.start {
		return place{n, n}, true
	}
	if x.start < l.closed {
		return place{}, false
	}
	if p = l.overlapping(x); n-p.last > maxIntervalsBehind {
		return place{}, false
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

// overlapping returns the place of the intervals that overlap a slice. The last interval ends after the slice's start.
func (l *lane) overlapping(x *interval) (p place) {
	n := len(l.intervals)
	p.first = n - 1
	for p.first > 0 && l.intervals[p.first-1].end > x.start {
		if p.first--; n-p.first > near {
			p.first = sort.Search(p.first, func(i int) bool { return l.intervals[i].end > x.start })
			break
		}
	}
	if p.last = n; l.intervals[n-1].start >= x.end {
		p.last = p.first + sort.Search(n-p.first, func(i int) bool { return l.intervals[p.first+i].start >= x.end })
	}
	return p
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

// compact joins neighbours with the same parent. If too many intervals are left, it forgets the oldest ones.
func (l *lane) compact() {
	joined := l.intervals[:1]
	for _, in := range l.intervals[1:] {
		if last := &joined[len(joined)-1]; last.parent == in.parent {
			last.end, last.self = in.end, 0
		} else {
			joined = append(joined, in)
		}
	}
	// With a few less the lane would compact again soon.
	if len(joined) > maxIntervalsOfLane*3/4 {
		excess := len(joined) - maxIntervalsOfLane/2
		l.closed = joined[excess-1].end
		joined = append(joined[:0], joined[excess:]...)
	}
	l.intervals = joined
	l.compactAt = min(2*len(joined), maxIntervalsOfLane)
}

// pending reports whether the last slice waits for its caller.
func (l *lane) pending() bool {
	n := len(l.intervals)
	return n > 0 && l.intervals[n-1].parent != 0
}
