// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/agentcontrol/api"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/load"
	protocol "github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/lttng"
	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/browser"
	"github.com/callbraid/callbraid/test/kit/openapi"
)

// withControl adds the extension to a configuration.
func withControl(endpoint, settings, configuration string) string {
	return fmt.Sprintf(`
extensions: {agent_control: {endpoint: %q, %s}}
%s`, endpoint, settings, configuration)
}

// startControlled starts a collector with the extension, and returns a client of it.
func startControlled(t testing.TB, settings, configuration string) (*kit.Collector, *api.Client) {
	t.Helper()
	endpoint := testkit.Address(t)
	c := kit.Start(t, withControl(endpoint, settings, configuration))
	return c, &api.Client{Endpoint: "http://" + endpoint, HTTP: &http.Client{
		Timeout: testkit.Patience, Transport: openapi.NewTransport(t, api.Document, "/v1/", &http.Transport{DisableKeepAlives: true}),
	}}
}

// controlledPipeline is pipeline with the extension.
func controlledPipeline(endpoint, receiver, pairing, exporter string) string {
	return fmt.Sprintf(`
receivers: {bytefrog: {endpoint: %q, %s}}
processors: {stack_pairing: {span_attributes: {sequence: true, function_text: true}, %s}}
exporters: {%s}
service:
  extensions: [health_check, pprof, agent_control]
  pipelines: {traces: {receivers: [bytefrog], processors: [stack_pairing], exporters: [%s]}}
`, endpoint, receiver, pairing, exporter, exporterName(exporter))
}

// awaitAgents waits until so many agents are shown, and returns them.
func awaitAgents(t testing.TB, client *api.Client, n int) (agents []api.Agent) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%d agents are shown", n), func() (bool, string) {
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

// A program at full speed is suspended and continued, again and again. Exactly the calls that the
// agent reported are exported.
func TestSuspendingUnderFullLoadMakesNoWrongSpan(t *testing.T) {
	t.Parallel()
	const suspensions = 5
	endpoint := testkit.Address(t)
	c, client := startControlled(t, "command_timeout: 25s", controlledPipeline(endpoint,
		"agent: {data_connections: 3, heartbeat_interval: 100ms}", "reorder: {max_wait: 30s}", "file: "+kit.FileExporter("spans.bin")))
	program, err := load.New(load.Options{Threads: 4, Exceptions: 0.05, Record: true})
	require.NoError(t, err)
	agent := bytefrogagent.New(bytefrogagent.Options{
		Endpoint: endpoint, Dial: narrow(endpoint), ConnectTimeout: testkit.Patience, StartTimeout: testkit.Patience,
	}, program)
	results := make(chan bytefrogagent.Result, 1)
	go func() { results <- agent.Run(t.Context()) }()
	id := awaitAgents(t, client, 1)[0].ID
	for range suspensions {
		// Two breaks before the same event would be one.
		awaitEvents(t, agent, agent.Stats().Events+20_000)
		assert.Equal(t, "tracing is suspended", mustOrder(t, client, id, "suspend").Message)
		shown, err := client.Agent(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, "suspended", shown.State)
		assert.Equal(t, "tracing goes on", mustOrder(t, client, id, "unsuspend").Message)
	}
	awaitEvents(t, agent, agent.Stats().Events+20_000)
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

// With start: suspended nothing is traced until a client commands it.
func TestAnAgentThatStartsSuspendedTracesAfterUnsuspend(t *testing.T) {
	t.Parallel()
	endpoint := testkit.Address(t)
	c, client := startControlled(t, "", controlledPipeline(endpoint, "start: suspended", "", "file: "+kit.FileExporter("spans.bin")))
	program, err := load.New(load.Options{Record: true, Rate: 50_000})
	require.NoError(t, err)
	agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: endpoint, ConnectTimeout: testkit.Patience, StartTimeout: testkit.Patience}, program)
	results := make(chan bytefrogagent.Result, 1)
	go func() { results <- agent.Run(t.Context()) }()
	id := awaitAgents(t, client, 1)[0].ID
	testkit.Eventually(t, "it is suspended", func() (bool, string) {
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

// Commands that stop or pause programs need allow_disruptive. A paused program continues when the
// collector ends.
func TestAPausedProgramContinuesWhenTheCollectorEnds(t *testing.T) {
	t.Parallel()
	endpoint := testkit.Address(t)
	start := func(settings string) (*kit.Collector, *api.Client, <-chan bytefrogagent.Result, string) {
		c, client := startControlled(t, settings, controlledPipeline(endpoint, "", "", "nop: {}"))
		program, err := load.New(load.Options{Rate: 10_000, Events: 1 << 40})
		require.NoError(t, err)
		agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: endpoint, ConnectTimeout: testkit.Patience, StartTimeout: testkit.Patience}, program)
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

// agentctl runs the command line against the extension, and returns its output.
func agentctl(t testing.TB, client *api.Client, arguments ...string) (output string, code int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), kit.AgentCtl(t), append(arguments, "--endpoint", client.Endpoint)...)
	text, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return string(text), command.ProcessState.ExitCode()
}

