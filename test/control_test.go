// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/agentcontrol/api"
	"github.com/callbraid/callbraid/internal/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrogagent/load"
	"github.com/callbraid/callbraid/test/testbed"
)

// withControl adds the extension to a configuration.
func withControl(endpoint, settings, configuration string) string {
	return fmt.Sprintf(`
extensions: {agent_control: {endpoint: %q, %s}}
%s`, endpoint, settings, configuration)
}

// startControlled starts a collector with the extension, and gives a client of it.
func startControlled(t testing.TB, settings, configuration string) (*testbed.Collector, *api.Client) {
	t.Helper()
	endpoint := testbed.Address(t)
	c := testbed.Start(t, withControl(endpoint, settings, configuration))
	return c, &api.Client{Endpoint: "http://" + endpoint, HTTP: &http.Client{
		Timeout: testbed.Patience, Transport: &http.Transport{DisableKeepAlives: true},
	}}
}

// controlledPipeline is pipeline with the extension.
func controlledPipeline(endpoint, receiver, pairing, exporter string) string {
	return fmt.Sprintf(`
receivers: {bytefrog: {endpoint: %q, %s}}
processors: {stack_pairing: {%s}}
exporters: {%s}
service:
  extensions: [health_check, pprof, agent_control]
  pipelines: {traces: {receivers: [bytefrog], processors: [stack_pairing], exporters: [%s]}}
`, endpoint, receiver, pairing, exporter, exporterName(exporter))
}

// awaitAgents waits until so many agents are shown, and gives them.
func awaitAgents(t testing.TB, client *api.Client, n int) (agents []api.Agent) {
	t.Helper()
	testbed.Eventually(t, fmt.Sprintf("%d agents are shown", n), func() (bool, string) {
		list, err := client.Agents(t.Context())
		require.NoError(t, err)
		agents = list.Agents
		return len(agents) == n, fmt.Sprint(len(agents))
	})
	return agents
}

func mustOrder(t testing.TB, client *api.Client, id, command string) api.Answer {
	t.Helper()
	answer, err := client.Order(t.Context(), id, api.Order{Command: command})
	require.NoError(t, err, command)
	return answer
}

// A program that calls as fast as it can is suspended and goes on, again and again. All that
// was seen of it is exported, and nothing else.
func TestSuspendingUnderFullLoadMakesNoWrongSpan(t *testing.T) {
	const suspensions = 10
	endpoint := testbed.Address(t)
	c, client := startControlled(t, "command_timeout: 25s", controlledPipeline(endpoint,
		"agent: {data_connections: 3, heartbeat_interval: 100ms}", "reorder: {max_wait: 30s}", "file: "+testbed.FileExporter("spans.bin")))
	program, err := load.New(load.Options{Threads: 4, Exceptions: 0.05, Record: true})
	require.NoError(t, err)
	agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: endpoint, ConnectTimeout: testbed.Patience, StartTimeout: testbed.Patience}, program)
	results := make(chan bytefrogagent.Result, 1)
	go func() { results <- agent.Run(t.Context()) }()
	id := awaitAgents(t, client, 1)[0].ID
	for n := range uint64(suspensions) {
		awaitEvents(t, agent, (n+1)*20_000)
		assert.Equal(t, "tracing is suspended", mustOrder(t, client, id, "suspend").Message)
		shown, err := client.Agent(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, "suspended", shown.State)
		assert.Equal(t, "tracing goes on", mustOrder(t, client, id, "unsuspend").Message)
	}
	awaitEvents(t, agent, (suspensions+1)*20_000)
	agent.Stop()
	result := await(t, results)
	require.NotEqual(t, bytefrogagent.Hung, result.Outcome, result.Reason)
	c.AwaitMetric(t, suspensions, "otelcol_extension_agent_control_commands", `command="suspend"`, `result="done"`)
	c.AwaitMetric(t, 1, runsEnded)
	c.AwaitMetric(t, suspensions, stackBreaks, `cause="suspended"`)
	c.Stop(t)
	checkTruth(t, program.Truth(), readStreams(t, c, "spans.bin").only(t))
}

