// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"sync"

	"github.com/callbraid/callbraid/internal/lttngagent"
)

// orders are commands that an agent is to be told, in their order. Anybody gives orders;
// the agent's goroutine takes them.
type orders struct {
	mu      sync.Mutex
	waiting []lttngagent.Command
	// over says that the agent is to be left as it was: no more orders are taken.
	over bool
}

// give adds commands, and reports whether the agent will be told.
func (o *orders) give(commands ...lttngagent.Command) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return false
	}
	o.waiting = append(o.waiting, commands...)
	return true
}

// end forgets what waits, and lets no more in.
func (o *orders) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over, o.waiting = true, nil
}

// next takes the next command; nil: there is none now. over says that there will be none.
func (o *orders) next() (command lttngagent.Command, over bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		return nil, o.over
	}
	command, o.waiting = o.waiting[0], o.waiting[1:]
	return command, false
}
