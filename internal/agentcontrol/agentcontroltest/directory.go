// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package agentcontroltest has, for tests of receivers, what stands for the extension that
// shows and steers their agents.
package agentcontroltest

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

// Directory is an extension that remembers what is registered. It is the host, too, that
// has it.
type Directory struct {
	mu     sync.Mutex
	agents []agentcontrol.Agent
}

var (
	_ component.Host         = (*Directory)(nil)
	_ agentcontrol.Directory = (*Directory)(nil)
)

// GetExtensions gives the directory, beside nothing.
func (d *Directory) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{component.MustNewID("agent_control"): d}
}

// Start does nothing.
func (*Directory) Start(context.Context, component.Host) error { return nil }

// Shutdown does nothing.
func (*Directory) Shutdown(context.Context) error { return nil }

// Register remembers an agent until end is called.
func (d *Directory) Register(agent agentcontrol.Agent) (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.agents = append(d.agents, agent)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for i, a := range d.agents {
			if a == agent {
				d.agents = append(d.agents[:i:i], d.agents[i+1:]...)
				return
			}
		}
	}
}

// Agents are those that are registered.
func (d *Directory) Agents() (all []agentcontrol.Agent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append(all, d.agents...)
}

// Order has an agent do what the extension would let it: the command is one of the agent's,
// and its arguments are checked.
func Order(ctx context.Context, agent agentcontrol.Agent, name string, written map[string]string) (agentcontrol.Answer, error) {
	command, err := agentcontrol.Find(agent.Snapshot().Commands, name)
	if err != nil {
		return agentcontrol.Answer{}, err
	}
	arguments, err := command.Parse(written)
	if err != nil {
		return agentcontrol.Answer{}, err
	}
	return agent.Do(ctx, agentcontrol.Order{Command: name, Arguments: arguments, By: "a test"})
}
