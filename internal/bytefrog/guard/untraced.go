// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"sync"
	"sync/atomic"
	"time"
)

// untraced counts for how long an agent is suspended for reasons of the guard's own.
type untraced struct {
	// total has the time of all agents, in nanoseconds.
	total *atomic.Int64

	mu sync.Mutex
	// since is the time up to which total counts; zero: the guard has no reason to suspend the agent.
	since time.Time
}

// set stores whether the guard has a reason.
func (u *untraced) set(suspended bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	u.addTo(now)
	if suspended {
		u.since = now
	} else {
		u.since = time.Time{}
	}
}

// count brings total up to now.
func (u *untraced) count() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.addTo(time.Now())
}

// addTo adds the time up to now. The caller holds the lock.
func (u *untraced) addTo(now time.Time) {
	if !u.since.IsZero() {
		u.total.Add(int64(now.Sub(u.since)))
		u.since = now
	}
}
