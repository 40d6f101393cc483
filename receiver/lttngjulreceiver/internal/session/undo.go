// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"sync"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// life identifies a process: no other process has the same ID and the same start.
type life struct {
	domain  lttngagent.Domain
	pid     uint32
	started uint64 // 0: unknown
}

// maxPendingUndo bounds the remembered agents. Agents connect again within seconds.
const maxPendingUndo = 1024

// maxUndo bounds the remembered commands of one agent.
const maxUndo = 1024

// pendingUndo are undo commands of agents whose connection closed before they were sent.
// Agents count how often a logger is enabled, and the count outlives the connection. An
// agent that connects again is enabled once more, so at the shutdown it needs its earlier
// undo commands too. If a process has two agents of a domain, the receiver can't tell which
// one connects again. An agent answers a superfluous undo command with an error, which does
// no harm.
type pendingUndo struct {
	mu       sync.Mutex
	commands map[life][]lttngagent.Command
	// order has the processes, the oldest first.
	order []life
}

// add remembers undo commands of a process. The oldest process is evicted.
func (l *pendingUndo) add(of life, undo []lttngagent.Command) {
	if of.started == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.commands == nil {
		l.commands = map[life][]lttngagent.Command{}
	}
	before, again := l.commands[of]
	if !again {
		if len(l.order) == maxPendingUndo {
			delete(l.commands, l.order[0])
			l.order = l.order[1:]
		}
		l.order = append(l.order, of)
	}
	undo = slices.Concat(before, undo)
	l.commands[of] = undo[max(0, len(undo)-maxUndo):]
}

// has reports whether there are commands for an agent of a domain with a process ID.
func (l *pendingUndo) has(domain lttngagent.Domain, pid uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.order, func(o life) bool { return o.domain == domain && o.pid == pid })
}

// remove returns the undo commands of a process, and forgets them.
func (l *pendingUndo) remove(of life) []lttngagent.Command {
	l.mu.Lock()
	defer l.mu.Unlock()
	undo, found := l.commands[of]
	if found {
		delete(l.commands, of)
		l.order = slices.DeleteFunc(l.order, func(o life) bool { return o == of })
	}
	return undo
}

// undoOf returns the command that undoes a command; nil: nothing has to be undone.
func undoOf(command lttngagent.Command) lttngagent.Command {
	switch c := command.(type) {
	case lttngagent.Enable:
		return lttngagent.Disable{Logger: c.Logger}
	case lttngagent.EnableContext:
		return lttngagent.DisableContext(c)
	default:
		return nil
	}
}
