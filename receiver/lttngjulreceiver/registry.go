// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"errors"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/slots"
	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/session"
)

// registry has the sessions of all connections.
type registry struct {
	mu sync.Mutex
	// sessions are the open sessions. true: the agent has registered.
	sessions map[*session.Session]bool
	// closed: the receiver accepts no more connections.
	closed bool
}

func newRegistry() *registry {
	return &registry{sessions: map[*session.Session]bool{}}
}

// errClosed: the receiver accepts no more agents.
var errClosed = errors.New("the receiver is shutting down")

// errSlotLost: the connection was closed to make room before its agent had registered.
var errSlotLost = errors.New("the connection was closed to make room for others")

// addConnection adds a session whose agent has not registered.
func (r *registry) addConnection(s *session.Session) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	r.sessions[s] = false
	return nil
}

// addAgent marks a session as registered, and queues its first commands.
func (r *registry) addAgent(s *session.Session, slot *slots.Slot, first []lttngagent.Command) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	if !slot.Establish() {
		return errSlotLost
	}
	r.sessions[s] = true
	s.Queue(first...)
	return nil
}

// remove removes the session of a closed connection.
func (r *registry) remove(s *session.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, s)
}

// agents returns the sessions of registered agents in no order.
func (r *registry) agents() []*session.Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	agents := make([]*session.Session, 0, len(r.sessions))
	for s, registered := range r.sessions {
		if registered {
			agents = append(agents, s)
		}
	}
	return agents
}

// close accepts no more connections and makes all sessions restore their agents until the time latest. Connections
// without a registration end now.
func (r *registry) close(latest time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for s, registered := range r.sessions {
		if registered {
			s.RestoreUntil(latest)
		} else {
			s.Abort()
		}
	}
}
