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

// missedSince gives the time since which the number next, which has not come,
// is known to be missing; false when nothing later is known.
func (a *arrivals) missedSince(next uint64) (time.Duration, bool) {
	done := 0
	for done < len(*a) && (*a)[done].known <= next {
		done++
	}
	if done > 0 {
		*a = append((*a)[:0], (*a)[done:]...)
	}
	if len(*a) == 0 {
		return 0, false
	}
	return (*a)[0].last, true
}
