// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"time"
	"unsafe"
)

// arrivals remembers when numbers became known, and so since when a missing number is
// missing.
type arrivals []arrival

// arrival says that between first and last the highest known number rose to
// known-1.
type arrival struct {
	known       uint64
	first, last time.Duration
}

// rise notes that the numbers below known are known now. A rise within grain of the last
// entry extends it, so there are few entries.
func (a *arrivals) rise(known uint64, now, grain time.Duration) {
	if n := len(*a); n > 0 {
		top := &(*a)[n-1]
		if known <= top.known {
			return
		}
		if now-top.first <= grain {
			top.known, top.last = known, now
			return
		}
	}
	*a = append(*a, arrival{known: known, first: now, last: now})
}

// knownBefore is the number below which all numbers were known at the time at.
func (a arrivals) knownBefore(at time.Duration) (known uint64) {
	for _, arrival := range a {
		if arrival.last > at {
			break
		}
		known = arrival.known
	}
	return known
}

// forget drops the entries for numbers below next, of which none is missing.
func (a *arrivals) forget(next uint64) {
	done := 0
	for done < len(*a) && (*a)[done].known <= next {
		done++
	}
	if done > 0 {
		*a = append((*a)[:0], (*a)[done:]...)
	}
}

// bytes is the memory of the arrivals.
func (a arrivals) bytes() int { return cap(a) * int(unsafe.Sizeof(arrival{})) }
