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
)

// Contract is what the agents of a receiver have to keep, whatever they are told by: what
// the package agentcontrol says of [agentcontrol.Agent]. A receiver's test fills it in and
// runs it.
type Contract struct {
	// Type is the receiver's.
	Type component.Type
	// Examples are orders that an agent carries out one after the other, at least one for
	// each command that it has. The first two are for the agent, which has to answer them.
	Examples []Example
	// Start starts a receiver, of which the host is the collector, and an agent. It gives
	// the agent when it is there. Both end with the test.
	Start func(t testing.TB, host component.Host) Played
}

// Example is a command with arguments.
type Example struct {
	Command   string
	Arguments map[string]string
}

// with is the example with another argument.
func (e Example) with(name, value string) Example {
	arguments := maps.Clone(e.Arguments)
	if arguments == nil {
		arguments = map[string]string{}
	}
	arguments[name] = value
	return Example{e.Command, arguments}
}

// Played is an agent that does whatever it is told, as a receiver's test plays it, and the
// receiver that has it.
type Played struct {
	// Shutdown shuts the receiver down. It may be called again.
	Shutdown func()
	// Silence has the agent hear what it is told from now on, and answer nothing.
	Silence func()
	// Die ends the agent, and its connections.
	Die func()
	// Told is how often it was told something: more often after each order for which it
	// is needed.
	Told func() int
	// Records are the attributes of the log records of orders that the receiver has
	// handed on.
	Records func() []map[string]any
}

// Run runs the contract.
func (c Contract) Run(t *testing.T) {
	for _, check := range checks {
		t.Run(check.name, func(t *testing.T) { check.run(c.begin(t, patience)) })
	}
}

// checks are all that the contract says.
var checks = [...]struct {
	name string
	run  func(*steered)
}{
	{"it is shown once wherever that is configured", (*steered).isShownOnce},
	{"what is known of it can be understood", (*steered).isKnown},
	{"it does all that it can be told, which is recorded and counted", (*steered).doesAll},
	{"it is told nothing that is badly written, which is recorded and counted", (*steered).isToldNothingBad},
	{"it is told nothing that nobody wants any more", (*steered).isToldNothingUnwanted},
	{"nobody waits for it longer than they want to", (*steered).keepsNobodyWaiting},
	{"two orders at once are both carried out", (*steered).doesTwoAtOnce},
	{"whoever waits for it hears that it has died", (*steered).dies},
	{"whoever waits for it hears that the receiver is shut down", (*steered).isLeft},
	{"a reload answers who waits and shows it again", (*steered).isReloaded},
}

// patience is how long a check waits for what has to come.
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

// host is a collector with two extensions that show agents: the real one, and one that lets a
// test order what it wants, without a turn.
type host struct {
	Directory
	extension *extension
}

// GetExtensions gives both.
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
	require.Eventually(s.t, condition, s.patience, time.Millisecond, "waited for %s", what)
}

// outcome is what became of an order.
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

// orderTold begins an order, and waits until the agent is told something.
func (s *steered) orderTold(ctx context.Context, e Example) <-chan outcome {
	s.t.Helper()
	before := s.Told()
	done := s.order(ctx, e)
	s.await("the agent to be told "+e.Command, func() bool { return s.Told() > before })
	return done
}

// expectDone waits until an order is carried out.
func (s *steered) expectDone(done <-chan outcome) {
	s.t.Helper()
	o := s.take(done)
	require.NoError(s.t, o.err)
	assert.NotEmpty(s.t, o.answer.Message)
}

// expect waits until it is said why an order is not carried out: one of some reasons.
func (s *steered) expect(done <-chan outcome, reasons ...agentcontrol.Reason) {
	s.t.Helper()
	o := s.take(done)
	require.Error(s.t, o.err, "it is answered: %s", o.answer.Message)
	require.Contains(s.t, reasons, agentcontrol.ReasonOf(o.err), o.err.Error())
}

// take waits for what becomes of an order.
func (s *steered) take(done <-chan outcome) outcome {
	s.t.Helper()
	select {
	case o := <-done:
		return o
	case <-time.After(s.patience):
		require.Fail(s.t, "nothing becomes of an order")
		return outcome{}
	}
}
