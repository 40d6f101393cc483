// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// Two instances of each component: the collector's own metrics distinguish them, with and without
// the feature gate for the components' own scopes.

// doubled are the peers of a collector that has two of each component.
type doubled struct {
	bytefrog, lttng, agents, portFiles [2]string
	// The second receiver has two servers.
	rbkit  [3]rbkitServer
	greys  [3]greysServer
	arthas [3]arthasServer
}

func newDoubled(t testing.TB) (d doubled) {
	directory := t.TempDir()
	for i := range d.bytefrog {
		d.bytefrog[i], d.lttng[i], d.agents[i] = testkit.Address(t), testkit.Address(t), testkit.Address(t)
		d.portFiles[i] = filepath.Join(directory, fmt.Sprintf("agent%d.port", i))
	}
	for i := range d.rbkit {
		d.rbkit[i], d.greys[i], d.arthas[i] = newRbkitServer(t), newGreysServer(t), newArthasServer(t)
	}
	return d
}

// configuration has stack_pairing in two pipelines besides.
func (d doubled) configuration(t testing.TB) string {
	reconnect := "reconnect: {initial_interval: 10ms, max_interval: 100ms}"
	rbkit := func(s rbkitServer) string { return fmt.Sprintf("{publish: %q, request: %q}", s.publish, s.request) }
	greys := func(s greysServer) string { return fmt.Sprintf("{endpoint: %q}", s.endpoint) }
	arthas := func(s arthasServer) string { return fmt.Sprintf("{endpoint: %q}", s.url()) }
	return fmt.Sprintf(`
extensions:
  agent_control: {endpoint: %q, limits: {max_agents: 1}}
  agent_control/second: {endpoint: %q}
  memory_budget: {limit_mib: 64}
  memory_budget/second: {limit_mib: 128}
receivers:
  bytefrog: {endpoint: %q}
  bytefrog/second: {endpoint: %q}
  lttng_live: {endpoint: %q, poll: {list_interval: 20ms}, %s}
  lttng_live/second: {endpoint: %q, poll: {list_interval: 20ms}, %s}
  lttng_jul: {endpoint: %q, port_files: [%q]}
  lttng_jul/second: {endpoint: %q, port_files: [%q]}
  rbkit: {servers: [%s], %s}
  rbkit/second: {servers: [%s, %s], %s}
  greys: {servers: [%s], protocol: console, %s}
  greys/second: {servers: [%s, %s], protocol: console, %s}
  arthas: {servers: [%s], jvm: {interval: 1s}, %s}
  arthas/second: {servers: [%s, %s], jvm: {interval: 1s}, %s}
processors:
  stack_pairing:
  stack_pairing/second:
exporters:
  flame_graph: {endpoint: %q}
  flame_graph/second: {endpoint: %q}
  otlp_json_file: {path: "${env:DIR}/first.json"}
  otlp_json_file/second: {path: "${env:DIR}/second.json"}
  perfetto: {path: "${env:DIR}/first.perfetto-trace"}
  perfetto/second: {path: "${env:DIR}/second.perfetto-trace"}
  nop:
service:
  extensions: [health_check, pprof, agent_control, agent_control/second, memory_budget, memory_budget/second]
  pipelines:
    traces: {receivers: [bytefrog], processors: [stack_pairing], exporters: [flame_graph, otlp_json_file, perfetto]}
    traces/second: {receivers: [bytefrog/second], processors: [stack_pairing/second], exporters: [flame_graph/second, otlp_json_file/second, perfetto/second]}
    traces/third: {receivers: [lttng_live, lttng_live/second], processors: [stack_pairing], exporters: [nop]}
    logs: {receivers: [bytefrog, bytefrog/second, lttng_live, lttng_live/second, lttng_jul, lttng_jul/second, rbkit, rbkit/second, greys, greys/second, arthas, arthas/second], exporters: [nop]}
    metrics: {receivers: [bytefrog, bytefrog/second, lttng_live, lttng_live/second, lttng_jul, lttng_jul/second, rbkit, rbkit/second, greys, greys/second, arthas, arthas/second], exporters: [nop]}
`, testkit.Address(t), testkit.Address(t), d.bytefrog[0], d.bytefrog[1], d.lttng[0], reconnect, d.lttng[1], reconnect,
		d.agents[0], d.portFiles[0], d.agents[1], d.portFiles[1],
		rbkit(d.rbkit[0]), reconnect, rbkit(d.rbkit[1]), rbkit(d.rbkit[2]), reconnect,
		greys(d.greys[0]), reconnect, greys(d.greys[1]), greys(d.greys[2]), reconnect,
		arthas(d.arthas[0]), reconnect, arthas(d.arthas[1]), arthas(d.arthas[2]), reconnect,
		testkit.Address(t), testkit.Address(t))
}

// play has peers send to both of each, and different amounts.
func (d doubled) play(t *testing.T) {
	for i := range d.rbkit {
		d.rbkit[i].play(t, "load", "--rate", "20")
		d.greys[i].play(t, "--protocol", "console")
		d.arthas[i].play(t)
	}
	relayDaemon(t, d.lttng[0], lttngCapture("tp1"))
	relayDaemon(t, d.lttng[1], lttngCapture("cygok"))
	for i, file := range d.portFiles {
		command := exec.Command(kit.AgentSim(t), "lttng-agent", "--port-file", file, "--agents", fmt.Sprint(1+i))
		require.NoError(t, command.Start())
		t.Cleanup(func() {
			_ = command.Process.Signal(os.Interrupt) // it may have ended by itself
			_ = command.Wait()
		})
	}
	agent{endpoint: d.bytefrog[0], capture: "shop"}.complete(t)
	agent{endpoint: d.bytefrog[1], capture: "shop"}.complete(t)
	agent{endpoint: d.bytefrog[1], capture: "shop"}.complete(t)
}

