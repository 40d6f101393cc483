// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

// index finds numbers by hashes, in one slice that the garbage collector has nothing to
// look for in. What a number stands for, and whether it is what is looked for, the caller
// knows. It is open addressing with linear probing: a slot that is freed is filled with
// one of those behind it, so nothing is left of what is removed.
//
// The zero index is empty.
type index struct {
	slots []slot
	used  int
}

// slot holds a number, above 0, and its hash; number 0: it is free.
type slot struct{ hash, number uint32 }

// leastSlots is the length of the smallest table; all lengths are powers of two.
const leastSlots = 16

// probe looks through the numbers of a hash.
type probe struct {
	slots    []slot
	hash, at uint32
}

// of gives the numbers of a hash, one by one: next until it gives 0.
func (x *index) of(hash uint32) probe { return probe{slots: x.slots, hash: hash, at: hash} }

// next is the next number of the hash, or 0.
func (p *probe) next() uint32 {
	mask := uint32(len(p.slots) - 1)
	if len(p.slots) == 0 {
		return 0
	}
	for {
		s := p.slots[p.at&mask]
		p.at++
		if s.number == 0 || s.hash == p.hash {
			return s.number
		}
	}
}

// add adds a number that isn't there.
func (x *index) add(hash, number uint32) {
	// At most three quarters are used.
	if 4*(x.used+1) > 3*len(x.slots) {
		x.resize(max(leastSlots, 2*len(x.slots)))
	}
	x.put(slot{hash, number})
	x.used++
}

func (x *index) put(s slot) {
	mask := uint32(len(x.slots) - 1)
	at := s.hash & mask
	for x.slots[at].number != 0 {
		at = (at + 1) & mask
	}
	x.slots[at] = s
}

func (x *index) resize(length int) {
	old := x.slots
	x.slots = make([]slot, length)
	for _, s := range old {
		if s.number != 0 {
			x.put(s)
		}
	}
}

// remove removes a number that is there.
func (x *index) remove(hash, number uint32) {
	mask := uint32(len(x.slots) - 1)
	at := hash & mask
	for x.slots[at].number != number {
		at = (at + 1) & mask
	}
	x.used--
	// What stands behind the gap, and may stand in it, moves there.
	for next := (at + 1) & mask; x.slots[next].number != 0; next = (next + 1) & mask {
		if home := x.slots[next].hash & mask; (next-home)&mask >= (next-at)&mask {
			x.slots[at] = x.slots[next]
			at = next
		}
	}
	x.slots[at] = slot{}
	if len(x.slots) > leastSlots && 8*x.used < len(x.slots) {
		x.resize(len(x.slots) / 2)
	}
}
