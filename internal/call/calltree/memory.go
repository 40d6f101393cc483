// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "unsafe"

// What things take, in bytes. Those of maps are measured, with the places that are free.
const (
	nodeBytes         = int64(unsafe.Sizeof(node{}))
	functionBytes     = int64(unsafe.Sizeof(function{}))
	bucketBytes       = int64(unsafe.Sizeof(bucket{}))
	seenBytes         = int64(unsafe.Sizeof(seenSpan{}))
	keptBytes         = int64(unsafe.Sizeof(keptSpan{}))
	candidateBytes    = int64(unsafe.Sizeof(candidateBucket{}))
	threadBytes       = int64(unsafe.Sizeof(thread{}))
	pairBytes         = int64(unsafe.Sizeof(pair{}))
	numberBytes       = 4
	textBytes         = 8 // what a text takes more than it is long, since sizes are rounded
	keptTraceBytes    = 100
	threadPlaceBytes  = 72
	windowValuesBytes = 80
	emptyTreeBytes    = 400
	emptyServiceBytes = 500
	emptyStoreBytes   = 8 << 10
)

// memory is what a store holds.
type memory struct {
	// trees is what all trees took when they were measured last, in bytes.
	trees int64
	// tried is what was held when less could not be given back than was asked for, and
	// triedAt the second in which that was; 0: it could.
	tried   int64
	triedAt uint32
}

// bytes is about what the store holds.
func (s *Store) bytes() int64 {
	return emptyStoreBytes + s.memory.trees + s.seen.bytes() + s.kept.bytes() + int64(cap(s.order))*numberBytes +
		int64(len(s.candidates.buckets))*candidateBytes + int64(s.candidates.texts)
}

// Bytes is about the memory that the store takes.
func (s *Store) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measureAll()
	return s.bytes()
}

func (x *index) bytes() int64 { return int64(len(x.buckets)) * bucketBytes }

func (s *seen) bytes() int64 { return int64(cap(s.spans))*seenBytes + s.index.bytes() }

func (r *keptSpans) bytes() int64 {
	return int64(cap(r.spans))*keptBytes + int64(len(r.traces))*keptTraceBytes
}

// memory is what the tree takes, and, if it is that of calls, what its service does beside
// its trees.
func (t *tree) memory() int64 {
	f := &t.functions
	bytes := emptyTreeBytes + int64(cap(t.nodes))*nodeBytes + t.children.bytes() + int64(cap(t.pairs))*pairBytes +
		int64(cap(f.all))*functionBytes + int64(cap(f.free))*numberBytes + f.byName.bytes() +
		int64(f.bytes) - int64(f.byName.used)*(bytesOfFunction-textBytes)
	for _, w := range t.windows {
		bytes += int64(len(w.values)) * windowValuesBytes
	}
	if sv := t.owner; t == sv.calls {
		bytes += emptyServiceBytes + int64(len(sv.name)) + int64(cap(sv.threads.known))*threadBytes +
			int64(len(sv.threads.numbers))*threadPlaceBytes + int64(sv.threads.texts)
	}
	return bytes
}

// measure measures a tree that has changed.
func (s *Store) measure(t *tree) {
	now := t.memory()
	s.memory.trees += now - t.measured
	t.measured = now
}

func (s *Store) measureAll() {
	for _, t := range s.trees {
		if t != nil {
			s.measure(t)
		}
	}
}

// settle reports what the store holds when something was folded of a service, and gives back
// what it has to.
func (s *Store) settle(sv *service) {
	if s.settings.Hold == nil {
		return
	}
	s.measure(sv.calls)
	for _, t := range sv.profiles {
		s.measure(t)
	}
	s.hold()
}

// GiveWay gives back memory that Settings.Hold asks for.
func (s *Store) GiveWay() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settings.Hold != nil {
		s.measureAll()
		s.hold()
	}
}

// retry is how many bytes more the store has to hold until it is tried again to give back
// what it could not, in the same second.
const retry = 1 << 20

func (s *Store) hold() {
	held := s.bytes()
	excess := s.settings.Hold(held)
	if excess <= 0 {
		s.memory.tried = 0
		return
	}
	if now := s.second(); s.memory.tried > 0 && s.memory.triedAt == now && held < s.memory.tried+retry {
		return
	}
	s.shed(held - excess)
	s.memory.tried = 0
	if s.settings.Hold(s.bytes()) > 0 {
		s.memory.tried, s.memory.triedAt = s.bytes(), s.second()
	}
}
