// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent

import (
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// Stats are the counters of one or more agents.
type Stats struct {
	// Connections is the number of connections. Each begins with a registration, except with the RFC.
	Connections int
	// Commands is the number of processed commands by type.
	Commands map[lttngagent.CommandType]int
	// Listed is the number of names of loggers that were sent.
	Listed int
	// Unanswered is the number of requests that ended the agent's thread or its connection, as with real agents.
	Unanswered int
	// Faults is the number of simulated faults.
	Faults int
	// Handlers is the number of programs with a first handler. HandlerTimeouts is the number of those that waited for
	// "registration done" until the time-out. HandlerWait is the longest wait.
	Handlers, HandlerTimeouts int
	HandlerWait               time.Duration
}

// Add adds other counters.
func (s *Stats) Add(o Stats) {
	s.Connections += o.Connections
	if s.Commands == nil {
		s.Commands = map[lttngagent.CommandType]int{}
	}
	for command, n := range o.Commands {
		s.Commands[command] += n
	}
	s.Listed += o.Listed
	s.Unanswered += o.Unanswered
	s.Faults += o.Faults
	s.Handlers += o.Handlers
	s.HandlerTimeouts += o.HandlerTimeouts
	s.HandlerWait = max(s.HandlerWait, o.HandlerWait)
}

// Answered returns the number of processed commands of all types.
func (s Stats) Answered() int {
	n := 0
	for _, of := range s.Commands {
		n += of
	}
	return n
}
