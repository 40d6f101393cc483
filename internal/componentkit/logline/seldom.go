// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package logline decides which of many equal events get a log line. It has no logger and no clock.
package logline

import (
	"sync"
	"time"
)

// Pause is the least time between two lines about equal events.
const Pause = 10 * time.Second

// Seldom decides which of many equal events get a log line: the first Most events, and then Most in each Pause. Its zero
// value has had no event. Many goroutines can use it.
type Seldom struct {
	// Most bounds the lines in each Pause; 0: one.
	Most int

	mu sync.Mutex
	// logged is the time of the first line of this Pause.
	logged       time.Time
	lines, count int
}

// Count counts an event, and reports whether a line is due. Then since is the number of events since the last line, including
// this one.
func (s *Seldom) Count(now time.Time) (since int, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if s.logged.IsZero() || now.Sub(s.logged) >= Pause {
		s.logged, s.lines = now, 0
	}
	if s.lines >= max(s.Most, 1) {
		return 0, false
	}
	s.lines++
	since, s.count = s.count, 0
	return since, true
}

// pass counts an event without a line.
func (s *Seldom) pass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
}
