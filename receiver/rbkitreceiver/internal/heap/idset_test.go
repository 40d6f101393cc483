// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package heap

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASetHasTheIDsThatWereAdded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, id := range map[string]func(n uint64) uint64{
		"as servers number":   func(n uint64) uint64 { return 20 * n },
		"addresses":           func(n uint64) uint64 { return 0x7f01_9990_0000 + 40*n },
		"by chance":           func(uint64) uint64 { return random.Uint64() },
		"the largest":         func(n uint64) uint64 { return math.MaxUint64 - n },
		"that differ on high": func(n uint64) uint64 { return n << 48 },
	} {
		set, other := newIDSet(), map[uint64]bool{}
		for n := range uint64(20_000) {
			i := id(n)
			require.Equal(t, other[i], set.contains(i), name)
			set.insert(i)
			set.insert(i)
			other[i] = true
			require.Equal(t, len(other), set.len(), name)
		}
		for i := range other {
			require.True(t, set.contains(i), name)
			require.Equal(t, other[i+1], set.contains(i+1), name)
		}
		require.LessOrEqual(t, len(set.slots), 65536)
	}
}