// checkTruth checks that the spans are those of the calls that were made.
func checkTruth(t testing.TB, truth load.Truth, e *exported) {
	t.Helper()
	checkShape(t, e)
	c := newComparison(e)
	for i := range truth.Calls {
		call := &truth.Calls[i]
		got := c.bySequence[int64(call.Entry)]
		if got == nil {
			c.wrong.add("span %d, %s: is missing", call.Entry, load.FunctionName(call.Function))
			continue
		}
		parent, caller := int64(-1), int64(-1)
		if call.Parent >= 0 {
			parent = int64(truth.Calls[call.Parent].Entry)
		}
		id := got.parent
		if len(got.links) == 1 {
			id = got.links[0].id
		}
		if s := c.byID[id]; s != nil {
			caller = s.sequence
		}
		if got.function != load.FunctionName(call.Function) || got.thread != int64(call.Thread) || caller != parent ||
			got.isTruncated != (call.Truncated != "") || got.hasError != (call.Exception >= 0 && call.Truncated == "") {
			c.wrong.add("span %d, %s of thread %d, caller %d, truncated %q: expected %+v with caller %d",
				got.sequence, got.function, got.thread, caller, got.truncated, *call, parent)
		}
	}
	if len(e.spans) != len(truth.Calls) {
		c.wrong.add("expected %d spans, got %d", len(truth.Calls), len(e.spans))
	}
	c.wrong.report(t, "the spans are not the calls that were made")
}

// With start: suspended nothing is traced until somebody says so.
func TestAnAgentThatStartsSuspendedTracesWhenItIsTold(t *testing.T) {
	endpoint := testbed.Address(t)
	c, client := startControlled(t, "", controlledPipeline(endpoint, "start: suspended", "", "file: "+testbed.FileExporter("spans.bin")))
	program, err := load.New(load.Options{Record: true, Rate: 50_000})
	require.NoError(t, err)
	agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: endpoint, ConnectTimeout: testbed.Patience, StartTimeout: testbed.Patience}, program)
	results := make(chan bytefrogagent.Result, 1)
	go func() { results <- agent.Run(t.Context()) }()
	id := awaitAgents(t, client, 1)[0].ID
	testbed.Eventually(t, "it is suspended", func() (bool, string) {
		shown, err := client.Agent(t.Context(), id)
		require.NoError(t, err)
		return shown.State == "suspended", shown.State
	})
	before := agent.Stats().Events
	mustOrder(t, client, id, "unsuspend")
	awaitEvents(t, agent, before+10_000)
	agent.Stop()
	result := await(t, results)
	require.NotEqual(t, bytefrogagent.Hung, result.Outcome, result.Reason)
	stopAfter(t, c, 1)
	checkTruth(t, program.Truth(), readStreams(t, c, "spans.bin").only(t))
}

// What stops or pauses programs is done only where that is allowed; a program that somebody
// paused goes on when the collector ends.
func TestAProgramThatIsPausedGoesOnWhenTheCollectorEnds(t *testing.T) {
	endpoint := testbed.Address(t)
	start := func(settings string) (*testbed.Collector, *api.Client, <-chan bytefrogagent.Result, string) {
		c, client := startControlled(t, settings, controlledPipeline(endpoint, "", "", "nop: {}"))
		program, err := load.New(load.Options{Rate: 10_000, Events: 1 << 40})
		require.NoError(t, err)
		agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: endpoint, ConnectTimeout: testbed.Patience, StartTimeout: testbed.Patience}, program)
		results := make(chan bytefrogagent.Result, 1)
		ctx, kill := context.WithTimeout(t.Context(), 5*time.Minute)
		t.Cleanup(kill)
		go func() { results <- agent.Run(ctx) }()
		t.Cleanup(agent.Stop)
		return c, client, results, awaitAgents(t, client, 1)[0].ID
	}
	c, client, results, id := start("")
	for _, command := range []string{"pause", "stop"} {
		_, err := client.Order(t.Context(), id, api.Order{Command: command})
		var p *api.Problem
		require.ErrorAs(t, err, &p)
		assert.Equal(t, "not_allowed", p.Reason)
	}
	c.Stop(t)
	assert.Equal(t, bytefrogagent.Untraced, await(t, results).Outcome)

	c, client, results, id = start("allow_disruptive: true")
	mustOrder(t, client, id, "pause")
	shown, err := client.Agent(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, "paused", shown.State)
	c.Stop(t)
	assert.Equal(t, bytefrogagent.Untraced, await(t, results).Outcome)
}
