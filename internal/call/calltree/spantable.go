// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"unsafe"
)

// spanKey identifies a span by numbers, which the compiler keeps in registers.
type spanKey struct{ high, low, id uint64 }

func newSpanKey(trace *TraceID, id *SpanID) spanKey {
	return spanKey{
		high: binary.BigEndian.Uint64(trace[:8]), low: binary.BigEndian.Uint64(trace[8:]),
		id: binary.BigEndian.Uint64(id[:]),
	}
}

// seenSpan is a span of a tree: it arrived, or a callee named it. Two services can have spans
// of one ID, as Zipkin's clients and servers do, and so can one service that calls itself. In
// that case both arrived, and remote distinguishes them.
type seenSpan struct {
	spanKey
	// own is the time of the call without its callees. It is negative if those took longer. If
	// the call has not arrived it is the time of its callees, below 0.
	own int64
	// tree is the number of the tree, and node that of the node in it. The node of a span that
	// has not arrived waits.
	tree, node uint32
	// next and prev are in a list.
	next, prev uint32
	// at is the second of the last touch.
	at    uint32
	state seenState
	// remote: the span arrived, and its caller is in another service.
	remote bool
	// hash is that of the key. Reading it is faster than computing it.
	hash uint32
	// epoch is that of the forest when the call arrived.
	epoch uint32
}

type seenState uint8

const (
	seenFree seenState = iota
	// seenFolded: the span arrived.
	seenFolded
	// seenWaiting: only callees arrived.
	seenWaiting
	// seenElsewhere: callees arrived, and the span arrived in another service. The callees'
	// service may have a span of that ID, too. Until it arrives they are at the top.
	seenElsewhere
	seenStates
)

// spanTable has spans, in each state the ones first that were touched longest ago. Its user
// bounds it. A span has a number above 0, which is used again.
type spanTable struct {
	spans []seenSpan
	index index // of those that are not free
	seeds [3]uint64
	lists [seenStates]list // of every state except free
	// free is a list by next; 0: none.
	free uint32
	// warmed keeps the compiler from removing the reads of warm.
	warmed uint32
}

func newSpanTable() spanTable {
	return spanTable{spans: make([]seenSpan, 1), seeds: [3]uint64{rand.Uint64(), rand.Uint64(), rand.Uint64()}}
}

// list is a list of spans, of which the oldest is first.
type list struct {
	first, last uint32
	count       int
}

// hash mixes the IDs, which senders choose, with numbers that they do not know.
func (s *spanTable) hash(k spanKey) uint32 {
	high, low := bits.Mul64(k.high^s.seeds[0], k.low^s.seeds[1])
	high, low = bits.Mul64(high^low^k.id, s.seeds[2]|1)
	return uint32(high ^ low)
}

func (s *spanTable) hashOf(n uint32) uint32 { return s.spans[n].hash }

// warm reads the index at these hashes, where the next steps will look. A large index is not in
// the processor's caches. Independent reads wait for memory together.
func (s *spanTable) warm(hashes []uint32) {
	if s.index.used == 0 {
		return
	}
	for _, h := range hashes {
		s.warmed += s.index.read(h)
	}
}

// warmOldest is warm for the oldest spans that arrived.
func (s *spanTable) warmOldest(spans int) {
	n := s.oldest(seenFolded)
	for range spans {
		if n == 0 {
			return
		}
		s.warmed += s.index.read(s.spans[n].hash)
		n = s.spans[n].next
	}
}

// find returns the span that arrived or waits in a tree, and whether another tree has one of
// that ID. If a server and its client arrived it is the server: its callees have its ID.
func (s *spanTable) find(hash uint32, k spanKey, tree uint32) (n uint32, elsewhere bool) {
	for one, at := s.index.next(hash, 0); one != 0; one, at = s.index.next(hash, at) {
		if span := &s.spans[one]; span.spanKey == k {
			switch {
			case span.tree != tree:
				elsewhere = true
			case n == 0 || span.remote:
				n = one
			}
		}
	}
	return n, elsewhere
}

// findOwn is find for an arriving span. If only the other side of it arrived, the client or the
// server, the result is 0.
func (s *spanTable) findOwn(hash uint32, k spanKey, tree uint32, remote bool) (n uint32, elsewhere bool) {
	for one, at := s.index.next(hash, 0); one != 0; one, at = s.index.next(hash, at) {
		if span := &s.spans[one]; span.spanKey == k {
			switch {
			case span.tree != tree:
				elsewhere = true
			case span.state != seenFolded || span.remote == remote:
				n = one
			}
		}
	}
	return n, elsewhere
}

// cameElsewhere reports whether the span arrived in another tree.
func (s *spanTable) cameElsewhere(hash uint32, k spanKey, tree uint32) bool {
	for n, at := s.index.next(hash, 0); n != 0; n, at = s.index.next(hash, at) {
		if span := &s.spans[n]; span.spanKey == k && span.tree != tree && span.state == seenFolded {
			return true
		}
	}
	return false
}

// add adds a new span of a tree, touched now, a second. Its node and its time are not set.
func (s *spanTable) add(k spanKey, hash, tree uint32, state seenState, now uint32) uint32 {
	n := s.free
	if n != 0 {
		s.free = s.spans[n].next
	} else {
		n = uint32(len(s.spans))
		s.spans = append(s.spans, seenSpan{})
	}
	span := &s.spans[n]
	span.spanKey, span.hash, span.tree, span.state, span.at = k, hash, tree, state, now
	s.link(n)
	s.index.add(hash, n, s)
	return n
}

// remove removes a span.
func (s *spanTable) remove(n uint32) {
	span := &s.spans[n]
	s.index.remove(span.hash, n, s)
	s.unlink(n)
	// It is used next, while it is in the processor's cache.
	*span = seenSpan{next: s.free}
	s.free = n
}

// touch notes that the span was touched now, a second, and its state.
func (s *spanTable) touch(n uint32, state seenState, now uint32) {
	span := &s.spans[n]
	if span.state == state && span.at == now {
		return
	}
	s.unlink(n)
	span.state, span.at = state, now
	s.link(n)
}

// oldest is the span of a state that was touched longest ago, or 0.
func (s *spanTable) oldest(state seenState) uint32 { return s.lists[state].first }

// count is the number of spans in a state.
func (s *spanTable) count(state seenState) int { return s.lists[state].count }

// total is the number of spans.
func (s *spanTable) total() int { return s.index.used }

// trees reports for each tree number whether the tree has spans here.
func (s *spanTable) trees(number int) []bool {
	have := make([]bool, number)
	for _, l := range s.lists {
		for n := l.first; n != 0; n = s.spans[n].next {
			have[s.spans[n].tree] = true
		}
	}
	return have
}

// compact frees unused memory. All spans get other numbers.
func (s *spanTable) compact() {
	old, lists := s.spans, s.lists
	s.spans = make([]seenSpan, 1, withSpareRoom(s.total()+1))
	s.index, s.free, s.lists = index{}, 0, [seenStates]list{}
	for _, l := range lists {
		for n := l.first; n != 0; n = old[n].next {
			s.spans = append(s.spans, old[n])
			number := uint32(len(s.spans) - 1)
			s.link(number)
			s.index.add(old[n].hash, number, s)
		}
	}
}

// link adds a span at the end of its list.
func (s *spanTable) link(n uint32) {
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

func (s *spanTable) unlink(n uint32) {
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

func (s *spanTable) bytes() int64 {
	return int64(cap(s.spans))*int64(unsafe.Sizeof(seenSpan{})) + s.index.bytes()
}
