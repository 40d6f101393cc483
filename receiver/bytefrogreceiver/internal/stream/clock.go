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

// agentClock makes the 32 bit milliseconds of a run 64 bit ones. The last time
// seen and the time passed here since then say where the agent's clock must be
// now, so that an idle month is no riddle.
type agentClock struct {
	// zero is when start was written: tick 0.
	zero time.Time
	// ahead is by how many ticks the agent's clock was ahead of zero's when a
	// time was seen last.
	ahead atomic.Int64
}

// expected is where the agent's clock is at the time now, in ticks.
func (c *agentClock) expected(now time.Time) int64 {
	return now.Sub(c.zero).Milliseconds() + c.ahead.Load()
}

// saw says that an event of the time ticks came at the time now.
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
