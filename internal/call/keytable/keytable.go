// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package keytable has a hash table from numbers to numbers, and one for texts, without pointers, for entries that are
// never removed. It is faster than a map, and the garbage collector need not look into it.
package keytable

import (
	"math/bits"
	"math/rand/v2"
	"unsafe"
)

// Table finds numbers by keys. It is a hash table with open addressing, in one slice without
// pointers. The zero table is empty.
type Table struct {
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

	// SlotBytes is the memory of a slot. A table has at least 3/2 and at most about 3 slots for a key.
	SlotBytes = int(unsafe.Sizeof(slot{}))
)

// place is the first place of a key.
func (t *Table) place(key uint64) uint64 {
	const odd = 0x9e3779b97f4a7c15
	high, low := bits.Mul64(key^t.seed, odd)
	return high ^ low
}

// Find returns the number of a key, or 0.
func (t *Table) Find(key uint64) uint32 {
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

// Put adds a key that is not in the table, with a number above 0.
func (t *Table) Put(key uint64, number uint32) {
	// At most two thirds are used: a search is short then.
	if 3*(t.used+1) > 2*len(t.slots) {
		t.resize(max(leastSlots, 2*len(t.slots)))
	}
	t.used++
	t.fill(slot{key, number})
}

// fill puts the slot into the first empty place for its key.
func (t *Table) fill(added slot) {
	mask := uint64(len(t.slots) - 1)
	for i := t.place(added.key); ; i++ {
		if s := &t.slots[i&mask]; s.number == 0 {
			*s = added
			return
		}
	}
}

// Reserve makes room for n keys altogether.
func (t *Table) Reserve(n int) {
	slots := leastSlots
	for 2*slots < 3*n {
		slots *= 2
	}
	if slots > len(t.slots) {
		t.resize(slots)
	}
}

// resize makes room for n slots, a power of two.
func (t *Table) resize(n int) {
	old := t.slots
	if old == nil {
		t.seed = rand.Uint64()
	}
	t.slots = make([]slot, n)
	for _, s := range old {
		if s.number != 0 {
			t.fill(s)
		}
	}
}

// Len returns the number of keys.
func (t *Table) Len() int { return t.used }

// Bytes returns the memory of the table.
func (t *Table) Bytes() int { return len(t.slots) * SlotBytes }
