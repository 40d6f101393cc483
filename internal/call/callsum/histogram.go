// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callsum

import (
	"math"
	"math/bits"
)

// Histogram is a base-2 exponential histogram of durations, as OpenTelemetry defines it
// (opentelemetry-proto, message ExponentialHistogramDataPoint), of values in seconds. Bucket
// i has the values above base^i up to base^(i+1), where base is 2^(2^-Scale). Durations are
// above 0, so there is no bucket for zero.
//
// It has the largest scale that its values allow. The zero histogram has no values.
type Histogram struct {
	// Scale is at most 4: 16 buckets for each power of two.
	Scale int32
	// Offset is the index of the first bucket in Counts. Counts has at most 160 buckets.
	Offset int32
	Counts []uint64
}

const (
	maxScale   = 4
	maxBuckets = 160
	// bucketStep is the number of buckets by which Counts grows, as far as maxBuckets allows.
	bucketStep = 16
	// bucketsOfPower is the number of buckets for each power of two at maxScale.
	bucketsOfPower = 1 << maxScale
	// powerOfSecond is the largest power of two that is at most a second in nanoseconds.
	powerOfSecond = 29
	// bucketOfPower is the index at maxScale of 2^powerOfSecond ns.
	bucketOfPower = -15
)

// upperBounds are the upper bounds of buckets at maxScale between two powers of two, as
// nanoseconds shifted left until the highest of 64 bits is set, and rounded down. The bounds
// are seconds times powers of two, so they are the same between any two powers. The last one
// has no bound above it.
var upperBounds = [bucketsOfPower + 1]uint64{
	0x81ffa7a9549ca6e3,
	0x87c11235836d16a3,
	0x8dc3b8960164a7d9,
	0x940a7e28259fb382,
	0x9a9867054d512391,
	0xa1709975dfb06757,
	0xa8965f74bf065071,
	0xb00d2843e1060dc2,
	0xb7d88a12d0dd9ea0,
	0xbffc43b7e604a922,
	0xc87c3e7d03cdbec3,
	0xd15c9000bf211c1f,
	0xdaa17c2cd19555db,
	0xe44f7742cb56e3dd,
	0xee6b280000000000,
	0xf8f969d9b5abf948,
	math.MaxUint64,
}

// boundsBelow is the number of upper bounds below each 32nd part between two powers of two. No
// part has two bounds inside.
var boundsBelow = [32]uint8{0, 1, 2, 2, 3, 3, 4, 5, 5, 6, 6, 7, 7, 8, 9, 9, 10, 10, 10, 11, 11, 12, 12, 13, 13, 13, 14, 14, 15, 15, 15, 16}

// bucketAt is the index of a duration's bucket at maxScale.
func bucketAt(ns int64) int32 {
	zeros := bits.LeadingZeros64(uint64(ns))
	mantissa := uint64(ns) << (zeros & 63)
	below := boundsBelow[mantissa>>58&31]
	// One more if the mantissa is above that bound.
	_, above := bits.Sub64(upperBounds[below], mantissa, 0)
	return int32(63-zeros-powerOfSecond)*bucketsOfPower + bucketOfPower + int32(below) + int32(above)
}

// add counts a duration in nanoseconds, which is above 0. It returns the bytes that Counts has
// grown by.
func (h *Histogram) add(ns int64) (grown int) {
	bucket := bucketAt(ns)
	if i := h.place(bucket); i < uint(len(h.Counts)) {
		h.Counts[i]++
		return 0
	}
	before := cap(h.Counts)
	h.makeRoom(maxScale, bucket, bucket)
	h.Counts[h.place(bucket)]++
	return (cap(h.Counts) - before) * countBytes
}

// place is the index in Counts of a bucket of maxScale. It is too large if there is no such place.
func (h *Histogram) place(bucket int32) uint {
	return uint(bucket>>(uint32(maxScale-h.Scale)&31)) - uint(h.Offset)
}

const countBytes = 8

// Merge adds the values of the other histogram. The result is as if all values had been added
// to one.
func (h *Histogram) Merge(other *Histogram) {
	low, high, ok := other.filled()
	if !ok {
		return
	}
	h.makeRoom(other.Scale, low, high)
	for i := low; i <= high; i++ {
		h.Counts[i>>(other.Scale-h.Scale)-h.Offset] += other.Counts[i-other.Offset]
	}
}

// filled returns the first and the last bucket with values. It reports false if there is none.
func (h *Histogram) filled() (low, high int32, ok bool) {
	first, last := 0, len(h.Counts)-1
	for first <= last && h.Counts[first] == 0 {
		first++
	}
	for first <= last && h.Counts[last] == 0 {
		last--
	}
	return h.Offset + int32(first), h.Offset + int32(last), first <= last
}

// Trimmed returns the histogram without empty buckets at its ends. Both share the counts.
func (h *Histogram) Trimmed() Histogram {
	low, high, ok := h.filled()
	if !ok {
		return Histogram{}
	}
	return Histogram{Scale: h.Scale, Offset: low, Counts: h.Counts[low-h.Offset : high-h.Offset+1]}
}

// makeRoom makes Counts include the buckets from low to high of a scale. The scale of the
// histogram becomes at most that scale, and decreases until the buckets with values fit.
func (h *Histogram) makeRoom(scale, low, high int32) {
	if len(h.Counts) == 0 {
		h.Scale = scale
	}
	merged := max(0, h.Scale-scale)
	low, high = low>>max(0, scale-h.Scale), high>>max(0, scale-h.Scale)
	if first, last, ok := h.filled(); ok {
		low, high = min(low, first>>merged), max(high, last>>merged)
	}
	for ; high-low >= maxBuckets; merged++ {
		low, high = low>>1, high>>1
	}
	from, to := low&^(bucketStep-1), (high|(bucketStep-1))+1
	if to-from > maxBuckets {
		from, to = low, low+maxBuckets
	}
	// Buckets without values stay too, if there is room: they had values before.
	if wide := max(to, h.Offset+int32(len(h.Counts))) - min(from, h.Offset); merged == 0 && len(h.Counts) > 0 && wide <= maxBuckets {
		from = min(from, h.Offset)
		to = from + wide
	}
	h.move(merged, from, to)
}

// move merges pairs of buckets so many times. Then Counts has the buckets from from to to-1.
func (h *Histogram) move(merged, from, to int32) {
	var counts [maxBuckets]uint64
	for i, n := range h.Counts {
		if n > 0 {
			counts[(h.Offset+int32(i))>>merged-from] += n
		}
	}
	h.Scale, h.Offset = h.Scale-merged, from
	h.Counts = append(h.Counts[:0], counts[:to-from]...)
}
