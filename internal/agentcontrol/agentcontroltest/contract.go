// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontroltest

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/testkit"
)

// Contract checks the rules of [agentcontrol.Agent] for the agents of a receiver. A receiver's test
// fills it in and runs it.
type Contract struct {
	// Type is the receiver's.
	Type component.Type
	// Examples are orders that an agent can carry out one after the other, at least one for each of
	// its commands. The first two need an answer of the agent.
	Examples []Example
	// Start starts a receiver in the host, and an agent. It returns the agent when it is registered.
	// Both end with the test.
	Start func(t testing.TB, host component.Host) Played
}

// Example is a command with arguments.
type Example struct {
	Command   string
	Arguments map[string]string
}

// with returns the example with another argument.
func (e Example) with(name, value string) Example {
	arguments := maps.Clone(e.Arguments)
	if arguments == nil {
		arguments = map[string]string{}
	}
	arguments[name] = value
	return Example{e.Command, arguments}
}

// Played is an obedient agent of a receiver's test, with its receiver.
type Played struct {
	// Shutdown shuts the receiver down. It may be called again.
	Shutdown func()
	// Silence lets the agent receive commands, but answer none from now on.
	Silence func()
	// Die ends the agent, and its connections.
	Die func()
	// Received returns the number of commands that the agent received. It grows with each order that
	// needs the agent.
	Received func() int
	// Records returns the attributes of the log records that the receiver has sent for orders.
	Records func() []map[string]any
}

// Run runs the contract.
func (c Contract) Run(t *testing.T) {
	for _, check := range checks {
		t.Run(check.name, func(t *testing.T) { check.run(c.begin(t, patience)) })
	}
}

// checks are the rules of the contract.
var checks = [...]struct {
	name string
	run  func(*steered)
}{
	{"each directory shows it once", (*steered).isShownOnce},
	{"its snapshot is complete and valid", (*steered).isKnown},
	{"it carries out each of its commands, which is recorded and counted", (*steered).doesAll},
	{"an invalid order does not reach it, and is recorded and counted", (*steered).getsNoInvalidOrder},
	{"a cancelled order does not reach it", (*steered).getsNoCancelledOrder},
	{"an order ends with its context", (*steered).ordersEndWithTheirContext},
	{"two concurrent orders are both carried out", (*steered).doesTwoAtOnce},
	{"its death ends waiting orders", (*steered).dies},
	{"a shutdown of the receiver ends waiting orders", (*steered).isShutDown},
	{"a reload ends waiting orders and shows it again", (*steered).isReloaded},
}

// patience is the longest time that a check waits for a condition.
const patience = time.Minute

// steered is an agent that is played, with the receiver and the extension that have it.
type steered struct {
	t        testing.TB
	contract Contract
	patience time.Duration
	Played
	host  *host
	agent agentcontrol.Agent
}

// host is a collector with two extensions that show agents: the real one, and one with which a test
// sends orders without waiting for their turn.
type host struct {
	Directory
	extension *extension
}

// GetExtensions returns both.
func (h *host) GetExtensions() map[component.ID]component.Component {
	all := h.Directory.GetExtensions()
	all[component.MustNewIDWithName("agent_control", "real")] = h.extension
	return all
}

// begin starts a receiver with an agent, and the extension.
func (c Contract) begin(t testing.TB, patience time.Duration) *steered {
	t.Helper()
	s := &steered{t: t, contract: c, patience: patience, host: &host{extension: serve(t)}}
	s.Played = c.Start(t, s.host)
	s.await("an agent", func() bool { return len(s.host.Agents()) > 0 })
	s.agent = s.host.Agents()[0]
	return s
}

// await waits for a condition.
func (s *steered) await(what string, condition func() bool) {
	s.t.Helper()
	require.True(s.t, testkit.HappensWithin(s.patience, condition), "waited for %s", what)
}

// outcome is the result of an order.
type outcome struct {
	answer agentcontrol.Answer
	err    error
}

// order begins an order, past the extension.
func (s *steered) order(ctx context.Context, e Example) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		answer, err := Order(ctx, s.agent, e.Command, e.Arguments)
		done <- outcome{answer, err}
	}()
	return done
}

// orderReceived begins an order, and waits until the agent has received a command.
func (s *steered) orderReceived(ctx context.Context, e Example) <-chan outcome {
	s.t.Helper()
	before := s.Received()
	done := s.order(ctx, e)
	s.await("the agent to receive "+e.Command, func() bool { return s.Received() > before })
	return done
}

// expectDone waits until an order is carried out.
func (s *steered) expectDone(done <-chan outcome) {
	s.t.Helper()
	o := s.outcomeOf(done)
	require.NoError(s.t, o.err)
	assert.NotEmpty(s.t, o.answer.Message)
}

// expect waits until an order fails with one of some reasons.
func (s *steered) expect(done <-chan outcome, reasons ...agentcontrol.Reason) {
	s.t.Helper()
	o := s.outcomeOf(done)
	require.Error(s.t, o.err, "it is answered: %s", o.answer.Message)
	require.Contains(s.t, reasons, agentcontrol.ReasonOf(o.err), o.err.Error())
}

// outcomeOf waits for what becomes of an order.
func (s *steered) outcomeOf(done <-chan outcome) outcome {
	s.t.Helper()
	select {
	case o := <-done:
		return o
	case <-time.After(s.patience):
		require.Fail(s.t, "an order has no result in time")
		return outcome{}
	}
}