// controlledReceiver configures a receiver with its settings, whose logs go to a file.
func controlledReceiver(receiver, settings string) string {
	return fmt.Sprintf(`
receivers: {%s: {%s}}
exporters: {file/logs: {path: "${env:DIR}/logs.json", flush_interval: 50ms}}
service:
  extensions: [health_check, pprof, agent_control]
  pipelines: {logs: {receivers: [%s], exporters: [file/logs]}}
`, receiver, settings, receiver)
}

// orderRecord is a log record of an order.
type orderRecord struct{ command, result, by, service string }

// ordersLogged are the log records of orders that a collector wrote.
func ordersLogged(t *testing.T, c *kit.Collector) (records []orderRecord) {
	t.Helper()
	unmarshaler := plog.JSONUnmarshaler{}
	eachLine(t, filepath.Join(c.Dir, "logs.json"), func(line json.RawMessage) {
		logs, err := unmarshaler.UnmarshalLogs(line)
		require.NoError(t, err)
		for _, resource := range logs.ResourceLogs().All() {
			service, _ := resource.Resource().Attributes().Get("service.name")
			for _, scope := range resource.ScopeLogs().All() {
				for _, r := range scope.LogRecords().All() {
					if r.EventName() != "agent_control.command" {
						continue
					}
					text := func(key string) string {
						v, _ := r.Attributes().Get("agent_control.command." + key)
						return v.Str()
					}
					records = append(records, orderRecord{text("name"), text("result"), text("by"), service.Str()})
				}
			}
		}
	})
	return records
}

// agentctl sends an Rbkit server its nine commands, and their results are in the logs.
func TestAnRbkitServerExecutesItsNineCommands(t *testing.T) {
	t.Parallel()
	s := newRbkitServer(t)
	played := s.play(t, "load", "--rate", "10")
	c, client := startControlled(t, "allow_disruptive: true", controlledReceiver("rbkit", fmt.Sprintf("service_name: shop, servers: [{publish: %q, request: %q}]", s.publish, s.request)))
	var id string
	testkit.Eventually(t, "the server is connected", func() (bool, string) {
		a := awaitAgents(t, client, 1)[0]
		id = a.ID
		return a.State != "disconnected", a.State
	})
	agent, err := client.Agent(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, agent.Descriptions, 9)
	for _, command := range agent.Commands {
		output, code := agentctl(t, client, "do", id[:8], command)
		assert.Zero(t, code, output)
		assert.Contains(t, output, "memory profile")
		if command != "handshake" {
			// The server's output arrives through a pipe, and maybe after the answer.
			testkit.Eventually(t, "the server has received "+command, func() (bool, string) {
				said := played.output.String()
				return strings.Contains(said, command), said
			})
		}
	}
	output, code := agentctl(t, client, "do", id, "reboot")
	assert.Equal(t, 2, code, output)
	c.Stop(t)
	records := ordersLogged(t, c)
	require.Len(t, records, 10)
	for i, r := range records {
		assert.Equal(t, "shop", r.service)
		assert.Contains(t, r.by, "127.0.0.1:")
		if i < 9 {
			assert.Equal(t, agent.Commands[i]+" done", r.command+" "+r.result)
		}
	}
	assert.Equal(t, "unknown_command", records[9].result)
}

