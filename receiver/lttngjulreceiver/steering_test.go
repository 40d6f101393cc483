// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/agentcontroltest"
	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// steerableBed returns a bed with an extension that shows agents. It lists loggers once, and after changes.
func steerableBed(t *testing.T) *bed {
	t.Helper()
	b := unstartedBed(t, func(c *Config) { c.ListInterval = time.Hour })
	b.receiver.firstPause = time.Hour
	b.Host = &agentcontroltest.Directory{}
	b.Start()
	return b
}

// steered returns a played agent, and the agent in the extension.
func (b *bed) steered(domain lttngagent.Domain, loggers ...string) (*testAgent, agentcontrol.Agent) {
	b.T.Helper()
	played, _ := b.registered(domain, loggers...)
	var all []agentcontrol.Agent
	b.Await("an agent to be shown", func() bool {
		all = b.Host.(*agentcontroltest.Directory).Agents()
		return len(all) == 1
	})
	return played, all[0]
}

// outcome is the result of an order.
type outcome struct {
	answer agentcontrol.Answer
	err    error
}

func beginOrder(ctx context.Context, a agentcontrol.Agent, name string, arguments map[string]string) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		answer, err := agentcontroltest.Order(ctx, a, name, arguments)
		done <- outcome{answer, err}
	}()
	return done
}

func expectReason(t *testing.T, done <-chan outcome, reason agentcontrol.Reason) {
	t.Helper()
	o := <-done
	require.Error(t, o.err)
	assert.Equal(t, reason, agentcontrol.ReasonOf(o.err), o.err.Error())
}

func TestAnOperatorListsEnablesAndDisablesLoggers(t *testing.T) {
	b := steerableBed(t)
	played, a := b.steered(lttngagent.JUL, "com.example")
	listing := beginOrder(t.Context(), a, "list", nil)
	require.Equal(t, lttngagent.List{}, played.next())
	played.list("com.example", "com.other")
	o := <-listing
	require.NoError(t, o.err)
	assert.Equal(t, []string{"com.example", "com.other"}, o.answer.Items)

	enabling := beginOrder(t.Context(), a, "enable", map[string]string{"logger": "com.example", "level": "FINE"})
	command := enable(t, lttngagent.JUL, "com.example", "FINE")
	played.expect(command, lttngagent.List{})
	require.NoError(t, (<-enabling).err)

	disabling := beginOrder(t.Context(), a, "disable", map[string]string{"logger": "com.example"})
	played.expect(lttngagent.Disable{Logger: command.Logger}, lttngagent.List{})
	require.NoError(t, (<-disabling).err)

	// The shutdown disables only enabled loggers.
	enabling = beginOrder(t.Context(), a, "enable", map[string]string{"logger": "*"})
	all := enable(t, lttngagent.JUL, "*", "")
	played.expect(all, lttngagent.List{})
	require.NoError(t, (<-enabling).err)
	go b.Shutdown()
	played.expect(lttngagent.Disable{Logger: all.Logger})
	played.awaitClosed()
	b.Await("no agent to be shown", func() bool { return len(b.Host.(*agentcontroltest.Directory).Agents()) == 0 })
	expectReason(t, beginOrder(t.Context(), a, "list", nil), agentcontrol.Lost)
}

func TestARefusalIsReported(t *testing.T) {
	b := steerableBed(t)
	played, a := b.steered(lttngagent.JUL)
	disabling := beginOrder(t.Context(), a, "disable", map[string]string{"logger": "unknown"})
	played.next()
	played.answer(lttngagent.UnknownName)
	expectReason(t, disabling, agentcontrol.Refused)
}

// A refused disable keeps its undo command.
func TestALoggerWhoseDisableWasRefusedIsDisabledAtTheEnd(t *testing.T) {
	b := steerableBed(t)
	played, a := b.steered(lttngagent.JUL)
	all := enable(t, lttngagent.JUL, "*", "")
	enabling := beginOrder(t.Context(), a, "enable", map[string]string{"logger": "*"})
	played.expect(all, lttngagent.List{})
	require.NoError(t, (<-enabling).err)
	disabling := beginOrder(t.Context(), a, "disable", map[string]string{"logger": "*"})
	require.Equal(t, lttngagent.Disable{Logger: all.Logger}, played.next())
	played.answer(lttngagent.Invalid)
	expectReason(t, disabling, agentcontrol.Refused)
	require.Equal(t, lttngagent.List{}, played.next())
	played.list()
	go b.Shutdown()
	require.Equal(t, lttngagent.Disable{Logger: all.Logger}, played.next())
	played.answer(lttngagent.Invalid)
	played.awaitClosed() // without a third disable
}

func TestAListThatIsTooLargeIsRefused(t *testing.T) {
	b := unstartedBed(t, func(c *Config) { c.ListInterval = time.Hour; c.Limits.MaxLoggers = 1 })
	b.receiver.firstPause = time.Hour
	b.Host = &agentcontroltest.Directory{}
	b.Start()
	played, a := b.steered(lttngagent.JUL, "com.example")
	listing := beginOrder(t.Context(), a, "list", nil)
	require.Equal(t, lttngagent.List{}, played.next())
	played.list("com.example", "com.other")
	o := <-listing
	require.ErrorContains(t, o.err, "limits.max_loggers")
	assert.Equal(t, agentcontrol.Refused, agentcontrol.ReasonOf(o.err))
}

