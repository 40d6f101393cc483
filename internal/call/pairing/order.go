// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import "time"

// arrivals remembers when numbers were first known, to say since when a
// missing number has been missed.
type arrivals []arrival

// arrival says that between first and last the highest known number rose to
// known-1.
type arrival struct {
	known       uint64
	first, last time.Duration
}

// rise notes that the numbers below known are known now. What comes within
// grain of an entry is put to it, so that there are few.
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

// knownBefore is the number below which all were known at the time at.
func (a arrivals) knownBefore(at time.Duration) (known uint64) {
	for _, arrival := range a {
		if arrival.last > at {
			break
		}
		known = arrival.known
	}
	return known
}

// forget forgets about the numbers below next, none of which is missing.
func (a *arrivals) forget(next uint64) {
	done := 0
	for done < len(*a) && (*a)[done].known <= next {
		done++
	}
	if done > 0 {
		*a = append((*a)[:0], (*a)[done:]...)
	}
}