// A thousand programs are listed, and each can get a command.
func TestAThousandAgentsAreListedAndExecuteCommands(t *testing.T) {
	const loggers = 5
	endpoint := testkit.Address(t)
	c, client := startControlled(t, "", controlledReceiver("lttng_jul", fmt.Sprintf("endpoint: %q, port_files: [], list_interval: 1h", endpoint)))
	agents := playAgents(t, endpoint, manyAgents, loggers)
	shown := awaitAgents(t, client, manyAgents)
	for _, a := range shown[:50] {
		answer, err := client.Order(t.Context(), a.ID, api.Order{Command: "list"})
		require.NoError(t, err)
		assert.Len(t, answer.Items, loggers)
		_, err = client.Order(t.Context(), a.ID, api.Order{Command: "enable", Arguments: map[string]any{"logger": "*", "level": "INFO"}})
		require.NoError(t, err)
	}
	assert.Equal(t, 50, agents.enabled())
	output, code := agentctl(t, client, "list", "--tracer", "lttng_jul")
	assert.Zero(t, code)
	assert.Len(t, strings.Split(strings.TrimSpace(output), "\n"), manyAgents+1)
	_, err := client.Order(t.Context(), shown[0].ID, api.Order{Command: "disable", Arguments: map[string]any{"logger": "*"}})
	require.NoError(t, err)
	assert.Equal(t, 49, agents.enabled())
	c.Stop(t)
	assert.Zero(t, agents.enabled(), "agents are restored")
	assert.Len(t, ordersLogged(t, c), 101)
}

