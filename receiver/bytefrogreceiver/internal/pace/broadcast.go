// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"sync"
	"sync/atomic"
)

// Broadcast wakes goroutines that wait for a condition, for many goroutines. A goroutine that
// waits calls Begin, then in a loop Next, checks its condition, and waits for the channel of Next.
// A goroutine that changes the condition calls Wake afterwards: it costs one atomic read while
// none waits. The zero value is ready.
type Broadcast struct {
	waiting atomic.Int32
	mu      sync.Mutex
	next    chan struct{}
}

// Begin registers a goroutine that waits, until end is called.
func (b *Broadcast) Begin() (end func()) {
	b.waiting.Add(1)
	return func() { b.waiting.Add(-1) }
}

// Next is closed by the next Wake.
func (b *Broadcast) Next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

// Wake wakes all goroutines that wait.
func (b *Broadcast) Wake() {
	if b.waiting.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}
