// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package heap

import (
	"math/bits"
	"math/rand/v2"
)

// idSet is a set of IDs of objects, to which is only added: an open hash table, since a
// dump looks for several IDs for each of its objects. Its hash is by chance, so no server
// knows IDs that go to one place.
type idSet struct {
	// slots have IDs, or 0, which stands for none; zero says whether 0 is in the set.
	slots []uint64
	zero  bool
	n     int
	// mask and multiplier are the hash, and shift how many of its bits are left out.
	mask, multiplier uint64
	shift            int
}

// firstSlots is how many slots there are at first, as a power of 2.
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

// slot is where an ID is, or the free one where it would be.
func (s *idSet) slot(id uint64) int {
	high, low := bits.Mul64(id^s.mask, s.multiplier)
	at := int((high ^ low) >> s.shift)
	for s.slots[at] != id && s.slots[at] != 0 {
		at = (at + 1) & (len(s.slots) - 1)
	}
	return at
}

func (s *idSet) add(id uint64) {
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
	// A quarter is always free, so that the next free one is near.
	if s.n > len(s.slots)/4*3 {
		s.resize(64 - s.shift + 1)
	}
}

func (s *idSet) has(id uint64) bool {
	if id == 0 {
		return s.zero
	}
	return s.slots[s.slot(id)] == id
}

func (s *idSet) len() int { return s.n }