// In a browser a user sees the agents, suspends one and continues it. A page of another site
// cannot.
func TestAnAgentGetsCommandsFromABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	endpoint := testkit.Address(t)
	const evil = `<img src=x onerror=document.title=1>`
	c, client := startControlled(t, "", controlledPipeline(endpoint, fmt.Sprintf("service_name: %q, agent: {heartbeat_interval: 100ms}", evil), "", "nop: {}"))
	program, err := load.New(load.Options{Rate: 10_000})
	require.NoError(t, err)
	agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: endpoint, ConnectTimeout: testkit.Patience, StartTimeout: testkit.Patience}, program)
	results := make(chan bytefrogagent.Result, 1)
	go func() { results <- agent.Run(t.Context()) }()
	id := awaitAgents(t, client, 1)[0].ID
	site := client.Endpoint

	b.Open(t, site)
	page := textOf(t, b, "body")
	for _, want := range []string{id, "bytefrog", evil} {
		assert.Contains(t, page, want)
	}
	b.Screenshot(t, "agents-hostile")
	b.Leave(t, click("button", "suspend"))
	assert.Equal(t, "tracing is suspended", textOf(t, b, "#message"))
	follow(t, b, "The agent")
	assert.Equal(t, "suspended", textOf(t, b, "#state"))
	assert.True(t, evaluate[bool](t, b, `Array.from(document.querySelectorAll("button[disabled]")).map(e => e.value).join() == "suspend,pause,unpause,stop"`))
	b.Screenshot(t, "agent-hostile")
	b.Leave(t, click("button", "unsuspend"))
	assert.Equal(t, "tracing goes on", textOf(t, b, "#message"))
	assert.Empty(t, b.Errors())
	assertAllFrom(t, site, b.Requests())

	// The same form, and a script, on a page of another site.
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<form method=post action="%s/agents/%s/commands"><button name=command value=suspend>win</button></form><p id=done></p>
<script>fetch(%q, {method: "POST", mode: "no-cors", body: "command=suspend", headers: {"Content-Type": "application/x-www-form-urlencoded"}}).finally(() => { done.textContent = "tried" })</script>`,
			site, id, site+"/agents/"+id+"/commands")
	}))
	defer other.Close()
	b.Open(t, strings.Replace(other.URL, "127.0.0.1", "localhost", 1))
	awaitScript(t, b, "the script has tried", `document.querySelector("#done").textContent == "tried"`)
	b.Leave(t, click("button", "win"))
	assert.Contains(t, textOf(t, b, "body"), "another site")
	shown, err := client.Agent(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, "tracing", shown.State)
	assert.EqualValues(t, 2, c.Metric(t, "otelcol_extension_agent_control_commands"))
	agent.Stop()
	await(t, results)
	c.Stop(t)
}

// Real agents of LTTng, in Java and in Python.
func TestRealLTTngAgentsExecuteCommands(t *testing.T) {
	t.Parallel()
	lttng.RequireAgents(t)
	for _, domain := range []string{"jul", "python"} {
		t.Run(domain, func(t *testing.T) {
			home := lttng.NewHome(t)
			c, client := startControlled(t, "", controlledReceiver("lttng_jul",
				fmt.Sprintf("endpoint: %q, port_files: [%q], list_interval: 1h", testkit.Address(t), home.SystemPortFile())))
			p := launchLoggers(t, home, domain)
			p.Ready(t)
			const logger = "com.example.one"
			require.Equal(t, "attached", p.Ask(t, "attach "+logger))
			a := awaitAgents(t, client, 1)[0]
			assert.EqualValues(t, p.PID, a.Process.PID)
			order := func(command string, arguments map[string]any) api.Answer {
				answer, err := client.Order(t.Context(), a.ID, api.Order{Command: command, Arguments: arguments})
				require.NoError(t, err)
				return answer
			}
			assert.Contains(t, order("list", nil).Items, logger)
			assert.False(t, traced(t, p, logger))
			order("enable", map[string]any{"logger": "com.example.*"})
			assert.True(t, traced(t, p, logger))
			order("disable", map[string]any{"logger": "com.example.*"})
			assert.False(t, traced(t, p, logger))
			order("enable", map[string]any{"logger": "com.example.*"})
			c.Stop(t)
			assert.False(t, traced(t, p, logger), "it is restored")
			p.End(t)
		})
	}
}

// An Rbkit server with libzmq's own sockets.
func TestAnRbkitServerWithLibzmqExecutesCommands(t *testing.T) {
	t.Parallel()
	s := newRbkitServer(t)
	played := s.start(t, openRbkit(t, "released-30s"))
	_, client := startControlled(t, "allow_disruptive: true", controlledReceiver("rbkit", fmt.Sprintf("servers: [{publish: %q, request: %q}]", s.publish, s.request)))
	id := awaitAgents(t, client, 1)[0].ID
	awaitSteerable(t, client, id)
	for _, command := range []string{"start_cpu_profiling", "stop_cpu_profiling", "start_memory_profile", "stop_memory_profile", "use_cpu_time",
		"use_wall_time", "trigger_gc", "objectspace_snapshot", "handshake"} {
		mustOrder(t, client, id, command)
		assert.Contains(t, played.Commands(), protocol.Command(command))
	}
}

// agentctl sends an Arthas server commands to count calls and to report some, and the server is restored.
func TestAnArthasServerExecutesCommands(t *testing.T) {
	t.Parallel()
	server := newArthasServer(t)
	played := server.play(t, "--rate", "100")
	c, client := startControlled(t, "allow_disruptive: true", fmt.Sprintf(`
receivers: {arthas: {service_name: shop, servers: [{endpoint: %q}], poll_interval: 50ms, collection_interval: 1s}}
exporters: {file/logs: {path: "${env:DIR}/logs.json", flush_interval: 50ms}, file/metrics: {path: "${env:DIR}/metrics.json"}}
service:
  extensions: [health_check, pprof, agent_control]
  pipelines: {logs: {receivers: [arthas], exporters: [file/logs]}, metrics: {receivers: [arthas], exporters: [file/metrics]}}
