// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent

import (
	"maps"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// Stats are figures of an agent, or of several.
type Stats struct {
	// Connections is how many were made. Each begins with a registration, but for the
	// RFC's.
	Connections int
	// Commands is how many commands were answered, or needed no answer, by their type.
	Commands map[lttngagent.CommandType]int
	// Listed is how many names of loggers were sent.
	Listed int
	// Unanswered is how many requests ended the agent's thread, or had it close the
	// connection, as they do with real agents.
	Unanswered int
	// Faults is how often something went wrong on purpose.
	Faults int
	// Handlers is how many programs have made their first handler, and HandlerTimeouts
	// how many of those waited in vain for "registration done". HandlerWait is how long
	// the slowest took.
	Handlers, HandlerTimeouts int
	HandlerWait               time.Duration
}

// Add adds the figures of others.
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

// Answered is how many commands there were of all types.
func (s Stats) Answered() int {
	n := 0
	for _, of := range s.Commands {
		n += of
	}
	return n
}

// Stats returns the figures so far.
func (a *Agent) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stats
	s.Commands = maps.Clone(s.Commands)
	return s
}

func (a *Agent) count(f func(*Stats)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.stats)
}
