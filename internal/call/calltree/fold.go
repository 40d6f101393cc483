// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

// Fold folds spans of one service. Their texts are copied where they are kept.
func (s *Store) Fold(from Origin, spans []Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.second()
	s.expire(now)
	sv := s.service(from.Service, uint64(len(spans)))
	sv.seenAt(s.now(), now, len(spans))
	sv.begin(from.Instance)
	for len(spans) > 0 {
		n := min(len(spans), len(s.hashes))
		s.foldSome(sv, spans[:n], now)
		spans = spans[n:]
	}
	s.settle(sv)
}

// foldSome folds spans of which the hashes have room. Where callees come first it begins
// with the last, so that they have their place at once instead of in a fragment.
func (s *Store) foldSome(sv *service, spans []Span, now uint32) {
	s.forgetSome(len(spans))
	for i := range spans {
		s.hashes[i] = s.seen.hash(spans[i].key())
	}
	s.seen.warm(s.hashes[:len(spans)])
	if areCalleesFirst(spans) {
		for i := len(spans) - 1; i >= 0; i-- {
			s.makeRoom()
			s.fold(sv, &spans[i], s.hashes[i], now)
		}
		return
	}
	for i := range spans {
		s.makeRoom()
		s.fold(sv, &spans[i], s.hashes[i], now)
	}
}

// areCalleesFirst reports whether spans come when their calls end: then most often a caller
// follows its last callee; or when they begin, where its first callee follows a caller.
func areCalleesFirst(spans []Span) bool {
	ends := 0
	for i := 1; i < len(spans); i++ {
		if spans[i-1].Parent == spans[i].ID {
			ends++
		}
		if spans[i].Parent == spans[i-1].ID {
			ends--
		}
	}
	return ends > 0
}

// fold folds a span:
//
//  1. What is seen of it is found: it came before, then it is ignored; or what it called
//     did, and waits. What waits for it in trees of other services is known to be at the
//     top there, unless they have a span of that ID, too.
//  2. So is its caller's node: the top where there is no caller; a node that waits where
//     the caller has not come.
//  3. What waited for the span is hung below its caller, under its name; or the node is
//     there or made.
//  4. The call is counted. Its own time is what it took without what it called, if that
//     is not more.
//  5. The caller's own time is less by it.
//  6. It is remembered for what it called and comes later.
func (s *Store) fold(sv *service, span *Span, hash, now uint32) {
	t := sv.calls
	own, first := s.take(t, span, hash, now)
	if !first {
		// Whoever sends it again may do so once more.
		s.seen.touch(own, seenFolded, now)
		s.counters.Duplicates++
		return
	}
	function := t.functions.number(span.Function, s.settings.MaxNameBytes)
	t.functions.ref(function)
	t.functions.place(function, span.File, span.Line, s.settings.MaxNameBytes)
	s.keep(sv, span, function, now)

	caller, parent := s.place(t, span, own, now)
	took := span.duration()
	n := s.count(t, span, own, parent, function, took)
	if caller != 0 {
		s.called(t, caller, parent, took, now)
	}
	s.remember(t, span, own, n, took, hash, now)
	t.functions.unref(function)
	s.counters.Spans++
	sv.counted(span.Error)
}

// take finds what waits for the span, if anything does, and whether it comes for the first
// time.
func (s *Store) take(t *tree, span *Span, hash, now uint32) (own uint32, first bool) {
	if span.ID == (SpanID{}) {
		return 0, true
	}
	key := span.key()
	own, elsewhere := s.seen.findOwn(hash, key, t.number, span.Remote)
	if own != 0 && s.seen.spans[own].state == seenFolded {
		return own, false
	}
	if elsewhere {
		s.cameHere(t, key, hash, now)
	}
	return own, true
}

// cameHere tells those that wait in other trees for a span that it came here.
func (s *Store) cameHere(t *tree, key spanKey, hash, now uint32) {
	for n, at := s.seen.index.next(hash, 0); n != 0; n, at = s.seen.index.next(hash, at) {
		if span := &s.seen.spans[n]; span.spanKey == key && span.tree != t.number && span.state == seenWaiting {
			s.trees[span.tree].nodes[span.node].label = labelAtTop
			s.seen.touch(n, seenElsewhere, now)
		}
	}
}

// place is the caller, or 0, and the node that the span's is below.
func (s *Store) place(t *tree, span *Span, own, now uint32) (caller, parent uint32) {
	if !span.hasCaller() {
		return 0, top
	}
	if key := span.caller(); key != span.key() {
		caller = s.callerOf(t, key, now)
	}
	if caller == 0 || own != 0 && s.seen.spans[caller].state == seenFolded && t.isBelow(s.nodeOf(t, caller), s.seen.spans[own].node) {
		// It calls itself, or what it was called by: there is no such thing.
		s.counters.ParentsNotSeen.Cycle++
		return 0, t.child(top, labelMissing)
	}
	return caller, s.nodeOf(t, caller)
}

// callerOf is the caller, which came, or is waited for from now on. Often it is that of the
// span before.
func (s *Store) callerOf(t *tree, key spanKey, now uint32) uint32 {
	if last := &s.seen.spans[s.lastCaller]; last.spanKey == key && last.tree == t.number && last.state != seenFree {
		return s.lastCaller
	}
	hash := s.seen.hash(key)
	caller, elsewhere := s.seen.find(hash, key, t.number)
	if caller == 0 {
		caller = s.wait(t, key, hash, now, elsewhere && s.seen.cameElsewhere(hash, key, t.number))
	}
	s.lastCaller = caller
	return caller
}

