// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// queuedCommand is a command for an agent.
type queuedCommand struct {
	command lttngagent.Command
	// caller is the context of the caller that waits for the answer; nil: no caller waits.
	caller context.Context
	// answered receives the answer, if a caller waits. It has a buffer for it.
	answered chan<- Answer
}

// isWanted reports whether the command has no caller, or a caller that still waits.
func (c *queuedCommand) isWanted() bool { return c.caller == nil || c.caller.Err() == nil }

// answer sends the answer to the caller.
func (c *queuedCommand) answer(a Answer) {
	if c.answered != nil {
		c.answered <- a
	}
}

// commandQueue has the commands for an agent. Any goroutine queues commands; the session's goroutine removes them.
type commandQueue struct {
	mu      sync.Mutex
	waiting []queuedCommand
	// closed: the receiver disconnects from the agent, and accepts no commands.
	closed bool
}

// queue queues commands, and returns false if the queue is closed. It removes commands whose callers are gone, because they
// would pile up for a silent agent.
func (q *commandQueue) queue(more ...queuedCommand) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.waiting = append(slices.DeleteFunc(q.waiting, func(w queuedCommand) bool { return !w.isWanted() }), more...)
	return true
}

// close answers all queued commands, and closes the queue.
func (q *commandQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.waiting {
		q.waiting[i].answer(Answer{Result: NoAnswer, Err: ErrNotSent})
	}
	q.closed, q.waiting = true, nil
}

// next returns the next wanted command. Its field command is nil if there is none now; over: there will be none.
func (q *commandQueue) next() (next queuedCommand, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) > 0 {
		next, q.waiting = q.waiting[0], q.waiting[1:]
		if next.isWanted() {
			return next, false
		}
	}
	return queuedCommand{}, q.closed
}

// ErrNotSent: the session ended before the command was sent.
var ErrNotSent = errors.New("the command was not sent")
