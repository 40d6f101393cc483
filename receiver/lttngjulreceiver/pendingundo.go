// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"slices"
	"sync"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// life is an agent in one life of a process: no other process has had the same ID and the
// same start.
type life struct {
	domain  lttngagent.Domain
	pid     uint32
	started uint64 // 0: it is not known whose the agent is
}

// maxLeftovers is how many agents are remembered. Those that come back do so in seconds.
const maxLeftovers = 1024

// maxUndo is how many commands are remembered of one.
const maxUndo = 1024

// leftovers are the commands that leave agents as they were whose connection was lost, and
// which could not be told them. Agents count what is enabled, and the count
// outlives the connection: one that comes back is enabled once more, and at a shutdown it
// is disabled as often. Until then a count of two is as good as one; and where a process
// has two agents of a domain, as with two class loaders, it isn't known which comes back:
// one that is told too much answers that there is nothing to disable.
type leftovers struct {
	mu   sync.Mutex
	undo map[life][]lttngagent.Command
	// order are the lives, the oldest first.
	order []life
}

// keep remembers the commands that leave an agent as it was. Where too many agents are
// remembered, the oldest is forgotten.
func (l *leftovers) keep(of life, undo []lttngagent.Command) {
	if of.started == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.undo == nil {
		l.undo = map[life][]lttngagent.Command{}
	}
	before, again := l.undo[of]
	if !again {
		if len(l.order) == maxLeftovers {
			delete(l.undo, l.order[0])
			l.order = l.order[1:]
		}
		l.order = append(l.order, of)
	}
	undo = slices.Concat(before, undo)
	l.undo[of] = undo[max(0, len(undo)-maxUndo):]
}

// has reports whether something was kept of an agent of a domain with a process ID.
func (l *leftovers) has(domain lttngagent.Domain, pid uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.order, func(o life) bool { return o.domain == domain && o.pid == pid })
}

// take gives what was kept of an agent, and forgets it.
func (l *leftovers) take(of life) []lttngagent.Command {
	l.mu.Lock()
	defer l.mu.Unlock()
	undo, found := l.undo[of]
	if found {
		delete(l.undo, of)
		l.order = slices.DeleteFunc(l.order, func(o life) bool { return o == of })
	}
	return undo
}
