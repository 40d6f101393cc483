// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "math"

// makeRoom makes room for one more span or sample.
func (s *Store) makeRoom() {
	// One of its own, and one of its caller.
	for s.seen.total()+2 > s.settings.MaxPending {
		s.forgetOldest()
	}
	if s.used.nodes >= s.settings.MaxNodes {
		s.shrinkNodes()
		s.compact()
	}
	if s.used.names >= s.settings.MaxNamesBytes {
		s.shrinkNames()
		s.compact()
	}
}

// forgetOldest forgets what matters least: of the calls that came, here or elsewhere, the one
// that was touched longest ago, since most callees come before their callers; or else gives
// up what waits longest.
func (s *Store) forgetOldest() {
	n, elsewhere := s.seen.oldest(seenFolded), s.seen.oldest(seenElsewhere)
	if n == 0 || elsewhere != 0 && s.seen.spans[elsewhere].at < s.seen.spans[n].at {
		n = elsewhere
	}
	if n == 0 {
		s.giveUpOldest()
		return
	}
	s.forgetEarly(n)
}

// forgetEarly forgets a call that came, for want of room.
func (s *Store) forgetEarly(n uint32) {
	s.counters.Forgotten++
	s.treeOf(n).lost.Forgotten++
	s.forget(n)
}

// giveUpOldest gives up what waits longest.
func (s *Store) giveUpOldest() {
	n := s.seen.oldest(seenWaiting)
	s.counters.ParentsNotSeen.Limit++
	s.treeOf(n).lost.GivenUp++
	s.forget(n)
}

// forgetSome makes room for so many spans at once, but not for a large part of all: what it
// takes to forget one is most often waiting for memory, which many can do together.
func (s *Store) forgetSome(spans int) {
	room := min(spans, s.settings.MaxPending/forgetPart)
	least := s.settings.MaxPending - room
	s.seen.warmOldest(s.seen.total() - least)
	for s.seen.total() > least && s.seen.total() > s.seen.count(seenWaiting) {
		s.forgetOldest()
	}
}

const (
	// forgetPart is what part of what is remembered may be forgotten at once.
	forgetPart = 16
	// shrinkBy is what part of a bound is made free at once, so that it is seldom done.
	shrinkBy = 10
	// waitingPart is what part of all nodes may be those that wait; half as many are left.
	waitingPart = 10
)

// shrinkNodes makes a tenth of the nodes free:
//
//  1. Where many nodes wait, those that wait longest are given up, first those of which
//     the caller came elsewhere: in small trees there would be little to fold.
//  2. The smallest paths of all trees are folded, each measured by what part of its tree
//     it is, whatever the tree counts in.
//  3. Where that was too few, because each of them left a node "(folded)" behind, twice as
//     many are.
func (s *Store) shrinkNodes() {
	waiting := func() int { return s.seen.count(seenWaiting) + s.seen.count(seenElsewhere) }
	if waiting() > s.settings.MaxNodes/waitingPart {
		for waiting() > s.settings.MaxNodes/waitingPart/2 {
			if n := s.seen.oldest(seenElsewhere); n != 0 {
				s.forgetEarly(n)
			} else {
				s.giveUpOldest()
			}
		}
	}
	enough := func() bool { return s.used.nodes <= s.settings.MaxNodes-s.settings.MaxNodes/shrinkBy }
	s.foldSmallest(s.trees, max(1, s.settings.MaxNodes/shrinkBy), 4*s.settings.MaxNodes, enough)
}

// shrinkNames makes a tenth of the bytes of names free. Only the trees that take most are
// touched: others are not folded because one service has long names, such as SQL.
//
//  1. Spans that are kept of such a tree go: they hold their names.
//  2. Then its smallest paths are folded.
//  3. Where that frees nothing, the next tree is looked at. What is left then is bounded by the
//     number of services: what their instances are called.
func (s *Store) shrinkNames() {
	enough := func() bool { return s.used.names <= s.settings.MaxNamesBytes-s.settings.MaxNamesBytes/shrinkBy }
	exhausted := map[*tree]bool{}
	for !enough() {
		t := s.longestNames(exhausted)
		if t == nil {
			return
		}
		before := s.used.names
		if s.kept.dropOf(t.number); !enough() {
			s.foldSmallest([]*tree{t}, max(1, t.live/shrinkBy), 4*t.live, enough)
		}
		if s.used.names == before {
			exhausted[t] = true
		}
	}
}

// longestNames is the tree whose names take most, of those that are not exhausted; nil: there
// is none.
func (s *Store) longestNames(exhausted map[*tree]bool) (longest *tree) {
	for _, t := range s.trees {
		if t != nil && !exhausted[t] && (longest == nil || t.functions.bytes > longest.functions.bytes) {
			longest = t
		}
	}
	return longest
}

// shedSpare is the share of the remaining memory that is freed beyond the request, as its
// denominator: an eighth. So the store seldom has to free memory.
const shedSpare = 8

