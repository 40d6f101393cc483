// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"errors"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// registry knows all connections, and the agents at the end of those that have
// registered.
type registry struct {
	mu sync.Mutex
	// connections are those that are open; nil: it has not registered.
	connections map[*conversation]*agent
	// closed says that nobody is let in any more.
	closed bool
}

func newRegistry() *registry {
	return &registry{connections: map[*conversation]*agent{}}
}

// errClosed: the receiver takes no more agents.
var errClosed = errors.New("the receiver is shutting down")

// errSlotLost: the connection was closed to make room before its agent had registered.
var errSlotLost = errors.New("the connection was closed to make room for others")

// meet lets a connection in, of which it is not known yet whose it is.
func (r *registry) meet(c *conversation) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	r.connections[c] = nil
	return nil
}

// enter says that an agent has registered. It is told what a plan has for it.
func (r *registry) enter(a *agent, first []lttngagent.Command) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	if !a.conversation.slot.Establish() {
		return errSlotLost
	}
	r.connections[a.conversation] = a
	a.tell(first...)
	return nil
}

// forget says that a connection is closed.
func (r *registry) forget(c *conversation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.connections, c)
}

// agents are those that are registered, in no order.
func (r *registry) agents() []*agent {
	r.mu.Lock()
	defer r.mu.Unlock()
	agents := make([]*agent, 0, len(r.connections))
	for _, a := range r.connections {
		if a != nil {
			agents = append(agents, a)
		}
	}
	return agents
}

// shut lets nobody in any more, and leaves all agents as they were, which has to be over
// at the time latest. Who has not registered has no more time.
func (r *registry) shut(latest time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for c, a := range r.connections {
		if a != nil {
			a.leave(latest)
		} else {
			c.hurry(past)
		}
	}
}
