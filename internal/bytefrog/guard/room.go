// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"math"
	"time"
)

// room is how many bytes may wait for one connection to a collector before the agent's is
// not read:
//
//	what happens                               what may wait
//	the collector takes what comes             queue
//	the program has waited for long enough     what waits then, and rise more
//	the collector takes n bytes                less by n/recession, down to queue,
//	                                           and at most rise more than what waits then
//	nothing waits any more                     queue
//
// What is read beyond the queue goes down slower than the collector takes: so the agent is
// read at half of that speed, and not held up until it has caught up. A collector that has
// caught up has all of the room again: otherwise the next moment in which it takes nothing
// would begin near the suspension that the last one ended in.
type room struct {
	queue, rise int64
	// level is how many bytes may wait beyond the queue's, or 0.
	level int64
}

// recession is which part of what a collector takes is not read for it.
const recession = 2

// riseBytes is how much is read of a connection for which the program has waited for long
// enough, so that the agent's side notices. Its system lets it send on when a third of its
// buffer is free, which on loopback is a good megabyte.
const riseBytes = 2 * mib

// isLeft reports whether the agent is read while so many bytes wait.
func (r *room) isLeft(waiting int64) bool { return waiting <= max(r.queue, r.level) }

// grow has more be read though so many bytes wait.
func (r *room) grow(waiting int64) { r.level = waiting + r.rise }

// shrink says that the collector took n bytes, and that so many wait now.
func (r *room) shrink(n, waiting int64) {
	if waiting == 0 {
		r.level = 0
		return
	}
	r.level = min(r.level-min(r.level, n/recession), waiting+r.rise)
}

// allowance is for how long an agent's connection may still not be read: for perSecond of
// each second. What was not used up is kept for one second.
type allowance struct {
	perSecond time.Duration
	// left is what was left at a time.
	left time.Duration
	at   time.Time
}

func newAllowance(perSecond time.Duration) allowance {
	return allowance{perSecond: perSecond, left: perSecond}
}

// have gives what is left at a time.
func (a *allowance) have(now time.Time) time.Duration {
	if a.perSecond >= time.Second {
		return math.MaxInt64
	}
	passed := min(now.Sub(a.at), time.Second)
	a.left = min(a.perSecond, a.left+passed*a.perSecond/time.Second)
	a.at = now
	return a.left
}

// spend says that a wait which began at a time is over.
func (a *allowance) spend(began, now time.Time) {
	if a.perSecond < time.Second {
		a.left = max(0, a.have(now)-now.Sub(began))
	}
}