// shed gives memory back until the store holds an eighth less than so many bytes, if it holds
// more than these:
//
//  1. What is not in use is given back.
//  2. Spans that are kept as they came go, half of them at a time, the oldest first.
//  3. Then whatever takes most becomes half as much, again and again: of the calls that are
//     remembered or waited for those go that matter least, and in a tree the smallest paths
//     are folded. So a service that holds less than others is not folded for them.
func (s *Store) shed(most int64) {
	if s.bytes() <= most {
		return
	}
	most -= most / shedSpare
	s.order = nil
	s.tighten()
	for len(s.kept.spans) > 0 && s.bytes() > most {
		number := (len(s.kept.spans) + 1) / 2
		s.kept.dropOldest(number)
		s.counters.Shed.KeptSpans += uint64(number)
	}
	exhausted := map[*tree]bool{}
	for s.bytes() > most {
		t := s.largestTree(exhausted)
		switch {
		case s.seen.total() > 0 && (t == nil || s.seen.bytes() > t.measured):
			s.forgetHalf()
		case t == nil:
			return
		case !s.foldHalf(t):
			exhausted[t] = true
		}
		s.tighten()
	}
}

// tighten gives back what is not in use.
func (s *Store) tighten() {
	if isLoose(cap(s.seen.spans), s.seen.total()) {
		s.seen.compact()
		s.lastCaller = 0
	}
	s.compactAll((*tree).isLoose)
	s.measureAll()
}

// forgetHalf forgets half of the calls that are remembered or waited for.
func (s *Store) forgetHalf() {
	number := (s.seen.total() + 1) / 2
	for range number {
		s.forgetOldest()
	}
	s.counters.Shed.Calls += uint64(number)
}

// foldHalf folds the smallest half of a tree's paths, and reports whether there were any.
func (s *Store) foldHalf(t *tree) bool {
	live, folded := t.live, s.counters.FoldedPaths
	s.foldSmallest([]*tree{t}, max(1, live/2), 4*live, func() bool { return t.live <= live/2 })
	s.order = nil
	s.counters.Shed.Paths += s.counters.FoldedPaths - folded
	return t.live < live
}

// largestTree is the tree that takes most, of those that are not exhausted; nil: there is none.
func (s *Store) largestTree(exhausted map[*tree]bool) (largest *tree) {
	for _, t := range s.trees {
		if t != nil && !exhausted[t] && t.live > 0 && (largest == nil || t.measured > largest.measured) {
			largest = t
		}
	}
	return largest
}

// foldSmallest folds about so many of the smallest paths of some trees, and twice as many up
// to the most until it is enough.
func (s *Store) foldSmallest(trees []*tree, number, most int, enough func() bool) {
	for ; !enough() && number <= most; number *= 2 {
		var sizes sizes
		for _, t := range trees {
			if t != nil {
				t.measure(&sizes)
			}
		}
		limit := sizes.smallest(number)
		for _, t := range trees {
			if t != nil {
				s.order = t.preOrder(s.order[:0])
				folded := t.foldUpTo(limit, s.order)
				s.counters.FoldedPaths += folded
				t.lost.FoldedPaths += folded
			}
		}
	}
}

// sizes counts paths by their size, of which each step is a sixteenth to a thirty-second
// more than the one below.
type sizes [math.MaxUint16 + 1]uint32

// size is the step of a part of a tree.
func size(part float64) uint16 { return uint16(math.Float64bits(part) >> 48) }

// smallest is the size up to which there are about so many paths, or all.
func (s *sizes) smallest(number int) uint16 {
	sum := 0
	for i, n := range s {
		if sum += int(n); sum >= number {
			return uint16(i)
		}
	}
	return math.MaxUint16
}

// measure counts the paths of the tree.
func (t *tree) measure(sizes *sizes) {
	all := t.sum()
	for i := range t.nodes {
		if t.canFold(uint32(i)) {
			sizes[size(t.part(uint32(i), all))]++
		}
	}
}

// sum is the total of all that is below the top, and of what waits.
func (t *tree) sum() float64 {
	all := 0.0
	for i := range t.nodes {
		n := &t.nodes[i]
		if parent := &t.nodes[n.parent]; n.state == statePlaced && n.label != labelMissing &&
			(n.parent == top || parent.label == labelMissing || parent.state == stateWaiting) {
			all += math.Abs(float64(n.total))
		}
	}
	return all
}

// part is what part of the tree a path is.
func (t *tree) part(n uint32, all float64) float64 {
	if all == 0 {
		return 0
	}
	return math.Abs(float64(t.nodes[n].total)) / all
}

// canFold reports whether a node is a path of a function.
func (t *tree) canFold(n uint32) bool {
	at := &t.nodes[n]
	return n != top && at.state == statePlaced && at.label.function() != 0
}

// preOrder is all nodes but the merged and the free ones, each before what is below it.
func (t *tree) preOrder(order []uint32) []uint32 {
	for i := range t.nodes {
		if i == top || t.nodes[i].state == stateWaiting {
			for n := uint32(i); ; {
				order = append(order, n)
				if n = t.following(n, uint32(i)); n == 0 {
					break
				}
			}
		}
	}
	return order
}

// foldUpTo folds the nodes, in pre-order, that are no larger than the limit, and below which
// nothing is that wasn't folded. It says how many that were.
func (t *tree) foldUpTo(limit uint16, order []uint32) (folded uint64) {
	all := t.sum()
	for i := len(order) - 1; i >= 0; i-- {
		n := order[i]
		if !t.canFold(n) || size(t.part(n, all)) > limit {
			continue
		}
		if below := t.nodes[n].first; below != 0 && (t.nodes[below].label != labelFolded || t.nodes[below].next != 0) {
			continue
		}
		parent := t.nodes[n].parent
		t.displace(n)
		t.absorb(n, t.child(parent, labelFolded))
		folded++
	}
	return folded
}
