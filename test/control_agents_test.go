// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/agentcontrol/api"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/load"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// steered is an agent that is played, and how to steer it.
type steered struct {
	collector *kit.Collector
	client    *api.Client
	agent     *bytefrogagent.Agent
	id        string
	results   chan bytefrogagent.Result
	// kill ends the agent's program immediately.
	kill context.CancelFunc
}

// steerBytefrog starts a collector with an agent, which is shown. Disruptive commands are allowed;
// log records go to logs.json.
func steerBytefrog(t testing.TB, extension, receiver string) *steered {
	t.Helper()
	endpoint := testkit.Address(t)
	c, client := startControlled(t, "allow_disruptive: true, command_timeout: 25s, "+extension, fmt.Sprintf(`
receivers: {bytefrog: {endpoint: %q, service_name: shop, %s}}
processors: {stack_pairing: {}}
exporters: {nop: {}, file/logs: {path: "${env:DIR}/logs.json", flush_interval: 50ms}}
service:
  extensions: [health_check, pprof, agent_control]
  pipelines:
    traces: {receivers: [bytefrog], processors: [stack_pairing], exporters: [nop]}
    logs: {receivers: [bytefrog], exporters: [file/logs]}
`, endpoint, receiver))
	program, err := load.New(load.Options{Rate: 10_000, Events: 1 << 40})
	require.NoError(t, err)
	s := &steered{
		collector: c, client: client, results: make(chan bytefrogagent.Result, 1),
		agent: bytefrogagent.New(bytefrogagent.Options{Endpoint: endpoint, ConnectTimeout: testkit.Patience, StartTimeout: testkit.Patience}, program),
	}
	ctx, kill := context.WithCancel(t.Context())
	s.kill = kill
	t.Cleanup(kill)
	go func() { s.results <- s.agent.Run(ctx) }()
	s.id = awaitAgents(t, client, 1)[0].ID
	awaitEvents(t, s.agent, 1)
	return s
}

func (s *steered) state(t testing.TB) string {
	t.Helper()
	shown, err := s.client.Agent(t.Context(), s.id)
	require.NoError(t, err)
	return shown.State
}

// do runs agentctl, which has to succeed.
func (s *steered) do(t testing.TB, command string) string {
	t.Helper()
	output, code := agentctl(t, s.client, "do", s.id[:8], command)
	require.Zero(t, code, output)
	return output
}

// agentctl sends a program all commands of a Bytefrog agent, and their results are in the logs.
func TestABytefrogAgentExecutesItsFiveCommands(t *testing.T) {
	t.Parallel()
	s := steerBytefrog(t, "", "agent: {heartbeat_interval: 100ms}")
	s.do(t, "suspend")
	assert.Equal(t, "suspended", s.state(t))
	s.do(t, "unsuspend")
	assert.Equal(t, "tracing", s.state(t))
	assert.Contains(t, s.do(t, "pause"), "the program is paused")
	assert.Equal(t, "paused", s.state(t))
	awaitStandstill(t, s.agent)
	halted := s.agent.Stats().Events
	assert.Contains(t, s.do(t, "unpause"), "the program goes on")
	awaitEvents(t, s.agent, halted+1000)
	assert.Equal(t, "tracing", s.state(t))
	s.do(t, "stop")
	assert.Equal(t, bytefrogagent.Untraced, await(t, s.results).Outcome, "the program runs on, and is traced no more")
	awaitAgents(t, s.client, 0)
	s.collector.Stop(t)
	var done []string
	for _, r := range ordersLogged(t, s.collector) {
		assert.Equal(t, "shop", r.service)
		assert.Contains(t, r.by, "127.0.0.1:")
		done = append(done, r.command+" "+r.result)
	}
	assert.Equal(t, []string{"suspend done", "unsuspend done", "pause done", "unpause done", "stop done"}, done)
	for _, command := range []string{"suspend", "unsuspend", "pause", "unpause", "stop"} {
		assert.Contains(t, s.collector.Log(), "A command was sent to an agent: "+command+": done")
	}
}

// Several people send opposite commands to one agent at the same time. Each gets an answer, and the last command wins.
func TestTwoCommandsAtTheSameTimeToOneAgent(t *testing.T) {
	t.Parallel()
	const times = 10
	s := steerBytefrog(t, "", "agent: {heartbeat_interval: 50ms}")
	var people sync.WaitGroup
	for _, command := range []string{"suspend", "unsuspend", "suspend", "unsuspend"} {
		people.Go(func() {
			for range times {
				_, err := s.client.Order(t.Context(), s.id, api.Order{Command: command})
				assert.NoError(t, err, command)
			}
		})
	}
	people.Wait()
	mustOrder(t, s.client, s.id, "suspend")
	assert.Equal(t, "suspended", s.state(t))
	mustOrder(t, s.client, s.id, "unsuspend")
	assert.Equal(t, "tracing", s.state(t))
	awaitEvents(t, s.agent, s.agent.Stats().Events+1000)
	s.collector.AwaitMetric(t, 4*times+2, "otelcol_extension_agent_control_commands", `result="done"`)
	s.kill()
	await(t, s.results)
	s.collector.Stop(t)
	assert.Len(t, ordersLogged(t, s.collector), 4*times+2)
}

