// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package agentcontroltest has, for tests of receivers, a simple directory of agents, and the
// contract of agents.
package agentcontroltest

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

// Directory is an extension that holds the registered agents. It is also a host with itself as its
// extension.
type Directory struct {
	mu     sync.Mutex
	agents []agentcontrol.Agent
}

var (
	_ component.Host         = (*Directory)(nil)
	_ agentcontrol.Directory = (*Directory)(nil)
)

// GetExtensions returns the directory as the only extension.
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

// Agents returns the registered agents.
func (d *Directory) Agents() (all []agentcontrol.Agent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append(all, d.agents...)
}

// Order sends an order to an agent with the checks of the extension: the command is one of the
// agent's, and its arguments are valid.
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
