// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/agentcontrol/api"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/load"
	protocol "github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/internal/testkit"
)

// The collector is reloaded while clients wait for agents. The clients get answers, and agents are
// shown again, each once, and accept commands.
func TestAReloadAnswersWaitingClientsAndListsAgentsAgain(t *testing.T) {
	t.Parallel()
	bytefrog, jul := testkit.Address(t), testkit.Address(t)
	server := holdRbkit(t, protocol.TriggerGC)
	c, client := startControlled(t, "allow_disruptive: true, command_timeout: 25s", fmt.Sprintf(`
receivers:
  bytefrog: {endpoint: %q, shutdown_timeout: 1s}
  lttng_jul: {endpoint: %q, port_files: [], list_interval: 1h}
  rbkit: {servers: [{publish: %q, request: %q}], timeout: 25s}
exporters: {nop: {}}
service:
  extensions: [health_check, pprof, agent_control]
  pipelines:
    traces: {receivers: [bytefrog], exporters: [nop]}
    logs: {receivers: [bytefrog, lttng_jul, rbkit], exporters: [nop]}
`, bytefrog, jul, server.publish, server.request))
	first := playBytefrog(t, bytefrog)
	playAgents(t, jul, 2, 1)
	before := byTracer(awaitAgents(t, client, 4))
	awaitSteerable(t, client, before["rbkit"][0])

	first.agent.Freeze()
	answers := make(chan string, 2)
	for id, command := range map[string]string{before["rbkit"][0]: "trigger_gc", before["bytefrog"][0]: "pause"} {
		go func() {
			_, err := client.Order(t.Context(), id, api.Order{Command: command})
			answers <- command + ": " + reasonOf(t, err)
		}()
	}
	await(t, server.begun)
	testkit.Eventually(t, "a request waits for the program", func() (bool, string) {
		waiting := c.GoroutinesOf(t, "session.(*commands).pause")
		return waiting == 1, fmt.Sprint(waiting)
	})
	c.Reload(t)
	assert.ElementsMatch(t, []string{"trigger_gc: lost", "pause: lost"}, []string{await(t, answers), await(t, answers)})
	first.kill()
	server.letGo()

	playBytefrog(t, bytefrog)
	after := byTracer(awaitAgents(t, client, 4))
	assert.Equal(t, before["rbkit"], after["rbkit"], "the server that is configured is the same")
	assert.NotEqual(t, before["bytefrog"], after["bytefrog"])
	awaitSteerable(t, client, after["rbkit"][0])
	mustOrder(t, client, after["rbkit"][0], "trigger_gc")
	mustOrder(t, client, after["bytefrog"][0], "suspend")
	for _, id := range after["lttng_jul"] {
		mustOrder(t, client, id, "list")
	}
	c.AwaitMetric(t, 4, "otelcol_extension_agent_control_commands", `result="done"`)
	assert.NotContains(t, c.Log(), "An agent is not shown", "none was registered twice")
	c.Stop(t)
}

// byTracer are the IDs of agents.
func byTracer(agents []api.Agent) map[string][]string {
	all := map[string][]string{}
	for _, a := range agents {
		all[a.Tracer] = append(all[a.Tracer], a.ID)
	}
	return all
}

// awaitSteerable waits until a server is connected to.
func awaitSteerable(t testing.TB, client *api.Client, id string) {
	t.Helper()
	testkit.Eventually(t, "the server is connected", func() (bool, string) {
		a, err := client.Agent(t.Context(), id)
		require.NoError(t, err)
		return a.State != "disconnected", a.State
	})
}

// reasonOf is the collector's reason why a command was not carried out.
func reasonOf(t testing.TB, err error) string {
	var p *api.Problem
	if assert.ErrorAs(t, err, &p) {
		return p.Reason
	}
	return ""
}

// playedBytefrog is an agent that traces.
type playedBytefrog struct {
	agent *bytefrogagent.Agent
	kill  context.CancelFunc
}

// playBytefrog plays an agent until the test ends, and waits until it traces.
func playBytefrog(t testing.TB, endpoint string) *playedBytefrog {
	t.Helper()
	program, err := load.New(load.Options{Rate: 1000, Events: 1 << 40})
	require.NoError(t, err)
	ctx, kill := context.WithCancel(t.Context())
	t.Cleanup(kill)
	p := &playedBytefrog{kill: kill, agent: bytefrogagent.New(bytefrogagent.Options{
		Endpoint: endpoint, ConnectTimeout: testkit.Patience, StartTimeout: testkit.Patience,
	}, program)}
	go p.agent.Run(ctx)
	awaitEvents(t, p.agent, 1)
	return p
}

// heldRbkit is a server that answers a command only when it is released.
type heldRbkit struct {
	publish, request string
	// begun has an item for each received command.
	begun chan struct{}
	letGo func()
}

// holdRbkit plays a server until the test ends.
func holdRbkit(t testing.TB, command protocol.Command) *heldRbkit {
	t.Helper()
	until := make(chan struct{})
	s := &heldRbkit{begun: make(chan struct{}, 10), letGo: sync.OnceFunc(func() { close(until) })}
	publish, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	request, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	s.publish, s.request = publish.Addr().String(), request.Addr().String()
	server := rbkitserver.New(rbkitserver.Options{Commanded: func(c protocol.Command) {
		if c == command {
			s.begun <- struct{}{}
			<-until
		}
	}})
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, publish, request) }()
	t.Cleanup(func() {
		s.letGo()
		end()
		assert.NoError(t, <-served)
	})
	return s
}
