// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import "math"

// beforeAll is earlier than every event.
const beforeAll = math.MinInt64 / 2

// clock gives the events of a stream times that strictly increase: rule 7. The time by which missing
// numbers wait is another one: callers pass it as now.
type clock struct {
	// now is the time of the last event, in Unix nanoseconds, or beforeAll.
	now int64
	// offset is the correction of the source's clock since its last jump, in nanoseconds.
	offset int64
}

// tick advances the clock to the event. It returns false, and changes nothing, if the
// event's time is more than maxJump ahead of its receipt or behind the last event.
func (c *clock) tick(e *event, maxJump int64) bool {
	t := e.time + c.offset
	// A difference of times may not fit into 63 bits.
	behind := t < c.now && uint64(c.now-t) > uint64(maxJump)
	if behind || e.ahead && t-e.received() > maxJump {
		return false
	}
	c.now = max(t, c.now+1)
	return true
}

// reset sets the clock to the event after a jump. A time that is too far ahead becomes the
// time of receipt. Any other time is correct as it is.
func (c *clock) reset(e *event) {
	c.offset = 0
	if e.ahead {
		c.offset = e.received() - e.time
	}
	c.now = e.time + c.offset
}

// earliest is the time, by the source's clock, that is margin before the last event.
func (c *clock) earliest(margin int64) int64 {
	if c.now < margin {
		return beforeAll
	}
	return c.now - margin - c.offset
}