// wait has a span waited for, which may have come in another service.
func (s *Store) wait(t *tree, key spanKey, hash, now uint32, cameElsewhere bool) uint32 {
	state, l := seenWaiting, labelMissing
	if cameElsewhere {
		state, l = seenElsewhere, labelAtTop
	}
	n := s.seen.add(key, hash, t.number, state, now)
	s.seen.spans[n].node = t.wait(l)
	t.ref(s.seen.spans[n].node)
	return n
}

// nodeOf is the node of a span that was seen.
func (s *Store) nodeOf(t *tree, n uint32) uint32 {
	span := &s.seen.spans[n]
	node := t.resolve(span.node)
	if node != span.node {
		t.ref(node)
		t.unref(span.node)
		span.node = node
	}
	return node
}

// count counts the call and gives its node.
func (s *Store) count(t *tree, span *Span, own, parent, function uint32, took int64) (n uint32) {
	m := Plain
	if span.Truncated {
		m = Truncated
	}
	v := values{calls: 1, total: took, self: took}
	if span.Error {
		v.errors = 1
	}
	switch {
	case own != 0:
		seen := &s.seen.spans[own]
		v.self = max(0, plus(took, seen.own))
		n = t.hang(seen.node, parent, newLabel(function, m))
	case t.nodes[parent].label.mark() == Folded:
		n = parent
	default:
		n = t.child(parent, newLabel(function, m))
	}
	if t.nodes[n].label.mark() == Folded {
		v.total = 0 // it is in that of the path that was folded
	}
	t.add(n, &v)
	return n
}

// called takes what a callee took from its caller's own time.
func (s *Store) called(t *tree, caller, node uint32, took int64, now uint32) {
	span := &s.seen.spans[caller]
	before := max(0, span.own)
	span.own = plus(span.own, -took)
	if span.state != seenFolded {
		s.seen.touch(caller, span.state, now)
	} else if less := before - max(0, span.own); less > 0 {
		t.lose(node, less, span.epoch)
	}
}

// remember remembers a span that came, and its node.
func (s *Store) remember(t *tree, span *Span, own, n uint32, took int64, hash, now uint32) {
	switch {
	case own != 0:
		seen := &s.seen.spans[own]
		seen.own = plus(seen.own, took)
		if waited := seen.node; waited != n {
			t.ref(n)
			seen.node = n
			t.unref(waited)
		}
		seen.epoch, seen.remote = s.epoch, span.Remote
		s.seen.touch(own, seenFolded, now)
	case span.ID != (SpanID{}):
		t.ref(n)
		seen := &s.seen.spans[s.seen.add(span.key(), hash, t.number, seenFolded, now)]
		seen.own, seen.node, seen.epoch, seen.remote = took, n, s.epoch, span.Remote
		if span.Remote {
			s.lastCaller = 0 // it may have been the client
		}
	}
}

// treeOf is the tree of a span that was seen.
func (s *Store) treeOf(n uint32) *tree { return s.trees[s.seen.spans[n].tree] }

// forget forgets a span that was seen. What waits for it gets its place without it.
func (s *Store) forget(n uint32) {
	span := &s.seen.spans[n]
	t, node := s.trees[span.tree], span.node
	if span.state != seenFolded {
		below := t.without(node)
		t.merge(node, below)
		t.prune(below)
	}
	t.unref(node)
	s.seen.forget(n)
}

// expire gives up, and forgets, what was touched too long ago.
func (s *Store) expire(now uint32) {
	if now == s.expired {
		return
	}
	s.expired = now
	patience := uint32(s.settings.PendingTimeout.Seconds())
	old := func(n uint32) bool { return n != 0 && now-s.seen.spans[n].at > patience }
	for state := seenFolded; state < seenStates; state++ {
		for n := s.seen.oldest(state); old(n); n = s.seen.oldest(state) {
			if state == seenWaiting {
				s.counters.ParentsNotSeen.Timeout++
				s.treeOf(n).lost.GivenUp++
			}
			s.forget(n)
		}
	}
	if now-s.sweptThreads >= sweepThreads {
		s.sweptThreads = now
		for _, sv := range s.services {
			sv.threads.forget(now, patience)
		}
	}
	s.compact()
	s.admit(now)
	s.measureAll()
}

// isBelow reports whether a node is below another, one that waits. It goes up from the one and
// through what is below the other in turn, until either ends: so it takes no more steps
// than the smaller of what is being joined has nodes, and all joining together n·log(n).
func (t *tree) isBelow(n, waiting uint32) bool {
	for inside := waiting; ; {
		if n == waiting {
			return true
		}
		if n == top || t.nodes[n].state == stateWaiting {
			return false
		}
		n = t.nodes[n].parent
		if inside = t.following(inside, waiting); inside == 0 {
			return false
		}
	}
}

// following is the node after one in pre-order, below a root; 0: there is none.
func (t *tree) following(n, root uint32) uint32 {
	if c := t.nodes[n].first; c != 0 {
		return c
	}
	for n != root {
		if next := t.nodes[n].next; next != 0 {
			return next
		}
		n = t.nodes[n].parent
	}
	return 0
}
