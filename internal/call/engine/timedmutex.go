// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

// timedMutex is a lock that a caller can stop waiting for. sync.Mutex has no such wait.
type timedMutex chan struct{}

func newTimedMutex() timedMutex { return make(timedMutex, 1) }

// Lock locks the mutex.
func (m timedMutex) Lock() { m <- struct{}{} }

// Unlock unlocks the mutex, which is locked.
func (m timedMutex) Unlock() { <-m }

// lockWithin locks the mutex, unless it stays locked for the given time. It reports whether it did.
func (m timedMutex) lockWithin(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case m <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}
