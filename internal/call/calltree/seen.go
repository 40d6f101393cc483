// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

// seen are the single spans that a store knows: those that arrived and are remembered for
// later callees, and callers that have not arrived, for which callees wait.
type seen struct {
	spanTable
	forest *forest
	// lastCaller is the last caller that was looked up, if it is still there.
	lastCaller uint32
}

func newSeen(f *forest) seen { return seen{spanTable: newSpanTable(), forest: f} }

// compact frees unused memory. All spans get other numbers.
func (s *seen) compact() {
	s.spanTable.compact()
	s.lastCaller = 0
}

// arrive looks up a span that arrives in a tree: step 1 of folding. It returns the number of
// the span if its callees wait for it, or 0. It reports false for a duplicate.
func (s *seen) arrive(t *tree, span *Span, hash, now uint32) (own uint32, first bool) {
	if span.ID == (SpanID{}) {
		return 0, true
	}
	key := span.key()
	own, elsewhere := s.findOwn(hash, key, t.number, span.Remote)
	if own != 0 && s.spans[own].state == seenFolded {
		// Its sender may send it once more.
		s.touch(own, seenFolded, now)
		return own, false
	}
	if elsewhere {
		s.arriveElsewhere(t, key, hash, now)
	}
	return own, true
}

// arriveElsewhere marks spans that callees wait for in other trees: they arrived in this one.
func (s *seen) arriveElsewhere(t *tree, key spanKey, hash, now uint32) {
	for n, at := s.index.next(hash, 0); n != 0; n, at = s.index.next(hash, at) {
		if span := &s.spans[n]; span.spanKey == key && span.tree != t.number && span.state == seenWaiting {
			s.treeOf(n).nodes[span.node].label = labelAtTop
			s.touch(n, seenElsewhere, now)
		}
	}
}

// place returns the caller of a span, or 0, and the caller's node: step 2 of folding.
func (s *seen) place(t *tree, span *Span, own, now uint32) (caller, parent uint32) {
	if !span.hasCaller() {
		return 0, top
	}
	if key := span.caller(); key != span.key() {
		caller = s.callerOf(t, key, now)
	}
	if caller == 0 || own != 0 && s.spans[caller].state == seenFolded && t.isBelow(s.nodeOf(t, caller), s.spans[own].node) {
		// It would call itself, or a call above it, which is impossible.
		s.forest.counters.ParentsNotSeen.Cycle++
		return 0, t.child(top, labelMissing)
	}
	return caller, s.nodeOf(t, caller)
}

// callerOf is the span of a caller, which waits from now on if it has not arrived. Often it
// is also the caller of the previous span.
func (s *seen) callerOf(t *tree, key spanKey, now uint32) uint32 {
	if last := &s.spans[s.lastCaller]; last.spanKey == key && last.tree == t.number && last.state != seenFree {
		return s.lastCaller
	}
	hash := s.hash(key)
	caller, elsewhere := s.find(hash, key, t.number)
	if caller == 0 {
		caller = s.wait(t, key, hash, now, elsewhere && s.cameElsewhere(hash, key, t.number))
	}
	s.lastCaller = caller
	return caller
}

// wait adds a span that its callees wait for. It may have arrived in another service.
func (s *seen) wait(t *tree, key spanKey, hash, now uint32, cameElsewhere bool) uint32 {
	state, l := seenWaiting, labelMissing
	if cameElsewhere {
		state, l = seenElsewhere, labelAtTop
	}
	n := s.add(key, hash, t.number, state, now)
	s.spans[n].node = t.wait(l)
	t.ref(s.spans[n].node)
	return n
}

// nodeOf is the node of a span.
func (s *seen) nodeOf(t *tree, n uint32) uint32 {
	span := &s.spans[n]
	node := t.resolve(span.node)
	if node != span.node {
		t.ref(node)
		t.unref(span.node)
		span.node = node
	}
	return node
}

// waiting returns the node below which the callees of a span wait, and their time, which
// counts below 0. Both are 0 for span 0.
func (s *seen) waiting(n uint32) (node uint32, callees int64) {
	if n == 0 {
		return 0, 0
	}
	return s.spans[n].node, s.spans[n].own
}

// reduceCaller reduces the caller's own time by the time of a call: step 5 of folding.
func (s *seen) reduceCaller(t *tree, caller, node uint32, took int64, now uint32) {
	span := &s.spans[caller]
	before := max(0, span.own)
	span.own = plus(span.own, -took)
	if span.state != seenFolded {
		s.touch(caller, span.state, now)
	} else if less := before - max(0, span.own); less > 0 {
		t.reduceOwn(node, less, span.epoch)
	}
}

