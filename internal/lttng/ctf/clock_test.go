// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// exactNano returns the time of a value, computed with integers of any size.
func exactNano(c *metadata.Clock, value uint64) int64 {
	cycles := new(big.Int).SetInt64(c.Offset)
	cycles.Add(cycles, new(big.Int).SetUint64(value))
	cycles.Mul(cycles, big.NewInt(nanosecondsPerSecond))
	frequency := new(big.Int).SetUint64(c.Frequency)
	ns := new(big.Int).Mul(big.NewInt(c.OffsetSeconds), big.NewInt(nanosecondsPerSecond))
	ns.Mul(ns, frequency).Add(ns, cycles)
	remainder := new(big.Int)
	ns.DivMod(ns, frequency, remainder) // rounds down
	switch {
	case ns.Cmp(big.NewInt(math.MaxInt64)) > 0:
		return math.MaxInt64
	case ns.Cmp(big.NewInt(math.MinInt64)) < 0:
		return math.MinInt64
	}
	return ns.Int64()
}

func TestTimesAreExact(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	frequencies := []uint64{1, 2, 3, 1000, 19_200_000, 999_999_999, 1e9, 1_000_000_001, 3_400_000_000, 1 << 62, math.MaxUint64}
	offsets := []int64{0, 1, -1, 12345, 1795165226727242090, math.MaxInt64, math.MinInt64}
	seconds := []int64{0, 1, -1, 1_700_000_000, -9_223_372_036, 9_223_372_036, math.MaxInt64, math.MinInt64}
	values := []uint64{0, 1, 1e9, 1 << 63, 1<<63 - 1, math.MaxUint64}
	for range 50 {
		values = append(values, random.Uint64()>>random.IntN(64))
	}
	for _, f := range frequencies {
		for _, o := range offsets {
			for _, s := range seconds {
				class := &metadata.Clock{Frequency: f, Offset: o, OffsetSeconds: s}
				clock := newClock(class)
				begin := new(big.Int).Div(big.NewInt(o), new(big.Int).SetUint64(f))
				if !begin.Add(begin, big.NewInt(s)).IsInt64() {
					continue // value 0 is more than 292 billion years away
				}
				for _, v := range values {
					require.Equal(t, exactNano(class, v), clock.UnixNano(v), "%+v, value %d", class, v)
				}
			}
		}
	}
}
