// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestASequenceNumberIsTheOneNearestToTheReference(t *testing.T) {
	const wrap = 1 << 32
	cases := map[string]struct {
		reference uint64
		n         uint32
		want      uint64
	}{
		"the first":                      {0, 0, 0},
		"behind":                         {134_150, 1, 1},
		"ahead":                          {10, 5_000_000, 5_000_000},
		"across the wrap":                {wrap - 5, 3, wrap + 3},
		"back across the wrap":           {wrap + 5, math.MaxUint32, wrap - 1},
		"just less than 2^31 ahead":      {wrap, 1<<31 - 1, wrap + 1<<31 - 1},
		"2^31 ahead is behind":           {wrap, 1 << 31, wrap - 1<<31},
		"2^31 behind is ahead":           {wrap + 1<<31 + 1, 0, 2 * wrap},
		"after many wraps, a bit behind": {7*wrap + 100, 90, 7*wrap + 90},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := Unwrap(c.reference, c.n)
			assert.Equal(t, c.want, got)
			assert.True(t, validSequence(got))
		})
	}
	assert.False(t, validSequence(Unwrap(3, math.MaxUint32)), "below 0")
	assert.False(t, validSequence(Unwrap(1<<62, 5)), "above the largest number")
}

func TestNextNeverGoesBack(t *testing.T) {
	var n numbering
	n.Advance(10, 4)
	n.Advance(7, 3)
	assert.EqualValues(t, 10, n.next.Load())
	assert.EqualValues(t, 7, n.received.Load())
}

func TestTheAgentsClockStaysRightWhen32BitsWrap(t *testing.T) {
	start := time.Now()
	c := agentClock{zero: start}
	// Days of silence, as long as 32 bits of milliseconds and longer.
	for _, day := range []int64{0, 20, 49, 50, 99, 100, 1000} {
		want := day*24*3600*1000 + 17
		now := start.Add(time.Duration(want-40) * time.Millisecond)
		got := unwrapTicks(c.expected(now), uint32(want))
		assert.Equal(t, want, got, "day %d", day)
		c.saw(got, now)
	}
}

func TestTheAgentsClockMayBeFasterThanOurs(t *testing.T) {
	c := agentClock{zero: time.Now()}
	now := c.zero
	for want := int64(0); want < 10<<32; want += 1 << 30 {
		got := unwrapTicks(c.expected(now), uint32(want))
		assert.Equal(t, want, got)
		c.saw(got, now)
		now = now.Add(time.Millisecond)
	}
}

func TestATimeBeyondAllBoundsDoesNotChangeTheClock(t *testing.T) {
	c := agentClock{zero: time.Now()}
	c.saw(maxTicks, c.zero)
	c.saw(-maxTicks, c.zero)
	assert.Zero(t, c.expected(c.zero))
}
