// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent

import (
	"maps"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// counts is the number of Enable for each pattern or context.
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
