// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

// rateSeconds is the number of seconds for a rate.
const rateSeconds = 10

// rate counts items in each of the last seconds, and in the current one.
type rate struct {
	counts  [rateSeconds + 1]uint64
	seconds [rateSeconds + 1]uint32
}

// add adds the items of a second.
func (r *rate) add(second uint32, n uint64) {
	i := second % (rateSeconds + 1)
	if r.seconds[i] != second {
		r.seconds[i], r.counts[i] = second, 0
	}
	r.counts[i] += n
}

// of is the mean number of items in the seconds before this one.
func (r *rate) of(second uint32) float64 {
	length := min(second, rateSeconds)
	if length == 0 {
		return 0
	}
	sum := uint64(0)
	for i, s := range r.seconds {
		if s < second && s+length >= second {
			sum += r.counts[i]
		}
	}
	return float64(sum) / float64(length)
}
