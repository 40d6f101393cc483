// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logline

import (
	"sync/atomic"
	"time"
)

// Burst decides which events of a burst get a log line: the first one, until the burst is over. When bursts follow each
// other closely, it allows at most one line in a Pause. Its zero value has no burst. Many goroutines can use it.
type Burst struct {
	// logged: a burst continues, and has a line.
	logged atomic.Bool
	seldom Seldom
}

// Count counts an event of a burst, and reports whether a line is due: once for a burst, and later for a burst that closely
// follows another. Then since is the number of events since the last line, including this one.
func (b *Burst) Count(now time.Time) (since int, due bool) {
	if b.logged.Load() {
		b.seldom.pass()
		return 0, false
	}
	if since, due = b.seldom.Count(now); due {
		b.logged.Store(true)
	}
	return since, due
}

// Over ends the burst, and reports whether it had a line.
func (b *Burst) Over() (wasLogged bool) { return b.logged.Load() && b.logged.Swap(false) }
