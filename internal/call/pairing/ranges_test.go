// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import "testing"

// A removed number can split a range in two, and both count.
func TestRangesAreBoundedWhenTheyAreSplit(t *testing.T) {
	var r ranges
	r.append(passed{from: 0, to: 10 * maxRanges})
	for n := uint64(1); n < 4*maxRanges; n += 2 {
		if _, found := r.remove(n); !found {
			t.Fatalf("%d is not remembered", n)
		}
		if len(r) > maxRanges {
			t.Fatalf("%d ranges after number %d came", len(r), n)
		}
	}
	if len(r) != maxRanges {
		t.Errorf("%d ranges, expected %d", len(r), maxRanges)
	}
	// The oldest ranges are forgotten, the newest is there.
	if _, found := r.remove(0); found {
		t.Error("0 is remembered")
	}
	if p, found := r.remove(10*maxRanges - 1); !found || p.from != 4*maxRanges {
		t.Errorf("the last range is %+v, %t", p, found)
	}
}
