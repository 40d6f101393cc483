// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"sort"
	"unsafe"
)

// ranges remembers the numbers that were passed over, to tell a late event from a
// duplicate. It is bounded: the oldest ranges are forgotten.
type ranges []passed

// passed are the numbers from to to-1.
type passed struct {
	from, to uint64
	// inBreak: they lie in a break. Otherwise they were missing.
	inBreak bool
}

const maxRanges = 1024

// append remembers a range above all others.
func (r *ranges) append(p passed) {
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

// remove forgets one number. It returns the range that had the number, if there was one.
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

// bytes is the memory of the ranges.
func (r ranges) bytes() int { return cap(r) * int(unsafe.Sizeof(passed{})) }
