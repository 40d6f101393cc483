// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBitsAtAnyPlaceAndOfAnySize(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	data := make([]byte, 24)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	for at := range uint64(len(data) * 8) {
		for size := uint64(1); size <= 64 && at+size <= uint64(len(data)*8); size++ {
			var little, big uint64
			for i := range size {
				bit := at + i
				little |= uint64(data[bit/8]>>(bit%8)&1) << i
				big = big<<1 | uint64(data[bit/8]>>(7-bit%8)&1)
			}
			require.Equal(t, little, bitsLE(data, at, uint8(size)), "little endian, %d bits at %d", size, at)
			require.Equal(t, big, bitsBE(data, at, uint8(size)), "big endian, %d bits at %d", size, at)
		}
	}
}

func TestSignExtend(t *testing.T) {
	require.Equal(t, uint64(math.MaxUint64), signExtend(1, 1))
	require.Equal(t, uint64(3), signExtend(3, 3))
	require.Equal(t, ^uint64(3), signExtend(4, 3))
	require.Equal(t, uint64(1<<63), signExtend(1<<63, 64))
}

func TestVariable(t *testing.T) {
	for _, value := range []int64{0, 1, 63, 64, 127, 128, 1 << 20, math.MaxInt64, -1, -64, -65, -128, math.MinInt64} {
		b := []byte{}
		for rest := value; ; {
			low := byte(rest & 0x7F)
			rest >>= 7
			if rest == 0 && low&0x40 == 0 || rest == -1 && low&0x40 != 0 {
				b = append(b, low)
				break
			}
			b = append(b, low|0x80)
		}
		got, n := variable(append(b, 0xFF), true)
		require.Equal(t, uint64(value), got, "%d", value)
		require.Len(t, b, n)
		_, n = variable(b[:len(b)-1], true)
		require.Zero(t, n)

		b = binary.AppendUvarint(nil, uint64(value))
		got, n = variable(b, false)
		require.Equal(t, uint64(value), got)
		require.Len(t, b, n)
	}
	for name, b := range map[string][]byte{
		"65 bits":   {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02},
		"11 bytes":  {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00},
		"nothing":   {},
		"no ending": {0x80},
	} {
		for _, signed := range []bool{false, true} {
			_, n := variable(b, signed)
			require.Zero(t, n, "%s, %t", name, signed)
		}
	}
}

func TestSelectorsOfManyRanges(t *testing.T) {
	var s selector
	for i := range uint64(100) {
		s.spans = append(s.spans, span{low: (99 - i) * 10, high: (99-i)*10 + 5, option: uint32(99 - i)})
	}
	s.sort()
	for value := range uint64(1100) {
		got := s.find(value)
		if value%10 > 5 || value >= 1000 {
			require.Nil(t, got, "%d", value)
		} else {
			require.NotNil(t, got, "%d", value)
			require.Equal(t, uint32(value/10), got.option)
		}
	}
	s.spans = append(s.spans, span{low: 0, high: 2000, option: 7})
	s.sort()
	require.Equal(t, uint32(7), s.find(9).option)
	require.Equal(t, uint32(1), s.find(12).option, "the first counts")
}

func TestWhereRangesOfASelectorOverlapTheFirstCounts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var declared selector
		for i := range 1 + random.IntN(60) {
			low := random.Uint64N(200)
			high := low + random.Uint64N(40)
			if random.IntN(20) == 0 {
				high = math.MaxUint64
			}
			declared.spans = append(declared.spans, span{low: low, high: high, option: uint32(i)})
		}
		sorted := selector{spans: slices.Clone(declared.spans)}
		sorted.sort()
		require.LessOrEqual(t, len(sorted.spans), 2*len(declared.spans))
		for i := 1; i < len(sorted.spans); i++ {
			require.Less(t, sorted.spans[i-1].high, sorted.spans[i].low)
		}
		for value := range uint64(300) {
			for _, value := range [...]uint64{value, math.MaxUint64 - value} {
				var want *span
				for i := range declared.spans {
					if d := &declared.spans[i]; want == nil && value >= d.low && value <= d.high {
						want = d
					}
				}
				got := sorted.find(value)
				require.Equal(t, want == nil, got == nil, "%d in %v", value, declared.spans)
				if want != nil {
					require.Equal(t, want.option, got.option, "%d in %v", value, declared.spans)
				}
			}
		}
	}
}
