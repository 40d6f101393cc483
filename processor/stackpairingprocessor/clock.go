// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"sync"
	"time"
)

// clock is the monotonic time by which events and streams wait. It stands still
// while the processor refuses: what is missing may be among the refused.
type clock struct {
	mu sync.Mutex
	// elapsed is the time since the processor was made.
	elapsed func() time.Duration
	// stopped is the time that the clock stood still, and since when it does
	// now, where standing is true.
	stopped, since time.Duration
	standing       bool
}

func newClock() *clock {
	start := time.Now()
	return &clock{elapsed: func() time.Duration { return time.Since(start) }}
}

func (c *clock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.standing {
		return c.since - c.stopped
	}
	return c.elapsed() - c.stopped
}

// refuse stops the clock, or lets it go on. Both can be said twice.
func (c *clock) refuse(still bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch now := c.elapsed(); {
	case still && !c.standing:
		c.since = now
	case !still && c.standing:
		c.stopped += now - c.since
	}
	c.standing = still
}
