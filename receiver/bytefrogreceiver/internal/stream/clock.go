// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"sync/atomic"
	"time"
)

// tick is the resolution of an agent's clock.
const tick = time.Millisecond

// maxTicks bounds times to 69 years from the start: far enough for everything
// that is computed with them in nanoseconds not to overflow.
const maxTicks = 1 << 41

// agentClock makes the 32 bit milliseconds of a run 64 bits long. It derives the agent's time from the
// last time received and the time that has passed here since, so a silent month does no harm.
type agentClock struct {
	// zero is when start was written: tick 0.
	zero time.Time
	// ahead is by how many ticks the agent's clock was ahead when the last time arrived.
	ahead atomic.Int64
}

// expected is where the agent's clock is at the time now, in ticks.
func (c *agentClock) expected(now time.Time) int64 {
	return now.Sub(c.zero).Milliseconds() + c.ahead.Load()
}

// saw notes that an event of the time ticks arrived at the time now.
func (c *agentClock) saw(ticks int64, now time.Time) {
	if ticks > -maxTicks && ticks < maxTicks {
		c.ahead.Store(ticks - now.Sub(c.zero).Milliseconds())
	}
}

// time is the time of a tick, at most maxTicks from the start.
func (c *agentClock) time(ticks int64) time.Time {
	return c.zero.Add(time.Duration(min(max(ticks, -maxTicks), maxTicks)) * tick)
}

// unwrapTicks is the time nearest to reference that ends in t.
func unwrapTicks(reference int64, t uint32) int64 {
	return reference + int64(int32(t-uint32(reference)))
}
