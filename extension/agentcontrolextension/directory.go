// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"cmp"
	"container/list"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

// directory knows the agents.
type directory struct {
	max       int
	telemetry *telemetry
	logger    *zap.Logger
	// crowded is of agents that are not shown.
	crowded logline.Seldom

	// sorting is locked while a request sorts all agents, which needs memory for each.
	sorting sync.Mutex

	mu sync.Mutex
	// agents are by their IDs; nil: none is shown any more.
	agents map[string]*entry
	// waiting has the agents without a place, in the order of their arrival.
	waiting list.List
}

// entry is an agent.
type entry struct {
	agent  agentcontrol.Agent
	tracer string
	turns  turns
	// gone is closed when the agent is.
	gone chan struct{}
	// place is where it waits for room; nil: it doesn't.
	place *list.Element
}

func newDirectory(config *Config, telemetry *telemetry, logger *zap.Logger) *directory {
	return &directory{max: config.Limits.MaxAgents, telemetry: telemetry, logger: logger, agents: map[string]*entry{}}
}

// Register shows an agent until end is called. An agent without a place is shown when there is one.
// An agent with the ID of another is not shown.
func (d *directory) Register(agent agentcontrol.Agent) (end func()) {
	e := &entry{agent: agent, tracer: agent.Snapshot().Tracer, turns: newTurns(), gone: make(chan struct{})}
	if why := d.add(e); why != "" {
		d.telemetry.notShown(why)
		if since, due := d.crowded.Count(time.Now()); due {
			d.logger.Warn("An agent is not shown", zap.String("reason", why), zap.String("agent", agent.ID()),
				zap.String("tracer", e.tracer), zap.Int("since_last_line", since))
		}
		if why == notShownDuplicate {
			return func() {}
		}
	}
	return sync.OnceFunc(func() {
		close(e.gone)
		d.remove(e)
	})
}

// add adds an agent, or returns the reason why it is not shown.
func (d *directory) add(e *entry) (why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.agents == nil {
		return ""
	}
	why = d.addNow(e)
	if why == notShownMaxAgents {
		e.place = d.waiting.PushBack(e)
	}
	return why
}

func (d *directory) addNow(e *entry) (why string) {
	id := e.agent.ID()
	switch {
	case d.agents[id] != nil:
		return notShownDuplicate
	case len(d.agents) >= d.max:
		return notShownMaxAgents
	}
	d.agents[id] = e
	d.telemetry.agents(e.tracer, 1)
	return ""
}

// remove forgets an agent, and shows the next that waits for its room.
func (d *directory) remove(e *entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.place != nil {
		d.waiting.Remove(e.place)
		e.place = nil
		return
	}
	if id := e.agent.ID(); d.agents[id] == e {
		delete(d.agents, id)
		d.telemetry.agents(e.tracer, -1)
	}
	for len(d.agents) < d.max && d.waiting.Len() > 0 {
		next := d.waiting.Remove(d.waiting.Front()).(*entry)
		next.place = nil
		d.addNow(next)
	}
}

// close forgets all agents, and shows none any more.
func (d *directory) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.agents {
		d.telemetry.agents(e.tracer, -1)
	}
	d.agents = nil
	for e := d.waiting.Front(); e != nil; e = d.waiting.Front() {
		d.waiting.Remove(e).(*entry).place = nil
	}
}

// find is the agent with an ID, or nil.
func (d *directory) find(id string) *entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.agents[id]
}

// shown is an agent as it is now.
type shown struct {
	ID string
	agentcontrol.Snapshot
}

// sorted returns all agents, by tracer, service and address. It returns only entries, so a request
// that waits for its client holds little memory.
func (d *directory) sorted() []*entry {
	d.sorting.Lock()
	defer d.sorting.Unlock()
	d.mu.Lock()
	all := slices.Collect(maps.Values(d.agents))
	d.mu.Unlock()
	type key struct {
		*entry
		tracer, service, address, id string
	}
	keys := make([]key, len(all))
	for i, e := range all {
		now := e.show()
		keys[i] = key{e, now.Tracer, now.Service, now.Address, now.ID}
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.tracer, b.tracer), cmp.Compare(a.service, b.service), cmp.Compare(a.address, b.address), cmp.Compare(a.id, b.id))
	})
	for i := range keys {
		all[i] = keys[i].entry
	}
	return all
}

// show returns the current state of the agent.
func (e *entry) show() shown { return shown{ID: e.agent.ID(), Snapshot: e.agent.Snapshot()} }
