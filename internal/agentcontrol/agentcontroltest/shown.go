// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontroltest

import (
	"net"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

func (s *steered) isShownOnce() {
	require.Len(s.t, s.host.Agents(), 1)
	assert.Equal(s.t, []string{s.agent.ID()}, s.host.extension.ids())
	s.Shutdown()
	assert.Empty(s.t, s.host.Agents(), "it is shown after its end")
	assert.Empty(s.t, s.host.extension.ids())
	s.Shutdown()
}

func (s *steered) isKnown() {
	assert.Regexp(s.t, "^[0-9a-f]{16}$", s.agent.ID())
	assert.Equal(s.t, s.agent.ID(), s.agent.ID())
	now := s.agent.Snapshot()
	assert.Equal(s.t, s.contract.Type.String(), now.Tracer)
	var receiver component.ID
	require.NoError(s.t, receiver.UnmarshalText([]byte(now.Receiver)))
	assert.Equal(s.t, s.contract.Type, receiver.Type())
	assert.NotEmpty(s.t, now.Service)
	assert.NotEmpty(s.t, now.State)
	_, _, err := net.SplitHostPort(now.Address)
	assert.NoError(s.t, err)
	assert.False(s.t, now.Since.IsZero())
	assert.False(s.t, now.LastSeen.Before(now.Since), "it was seen last at %v, and begun at %v", now.LastSeen, now.Since)
	names := map[string]bool{}
	for _, c := range now.Counters {
		assert.False(s.t, names[c.Name], "two counters are called %s", c.Name)
		names[c.Name] = true
		assert.NotEmpty(s.t, c.Unit, c.Name)
		assert.GreaterOrEqual(s.t, c.Value, int64(0), c.Name)
	}
	s.commandsAreKnown(now.Commands)
	assert.Equal(s.t, now.Commands, s.agent.Snapshot().Commands, "they don't change")
	for name, reason := range now.Unfit {
		_, err := agentcontrol.Find(now.Commands, name)
		assert.NoError(s.t, err, "an unfit command is one of its commands")
		assert.Regexp(s.t, `^[a-z].*[^.]$`, reason, "the reason why %s does not fit is a part of a sentence", name)
	}
}

func (s *steered) commandsAreKnown(commands []agentcontrol.Command) {
	names := map[string]bool{}
	for i := range commands {
		c := &commands[i]
		assert.False(s.t, names[c.Name], "two commands are called %s", c.Name)
		names[c.Name] = true
		assert.Regexp(s.t, "^[a-z][a-z_]*$", c.Name)
		assert.Regexp(s.t, `\.$`, c.Summary, "the summary of %s is no sentence", c.Name)
		s.parametersAreKnown(c)
	}
}

func (s *steered) parametersAreKnown(c *agentcontrol.Command) {
	names := map[string]bool{}
	for i := range c.Parameters {
		p := &c.Parameters[i]
		what := c.Name + " " + p.Name
		assert.False(s.t, names[p.Name], "two parameters are called %s", what)
		names[p.Name] = true
		assert.Regexp(s.t, "^[a-z][a-z_]*$", p.Name)
		assert.Regexp(s.t, `\.$`, p.Summary, "the summary of %s is no sentence", what)
		assert.Contains(s.t, []agentcontrol.Kind{agentcontrol.Text, agentcontrol.Integer, agentcontrol.Boolean}, p.Kind, what)
		if p.Kind == agentcontrol.Integer {
			assert.Less(s.t, p.Least, p.Most, "%s has no values", what)
		} else {
			assert.Zero(s.t, p.Least|p.Most, "%s is no number", what)
		}
	}
}
