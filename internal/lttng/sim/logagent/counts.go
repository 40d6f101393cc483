// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent

import (
	"maps"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// counts is how often each pattern or context is enabled.
type counts map[string]int

func (c counts) enable(key string) lttngagent.Code {
	c[key]++
	return lttngagent.Success
}

func (c counts) disable(key string) lttngagent.Code {
	if c[key] == 0 {
		return lttngagent.UnknownName
	}
	if c[key]--; c[key] == 0 {
		delete(c, key)
	}
	return lttngagent.Success
}

// pythonKey is what Python's agent counts by: it has one count for all, and traces
// either all loggers or none.
const pythonKey = "*"

// switchLogger obeys Enable and Disable.
func (a *Agent) switchLogger(p lttngagent.Pattern, change func(counts, string) lttngagent.Code) lttngagent.Code {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.options.Domain == lttngagent.Python {
		change(a.enabled, pythonKey) // whatever comes of it
		return lttngagent.Success
	}
	return change(a.enabled, p.String())
}

func (a *Agent) switchContext(c lttngagent.Context, change func(counts, string) lttngagent.Code) lttngagent.Code {
	a.mu.Lock()
	defer a.mu.Unlock()
	return change(a.contexts, c.String())
}

// Enabled is how often each pattern is enabled; in Python all are one, "*".
func (a *Agent) Enabled() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.enabled)
}

// Contexts is how often each context is enabled.
func (a *Agent) Contexts() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.contexts)
}
