// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"slices"
	"sync"
	"time"
)

// clock is the monotonic time by which events and streams wait. It stands still
// while the processor refuses, and while a call to the next component takes
// long: what is missing may be among what is refused, or behind what waits.
type clock struct {
	// elapsed is the time since the processor was made.
	elapsed func() time.Duration
	// patience is how long a call to the next component may take before the
	// clock stands.
	patience time.Duration

	mu sync.Mutex
	// refusing: the processor refuses. calls are when the calls to the next
	// component that are under way began, earliest first.
	refusing bool
	calls    []time.Duration
	// stopped is the time that the clock stood still, and since when it does
	// now, where standing is true.
	stopped, since time.Duration
	standing       bool
}

func newClock(patience time.Duration) *clock {
	start := time.Now()
	return &clock{patience: patience, elapsed: func() time.Duration { return time.Since(start) }}
}

func (c *clock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.elapsed()
	c.settle(now)
	if c.standing {
		now = c.since
	}
	return now - c.stopped
}

// refuse says that the processor refuses, or no longer does. Both can be said
// twice.
func (c *clock) refuse(refusing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.elapsed()
	c.settle(now)
	c.refusing = refusing
	c.settle(now)
}

// begin says that a call to the next component begins, and gives what end wants
// when it has ended.
func (c *clock) begin() (began time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	began = c.elapsed()
	c.calls = append(c.calls, began)
	return began
}

func (c *clock) end(began time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.elapsed()
	c.settle(now)
	i := slices.Index(c.calls, began)
	c.calls = slices.Delete(c.calls, i, i+1)
	c.settle(now)
}

// settle stops the clock, or lets it go on, if there is reason to at the time
// now. A call is seen to take long after it began to, so the clock is stopped
// in hindsight; nobody was told a later time meanwhile.
func (c *clock) settle(now time.Duration) {
	overdue := len(c.calls) > 0 && now-c.calls[0] > c.patience
	still := c.refusing || overdue
	switch {
	case still && !c.standing:
		c.since = now
		if overdue {
			c.since = c.calls[0] + c.patience
		}
	case !still && c.standing:
		c.stopped += now - c.since
	}
	c.standing = still
}
