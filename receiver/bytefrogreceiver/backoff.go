// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"math/rand/v2"
	"sync"
	"time"
)

// backoff is the one pause of all connections of a run that the pipeline refused.
// They try again together, and at once when it accepts what any of them hands on:
// what one delivers would else wait in stack_pairing for the numbers of another that
// still sleeps, until they are given up. A batch that was not refused yet does not
// wait: it may be just the one that stack_pairing needs to have room for the others.
type backoff struct {
	retry RetryConfig

	mu sync.Mutex
	// next is how long the next pause is; 0: retry.InitialInterval.
	next time.Duration
	// over is closed when the pause is over that goes on; nil: none does.
	over  chan struct{}
	timer *time.Timer
}

// refused says that the pipeline refused a batch, and gives what is closed when it is
// to be tried again.
func (b *backoff) refused() (again <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over != nil {
		return b.over
	}
	pause := max(b.next, b.retry.InitialInterval)
	b.next = min(2*pause, b.retry.MaxInterval)
	over := make(chan struct{})
	b.over = over
	// Between half of the pause and one and a half: runs that were refused together
	// don't come back together.
	b.timer = time.AfterFunc(min(pause/2+rand.N(pause), b.retry.MaxInterval), func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.end(over)
	})
	return over
}

// accepted says that the pipeline accepted a batch.
func (b *backoff) accepted() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = 0
	if b.over != nil {
		b.timer.Stop()
		b.end(b.over)
	}
}

// end ends a pause, unless it is over.
func (b *backoff) end(pause chan struct{}) {
	if b.over == pause {
		close(pause)
		b.over = nil
	}
}
