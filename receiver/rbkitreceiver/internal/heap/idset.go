// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package heap

import (
	"math/bits"
	"math/rand/v2"
)

// idSet is a set of IDs of objects that only grows. It is an open hash table, because a dump
// looks up several IDs for each of its objects. Its hash is random, so no server knows IDs that
// collide.
type idSet struct {
	// slots have IDs; 0 is a free slot. zero says whether 0 is in the set.
	slots []uint64
	zero  bool
	n     int
	// mask and multiplier are the hash, and shift is how many of its bits are unused.
	mask, multiplier uint64
	shift            int
}

// firstSlots is the first number of slots, as a power of 2.
const firstSlots = 4

func newIDSet() *idSet {
	s := &idSet{mask: rand.Uint64(), multiplier: rand.Uint64() | 1}
	s.resize(firstSlots)
	return s
}

func (s *idSet) resize(logSlots int) {
	before := s.slots
	s.slots, s.shift = make([]uint64, 1<<logSlots), 64-logSlots
	for _, id := range before {
		if id != 0 {
			s.slots[s.slot(id)] = id
		}
	}
}

// slot returns the index of an ID, or of the free slot for it.
func (s *idSet) slot(id uint64) int {
	high, low := bits.Mul64(id^s.mask, s.multiplier)
	at := int((high ^ low) >> s.shift)
	for s.slots[at] != id && s.slots[at] != 0 {
		at = (at + 1) & (len(s.slots) - 1)
	}
	return at
}

func (s *idSet) insert(id uint64) {
	if id == 0 {
		if !s.zero {
			s.zero = true
			s.n++
		}
		return
	}
	at := s.slot(id)
	if s.slots[at] == id {
		return
	}
	s.slots[at] = id
	s.n++
	// A quarter of the slots is always free, so the next free slot is near.
	if s.n > len(s.slots)/4*3 {
		s.resize(64 - s.shift + 1)
	}
}

func (s *idSet) contains(id uint64) bool {
	if id == 0 {
		return s.zero
	}
	return s.slots[s.slot(id)] == id
}

func (s *idSet) len() int { return s.n }
