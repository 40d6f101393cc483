// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import "sort"

// ranges remembers numbers that were passed over, so that one that comes after
// all is told from one that comes a second time. It is bounded: the oldest
// ranges are forgotten.
type ranges []passed

// passed are the numbers from to to-1.
type passed struct {
	from, to uint64
	// inBreak: they lie in a break. Otherwise they were missing.
	inBreak bool
}

const maxRanges = 1024

// add remembers a range above all others.
func (r *ranges) add(p passed) {
	if p.from == p.to {
		return
	}
	if n := len(*r); n > 0 && (*r)[n-1].to == p.from && (*r)[n-1].inBreak == p.inBreak {
		(*r)[n-1].to = p.to
		return
	}
	if len(*r) == maxRanges {
		*r = append((*r)[:0], (*r)[1:]...)
	}
	*r = append(*r, p)
}

// remove forgets one number and says whether it was remembered, and how.
func (r *ranges) remove(number uint64) (p passed, found bool) {
	i := sort.Search(len(*r), func(i int) bool { return (*r)[i].to > number })
	if i == len(*r) || (*r)[i].from > number {
		return passed{}, false
	}
	p = (*r)[i]
	left, right := passed{p.from, number, p.inBreak}, passed{number + 1, p.to, p.inBreak}
	switch {
	case left.from == left.to && right.from == right.to:
		*r = append((*r)[:i], (*r)[i+1:]...)
	case left.from == left.to:
		(*r)[i] = right
	case right.from == right.to:
		(*r)[i] = left
	default:
		(*r)[i] = right
		*r = append(*r, passed{})
		copy((*r)[i+1:], (*r)[i:])
		(*r)[i] = left
		if len(*r) > maxRanges {
			*r = append((*r)[:0], (*r)[1:]...)
		}
	}
	return p, true
}
