// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// index finds numbers by hashes, in one slice that the garbage collector has nothing to
// look for in. What a number stands for, and whether it is what is looked for, the caller
// knows.
//
// It is open addressing by buckets, each of which is a line of the processor's cache. Which
// numbers of a bucket may be of a hash is found for all of them at once: branches that
// depend on what is where would be guessed wrong most often, and cost more than all else. A
// number whose bucket is full is in another, and the buckets that it passed count it, so
// nothing is left of what is removed.
//
// The zero index is empty.
type index struct {
	buckets []bucket
	used    int
}

// bucket has numbers, and of each a tag, which is some bits of its hash; 0: there is none.
type bucket struct {
	tags [bucketSize]uint8
	// passed is how many numbers would be here if there had been room.
	passed  uint32
	numbers [bucketSize]uint32
}

const (
	bucketSize = 12
	// leastBuckets is the length of the smallest table; all lengths are powers of two.
	leastBuckets = 1
)

// hashes know the hash of each number that an index has, for when it is made anew.
type hashes interface{ hashOf(number uint32) uint32 }

// tagOf is the tag of a hash. Its bits are not those that the bucket is found by.
func tagOf(hash uint32) uint8 { return uint8(hash>>25 | 0x80) }

// stepOf is how far apart the buckets are that a hash is looked for in. It is odd, so that all
// are met; and not 1, or full buckets would stand together and be passed by all around.
func stepOf(hash uint32) uint32 { return hash>>16 | 1 }

// places are places in a bucket: bit 8i+7 for each of the first eight, and bit 8i+6 for each
// behind them.
type places uint64

const eachByte, highBits, highBitsOf4 = 0x0101010101010101, 0x8080808080808080, 0x80808080

// first is the place of the lowest bit.
func (p places) first() int {
	bit := bits.TrailingZeros64(uint64(p))
	return bit/8 + 8*(^bit&1)
}

// after are the places behind that of the lowest bit.
func (p places) after() places { return p & (p - 1) }

func newPlaces(low, high uint64) places { return places(low&highBits | high&highBitsOf4>>1) }

// words are the tags, as many as have room in each.
func (b *bucket) words() (low, high uint64) {
	return binary.LittleEndian.Uint64(b.tags[:8]), uint64(binary.LittleEndian.Uint32(b.tags[8:]))
}

// candidates are the places that may be of a tag. What is behind one that is may look so.
func (b *bucket) candidates(tag uint8) places {
	low, high := b.words()
	low, high = low^uint64(tag)*eachByte, high^uint64(tag)*eachByte
	return newPlaces((low-eachByte)&^low, (high-eachByte)&^high)
}

// free are the places that have no number.
func (b *bucket) free() places {
	low, high := b.words()
	return newPlaces(^low, ^high)
}

// cursor says where a number was found: in which of the buckets of a hash, and at which bit of
// their places.
type cursor uint64

const cursorBits = 7

// next is the next number that may be of a hash, or 0. The first is found with cursor 0.
func (x *index) next(hash uint32, from cursor) (number uint32, found cursor) {
	mask := uint32(len(x.buckets) - 1)
	step, looked := uint32(from>>cursorBits), from&(1<<cursorBits-1)
	for ; int(step) < len(x.buckets); step, looked = step+1, 0 {
		b := &x.buckets[(hash+step*stepOf(hash))&mask]
		if c := b.candidates(tagOf(hash)) >> looked << looked; c != 0 {
			bit := cursor(bits.TrailingZeros64(uint64(c)))
			return b.numbers[c.first()], cursor(step)<<cursorBits | bit + 1
		}
		if b.passed == 0 {
			break
		}
	}
	return 0, 0
}

// read reads the bucket of a hash, and gives something of it.
func (x *index) read(hash uint32) uint32 {
	return x.buckets[hash&uint32(len(x.buckets)-1)].passed
}

// room is for how many numbers there is room.
func (x *index) room() int { return bucketSize * len(x.buckets) }

// add adds a number that isn't there.
func (x *index) add(hash, number uint32, of hashes) {
	// At most five eighths are used: few buckets are full then.
	if 8*(x.used+1) > 5*x.room() {
		x.resize(max(leastBuckets, 2*len(x.buckets)), of)
	}
	x.put(hash, number)
	x.used++
}

func (x *index) put(hash, number uint32) {
	for at := hash; ; at += stepOf(hash) {
		b := &x.buckets[at&uint32(len(x.buckets)-1)]
		if free := b.free(); free != 0 {
			i := free.first()
			b.tags[i], b.numbers[i] = tagOf(hash), number
			return
		}
		b.passed++
	}
}

func (x *index) resize(length int, of hashes) {
	old := x.buckets
	x.buckets = make([]bucket, length)
	for i := range old {
		for j, tag := range old[i].tags {
			if number := old[i].numbers[j]; tag != 0 {
				x.put(of.hashOf(number), number)
			}
		}
	}
}

// remove removes a number that is there.
func (x *index) remove(hash, number uint32, of hashes) {
	for at := hash; ; at += stepOf(hash) {
		b := &x.buckets[at&uint32(len(x.buckets)-1)]
		if b.remove(hash, number) {
			break
		}
		b.passed--
	}
	x.used--
	if len(x.buckets) > leastBuckets && 8*x.used < x.room() {
		x.resize(len(x.buckets)/2, of)
	}
}

// remove removes a number if it is in the bucket.
func (b *bucket) remove(hash, number uint32) bool {
	for c := b.candidates(tagOf(hash)); c != 0; c = c.after() {
		if i := c.first(); b.numbers[i] == number {
			b.tags[i] = 0
			return true
		}
	}
	return false
}

func (x *index) bytes() int64 { return int64(len(x.buckets)) * int64(unsafe.Sizeof(bucket{})) }
