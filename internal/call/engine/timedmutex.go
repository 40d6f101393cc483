// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync"
	"sync/atomic"
	"time"
)

// timedMutex is a [sync.Mutex] that a caller can stop waiting for. Locks without such a wait cost one atomic load more
// than a sync.Mutex.
type timedMutex struct {
	mu sync.Mutex
	// waiting is the number of callers in lockWithin. freed has an element after an unlock that had to wake one.
	waiting atomic.Int32
	freed   chan struct{}
}

func newTimedMutex() timedMutex { return timedMutex{freed: make(chan struct{}, 1)} }

// Lock locks the mutex.
func (m *timedMutex) Lock() { m.mu.Lock() }

// Unlock unlocks the mutex, which is locked.
func (m *timedMutex) Unlock() {
	m.mu.Unlock()
	if m.waiting.Load() > 0 {
		select {
		case m.freed <- struct{}{}:
		default: // a caller of lockWithin has not seen the last one yet, and will try again
		}
	}
}

// lockWithin locks the mutex, unless it stays locked for the given time. It reports whether it did. A caller that finds
// the mutex locked has announced itself before, so the next unlock wakes it.
func (m *timedMutex) lockWithin(patience time.Duration) bool {
	m.waiting.Add(1)
	defer m.waiting.Add(-1)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for !m.mu.TryLock() {
		select {
		case <-m.freed:
		case <-timer.C:
			return false
		}
	}
	return true
}
