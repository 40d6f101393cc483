// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"time"
	"unsafe"
)

const (
	// rateSeconds is the number of seconds for a rate.
	rateSeconds = 10
	// maxSpread is the largest number of seconds over which items are spread.
	maxSpread = 60
)

// rate counts items in each of the last seconds, and in the current one. Spread items also count
// in seconds to come. Each second has its place in the ring by its number.
type rate struct {
	ring []secondCount
}

type secondCount struct {
	count  uint64
	second uint32
}

// add adds the items of a second.
func (r *rate) add(second uint32, n uint64) {
	if r.ring == nil {
		r.ring = make([]secondCount, rateSeconds+1)
	}
	at := &r.ring[second%uint32(len(r.ring))]
	if at.second != second {
		*at = secondCount{second: second}
	}
	at.count = plusCount(at.count, n)
}

// spread adds the items of an interval before a second, over an interval as long after it. So the
// rate is even if a sender reports once in an interval.
func (r *rate) spread(second uint32, n uint64, interval time.Duration) {
	seconds := uint32(max(1, (min(interval, maxSpread*time.Second)+time.Second-1)/time.Second))
	if seconds > 1 && len(r.ring) <= rateSeconds+1 {
		old := r.ring
		r.ring = make([]secondCount, rateSeconds+maxSpread+1)
		for _, c := range old {
			if c.count > 0 {
				r.add(c.second, c.count)
			}
		}
	}
	// Later seconds get the remainder.
	for i := range seconds {
		share := n / uint64(seconds-i)
		r.add(second+i, share)
		n -= share
	}
}

func (r *rate) bytes() int64 { return int64(cap(r.ring)) * int64(unsafe.Sizeof(secondCount{})) }

// of is the mean number of items in the seconds before this one.
func (r *rate) of(second uint32) float64 {
	length := min(second, rateSeconds)
	if length == 0 {
		return 0
	}
	sum := 0.0
	for _, c := range r.ring {
		if c.second < second && c.second+length >= second {
			sum += float64(c.count)
		}
	}
	return sum / float64(length)
}
