// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"slices"
	"sync"
	"time"
)

// clock is the monotonic time by which events and streams wait. It stands still
//
//   - while the processor refuses, and while a call to the next component takes
//     long: what is missing may be among what is refused, or behind what waits;
//   - while the timers are late: a machine that doesn't get round to them doesn't
//     get round to what is missing either.
//
// It also knows which hand-overs are under way: what has come is not missing,
// however long it takes to be taken.
type clock struct {
	// elapsed is the time since the processor was made.
	elapsed func() time.Duration
	// patience is how long a call to the next component may take, and
	// beatPatience how late the timers may be, before the clock stands.
	patience, beatPatience time.Duration

	mu sync.Mutex
	// refusing: the processor refuses. calls are when the calls to the next
	// component that are under way began, earliest first.
	refusing bool
	calls    underWay
	// beating: the timers are looked at, and beat is when they were last.
	beating bool
	beat    time.Duration
	// arrivals are when the hand-overs under way came, as the clock showed it,
	// earliest first.
	arrivals underWay
	// stopped is the time that the clock stood still, and since when it does
	// now, where standing is true.
	stopped, since time.Duration
	standing       bool
}

// underWay are when those began that have not ended, earliest first.
type underWay []time.Duration

// end takes out one that began then. Which of several is all the same.
func (u *underWay) end(began time.Duration) {
	i := slices.Index(*u, began)
	*u = slices.Delete(*u, i, i+1)
}

func newClock(patience time.Duration) *clock {
	start := time.Now()
	return &clock{patience: patience, beatPatience: 2 * tickInterval, elapsed: func() time.Duration { return time.Since(start) }}
}

func (c *clock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shows()
}

// shows is now, for who has mu.
func (c *clock) shows() time.Duration {
	now := c.elapsed()
	c.settle(now)
	if c.standing {
		now = c.since
	}
	return now - c.stopped
}

// come says that a hand-over has come, and gives what gone wants when all of it
// was taken or refused.
func (c *clock) come() (came time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	came = c.shows()
	c.arrivals = append(c.arrivals, came)
	return came
}

func (c *clock) gone(came time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arrivals.end(came)
}

// takenUntil is the time until which all that had come was taken or refused: now,
// or when the first hand-over came that is under way.
func (c *clock) takenUntil() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.arrivals) > 0 {
		return c.arrivals[0]
	}
	return c.shows()
}

// tick says that the timers are looked at, or from now on no longer.
func (c *clock) tick(again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.elapsed()
	c.settle(now)
	c.beating, c.beat = again, now
	c.settle(now)
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
	c.calls.end(began)
	c.settle(now)
}

// settle stops the clock, or lets it go on, if there is reason to at the time
// now. A call is seen to take long after it began to, and timers to be late after
// they were due, so the clock is stopped in hindsight; nobody was told a later
// time meanwhile.
func (c *clock) settle(now time.Duration) {
	since, still := now, c.refusing
	if len(c.calls) > 0 && now-c.calls[0] > c.patience {
		since, still = c.calls[0]+c.patience, true
	}
	if c.beating && now-c.beat > c.beatPatience {
		since, still = min(since, c.beat+c.beatPatience), true
	}
	switch {
	case still && !c.standing:
		c.since = since
	case !still && c.standing:
		c.stopped += now - c.since
	}
	c.standing = still
}
