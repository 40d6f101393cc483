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

// order is a command that an agent is to be told.
type order struct {
	command lttngagent.Command
	// by is the context of who waits for it; nil: nobody does, and it is told in any case.
	by context.Context
	// answered is told what came of it, if somebody waits. It has room for that.
	answered chan<- answer
}

// answer is what came of a command.
type answer struct {
	result result
	code   lttngagent.Code
	// err says why there is no code.
	err error
	// loggers are those that a list was answered with.
	loggers []string
}

// isWanted reports whether anybody still wants it.
func (o *order) isWanted() bool { return o.by == nil || o.by.Err() == nil }

// done says what came of it.
func (o *order) done(a answer) {
	if o.answered != nil {
		o.answered <- a
	}
}

// orders are what an agent is to be told, in sequence. Anybody gives orders; the agent's
// goroutine takes them.
type orders struct {
	mu      sync.Mutex
	waiting []order
	// over says that the agent is to be left as it was, or has gone: no more orders are
	// taken.
	over bool
}

// give adds orders, and reports whether the agent will be told. Those that nobody wants any
// more go then, so that they don't pile up before an agent that is silent.
func (o *orders) give(given ...order) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return false
	}
	o.waiting = append(slices.DeleteFunc(o.waiting, func(w order) bool { return !w.isWanted() }), given...)
	return true
}

// end forgets what waits, and lets no more in.
func (o *orders) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.waiting {
		o.waiting[i].done(answer{result: resultNoAnswer, err: errNotTold})
	}
	o.over, o.waiting = true, nil
}

// next takes the next order that is wanted; without a command: there is none now. over says
// that there will be none.
func (o *orders) next() (next order, over bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.waiting) > 0 {
		next, o.waiting = o.waiting[0], o.waiting[1:]
		if next.isWanted() {
			return next, false
		}
	}
	return order{}, o.over
}

// errNotTold: the agent is left, or has gone, before it was its turn.
var errNotTold = errors.New("the command was not sent")
