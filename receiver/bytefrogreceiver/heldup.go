// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"sync/atomic"
	"time"
)

const (
	// leastHoldUp is how long a connection must be held up to hold up its agent too: sockets hold
	// the data of a shorter time.
	leastHoldUp = 50 * time.Millisecond
	// maxRecovery is how many times name_wait events wait, at most, for names of an agent that is
	// held up again and again.
	maxRecovery = 10
)

// holdUp is when a connection of a run was last held up: its pipeline refused, or it waited for
// another connection. It is for many goroutines.
type holdUp struct{ end atomic.Int64 }

// ended notes the end of a hold-up, if it was long.
func (h *holdUp) ended(began, now time.Time) {
	if now.Sub(began) >= leastHoldUp {
		h.end.Store(now.UnixNano())
	}
}

// isRecovering reports whether the agent may still have names to send that were sent before asked.
// A program that was held up by full sockets needs a processor before it sends the rest, so an
// empty socket alone proves nothing.
func (r *run) isRecovering(asked, now time.Time) bool {
	wait := r.env.config.NameWait
	return now.Sub(time.Unix(0, r.heldUp.end.Load())) < wait && now.Sub(asked) < maxRecovery*wait
}
