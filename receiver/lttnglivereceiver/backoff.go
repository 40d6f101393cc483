// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"math/rand/v2"
	"time"
)

// backoff says how long to pause before something is tried again: longer from try to
// try, and not everywhere the same.
type backoff struct {
	RetryConfig
	next time.Duration
}

// pause is the next pause.
func (b *backoff) pause() time.Duration {
	pause := max(b.next, b.InitialInterval)
	b.next = min(2*pause, b.MaxInterval)
	return min(pause/2+rand.N(pause), b.MaxInterval)
}

// reset says that a try succeeded.
func (b *backoff) reset() { b.next = 0 }
