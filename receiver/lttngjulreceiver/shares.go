// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import "sync"

// droppedShare is why records of loggers are dropped that have no room beside others.
const droppedShare = "logger_share"

// shares bound the part of the queue that records of loggers use. An agent can have tens of
// thousands of loggers in each list. One agent may use an eighth of the queue for them, all
// agents three quarters. So records of registrations, ends and refusals always have room.
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

// reserve reserves room for an entry, or returns false. Only records of loggers need a
// reservation.
func (s *shares) reserve(entry *logEntry) bool {
	if len(entry.loggers) == 0 {
		return true
	}
	var more amount
	more.records, more.bytes = entry.size()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ofAgent.hasRoom(entry.waiting, more) || !s.ofAll.hasRoom(s.used, more) {
		return false
	}
	entry.waiting.change(more, 1)
	s.used.change(more, 1)
	return true
}

// release frees the reservation of an entry.
func (s *shares) release(entry *logEntry) {
	if len(entry.loggers) == 0 {
		return
	}
	var less amount
	less.records, less.bytes = entry.size()
	s.mu.Lock()
	defer s.mu.Unlock()
	entry.waiting.change(less, -1)
	s.used.change(less, -1)
}
