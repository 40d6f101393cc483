// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callsum

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// atMost reports whether a duration is at most 2^(power/16) seconds. It compares both sides to
// the power of 16, which are integers.
func atMost(ns int64, power int) bool {
	duration := new(big.Int).Exp(big.NewInt(ns), big.NewInt(16), nil)
	second := new(big.Int).Exp(big.NewInt(1e9), big.NewInt(16), nil)
	if power >= 0 {
		second.Lsh(second, uint(power))
	} else {
		duration.Lsh(duration, uint(-power))
	}
	return duration.Cmp(second) <= 0
}

// lastIn is the longest duration in a bucket or below it.
func lastIn(bucket int) int64 {
	low, high := int64(0), int64(math.MaxInt64)
	for low < high {
		if middle := high - (high-low)/2; atMost(middle, bucket+1) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

func TestADurationIsInTheBucketOfTheDefinition(t *testing.T) {
	const first, last = -479, 529
	if !atMost(1, first+1) || atMost(1, first) || !atMost(math.MaxInt64, last+1) || atMost(math.MaxInt64, last) {
		t.Fatal("the first or the last bucket is another one")
	}
	random := rand.New(rand.NewPCG(1, 1))
	end := int64(0)
	for bucket := first; bucket <= last; bucket++ {
		begin := end + 1
		if end = lastIn(bucket); end < begin {
			continue
		}
		for _, ns := range []int64{begin, begin + random.Int64N(end-begin+1), end} {
			if got := bucketAt(ns); int(got) != bucket {
				t.Errorf("%d ns is in bucket %d, expected %d", ns, got, bucket)
			}
		}
	}
	if bucketAt(1e9) != -1 || bucketAt(1e9+1) != 0 || bucketAt(2e9) != 15 || bucketAt(1e9>>9) != -9*16-1 {
		t.Error("a power of two in seconds is not the upper bound of its bucket")
	}
}

// counts are a slow and obvious histogram: the number of values in each bucket of scale 4.
type counts map[int32]uint64

func (c counts) add(ns int64) {
	bucket := int32(math.Ceil(math.Log2(float64(ns)/1e9)*16)) - 1
	for ; atMost(ns, int(bucket)); bucket-- {
	}
	for ; !atMost(ns, int(bucket)+1); bucket++ {
	}
	c[bucket]++
}

// difference compares a histogram with the counts; empty: none. The scale must be the largest
// that is possible.
func (c counts) difference(h *Histogram) string {
	low, high := int32(math.MaxInt32), int32(math.MinInt32)
	for bucket := range c {
		low, high = min(low, bucket), max(high, bucket)
	}
	shift := int32(0)
	for high>>shift-low>>shift >= 160 {
		shift++
	}
	if want := 4 - shift; len(c) > 0 && h.Scale != want {
		return fmt.Sprintf("scale %d, expected %d", h.Scale, want)
	}
	if len(h.Counts) > 160 {
		return fmt.Sprintf("%d buckets", len(h.Counts))
	}
	want := map[int32]uint64{}
	for bucket, n := range c {
		want[bucket>>shift] += n
	}
	for i, got := range h.Counts {
		bucket := h.Offset + int32(i)
		if got != want[bucket] {
			return fmt.Sprintf("%d values in bucket %d of scale %d, expected %d", got, bucket, h.Scale, want[bucket])
		}
		delete(want, bucket)
	}
	if len(want) > 0 {
		return fmt.Sprintf("no buckets for %v at scale %d", want, h.Scale)
	}
	return ""
}

// someDuration is a random duration. Small spreads give similar ones.
func someDuration(random *rand.Rand, spread float64) int64 {
	return max(1, int64(math.Exp2(31+spread*(random.Float64()-0.5))))
}

func TestAHistogramHasAllValuesAtTheLargestScale(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 2))
		var h Histogram
		want, grown := counts{}, 0
		spread := []float64{0.1, 2, 9, 11, 22, 41, 62}[seed%7]
		for n := range 1 + random.IntN(150) {
			ns := someDuration(random, spread)
			want.add(ns)
			grown += h.add(ns)
			if n == 0 && len(h.Counts) != bucketStep {
				t.Fatalf("seed %d: %d buckets for one value", seed, len(h.Counts))
			}
			if d := want.difference(&h); d != "" {
				t.Fatalf("seed %d, value %d: %s", seed, n, d)
			}
		}
		if grown != 8*cap(h.Counts) {
			t.Fatalf("seed %d: %d bytes, counted %d", seed, 8*cap(h.Counts), grown)
		}
	}
}

func TestMergedHistogramsAreAsIfAllValuesWereInOne(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 3))
		want, merged := counts{}, Histogram{}
		for part := range 1 + random.IntN(5) {
			var h Histogram
			for range random.IntN(60) {
				ns := someDuration(random, []float64{0.1, 9, 12, 24, 62}[random.IntN(5)])
				want.add(ns)
				h.add(ns)
			}
			if random.IntN(2) == 0 {
				h = h.Trimmed()
			}
			before := slices.Clone(h.Counts)
			merged.Merge(&h)
			if d := want.difference(&merged); d != "" {
				t.Fatalf("seed %d, part %d: %s", seed, part, d)
			}
			if !slices.Equal(before, h.Counts) {
				t.Fatalf("seed %d, part %d: the other histogram has changed", seed, part)
			}
		}
	}
}

func TestAClearedHistogramUsesItsMemoryAgain(t *testing.T) {
	var h Histogram
	again := func() {
		for _, spread := range []int64{1, 1 << 10} {
			clear(h.Counts)
			for power := range 10 {
				h.add(spread << power)
			}
		}
	}
	again()
	if n := testing.AllocsPerRun(10, again); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	random, h := rand.New(rand.NewPCG(1, 1)), Histogram{}
	durations := make([]int64, 4096)
	for i := range durations {
		durations[i] = someDuration(random, 10)
	}
	for i := 0; b.Loop(); i++ {
		h.add(durations[i%len(durations)])
	}
}
