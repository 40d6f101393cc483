// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"sync"
	"time"
)

// suspension is what the receiver has made of an agent's tracing:
//
//	tracing ──ask──► asked ──answer──► suspended
//	   ▲               │                   │
//	   └────release────┴──────release──────┘
//
// The answer to suspend is a data break. An agent must not be released before
// it, unless it never comes.
type suspension struct {
	mu       sync.Mutex
	state    suspensionState
	askedAt  time.Time
	answered chan struct{}
	// at is the number before which the data breaks.
	at uint64
}

type suspensionState uint8

const (
	stateTracing suspensionState = iota
	stateAsked
	stateSuspended
)

// isSuspended reports whether the agent was asked to suspend, and not released.
func (s *suspension) isSuspended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state != stateTracing
}

// ask says that the agent is to suspend. It gives a channel that is closed with
// the answer, and reports whether suspend has to be sent: only once. The agent takes a
// second one for an error, at which it ends tracing for good.
func (s *suspension) ask(now time.Time) (answered <-chan struct{}, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == stateTracing {
		s.state, s.askedAt, s.answered = stateAsked, now, make(chan struct{})
		return s.answered, true
	}
	return s.answered, false
}

// answer says that a data break before the number at has come. One that nobody
// asked for changes nothing.
func (s *suspension) answer(at uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == stateAsked {
		s.state, s.at = stateSuspended, at
		close(s.answered)
	}
}

// brokenAt is the number before which the data breaks, if the answer has come.
func (s *suspension) brokenAt() (at uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at, s.state == stateSuspended
}

// release says that the agent is to trace again, if it was asked to suspend and
// has answered, or has not for the time patience. Then it reports true, and
// whether it had answered.
func (s *suspension) release(now time.Time, patience time.Duration) (released, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answered = s.state == stateSuspended
	if s.state == stateTracing || !answered && now.Sub(s.askedAt) < patience {
		return false, false
	}
	s.state = stateTracing
	return true, answered
}
