// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/logline"
)

// directory knows the agents.
type directory struct {
	max       int
	telemetry *telemetry
	logger    *zap.Logger
	// crowded is of agents that are not shown.
	crowded logline.Seldom

	mu sync.Mutex
	// agents are by their IDs; nil: none is shown any more.
	agents map[string]*entry
}

// entry is an agent.
type entry struct {
	agent  agentcontrol.Agent
	tracer string
	turns  turns
	// gone is closed when the agent is.
	gone chan struct{}
}

func newDirectory(config *Config, telemetry *telemetry, logger *zap.Logger) *directory {
	return &directory{max: config.Limits.MaxAgents, telemetry: telemetry, logger: logger, agents: map[string]*entry{}}
}

// Register shows an agent until end is called. One that has no room, or the ID of another,
// is not shown.
func (d *directory) Register(agent agentcontrol.Agent) (end func()) {
	e := &entry{agent: agent, tracer: agent.Snapshot().Tracer, turns: newTurns(), gone: make(chan struct{})}
	if why := d.add(e); why != "" {
		d.telemetry.notShown(why)
		if since, say := d.crowded.Say(time.Now()); say {
			d.logger.Warn("An agent is not shown", zap.String("reason", why), zap.String("agent", agent.ID()),
				zap.String("tracer", e.tracer), zap.Int("since_last_line", since))
		}
		return func() {}
	}
	return sync.OnceFunc(func() {
		close(e.gone)
		d.remove(e)
	})
}

// add adds an agent, or says why not.
func (d *directory) add(e *entry) (why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := e.agent.ID()
	switch {
	case d.agents == nil:
		return ""
	case d.agents[id] != nil:
		return notShownDuplicate
	case len(d.agents) >= d.max:
		return notShownMaxAgents
	}
	d.agents[id] = e
	d.telemetry.agents(e.tracer, 1)
	return ""
}

func (d *directory) remove(e *entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id := e.agent.ID(); d.agents[id] == e {
		delete(d.agents, id)
		d.telemetry.agents(e.tracer, -1)
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

// list is all agents, by tracer, service and address.
func (d *directory) list() []shown {
	d.mu.Lock()
	entries := make([]*entry, 0, len(d.agents))
	for _, e := range d.agents {
		entries = append(entries, e)
	}
	d.mu.Unlock()
	all := make([]shown, len(entries))
	for i, e := range entries {
		all[i] = e.show()
	}
	slices.SortFunc(all, func(a, b shown) int {
		return cmp.Or(cmp.Compare(a.Tracer, b.Tracer), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Address, b.Address), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// show is what the agent is now.
func (e *entry) show() shown { return shown{ID: e.agent.ID(), Snapshot: e.agent.Snapshot()} }