func TestTwoOfEachComponentHaveTheirOwnSeries(t *testing.T) {
	t.Parallel()
	const events, spans, called = 9_628, 4_793, 218 // of shop, and those of LTTng that are calls
	for _, test := range []struct {
		name, telemetry string
		start           func(testing.TB, string) *kit.Collector
	}{
		{
			name:  "without scopes of components",
			start: func(t testing.TB, configuration string) *kit.Collector { return kit.Start(t, configuration) },
		},
		{
			name: "with scopes of components that the page shows", start: startScoped,
			telemetry: `readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: "${env:METRICS_PORT}", without_type_suffix: true, without_units: true, without_scope_info: false}}}}]`,
		},
		{
			// Metrics that the Collector counts between components have only their scopes.
			name: "with scopes of components that the page does not show", start: startScoped,
			telemetry: `views: [{selector: {instrument_name: "otelcol.*"}, stream: {aggregation: {drop: {}}}}]`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := newDoubled(t)
			c := test.start(t, d.configuration(t)+"  telemetry: {metrics: {"+test.telemetry+"}}\n")
			d.play(t)
			for _, want := range []struct {
				metric, kind, id string
				first, second    float64
			}{
				{eventsReceived, "receiver", "bytefrog", events, 2 * events},
				{runsEnded, "receiver", "bytefrog", 1, 2},
				{lttngEvents, "receiver", "lttng_live", 152, 245},
				{agentsNow, "receiver", "lttng_jul", 1, 2},
				{rbkitServers, "receiver", "rbkit", 1, 2},
				{"otelcol_receiver_greys_servers", "receiver", "greys", 1, 2},
				{"otelcol_receiver_arthas_server_up", "receiver", "arthas", 1, 2},
				{eventsTaken, "processor", "stack_pairing", events + called, 2 * events},
				{spansFolded, "exporter", "flame_graph", spans, 2 * spans},
				{"otelcol_exporter_perfetto_slices", "exporter", "perfetto", spans, 2 * spans},
				{"otelcol_extension_agent_control_agents", "extension", "agent_control", 1, 1 + 2 + 9},
				{"otelcol_extension_memory_budget_limit", "extension", "memory_budget", 64 << 20, 128 << 20},
			} {
				for id, number := range map[string]float64{want.id: want.first, want.id + "/second": want.second} {
					testkit.Eventually(t, want.metric+" of "+id, func() (bool, string) {
						got := c.Look(t).Sum(want.metric, fmt.Sprintf("%s=%q", want.kind, id))
						return got == number, fmt.Sprintf("expected %v, got %v", number, got)
					})
				}
			}
			for file, id := range map[string]string{"first.json": "otlp_json_file", "second.json": "otlp_json_file/second"} {
				// The file gets spans after the flame graph.
				testkit.Eventually(t, "the size of "+file, func() (bool, string) {
					written, err := os.Stat(filepath.Join(c.Dir, file))
					require.NoError(t, err)
					counted := c.Metric(t, "otelcol_exporter_otlp_json_file_bytes", fmt.Sprintf("exporter=%q", id))
					return counted > 0 && counted == float64(written.Size()), fmt.Sprint(counted, written.Size())
				})
			}
			checkOwnMetrics(t, c)
		})
	}
}

func startScoped(t testing.TB, configuration string) *kit.Collector {
	return kit.StartGated(t, "telemetry.newPipelineTelemetry", configuration)
}

// checkOwnMetrics checks that the page of the collector's own metrics is complete, and that the
// labels of each series are the attributes in the component's metadata.yaml.
func checkOwnMetrics(t testing.TB, c *kit.Collector) {
	t.Helper()
	response, err := http.Get(c.MetricsURL())
	require.NoError(t, err)
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", page)
	described := describedAttributes(t)
	seen, checked := map[string]bool{}, 0
	for line := range strings.Lines(string(page)) {
		series, _, _ := strings.Cut(line, "} ")
		assert.False(t, seen[series] && !strings.HasPrefix(line, "#"), "twice: %s", series)
		seen[series] = true
		name, labels, _ := strings.Cut(series, "{")
		name = strings.TrimPrefix(name, "otelcol_")
		for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
			if want, ours := described[strings.TrimSuffix(name, suffix)]; ours {
				var got []string
				for _, label := range labelName.FindAllStringSubmatch(labels, -1) {
					if label[1] != "le" && !strings.HasPrefix(label[1], "service_") && !strings.HasPrefix(label[1], "otel_scope_") {
						got = append(got, label[1])
					}
				}
				assert.ElementsMatch(t, want, got, line)
				checked++
				break
			}
		}
	}
	assert.Greater(t, checked, 100)
}

var labelName = regexp.MustCompile(`([a-z_]+)="`)

// describedAttributes are those of all components' own metrics, by the metric's name.
func describedAttributes(t testing.TB) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("../*/*/metadata.yaml")
	require.NoError(t, err)
	all := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var component struct {
			Attributes map[string]struct {
				Name string `yaml:"name_override"`
			}
			Telemetry struct {
				Metrics map[string]struct{ Attributes []string }
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &component), file)
		for name, metric := range component.Telemetry.Metrics {
			names := slices.Clone(metric.Attributes)
			for i, attribute := range names {
				if other := component.Attributes[attribute].Name; other != "" {
					names[i] = other
				}
			}
			all[name] = names
		}
	}
	require.NotEmpty(t, all)
	return all
}
