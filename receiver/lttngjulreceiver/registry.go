// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"errors"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// registry has all connections, and the agents of those that have registered.
type registry struct {
	mu sync.Mutex
	// connections are the open connections; nil: not registered yet.
	connections map[*conversation]*agent
	// closed says that no connection is accepted any more.
	closed bool
}

func newRegistry() *registry {
	return &registry{connections: map[*conversation]*agent{}}
}

// errClosed: the receiver takes no more agents.
var errClosed = errors.New("the receiver is shutting down")

// errSlotLost: the connection was closed to make room before its agent had registered.
var errSlotLost = errors.New("the connection was closed to make room for others")

// addConnection adds a connection whose agent hasn't registered.
func (r *registry) addConnection(c *conversation) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	r.connections[c] = nil
	return nil
}

// addAgent adds an agent that has registered, and queues its first commands.
func (r *registry) addAgent(a *agent, first []lttngagent.Command) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	if !a.conversation.slot.Establish() {
		return errSlotLost
	}
	r.connections[a.conversation] = a
	a.sendSoon(first...)
	return nil
}

// remove removes a closed connection.
func (r *registry) remove(c *conversation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.connections, c)
}

// agents returns the registered agents in no order.
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

// close accepts no more connections and makes all agents restore themselves until the time
// latest. Connections without a registration end now.
func (r *registry) close(latest time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for c, a := range r.connections {
		if a != nil {
			a.restoreUntil(latest)
		} else {
			c.finishBy(pastDeadline)
		}
	}
}
