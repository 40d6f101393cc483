// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontroltest

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

func (s *steered) ordersEndWithTheirContext() {
	s.Silence()
	waiting, giveUp := context.WithCancel(context.Background())
	first := s.orderReceived(waiting, s.contract.Examples[0])
	behind, leave := context.WithCancel(context.Background())
	watched := &watched{Context: behind}
	second := s.order(watched, s.contract.Examples[0])
	s.await("an order to wait for its context", watched.waited.Load)
	leave()
	s.expect(second, agentcontrol.NoAnswer)
	assert.Empty(s.t, first, "the other one goes on")
	giveUp()
	s.expect(first, agentcontrol.NoAnswer)
}

// watched is a context that records whether a goroutine waits for its end.
type watched struct {
	context.Context
	waited atomic.Bool
}

// Done returns the channel of the context.
func (w *watched) Done() <-chan struct{} {
	w.waited.Store(true)
	return w.Context.Done()
}

func (s *steered) dies() {
	before := s.agent.Snapshot().State
	s.Silence()
	first := s.orderReceived(context.Background(), s.contract.Examples[0])
	second := s.order(context.Background(), s.contract.Examples[0])
	s.Die()
	for _, waiting := range []<-chan outcome{first, second} {
		// The receiver may send the command again when the agent is back.
		s.expect(waiting, agentcontrol.Lost, agentcontrol.NoAnswer)
	}
	s.await("the loss to be known", func() bool { return len(s.host.Agents()) == 0 || s.agent.Snapshot().State != before })
	s.expect(s.order(context.Background(), s.contract.Examples[0]), agentcontrol.Lost)
	// A server that is configured is still shown.
	if slices.Contains(s.host.extension.ids(), s.agent.ID()) {
		all := outcomes{}
		s.send(s.contract.Examples[0], string(agentcontrol.Lost), all)
		s.expectCounted(all)
		s.expectRecorded(all)
	} else {
		assert.Equal(s.t, "not_found", s.host.extension.order(s.agent.ID(), s.contract.Examples[0]))
	}
}

func (s *steered) isShutDown() {
	s.Silence()
	waiting := s.orderReceived(context.Background(), s.contract.Examples[0])
	ended := s.shutdown()
	s.expect(waiting, agentcontrol.Lost)
	<-ended
	received := s.Received()
	s.expect(s.order(context.Background(), s.contract.Examples[0]), agentcontrol.Lost)
	assert.Equal(s.t, received, s.Received(), "it received a command after the end")
	assert.Empty(s.t, s.host.Agents())
}

// shutdown shuts the receiver down, and closes a channel then.
func (s *steered) shutdown() (ended <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Shutdown()
	}()
	return done
}

// isReloaded reloads the collector, in which receivers end before extensions, and ends them
// the other way round as well.
func (s *steered) isReloaded() {
	s.waitWhile(agentcontrol.Lost, func() {
		s.Shutdown()
		s.host.extension.shutdown()
	})
	again := s.contract.begin(s.t, s.patience)
	require.Equal(s.t, []string{again.agent.ID()}, again.host.extension.ids(), "it is shown once")
	again.waitWhile(agentcontrol.NoAnswer, func() {
		again.host.extension.shutdown()
		again.expectRecorded(outcomes{{s.contract.Examples[0].Command, string(agentcontrol.NoAnswer)}: 1})
		again.Shutdown()
	})
}

// waitWhile sends an order to a silent agent, and expects its failure when something ends.
func (s *steered) waitWhile(want agentcontrol.Reason, end func()) {
	s.t.Helper()
	s.Silence()
	before := s.Received()
	outcome := make(chan string, 1)
	go func() { outcome <- s.host.extension.order(s.agent.ID(), s.contract.Examples[0]) }()
	s.await("the agent to receive a command", func() bool { return s.Received() > before })
	end()
	assert.Equal(s.t, string(want), <-outcome)
	assert.Empty(s.t, s.host.Agents(), "it is shown after its end")
	s.expectCounted(outcomes{{s.contract.Examples[0].Command, string(want)}: 1})
}
