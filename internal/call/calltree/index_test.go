// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type hashFunc func(uint32) uint32

func (f hashFunc) hashOf(n uint32) uint32 { return f(n) }

// Numbers of few hashes, so that many collide, are added and removed at random.
func TestAnIndexFindsAllNumbersUntilTheyAreRemoved(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 3))
		var x index
		there := map[uint32]uint32{} // number by hash
		numbers, hashes := 1+random.Uint32N(300), 1+random.Uint32N(100)
		hashOf := hashFunc(func(n uint32) uint32 { return n % hashes * 0x01010101 })
		for range 3000 {
			n := 1 + random.Uint32N(numbers)
			if _, ok := there[n]; ok {
				x.remove(hashOf(n), n, hashOf)
				delete(there, n)
			} else {
				x.add(hashOf(n), n, hashOf)
				there[n] = hashOf(n)
			}
		}
		require.Len(t, there, x.used)
		found := 0
		for h := range hashes {
			for n, at := x.next(h*0x01010101, 0); n != 0; n, at = x.next(h*0x01010101, at) {
				require.Contains(t, there, n)
				if there[n] == h*0x01010101 {
					found++
				}
			}
		}
		require.Equal(t, x.used, found)
	}
}

func TestAnIndexThatIsEmptiedIsSmall(t *testing.T) {
	var x index
	spread := hashFunc(func(n uint32) uint32 { return n * 2654435761 })
	n, _ := x.next(1, 0)
	assert.Zero(t, n)
	for n := range uint32(10_000) {
		x.add(spread(n+1), n+1, spread)
	}
	for n := range uint32(10_000) {
		x.remove(spread(n+1), n+1, spread)
	}
	assert.Equal(t, make([]uint32, leastBuckets), []uint32{x.buckets[0].passed}, "none passed it")
	assert.Len(t, x.buckets, leastBuckets)
	assert.Zero(t, x.used)
}