// The earlier answer does not count for the list.
func TestAnAgentThatDiesDuringAListAfterAnAnswerIsLost(t *testing.T) {
	b := steerableBed(t)
	played, a := b.steered(lttngagent.JUL)
	disabling := beginOrder(t.Context(), a, "disable", map[string]string{"logger": "x"})
	require.IsType(t, lttngagent.Disable{}, played.next())
	played.answer(lttngagent.Success)
	require.NoError(t, (<-disabling).err)
	require.Equal(t, lttngagent.List{}, played.next())
	played.list()
	listing := beginOrder(t.Context(), a, "list", nil)
	require.Equal(t, lttngagent.List{}, played.next())
	require.NoError(t, played.conn.Close())
	expectReason(t, listing, agentcontrol.Lost)
}

func TestInvalidOrdersAreNotSent(t *testing.T) {
	b := steerableBed(t)
	played, a := b.steered(lttngagent.JUL)
	for _, arguments := range []map[string]string{
		{"logger": "x", "level": "LOUD"},
		{"logger": "x", "level_type": "single"},
		{"logger": "x", "level": "FINE", "level_type": "all"},
		{},
	} {
		expectReason(t, beginOrder(t.Context(), a, "enable", arguments), agentcontrol.BadArgument)
	}
	listing := beginOrder(t.Context(), a, "list", nil)
	require.Equal(t, lttngagent.List{}, played.next(), "nothing came before")
	played.list()
	require.NoError(t, (<-listing).err)
}

func TestAnAgentThatDiesInTheMiddleOfAnOrderIsLost(t *testing.T) {
	b := steerableBed(t)
	played, a := b.steered(lttngagent.JUL)
	listing, waiting := beginOrder(t.Context(), a, "list", nil), beginOrder(t.Context(), a, "disable", map[string]string{"logger": "x"})
	played.next()
	require.NoError(t, played.conn.Close())
	expectReason(t, listing, agentcontrol.Lost)
	expectReason(t, waiting, agentcontrol.Lost)
}

func TestAnOrderWithoutAWaitingCallerIsNotSent(t *testing.T) {
	b := steerableBed(t)
	played, a := b.steered(lttngagent.JUL)
	first := beginOrder(t.Context(), a, "disable", map[string]string{"logger": "first"})
	require.IsType(t, lttngagent.Disable{}, played.next())
	ctx, giveUp := context.WithCancel(t.Context())
	second := beginOrder(ctx, a, "disable", map[string]string{"logger": "second"})
	giveUp()
	expectReason(t, second, agentcontrol.NoAnswer)
	played.answer(lttngagent.Success)
	require.NoError(t, (<-first).err)
	require.Equal(t, lttngagent.List{}, played.next(), "and no second")
	played.list()
}

func TestAnAgentThatIsSilentInTheMiddleOfAnOrder(t *testing.T) {
	b := unstartedBed(t, func(c *Config) { c.ListInterval = time.Hour; c.CommandTimeout = 2 * time.Second })
	b.receiver.firstPause = time.Hour
	b.Host = &agentcontroltest.Directory{}
	b.Start()
	_, a := b.steered(lttngagent.JUL)
	expectReason(t, beginOrder(t.Context(), a, "list", nil), agentcontrol.NoAnswer)
}

func TestAnAgentWithAnUnknownProcessIsShown(t *testing.T) {
	b := steerableBed(t)
	played := b.connect()
	played.send(lttngagent.NewRegistration(lttngagent.Log4j, 1<<22+1).AppendTo(nil))
	played.expect(lttngagent.RegistrationDone{})
	b.Await("an agent to be shown", func() bool { return len(b.Host.(*agentcontroltest.Directory).Agents()) == 1 })
	now := b.Host.(*agentcontroltest.Directory).Agents()[0].Snapshot()
	assert.Equal(t, "unknown_service:java", now.Service)
	assert.Equal(t, agentcontrol.Process{PID: 1<<22 + 1}, now.Process)
}

func TestTheStateOfAnAgentIsShown(t *testing.T) {
	b := steerableBed(t)
	played, a := b.steered(lttngagent.Python, "root")
	b.Await("its loggers", func() bool { return a.Snapshot().Counters[0].Value == 1 })
	now := a.Snapshot()
	assert.Equal(t, "lttng_jul", now.Tracer)
	assert.Equal(t, "registered (python)", now.State)
	assert.Equal(t, played.conn.LocalAddr().String(), now.Address)
	assert.NotEmpty(t, now.Service)
	assert.NotZero(t, now.Process.PID)
	assert.False(t, now.LastSeen.Before(now.Since))
	a.SendRecord(agentcontrol.Record{Agent: a.ID(), Order: agentcontrol.Order{Command: "list", By: "alice"}, Message: "done"})
	r := b.awaitRecords(agentcontrol.EventName, 1)[0]
	assert.Equal(t, "alice", r.attributes[agentcontrol.AttributeBy])
}
