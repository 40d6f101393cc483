// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "time"

// PathsAtOnce is the number of paths after which a sender folds [CallPaths], and begins again. So
// the store's lock is held for a few milliseconds.
const PathsAtOnce = 512

// CallPaths are call paths with the growth of their values, for [Store.FoldPaths]. Their caller
// builds them without the lock of a store.
//
// They are a tree whose functions are the frames, without order: two frames can have one name.
type CallPaths struct {
	tree
	// numbers are the numbers of the frames in the tree to which the paths were added last, if they
	// are of the current period, and places are those of the paths. A period ends when the tree
	// removes functions.
	numbers  []numberOfFrame
	places   []uint32
	last     *tree
	removals uint64
	period   uint32
	// samples is the number of stacks that were added, and cut of those without all frames.
	samples, cut uint64
}

type numberOfFrame struct{ period, number uint32 }

// NewCallPaths returns no paths.
func NewCallPaths() *CallPaths {
	return &CallPaths{tree: *newTree(&usage{}), numbers: make([]numberOfFrame, 1)}
}

// AddFrame adds a frame, and returns its number. Numbers stay when the paths are cleared.
func (p *CallPaths) AddFrame(f Frame) uint32 {
	p.functions.all = append(p.functions.all, function{name: f.Function, file: f.File, line: f.Line})
	p.numbers = append(p.numbers, numberOfFrame{})
	return uint32(len(p.functions.all) - 1)
}

// Below returns the path of a frame below another path, Plain or Truncated. Path 0 is the top.
// Nothing is below a path that stands for several.
func (p *CallPaths) Below(path, frame uint32, m Mark) uint32 {
	if p.IsRest(path) {
		return path
	}
	return p.child(path, newLabel(frame, m))
}

// RestBelow returns the path that stands for several below another one: Folded or Deep.
func (p *CallPaths) RestBelow(path uint32, m Mark) uint32 { return p.Below(path, 0, m) }

// IsRest reports whether the path stands for several.
func (p *CallPaths) IsRest(path uint32) bool {
	return path != top && p.nodes[path].label.function() == 0
}

// Add adds calls that ended in a path. self is their own time in nanoseconds, at least 0. isCut:
// the path lacks the innermost frames.
func (p *CallPaths) Add(path uint32, calls, errors uint64, self int64, isCut bool) {
	p.nodes[path].values.add(&values{calls: calls, errors: errors, total: self, self: self})
	p.samples++
	if isCut {
		p.cut++
	}
}

// Len is the number of paths.
func (p *CallPaths) Len() int { return p.live }

// Clear removes all paths.
func (p *CallPaths) Clear() {
	clear(p.children.buckets)
	p.children.used, p.live, p.used.nodes = 0, 0, 0
	p.nodes = append(p.nodes[:0], node{state: statePlaced})
	p.samples, p.cut = 0, 0
}

// sumUp adds the own times of callees to the totals of their callers, and returns all calls
// and errors. A caller stands before its callees.
func (p *CallPaths) sumUp() (calls, errors uint64) {
	for i := len(p.nodes) - 1; i > top; i-- {
		n := &p.nodes[i]
		calls, errors = plusCount(calls, n.calls), plusCount(errors, n.errors)
		if caller := &p.nodes[n.parent]; n.parent != top {
			caller.total = plus(caller.total, n.total)
		}
	}
	return calls, errors
}

// join adds the paths to those of a tree. Names have at most so many bytes.
func (p *CallPaths) join(into *tree, maxNameBytes int) {
	if p.last != into || p.removals != into.functions.removals {
		p.period++
		p.last, p.removals = into, into.functions.removals
	}
	p.places = append(p.places[:0], top)
	for i := top + 1; i < len(p.nodes); i++ {
		n := &p.nodes[i]
		l := newLabel(p.numberIn(into, n.label.function(), maxNameBytes), n.label.mark())
		place := into.child(p.places[n.parent], l)
		into.add(place, &n.values)
		p.places = append(p.places, place)
	}
}

// numberIn is the number of a frame's function in the tree that the paths are added to.
func (p *CallPaths) numberIn(into *tree, frame uint32, maxNameBytes int) uint32 {
	known := &p.numbers[frame]
	if frame != 0 && known.period != p.period {
		f := &p.functions.all[frame]
		*known = numberOfFrame{p.period, into.functions.number(f.name, maxNameBytes)}
		into.functions.place(known.number, f.file, f.line, maxNameBytes)
	}
	return known.number
}

// FoldPaths folds the paths of one service whose calls ended in an interval. It copies the texts
// that it keeps. Each own time also counts in the totals of all callers, which may still run. The
// paths must be cleared before they are used again.
func (s *Store) FoldPaths(from Origin, paths *CallPaths, interval time.Duration) {
	calls, errors := paths.sumUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.second()
	s.expire(now)
	sv := s.services.named(from.Service, paths.samples, now)
	sv.countArrival(s.now(), now, paths.samples)
	sv.rate.spread(now, calls, interval)
	paths.join(sv.calls, s.settings.MaxNameBytes)
	sv.countCalls(calls, errors)
	sv.hasPaths = true
	s.noteMixed(sv)
	s.counters.Calls = plusCount(s.counters.Calls, calls)
	s.counters.CutSamples += paths.cut
	s.room.shrinkFull()
	s.settle(sv)
}
