// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync/atomic"
	"time"
)

const (
	// leastHoldUp is the shortest hold-up of a connection that holds up its agent too: sockets hold
	// the data of a shorter time.
	leastHoldUp = 50 * time.Millisecond
	// maxRecovery bounds how long events wait for names of an agent that is held up again and again,
	// as a multiple of name_wait.
	maxRecovery = 10
)

// holdUp is when a connection of a run was last held up: its pipeline refused, or it waited for
// another connection. It is for many goroutines.
type holdUp struct {
	nameWait time.Duration
	end      atomic.Int64
}

// ended notes the end of a hold-up, if it was long.
func (h *holdUp) ended(began, now time.Time) {
	if now.Sub(began) >= leastHoldUp {
		h.end.Store(now.UnixNano())
	}
}

// recovered returns until when the agent may still have names to send that it had before asked. A
// program that was held up by full sockets needs a processor before it sends the rest, so an empty
// socket alone proves nothing.
func (h *holdUp) recovered(asked time.Time) time.Time {
	end, most := time.Unix(0, h.end.Load()).Add(h.nameWait), asked.Add(maxRecovery*h.nameWait)
	if most.Before(end) {
		return most
	}
	return end
}
