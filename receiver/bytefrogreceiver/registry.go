// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"sync"
	"time"

	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
)

// maxRunID is the largest ID of a run on the wire. The smallest is 1.
const maxRunID = 255

// registry has the sessions by the IDs of their runs, and assigns the IDs. A data connection of an
// ended run may still arrive, and would join the next run with its ID. So an ID is assigned again as
// late as possible. An agent that lingers may be stopped for hours, so other IDs are assigned first.
type registry struct {
	// max is the maximum number of sessions.
	max int

	mu sync.Mutex
	// sessions has nil for a free ID.
	sessions [maxRunID + 1]*session.Session
	// lingering counts the agents that linger, by the IDs of their runs. Type lingering has their
	// connections; Options.Linger in sessions.go connects the two.
	lingering [maxRunID + 1]int
	// returned is the value of returns when an ID became free last, or when an agent that had it
	// stopped lingering; 0: never.
	returned [maxRunID + 1]uint64
	returns  uint64
	live     int
	closed   bool
}

// errClosed reports that the receiver accepts no more runs.
var errClosed = errors.New("the receiver is shutting down")

// open adds the session that create returns for an ID. The error is a *limitError, errClosed, or
// create's.
func (r *registry) open(create func(id uint8) (*session.Session, error)) (*session.Session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	if r.live >= r.max {
		return nil, &limitError{setting: settingMaxRuns, limit: r.max}
	}
	id := r.free()
	created, err := create(id)
	if err != nil {
		return nil, err
	}
	r.sessions[id] = created
	r.live++
	return created, nil
}

// leastProven returns the session that ends to make room for a new agent; nil: there is none. It may
// have ended meanwhile, and another one may have its ID.
func (r *registry) leastProven(before time.Time) *session.Session {
	sessions := r.list()
	if i := indexOfLeastProven(statesOf(sessions), before); i >= 0 {
		return sessions[i]
	}
	return nil
}

// indexOfLeastProven returns the index of a session that was opened before a time, and whose agent has
// sent neither a heartbeat nor data. It is the oldest one of the address with the most such sessions;
// -1: there is none.
func indexOfLeastProven(states []session.State, before time.Time) int {
	oldest, count := map[string]int{}, map[string]int{}
	for i := range states {
		s := &states[i]
		if s.Proven || s.Leaving || s.Opened.After(before) {
			continue
		}
		count[s.Host]++
		if first, known := oldest[s.Host]; !known || s.Opened.Before(states[first].Opened) {
			oldest[s.Host] = i
		}
	}
	least := -1
	for host, i := range oldest {
		if least < 0 || count[host] > count[states[least].Host] || count[host] == count[states[least].Host] && states[i].Opened.Before(states[least].Opened) {
			least = i
		}
	}
	return least
}

// free returns the free ID that a former agent is least likely to use: if possible none lingers with
// it, and it became free before all others.
func (r *registry) free() uint8 {
	free := 0
	for id := 1; id <= maxRunID; id++ {
		if r.sessions[id] == nil && (free == 0 || r.isSafer(id, free)) {
			free = id
		}
	}
	return uint8(free)
}

// isSafer reports whether an ID is better than another one for a new run.
func (r *registry) isSafer(id, other int) bool {
	if lingers, others := r.lingering[id] > 0, r.lingering[other] > 0; lingers != others {
		return others
	}
	return r.returned[id] < r.returned[other]
}

// close removes the session with an ID.
func (r *registry) close(id uint8) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions[id] = nil
	r.setReturned(id)
	r.live--
}

// linger notes that the agent of the run with an ID lingers, until gone is called.
func (r *registry) linger(id uint8) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lingering[id]++
}

// gone notes that an agent whose run had the ID no longer lingers.
func (r *registry) gone(id uint8) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lingering[id]--
	r.setReturned(id)
}

func (r *registry) setReturned(id uint8) {
	r.returns++
	r.returned[id] = r.returns
}

// lookup returns the session with an ID, or nil.
func (r *registry) lookup(id uint8) *session.Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[id]
}

// list returns the sessions by their IDs.
func (r *registry) list() []*session.Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sessions []*session.Session
	for _, s := range r.sessions {
		if s != nil {
			sessions = append(sessions, s)
		}
	}
	return sessions
}

// states returns the states of all sessions.
func (r *registry) states() []session.State { return statesOf(r.list()) }

// statesOf returns the states of sessions.
func statesOf(sessions []*session.Session) []session.State {
	states := make([]session.State, len(sessions))
	for i, s := range sessions {
		states[i] = s.State()
	}
	return states
}

// shut refuses further sessions, and returns those that are open.
func (r *registry) shut() []*session.Session {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	return r.list()
}