// remember remembers a folded span and its node for later callees: step 6 of folding.
func (s *seen) remember(t *tree, span *Span, own, n uint32, took int64, hash, now uint32) {
	switch {
	case own != 0:
		seen := &s.spans[own]
		seen.own = plus(seen.own, took)
		if waited := seen.node; waited != n {
			t.ref(n)
			seen.node = n
			t.unref(waited)
		}
		seen.epoch, seen.remote = s.forest.epoch, span.Remote
		s.touch(own, seenFolded, now)
	case span.ID != (SpanID{}):
		t.ref(n)
		seen := &s.spans[s.add(span.key(), hash, t.number, seenFolded, now)]
		seen.own, seen.node, seen.epoch, seen.remote = took, n, s.forest.epoch, span.Remote
		if span.Remote {
			s.lastCaller = 0 // it may have been the client
		}
	}
}

// treeOf is the tree of a span.
func (s *seen) treeOf(n uint32) *tree { return s.forest.trees[s.spans[n].tree] }

// forget forgets a span. Callees that wait for it get their places without it.
func (s *seen) forget(n uint32) {
	span := &s.spans[n]
	t, node := s.forest.trees[span.tree], span.node
	if span.state != seenFolded {
		below := t.without(node)
		t.merge(node, below)
		t.prune(below)
	}
	t.unref(node)
	s.remove(n)
}

// expire forgets the spans that were not touched for so many seconds.
func (s *seen) expire(now, patience uint32) {
	old := func(n uint32) bool { return n != 0 && now-s.spans[n].at > patience }
	for state := seenFolded; state < seenStates; state++ {
		for n := s.oldest(state); old(n); n = s.oldest(state) {
			if state == seenWaiting {
				s.forest.counters.ParentsNotSeen.Timeout++
				s.treeOf(n).lost.GivenUp++
			}
			s.forget(n)
		}
	}
}

// forgetOf forgets all spans of some trees.
func (s *seen) forgetOf(trees map[uint32]bool) {
	for n := range s.spans {
		if span := &s.spans[n]; span.state != seenFree && trees[span.tree] {
			s.forget(uint32(n))
		}
	}
	s.lastCaller = 0
}

// forgetOldest forgets the span that matters least. Of the arrived ones that is the one that
// was touched longest ago, since most callees arrive before their callers. If there is none,
// it gives up the caller that callees wait for longest.
func (s *seen) forgetOldest() {
	n, elsewhere := s.oldest(seenFolded), s.oldest(seenElsewhere)
	if n == 0 || elsewhere != 0 && s.spans[elsewhere].at < s.spans[n].at {
		n = elsewhere
	}
	if n == 0 {
		s.giveUpOldest()
		return
	}
	s.forgetEarly(n)
}

// forgetEarly forgets an arrived span, for want of room.
func (s *seen) forgetEarly(n uint32) {
	s.forest.counters.Forgotten++
	s.treeOf(n).lost.Forgotten++
	s.forget(n)
}

// giveUpOldest gives up the caller that callees wait for longest.
func (s *seen) giveUpOldest() {
	n := s.oldest(seenWaiting)
	s.forest.counters.ParentsNotSeen.Limit++
	s.treeOf(n).lost.GivenUp++
	s.forget(n)
}

// reduceWaiting gives up callers that have not arrived in their trees until at most so many
// are left, first those that arrived elsewhere.
func (s *seen) reduceWaiting(most int) {
	for s.count(seenWaiting)+s.count(seenElsewhere) > most {
		if n := s.oldest(seenElsewhere); n != 0 {
			s.forgetEarly(n)
		} else {
			s.giveUpOldest()
		}
	}
}

// forgetPart is the largest part of the bound that is forgotten together, as its
// denominator.
const forgetPart = 16

// makeRoomForMany makes room for so many spans together, but not for a large part of the
// bound. Forgetting a span is mostly waiting for memory, and many can wait together.
func (s *seen) makeRoomForMany(spans, bound int) {
	least := bound - min(spans, bound/forgetPart)
	s.warmOldest(s.total() - least)
	for s.total() > least && s.total() > s.count(seenWaiting) {
		s.forgetOldest()
	}
}

// makeRoomForOne makes room for a span and its caller.
func (s *seen) makeRoomForOne(bound int) {
	for s.total()+2 > bound {
		s.forgetOldest()
	}
}

// moveNodes replaces the numbers of nodes after trees were compacted.
func (s *seen) moveNodes(nodes [][]uint32) {
	for i := range s.spans {
		if span := &s.spans[i]; span.state != seenFree && nodes[span.tree] != nil {
			span.node = nodes[span.tree][span.node]
		}
	}
}
