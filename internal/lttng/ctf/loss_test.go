// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// lossesOf reads the counters of consecutive packets. It returns the number of discarded events up to each packet, -1
// for an unknown number.
func lossesOf(counters ...uint64) []int {
	var r Reader
	lost := make([]int, len(counters))
	for i, n := range counters {
		p := Packet{Sequence: uint64(i + 1), Discarded: n, roles: metadata.RoleSequence | metadata.RoleDiscarded}
		for _, l := range r.losses(&p) {
			if lost[i] = int(l.Count); l.Count == 0 {
				lost[i] = -1
			}
		}
		r.past = r.past.with(&p)
	}
	return lost
}

func TestACounterOfDiscardedEventsIsComparedWithTheHighest(t *testing.T) {
	require.Equal(t, []int{0, 0, 3, 0, 2}, lossesOf(5, 5, 8, 8, 10))
	require.Equal(t, []int{0, 3, -1, -1, 1, 0}, lossesOf(5, 8, 0, 0, 9, 9), "two packets have a wrong counter, the next one a right one")
}

func TestACounterOfDiscardedEventsThatStaysLowHasRestarted(t *testing.T) {
	counters := []uint64{9}
	want := []int{0}
	for range maxLowCounters {
		counters, want = append(counters, 2), append(want, -1)
	}
	require.Equal(t, append(want, 0, 1), lossesOf(append(counters, 2, 3)...))
}
