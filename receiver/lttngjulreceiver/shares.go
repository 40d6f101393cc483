// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import "sync"

// droppedShare is why records of loggers are dropped that have no room beside others.
const droppedShare = "logger_share"

// shares bound what of the queue of log records waits there for the loggers: an agent can
// have tens of thousands, and others with every list. One agent can have an eighth of the
// queue with them, and all together three quarters: so the others' have room, and it is
// said in any case which agents come and go and what they refuse.
type shares struct {
	ofAgent, ofAll amount

	mu   sync.Mutex
	used amount
}

func newShares(limits *LimitsConfig) *shares {
	records, bytes := limits.MaxQueuedLogs, limits.MaxQueuedLogBytes
	return &shares{
		ofAgent: amount{records / 8, bytes / 8},
		ofAll:   amount{records - records/4, bytes - bytes/4},
	}
}

// take reports whether an entry has room, and notes that it has. All but those of loggers
// have.
func (s *shares) take(entry *logEntry) bool {
	if len(entry.loggers) == 0 {
		return true
	}
	var more amount
	more.records, more.bytes = entry.size()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ofAgent.holds(entry.waiting, more) || !s.ofAll.holds(s.used, more) {
		return false
	}
	entry.waiting.add(more, 1)
	s.used.add(more, 1)
	return true
}

// give notes that an entry no longer waits.
func (s *shares) give(entry *logEntry) {
	if len(entry.loggers) == 0 {
		return
	}
	var less amount
	less.records, less.bytes = entry.size()
	s.mu.Lock()
	defer s.mu.Unlock()
	entry.waiting.add(less, -1)
	s.used.add(less, -1)
}
