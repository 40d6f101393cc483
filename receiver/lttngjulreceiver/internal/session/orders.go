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

// order is a command for an agent.
type order struct {
	command lttngagent.Command
	// caller is the context of the caller that waits for the answer; nil: no caller waits.
	caller context.Context
	// answered receives the answer, if a caller waits. It has a buffer for it.
	answered chan<- Answer
}

// isWanted reports whether the order has no caller, or a caller that still waits.
func (o *order) isWanted() bool { return o.caller == nil || o.caller.Err() == nil }

// answer sends the answer to the caller.
func (o *order) answer(a Answer) {
	if o.answered != nil {
		o.answered <- a
	}
}

// orders is the queue of an agent's orders. Any goroutine queues orders; the session's goroutine removes them.
type orders struct {
	mu      sync.Mutex
	waiting []order
	// closed: the receiver disconnects from the agent, and accepts no orders.
	closed bool
}

// queue queues orders, and returns false if the queue is closed. It removes orders whose callers are gone, because they
// would pile up for a silent agent.
func (o *orders) queue(more ...order) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.waiting = append(slices.DeleteFunc(o.waiting, func(w order) bool { return !w.isWanted() }), more...)
	return true
}

// close answers all queued orders, and closes the queue.
func (o *orders) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.waiting {
		o.waiting[i].answer(Answer{Result: NoAnswer, Err: ErrNotSent})
	}
	o.closed, o.waiting = true, nil
}

// next returns the next wanted order. Without a command there is none now, and with over there will be none.
func (o *orders) next() (next order, over bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.waiting) > 0 {
		next, o.waiting = o.waiting[0], o.waiting[1:]
		if next.isWanted() {
			return next, false
		}
	}
	return order{}, o.closed
}

// ErrNotSent: the session ended before the command was sent.
var ErrNotSent = errors.New("the command was not sent")
