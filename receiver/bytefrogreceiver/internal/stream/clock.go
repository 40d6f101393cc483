// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"sync/atomic"
	"time"
)

// tick is the resolution of an agent's clock.
const tick = time.Millisecond

// maxTicks bounds times to 69 years from the start, so calculations in nanoseconds do not overflow.
const maxTicks = 1 << 41

// agentClock makes the 32 bit milliseconds of a run 64 bits long. It derives the agent's time from the last received
// time and the time since its receipt, so a silent month does no harm.
type agentClock struct {
	// zero is the time at which the receiver wrote start: tick 0.
	zero time.Time
	// ahead is the number of ticks by which the agent's clock was ahead when the last time arrived.
	ahead atomic.Int64
}

// expected is the expected time of the agent's clock at the time now, in ticks.
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
