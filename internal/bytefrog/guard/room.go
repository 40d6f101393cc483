// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"math"
	"time"
)

// room bounds the bytes that wait for one connection to a collector. Beyond it the agent's connection is not read:
//
//	event                                      bytes that may wait
//	the collector reads all data in time       queue
//	the program has waited for long enough     the waiting bytes, and rise more
//	the collector reads n bytes                less by n/recession, down to queue,
//	                                           and at most rise more than the waiting bytes
//	no data waits any more                     queue
//	the agent gets suspend                     the waiting bytes, and rise more
//	the agent answers suspend                  all
//
// Beyond the queue the room shrinks slower than the collector reads. So the agent is read at half of that speed, and
// does not stop until the collector has caught up. A collector that has caught up has the whole room again. Otherwise
// the next short stop of the collector would soon suspend the agent.
type room struct {
	queue, rise int64
	// level is how many bytes may wait beyond the queue's, or 0.
	level int64
}

// recession: for n bytes that the collector reads, the room shrinks by n/recession.
const recession = 2

// riseBytes is the additional room for a connection after the program has waited for long enough. It is large enough to
// free the agent: its system lets it send when a third of the buffer is free, which on loopback is more than a
// megabyte.
const riseBytes = 2 * mib

// isLeft reports whether the agent is read while so many bytes wait.
func (r *room) isLeft(waiting int64) bool { return waiting <= max(r.queue, r.level) }

// grow makes room for rise more bytes than those that wait.
func (r *room) grow(waiting int64) { r.level = waiting + r.rise }

// shrink reduces the room after the collector has read n bytes.
func (r *room) shrink(n, waiting int64) {
	if waiting == 0 {
		r.level = 0
		return
	}
	r.level = min(r.level-min(r.level, n/recession), waiting+r.rise)
}

// allowance is the time for which an agent's connection may still stay unread: perSecond of each second. Unused time
// stays for one second.
type allowance struct {
	perSecond time.Duration
	// left is the remaining time at the time at.
	left time.Duration
	at   time.Time
}

func newAllowance(perSecond time.Duration) allowance {
	return allowance{perSecond: perSecond, left: perSecond}
}

// have returns the remaining time.
func (a *allowance) have(now time.Time) time.Duration {
	if a.perSecond >= time.Second {
		return math.MaxInt64
	}
	passed := min(now.Sub(a.at), time.Second)
	a.left = min(a.perSecond, a.left+passed*a.perSecond/time.Second)
	a.at = now
	return a.left
}

// spend subtracts a wait.
func (a *allowance) spend(began, now time.Time) {
	if a.perSecond < time.Second {
		a.left = max(0, a.have(now)-now.Sub(began))
	}
}