`, server.url()))
	id := awaitAgents(t, client, 1)[0].ID
	testkit.Eventually(t, "it is connected", func() (bool, string) {
		shown, err := client.Agent(t.Context(), id)
		require.NoError(t, err)
		return shown.State == "connected", shown.State
	})
	do := func(arguments ...string) string {
		t.Helper()
		output, code := agentctl(t, client, append([]string{"do", id}, arguments...)...)
		require.Zero(t, code, output)
		return output
	}
	assert.Contains(t, do("monitor", "class=com.example.*", "method=*", "cycle=1"), "matching methods")
	do("watch", "class=com.example.shop.Service2", "method=*", "limit=5")
	testkit.Eventually(t, "calls to be counted", func() (bool, string) {
		got := countsOf(t, c)
		return got.sum() > 0, fmt.Sprint(got)
	})
	assert.Contains(t, do("list"), "monitor com.example.* *, cycles of 1s: running")
	do("reset", "class=com.example.shop.Service1")
	do("end", "task=1")
	output, code := agentctl(t, client, "do", id, "monitor", "class=com.example.* > /tmp/x", "method=*")
	assert.Equal(t, 2, code, output)
	do("stack", "class=com.example.shop.Service3", "method=*")
	c.Stop(t)
	played.stop()
	lives := played.lives()
	require.Len(t, lives, 1)
	assert.Zero(t, lives[0].Enhanced, "it is restored")
	assert.Zero(t, lives[0].Sessions)
	var results []string
	for _, r := range ordersLogged(t, c) {
		assert.Equal(t, "shop", r.service)
		results = append(results, r.command+" "+r.result)
	}
	assert.Equal(t, []string{"monitor done", "watch done", "list done", "reset done", "end done", "monitor bad_argument", "stack done"}, results)
}

// agentctl sends a Greys server commands to count calls and to report some, and the server is
// restored.
func TestAGreysServerExecutesCommands(t *testing.T) {
	t.Parallel()
	for _, protocol := range greysProtocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			server := newGreysServer(t)
			played := server.play(t, "--protocol", protocol, "--codes", "--rate", "100", "--end-delay", "20ms")
			c, client := startControlled(t, "", fmt.Sprintf(`
receivers: {greys: {service_name: shop, servers: [{endpoint: %q}], protocol: %s, collection_interval: 1s,
  gp: {codes: {session: 7, stack: 8, tt_list: 9, tt_detail: 10}}, methods: [{class: com.example.shop.Service1, method: "*"}]}}
exporters: {file/logs: {path: "${env:DIR}/logs.json", flush_interval: 50ms}, file/metrics: {path: "${env:DIR}/metrics.json"}}
service:
  extensions: [health_check, pprof, agent_control]
  pipelines: {logs: {receivers: [greys], exporters: [file/logs]}, metrics: {receivers: [greys], exporters: [file/metrics]}}
`, server.endpoint, protocol))
			id := awaitAgents(t, client, 1)[0].ID
			testkit.Eventually(t, "it is connected", func() (bool, string) {
				shown, err := client.Agent(t.Context(), id)
				require.NoError(t, err)
				return shown.State == "connected", shown.State
			})
			do := func(arguments ...string) string {
				t.Helper()
				output, code := agentctl(t, client, append([]string{"do", id}, arguments...)...)
				require.Zero(t, code, output)
				return output
			}
			assert.Contains(t, do("monitor", "class=com.example.*", "method=*", "cycle=1"), "matching methods")
			do("stack", "class=com.example.shop.Service2", "method=*", "limit=5")
			testkit.Eventually(t, "calls to be counted", func() (bool, string) {
				got := countsOf(t, c)
				return got.sum() > 0, fmt.Sprint(got)
			})
			assert.Contains(t, do("list"), "monitor com.example.* *, cycles of 1s: running")
			do("reset")
			do("end", "task=2")
			output, code := agentctl(t, client, "do", id, "monitor", "class=com.example.* {throwExp}", "method=*")
			assert.Equal(t, 2, code, output)
			do("monitor", "class=com.example.*", "method=*")
			c.Stop(t)
			played.stop()
			lives := played.lives()
			require.Len(t, lives, 1)
			assert.Zero(t, lives[0].Enhanced, "it is restored")
			var results []string
			for _, r := range ordersLogged(t, c) {
				assert.Equal(t, "shop", r.service)
				results = append(results, r.command+" "+r.result)
			}
			assert.Equal(t, []string{"monitor done", "stack done", "list done", "reset done", "end done", "monitor bad_argument", "monitor done"}, results)
		})
	}
}
