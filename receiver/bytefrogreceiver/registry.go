// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/socket"
)

// runID is what a run is called on the wire: 1 to maxRunID.
type runID uint8

const maxRunID = 255

// registry knows the runs, and gives out their IDs. An ID that was given back is
// given out again as late as can be: a data connection of the run that had it
// might still come, and would bring its events to another run. It may come late where
// the agent lingers, which can be stopped for hours, so other IDs go first.
type registry struct {
	// max is how many runs can be at once.
	max int

	mu sync.Mutex
	// runs has nil where an ID is free.
	runs [maxRunID + 1]*run
	// lingering is how many agents linger whose runs had an ID.
	lingering [maxRunID + 1]int
	// returned says when a run or an agent that lingered let go of an ID last: how
	// often any was let go of till then, 0 for those that were never given out.
	returned [maxRunID + 1]uint64
	returns  uint64
	live     int
	closed   bool
}

// errClosed: the receiver takes no more runs.
var errClosed = errors.New("the receiver is shutting down")

// open enters the run that create makes for an ID. The error says why there is
// none: limits.max_runs, the shutdown, or create's own.
func (r *registry) open(create func(id runID) (*run, error)) (*run, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	if r.live >= r.max {
		return nil, &limitError{setting: settingMaxRuns, limit: r.max}
	}
	id := r.free()
	run, err := create(id)
	if err != nil {
		return nil, err
	}
	r.runs[id] = run
	r.live++
	return run, nil
}

// leastProven is the run that gives way to a new agent: it was opened before a time, and
// its agent has sent neither a heartbeat nor data since. Of the address that has most such
// runs it is the oldest; nil: there is none.
func (r *registry) leastProven(before time.Time) *run {
	r.mu.Lock()
	defer r.mu.Unlock()
	oldest, count := map[string]*run{}, map[string]int{}
	for _, run := range r.runs {
		if run == nil || run.isProven() || run.isLeaving() || run.opened.After(before) {
			continue
		}
		host := socket.PeerHost(run.control.in.Conn())
		count[host]++
		if first := oldest[host]; first == nil || run.opened.Before(first.opened) {
			oldest[host] = run
		}
	}
	var least *run
	most := 0
	for host, first := range oldest {
		if n := count[host]; n > most || n == most && first.opened.Before(least.opened) {
			least, most = first, n
		}
	}
	return least
}

// free is the ID, of those that no run has, that is the least likely to be used by
// an agent that had it: if possible none lingers, and it was let go of before all
// others, or was never given out.
func (r *registry) free() runID {
	free := 0
	for id := 1; id <= maxRunID; id++ {
		if r.runs[id] == nil && (free == 0 || r.rather(id, free)) {
			free = id
		}
	}
	return runID(free)
}

// rather reports whether an ID is to be given out rather than another.
func (r *registry) rather(id, other int) bool {
	if lingers, others := r.lingering[id] > 0, r.lingering[other] > 0; lingers != others {
		return others
	}
	return r.returned[id] < r.returned[other]
}

// close gives the ID of a run back.
func (r *registry) close(run *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs[run.id] != run {
		return
	}
	r.runs[run.id] = nil
	r.letGo(run.id)
	r.live--
}

// linger says that the agent of the run that has the ID lingers, until gone is
// called.
func (r *registry) linger(id runID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lingering[id]++
}

// gone says that the agent of a run that had the ID lingers no more.
func (r *registry) gone(id runID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lingering[id]--
	r.letGo(id)
}

func (r *registry) letGo(id runID) {
	r.returns++
	r.returned[id] = r.returns
}

// lookup gives the run with an ID, or nil.
func (r *registry) lookup(id runID) *run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runs[id]
}

// list gives the runs by their IDs.
func (r *registry) list() []*run {
	r.mu.Lock()
	defer r.mu.Unlock()
	var runs []*run
	for _, run := range r.runs {
		if run != nil {
			runs = append(runs, run)
		}
	}
	return runs
}

// shut lets no more runs in, and gives those that are.
func (r *registry) shut() []*run {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	return r.list()
}

// Settings that bound what connects.
const (
	settingMaxConnections  = "limits.max_connections"
	settingPerAddress      = "limits.max_connections_per_address"
	settingMaxRuns         = "limits.max_runs"
	settingDataConnections = "agent.data_connections"
	settingMaxRunMemory    = "limits.max_run_memory"
)

// limitError says which bound an agent came upon.
type limitError struct {
	setting string
	limit   int
}

func (e *limitError) Error() string { return fmt.Sprintf("%s is reached (%d)", e.setting, e.limit) }