// A program dies while its agent executes a command. The sender of the command gets an error immediately.
func TestAnAgentThatDiesInTheMiddleOfACommand(t *testing.T) {
	t.Parallel()
	s := steerBytefrog(t, "limits: {max_waiting: 1}", "agent: {heartbeat_interval: 1m}")
	s.agent.Freeze()
	reasons := make(chan string, 2)
	for range cap(reasons) {
		go func() {
			_, err := s.client.Order(t.Context(), s.id, api.Order{Command: "pause"})
			var p *api.Problem
			if !assert.ErrorAs(t, err, &p) {
				p = &api.Problem{Reason: "none"}
			}
			reasons <- p.Reason
		}()
	}
	require.Equal(t, "busy", <-reasons, "the agent has the other one")
	s.kill()
	assert.Equal(t, "lost", <-reasons)
	awaitAgents(t, s.client, 0)
	s.collector.Stop(t)
	var results []string
	for _, r := range ordersLogged(t, s.collector) {
		results = append(results, r.command+" "+r.result)
	}
	assert.Equal(t, []string{"pause busy", "pause lost"}, results)
}

// With an authenticator of the distribution only clients with its token see or command agents.
func TestACommandNeedsTheToken(t *testing.T) {
	t.Parallel()
	endpoint, control := testkit.Address(t), testkit.Address(t)
	c := kit.Start(t, fmt.Sprintf(`
extensions:
  bearertokenauth: {token: secret}
  agent_control: {endpoint: %q, auth: {authenticator: bearertokenauth}}
receivers: {lttng_jul: {endpoint: %q, port_files: [], list_interval: 1h}}
exporters: {nop: {}}
service:
  extensions: [health_check, pprof, bearertokenauth, agent_control]
  pipelines: {logs: {receivers: [lttng_jul], exporters: [nop]}}
`, control, endpoint))
	agents := playAgents(t, endpoint, 1, 3)
	client := &api.Client{Endpoint: "http://" + control, HTTP: http.DefaultClient}
	var p *api.Problem
	_, err := client.Agents(t.Context())
	require.ErrorAs(t, err, &p)
	assert.Equal(t, "unauthorized", p.Reason)
	client.Token = "secret"
	id := awaitAgents(t, client, 1)[0].ID
	client.Token = "another"
	_, err = client.Order(t.Context(), id, api.Order{Command: "enable", Arguments: map[string]any{"logger": "*"}})
	require.ErrorAs(t, err, &p)
	assert.Equal(t, "unauthorized", p.Reason)

	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("secret\n"), 0o600))
	output, code := agentctl(t, client, "do", id, "enable", "logger=*")
	assert.Equal(t, 2, code, output)
	assert.Zero(t, agents.enabled())
	output, code = agentctl(t, client, "do", id, "enable", "logger=*", "--token-file", file)
	assert.Zero(t, code, output)
	assert.Equal(t, 1, agents.enabled())
	c.Stop(t)
}

// Without the extension receivers have neither sockets nor goroutines for it, though agents are
// there; with it they have no more, until the first request.
func TestWithoutTheExtensionNoReceiverOpensAListener(t *testing.T) {
	t.Parallel()
	rbkit := newRbkitServer(t)
	rbkit.play(t, "load", "--rate", "10")
	const ours = "github.com/callbraid/callbraid/"
	measure := func(extended bool) (listeners, goroutines, steering int) {
		bytefrog, jul := testkit.Address(t), testkit.Address(t)
		configuration := fmt.Sprintf(`
receivers:
  bytefrog: {endpoint: %q}
  lttng_jul: {endpoint: %q, port_files: [], list_interval: 1h}
  rbkit: {servers: [{publish: %q, request: %q}]}
exporters: {nop: {}}
service:
  extensions: [health_check, pprof%s]
  pipelines:
    traces: {receivers: [bytefrog], exporters: [nop]}
    logs: {receivers: [bytefrog, lttng_jul, rbkit], exporters: [nop]}
`, bytefrog, jul, rbkit.publish, rbkit.request, map[bool]string{true: ", agent_control"}[extended])
		var c *kit.Collector
		if extended {
			c, _ = startControlled(t, "", configuration)
		} else {
			c = kit.Start(t, configuration)
		}
		program, err := load.New(load.Options{Rate: 1000, Events: 1 << 40})
		require.NoError(t, err)
		agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: bytefrog, ConnectTimeout: testkit.Patience, StartTimeout: testkit.Patience}, program)
		ctx, kill := context.WithCancel(t.Context())
		defer kill()
		go agent.Run(ctx)
		awaitEvents(t, agent, 1)
		playAgents(t, jul, 1, 1)
		c.AwaitMetric(t, 1, agentsNow)
		c.AwaitMetric(t, 1, rbkitServers)
		// Goroutines that only begin, or serve a metric, end again.
		least := math.MaxInt
		for range 20 {
			least = min(least, c.GoroutinesOf(t, ours))
		}
		listeners, goroutines, steering = c.Listeners(t), least, c.GoroutinesOf(t, "agentcontrol")
		kill()
		c.Stop(t)
		return listeners, goroutines, steering
	}
	listeners, goroutines, steering := measure(false)
	assert.Equal(t, 5, listeners, "two receivers, health_check, pprof, and the collector's own metrics")
	assert.Zero(t, steering)
	extendedListeners, extended, steering := measure(true)
	assert.Equal(t, listeners+1, extendedListeners, "the extension listens")
	assert.Equal(t, 1, steering, "the extension's server")
	assert.Equal(t, goroutines+1, extended, "and nothing else")
}
