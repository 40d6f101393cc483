// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logline

import (
	"sync/atomic"
	"time"
)

// Burst lets something be said once that happens many times on end, until it is over;
// and seldom when bursts follow each other closely. Its zero value is no burst. It is
// for many goroutines.
type Burst struct {
	// said says that a burst goes on and was said.
	said   atomic.Bool
	seldom Seldom
}

// Say counts one of a burst and reports whether to say so: once for a burst, and not at
// once for one that follows another closely. Then since is how often it has happened
// since it was said last, this time included.
func (b *Burst) Say(now time.Time) (since int, say bool) {
	if b.said.Load() {
		b.seldom.pass()
		return 0, false
	}
	if since, say = b.seldom.Say(now); say {
		b.said.Store(true)
	}
	return since, say
}

// Over ends a burst, if one goes on, and reports whether that was said.
func (b *Burst) Over() (wasSaid bool) { return b.said.Load() && b.said.Swap(false) }
