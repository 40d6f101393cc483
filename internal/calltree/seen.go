// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// spanKey is what a span is known by.
type spanKey struct {
	trace TraceID
	id    SpanID
}

// seenSpan is a span that was seen: because it came, or because another says that it was
// called by it. In the second case there is one for each tree that callees are in.
type seenSpan struct {
	spanKey
	// own is the time of the call without its callees', which is negative where they took
	// longer; where the call has not come it is that of its callees alone, below 0.
	own int64
	// tree is the number of the tree, and node that of the node in it. One that has not
	// come has a node that waits.
	tree, node uint32
	// next and prev are in one of the lists, or next is in that of the free.
	next, prev uint32
	// at is the second in which it was touched last.
	at    uint32
	state seenState
	// hash is that of the key, kept because computing it takes longer than reading it.
	hash uint32
	// epoch is the store's when the call came.
	epoch uint32
}

type seenState uint32

const (
	seenFree seenState = iota
	// seenFolded: it came.
	seenFolded
	// seenWaiting: callees came.
	seenWaiting
	seenStates
)

// seen has spans, bounded by whoever adds them, and in each state those that were touched
// longest ago first. A span has a number above 0, which is used again.
type seen struct {
	spans []seenSpan
	index index
	seeds [3]uint64
	lists [seenStates]list
	// touched keeps the compiler from leaving out what warm reads.
	touched uint32
}

// list is a list of spans, of which the oldest is first.
type list struct {
	first, last uint32
	count       int
}

func newSeen() seen {
	return seen{spans: make([]seenSpan, 1), seeds: [3]uint64{rand.Uint64(), rand.Uint64(), rand.Uint64()}}
}

// hash mixes the IDs, which others choose, with numbers that they don't know.
func (s *seen) hash(k *spanKey) uint32 {
	a, b := binary.LittleEndian.Uint64(k.trace[:8]), binary.LittleEndian.Uint64(k.trace[8:])
	high, low := bits.Mul64(a^s.seeds[0], b^s.seeds[1])
	high, low = bits.Mul64(high^low^binary.LittleEndian.Uint64(k.id[:]), s.seeds[2]|1)
	return uint32(high ^ low)
}

// warm reads where the next steps will look: the slots of these hashes, and those of as many
// of the oldest spans that came as there is no room for. Each alone would be waited for,
// since a large index isn't in the processor's caches; reads that don't depend on each
// other are waited for together.
func (s *seen) warm(hashes []uint32, most int) {
	if len(s.index.slots) == 0 {
		return
	}
	mask := uint32(len(s.index.slots) - 1)
	for _, h := range hashes {
		s.touched += s.index.slots[h&mask].number
	}
	n := s.lists[seenFolded].first
	for range min(s.total()+len(hashes)-most, len(hashes)) {
		s.touched += s.index.slots[s.spans[n].hash&mask].number
		n = s.spans[n].next
	}
}

// find is the span that came, or waits in a tree, and whether there is one of that ID in
// another tree.
func (s *seen) find(hash uint32, k *spanKey, tree uint32) (n uint32, elsewhere bool) {
	for p := s.index.of(hash); ; {
		at := p.next()
		if at == 0 {
			return n, elsewhere
		}
		if span := &s.spans[at]; span.spanKey == *k {
			if span.tree == tree {
				n = at
			} else {
				elsewhere = true
			}
		}
	}
}

// waitingElsewhere is one that waits in another tree, or 0.
func (s *seen) waitingElsewhere(hash uint32, k *spanKey, tree uint32) uint32 {
	return s.elsewhere(hash, k, tree, seenWaiting)
}

// cameElsewhere reports whether the span came in another tree.
func (s *seen) cameElsewhere(hash uint32, k *spanKey, tree uint32) bool {
	return s.elsewhere(hash, k, tree, seenFolded) != 0
}

func (s *seen) elsewhere(hash uint32, k *spanKey, tree uint32, state seenState) uint32 {
	for p := s.index.of(hash); ; {
		at := p.next()
		if at == 0 {
			return 0
		}
		if span := &s.spans[at]; span.spanKey == *k && span.tree != tree && span.state == state {
			return at
		}
	}
}

// add adds a span that isn't there.
func (s *seen) add(span *seenSpan) uint32 {
	n := s.lists[seenFree].first
	if n != 0 {
		s.unlink(n)
	} else {
		n = uint32(len(s.spans))
		s.spans = append(s.spans, seenSpan{})
	}
	s.spans[n] = *span
	s.link(n)
	s.index.add(span.hash, n)
	return n
}

// forget removes a span.
func (s *seen) forget(n uint32) {
	span := &s.spans[n]
	s.index.remove(span.hash, n)
	s.unlink(n)
	span.state = seenFree
	s.linkFirst(n)
}

// touch says that the span was touched now, a second, and what it is now.
func (s *seen) touch(n uint32, state seenState, now uint32) {
	span := &s.spans[n]
	if span.state == state && span.at == now {
		return
	}
	s.unlink(n)
	span.state, span.at = state, now
	s.link(n)
}

// count is how many spans are in a state.
func (s *seen) count(state seenState) int { return s.lists[state].count }

// total is how many spans there are.
func (s *seen) total() int { return s.index.used }

// link puts a span at the end of its list.
func (s *seen) link(n uint32) {
	span := &s.spans[n]
	l := &s.lists[span.state]
	l.count++
	span.prev, span.next = l.last, 0
	if l.last != 0 {
		s.spans[l.last].next = n
	} else {
		l.first = n
	}
	l.last = n
}

// linkFirst puts a free one where it is used next: it is in the processor's cache.
func (s *seen) linkFirst(n uint32) {
	l := &s.lists[seenFree]
	l.count++
	span := &s.spans[n]
	span.prev, span.next = 0, l.first
	if l.first != 0 {
		s.spans[l.first].prev = n
	} else {
		l.last = n
	}
	l.first = n
}

func (s *seen) unlink(n uint32) {
	span := &s.spans[n]
	l := &s.lists[span.state]
	l.count--
	if span.prev != 0 {
		s.spans[span.prev].next = span.next
	} else {
		l.first = span.next
	}
	if span.next != 0 {
		s.spans[span.next].prev = span.prev
	} else {
		l.last = span.prev
	}
}
