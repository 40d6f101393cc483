// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Numbers of few hashes, so that many collide, are added and removed at random.
func TestAnIndexHasWhatWasAddedAndNotRemoved(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 3))
		var x index
		there := map[uint32]uint32{} // number by hash
		numbers, hashes := 1+random.Uint32N(300), 1+random.Uint32N(100)
		hashOf := func(n uint32) uint32 { return n % hashes * 0x01010101 }
		for range 3000 {
			n := 1 + random.Uint32N(numbers)
			if _, ok := there[n]; ok {
				x.remove(hashOf(n), n)
				delete(there, n)
			} else {
				x.add(hashOf(n), n)
				there[n] = hashOf(n)
			}
		}
		require.Len(t, there, x.used)
		found := 0
		for h := range hashes {
			for p := x.of(h * 0x01010101); ; found++ {
				n := p.next()
				if n == 0 {
					break
				}
				require.Equal(t, h*0x01010101, there[n])
			}
		}
		require.Equal(t, x.used, found)
	}
}

func TestAnIndexThatIsEmptiedIsSmall(t *testing.T) {
	var x index
	p := x.of(1)
	assert.Zero(t, p.next())
	for n := range uint32(10_000) {
		x.add(n*2654435761, n+1)
	}
	for n := range uint32(10_000) {
		x.remove(n*2654435761, n+1)
	}
	assert.LessOrEqual(t, len(x.slots), leastSlots)
	assert.Zero(t, x.used)
}
