// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import "sync"

// signs are those that an agent gives of what it does: heartbeats and data breaks. Where
// nobody waits for one it costs nothing.
type signs struct {
	mu      sync.Mutex
	waiting chan struct{}
}

// next is closed with the next sign.
func (s *signs) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = make(chan struct{})
	}
	return s.waiting
}

// give says that there is one.
func (s *signs) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting != nil {
		close(s.waiting)
		s.waiting = nil
	}
}
