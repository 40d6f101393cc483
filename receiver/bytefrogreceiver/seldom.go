// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"sync"
	"time"
)

// seldomPause is the least time between two log lines about the same thing.
const seldomPause = 10 * time.Second

// seldom lets something be said that can happen very often: at once, and then not
// more than every seldomPause. Its zero value has said nothing.
type seldom struct {
	mu    sync.Mutex
	said  time.Time
	count int
}

// say counts that it has happened, and reports whether to say so. Then since is how
// often it has happened since it was said last, this time included.
func (s *seldom) say(now time.Time) (since int, say bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if !s.said.IsZero() && now.Sub(s.said) < seldomPause {
		return 0, false
	}
	since, s.said, s.count = s.count, now, 0
	return since, true
}

// pass counts that it has happened, without a need to say so.
func (s *seldom) pass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
}
