// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package backoff says how long to pause before something that failed is tried again.
// It knows no clock: whoever tries waits.
package backoff

import (
	"math/rand/v2"
	"time"
)

// Config are the bounds of pauses. Both have to be above 0, and MaxInterval not below
// InitialInterval.
type Config struct {
	InitialInterval time.Duration
	MaxInterval     time.Duration
}

// Backoff is the pauses between tries: longer from try to try, and not everywhere the
// same. It is for one goroutine.
type Backoff struct {
	config Config
	// next is what the next pause is by its middle; 0: config.InitialInterval.
	next time.Duration
}

// New is a back-off of which no try has failed yet.
func New(config Config) *Backoff { return &Backoff{config: config} }

// Pause is how long to pause after another try that failed. It is between half and one
// and a half of what doubles from InitialInterval on, by chance, so that those who
// failed together don't come back together; and never more than MaxInterval.
func (b *Backoff) Pause() time.Duration {
	pause := max(b.next, b.config.InitialInterval)
	b.next = min(2*pause, b.config.MaxInterval)
	return min(pause/2+rand.N(pause), b.config.MaxInterval)
}

// Reset says that a try succeeded: the next pause is the first again.
func (b *Backoff) Reset() { b.next = 0 }
