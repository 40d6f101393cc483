// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
)

func TestNumbersThatNoAgentCanCountAreInvalid(t *testing.T) {
	assert.True(t, validSequence(bytefrog.Unwrap(0, 0)))
	assert.True(t, validSequence(callevent.MaxSequence-1))
	assert.False(t, validSequence(bytefrog.Unwrap(3, math.MaxUint32)), "below 0")
	assert.False(t, validSequence(bytefrog.Unwrap(1<<62, 5)), "above the largest number")
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
