// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callsum

import (
	"math/bits"
	"math/rand/v2"
	"unsafe"
)

// table finds numbers by keys. It is a hash table with open addressing, in one slice without
// pointers. The zero table is empty.
type table struct {
	// slots has a length that is a power of two, or 0.
	slots []slot
	used  int
	// seed is random, so that no input can choose keys that collide.
	seed uint64
}

// slot has a number above 0, or is empty.
type slot struct {
	key    uint64
	number uint32
}

const (
	leastSlots = 16
	slotBytes  = int(unsafe.Sizeof(slot{}))
)

// place is the first place of a key.
func (t *table) place(key uint64) uint64 {
	const odd = 0x9e3779b97f4a7c15
	high, low := bits.Mul64(key^t.seed, odd)
	return high ^ low
}

// find returns the number of a key, or 0.
func (t *table) find(key uint64) uint32 {
	if t.used == 0 {
		return 0
	}
	mask := uint64(len(t.slots) - 1)
	for i := t.place(key); ; i++ {
		if s := &t.slots[i&mask]; s.key == key || s.number == 0 {
			return s.number
		}
	}
}

// put adds a key that is not in the table.
func (t *table) put(key uint64, number uint32) {
	// At most two thirds are used: a search is short then.
	if 3*(t.used+1) > 2*len(t.slots) {
		t.grow()
	}
	t.used++
	t.fill(slot{key, number})
}

// fill puts the slot into the first empty place for its key.
func (t *table) fill(added slot) {
	mask := uint64(len(t.slots) - 1)
	for i := t.place(added.key); ; i++ {
		if s := &t.slots[i&mask]; s.number == 0 {
			*s = added
			return
		}
	}
}

func (t *table) grow() {
	old := t.slots
	if old == nil {
		t.seed = rand.Uint64()
	}
	t.slots = make([]slot, max(leastSlots, 2*len(old)))
	for _, s := range old {
		if s.number != 0 {
			t.fill(s)
		}
	}
}

// bytes is the memory of the table.
func (t *table) bytes() int { return len(t.slots) * slotBytes }
