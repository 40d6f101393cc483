// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent

import (
	"maps"
	"slices"
	"sync"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// Agent is the agent of one logging library in one program. Several goroutines may call its methods.
type Agent struct {
	options Options
	// released is closed by the first "registration done".
	released chan struct{}
	release  sync.Once

	mu       sync.Mutex
	loggers  []string
	enabled  counts
	contexts counts
	faults   int // number of connections with a fault
	stats    Stats
}

// New returns an agent.
func New(o Options) *Agent {
	return &Agent{
		options: o.withDefaults(), released: make(chan struct{}),
		enabled: counts{}, contexts: counts{},
		stats: Stats{Commands: map[lttngagent.CommandType]int{}},
	}
}

// Attach adds loggers with the agent's handler to the program.
func (a *Agent) Attach(names ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loggers = append(a.loggers, names...)
}

// Detach removes loggers.
func (a *Agent) Detach(names ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loggers = slices.DeleteFunc(a.loggers, func(name string) bool { return slices.Contains(names, name) })
}

// Loggers returns the names of the program's loggers, in the order of the list. There are none before the program's
// first handler exists.
func (a *Agent) Loggers() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.loggers)
}

// appendReply executes a command and appends its reply. It also returns the number of names in it.
func (a *Agent) appendReply(b []byte, command lttngagent.Command) (reply []byte, listed int) {
	switch c := command.(type) {
	case lttngagent.List:
		names := a.Loggers()
		return lttngagent.ListReply{Code: lttngagent.Success, Loggers: names}.AppendTo(b, a.options.Dialect), len(names)
	case lttngagent.Enable:
		return a.switchLogger(c.Logger, counts.enable).AppendTo(b), 0
	case lttngagent.Disable:
		return a.switchLogger(c.Logger, counts.disable).AppendTo(b), 0
	case lttngagent.EnableContext:
		return a.switchContext(c.Context, counts.enable).AppendTo(b), 0
	case lttngagent.DisableContext:
		return a.switchContext(c.Context, counts.disable).AppendTo(b), 0
	default:
		return lttngagent.Invalid.AppendTo(b), 0
	}
}

// pythonKey is the only key of Python's agent, which has one count for all and traces either all loggers or none.
const pythonKey = "*"

// switchLogger executes Enable and Disable.
func (a *Agent) switchLogger(p lttngagent.Pattern, change func(counts, string) lttngagent.Code) lttngagent.Code {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.options.Domain == lttngagent.Python {
		change(a.enabled, pythonKey) // with any result
		return lttngagent.Success
	}
	return change(a.enabled, p.String())
}

func (a *Agent) switchContext(c lttngagent.Context, change func(counts, string) lttngagent.Code) lttngagent.Code {
	a.mu.Lock()
	defer a.mu.Unlock()
	return change(a.contexts, c.String())
}

// Enabled returns the number of Enable for each pattern. In Python the only key is "*".
func (a *Agent) Enabled() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.enabled)
}

// Contexts returns the number of EnableContext for each context.
func (a *Agent) Contexts() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.contexts)
}

func (a *Agent) answered(command lttngagent.Command, listed int) {
	a.count(func(s *Stats) {
		s.Commands[command.Type()]++
		s.Listed += listed
	})
}

// Stats returns the current counters.
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
