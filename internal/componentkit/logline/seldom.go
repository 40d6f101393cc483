// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package logline decides which of the things that can happen very often are worth a
// line in the log. It knows no logger and no clock.
package logline

import (
	"sync"
	"time"
)

// Pause is the least time between two lines about the same thing.
const Pause = 10 * time.Second

// Seldom lets something be said that can happen very often: at once, and then not more
// than every Pause. Its zero value has said nothing. It is for many goroutines.
type Seldom struct {
	// Most is how often it is said at once, and in each Pause; 0: once.
	Most int

	mu sync.Mutex
	// said is when the lines of this Pause began.
	said         time.Time
	lines, count int
}

// Say counts that it has happened, and reports whether to say so. Then since is how
// often it has happened since it was said last, this time included.
func (s *Seldom) Say(now time.Time) (since int, say bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if s.said.IsZero() || now.Sub(s.said) >= Pause {
		s.said, s.lines = now, 0
	}
	if s.lines >= max(s.Most, 1) {
		return 0, false
	}
	s.lines++
	since, s.count = s.count, 0
	return since, true
}

// pass counts that it has happened, without a need to say so.
func (s *Seldom) pass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
}
