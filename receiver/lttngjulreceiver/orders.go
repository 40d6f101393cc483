// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

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
	// answered receives the answer, if a caller waits. Its buffer has room for it.
	answered chan<- answer
}

// answer is the answer to a command.
type answer struct {
	result result
	code   lttngagent.Code
	// err says why there is no code.
	err error
	// loggers is the answer to a list.
	loggers []string
}

// isWanted reports whether the order has no caller, or one that still waits.
func (o *order) isWanted() bool { return o.caller == nil || o.caller.Err() == nil }

// answer sends the answer to the caller.
func (o *order) answer(a answer) {
	if o.answered != nil {
		o.answered <- a
	}
}

// orders is the queue of an agent's orders. Any goroutine queues orders; the agent's
// goroutine takes the next one.
type orders struct {
	mu      sync.Mutex
	waiting []order
	// closed says that the receiver is disconnecting from the agent, and accepts no orders.
	closed bool
}

// queue queues orders, and returns false if the queue is closed. It removes orders whose
// callers have gone, so that these don't pile up for a silent agent.
func (o *orders) queue(given ...order) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.waiting = append(slices.DeleteFunc(o.waiting, func(w order) bool { return !w.isWanted() }), given...)
	return true
}

// close answers all queued orders, and closes the queue.
func (o *orders) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.waiting {
		o.waiting[i].answer(answer{result: resultNoAnswer, err: errNotSent})
	}
	o.closed, o.waiting = true, nil
}

// next returns the next wanted order; without a command: there is none now. over says that
// there will be none.
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

// errNotSent: the session ended before the order was sent.
var errNotSent = errors.New("the command was not sent")
