// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// index finds numbers by hashes, in one slice without pointers. The caller compares the keys of the
// numbers.
//
// It is open addressing by buckets, each of which is a cache line. All numbers of a bucket are
// compared with a hash together, because unpredictable branches would cost more than everything
// else. If a bucket is full its number goes to another one, and each full bucket on the way
// counts that. So removing a number leaves no trace.
//
// The zero index is empty.
type index struct {
	buckets []bucket
	used    int
}

// bucket has numbers, and a tag for each, which is some bits of its hash; 0: no number.
type bucket struct {
	tags [bucketSize]uint8
	// passed is the number of numbers that had no room here.
	passed  uint32
	numbers [bucketSize]uint32
}

const (
	bucketSize = 12
	// leastBuckets is the length of the smallest table; all lengths are powers of two.
	leastBuckets = 1
)

// hashes return the hash of each number in an index, for growing and shrinking.
type hashes interface{ hashOf(number uint32) uint32 }

// tagOf is the tag of a hash. Its bits do not choose the bucket.
func tagOf(hash uint32) uint8 { return uint8(hash>>25 | 0x80) }

// stepOf is the distance of the buckets for a hash. It is odd, so it reaches all of them; and
// it is not always 1, so full buckets do not form groups.
func stepOf(hash uint32) uint32 { return hash>>16 | 1 }

// places are places in a bucket: bit 8i+7 for each of the first eight, and bit 8i+6 for each of
// the others.
type places uint64

const eachByte, highBits, highBitsOf4 = 0x0101010101010101, 0x8080808080808080, 0x80808080

// first is the place of the lowest bit.
func (p places) first() int {
	bit := bits.TrailingZeros64(uint64(p))
	return bit/8 + 8*(^bit&1)
}

// after are the places without that of the lowest bit.
func (p places) after() places { return p & (p - 1) }

func newPlaces(low, high uint64) places { return places(low&highBits | high&highBitsOf4>>1) }

// words are the tags as two numbers.
func (b *bucket) words() (low, high uint64) {
	return binary.LittleEndian.Uint64(b.tags[:8]), uint64(binary.LittleEndian.Uint32(b.tags[8:]))
}

// candidates are the places that may have the tag. A place after one with the tag may be wrong.
func (b *bucket) candidates(tag uint8) places {
	low, high := b.words()
	low, high = low^uint64(tag)*eachByte, high^uint64(tag)*eachByte
	return newPlaces((low-eachByte)&^low, (high-eachByte)&^high)
}

// free are the places without a number.
func (b *bucket) free() places {
	low, high := b.words()
	return newPlaces(^low, ^high)
}

// cursor is the position of a number: the bucket among those of a hash, and the bit of its
// place.
type cursor uint64

const cursorBits = 7

// next is the next number that may have the hash, or 0. Cursor 0 finds the first.
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

// read reads the bucket of a hash. The result has no meaning.
func (x *index) read(hash uint32) uint32 {
	return x.buckets[hash&uint32(len(x.buckets)-1)].passed
}

// room is the number of places.
func (x *index) room() int { return bucketSize * len(x.buckets) }

// add adds a number that is not in the index.
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

// remove removes a number that is in the index.
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

// remove removes a number, and reports whether it was in the bucket.
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
