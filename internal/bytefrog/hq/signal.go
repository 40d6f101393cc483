// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package hq

import "sync/atomic"

// Signal wakes goroutines that wait for something to change. It is safe for concurrent use. Notify costs one atomic
// load while no goroutine waits. The zero value is ready.
type Signal struct {
	waiting atomic.Pointer[chan struct{}]
}

// Next returns a channel that the next Notify closes. A goroutine calls Next first, then checks its condition, and then
// waits. So it misses no change.
func (s *Signal) Next() <-chan struct{} {
	if waiting := s.waiting.Load(); waiting != nil {
		return *waiting
	}
	fresh := make(chan struct{})
	for !s.waiting.CompareAndSwap(nil, &fresh) {
		if waiting := s.waiting.Load(); waiting != nil {
			return *waiting
		}
	}
	return fresh
}

// Notify wakes all goroutines that wait.
func (s *Signal) Notify() {
	if s.waiting.Load() == nil {
		return
	}
	if waiting := s.waiting.Swap(nil); waiting != nil {
		close(*waiting)
	}
}
