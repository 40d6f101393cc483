// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/prometheus"
)

// These tests run the built distribution with Greys servers that agentsim simulates, in both protocols.

// greysProtocols are the protocols of a server.
var greysProtocols = []string{"gp", "console"}

// greysServer has the address of a simulated server, and of the collector's metrics.
type greysServer struct{ endpoint, metrics string }

func newGreysServer(t testing.TB) greysServer {
	return greysServer{testkit.Address(t), testkit.Address(t)}
}

// client configures a collector with the server, with pipelines for all signals.
func (s greysServer) client(receiver string) string {
	return fmt.Sprintf(`
receivers:
  greys:
    servers: [{endpoint: %q}]
    gp: {codes: {session: 7, stack: 8, tt_list: 9, tt_detail: 10}, tt_interval: 1s, probe_timeout: 500ms}
    reconnect: {initial_interval: 10ms, max_interval: 100ms}
    collection_interval: 1s
    %s
exporters:
  file/spans: %s
  file/logs: {path: "${env:DIR}/logs.json"}
  file/metrics: {path: "${env:DIR}/metrics.json"}
  prometheus: {endpoint: %q, metric_expiration: 1h}
service:
  pipelines:
    traces: {receivers: [greys], exporters: [file/spans]}
    logs: {receivers: [greys], exporters: [file/logs]}
    metrics: {receivers: [greys], exporters: [prometheus, file/metrics]}
`, s.endpoint, receiver, kit.FileExporter("spans.bin"), s.metrics)
}

// greysLife has the counts of one life of a server, in agentsim's format.
type greysLife struct {
	ProcessID int64 `json:"process_id"`
	// Made are the calls of the process, and Told those that monitors have reported.
	Made, Told map[string]struct{ Calls, Failed int64 }
	// Enhanced is the number of instrumented classes, and Resets the number of restored ones. Sessions are those that are open.
	Enhanced, Resets, Sessions int64
	// Trees and Records are the counts that clients received, and Missed the count that they were too slow for.
	// Recorded is the number of recorded calls, which GP lists.
	Trees, Records, Missed, Recorded int64
	// Profiling means that the profiler of an Arthas server runs.
	Profiling bool
}

// playedServer is a simulated server.
type playedServer struct {
	t          *testing.T
	truth      string
	stop, wait func()
}

// play runs a server until it is stopped, or the test ends.
func (s greysServer) play(t *testing.T, arguments ...string) *playedServer {
	t.Helper()
	return playServer(t, "greys", s.endpoint, arguments...)
}

// playServer runs a command of agentsim that plays a server, until the server is stopped, or the test ends.
func playServer(t *testing.T, name, endpoint string, arguments ...string) *playedServer {
	t.Helper()
	p := &playedServer{t: t, truth: filepath.Join(t.TempDir(), "truth.json")}
	arguments = append([]string{name, "--listen", endpoint, "--truth", p.truth}, arguments...)
	command := exec.Command(kit.AgentSim(t), arguments...)
	output := &testkit.Output{}
	command.Stdout, command.Stderr = output, output
	require.NoError(t, command.Start())
	p.wait = sync.OnceFunc(func() { _ = command.Wait() }) // its output shows how it ended
	p.stop = sync.OnceFunc(func() {
		_ = command.Process.Signal(os.Interrupt) // it may have ended already
		p.wait()
	})
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("agentsim said:\n%s", output)
		}
	})
	return p
}

// lives returns the counts after the end of the server.
func (p *playedServer) lives() (lives []greysLife) {
	p.t.Helper()
	text, err := os.ReadFile(p.truth)
	require.NoError(p.t, err)
	require.NoError(p.t, json.Unmarshal(text, &lives))
	return lives
}

// greysCounts are calls and failures by process and method.
type greysCounts map[int64]map[string][2]int64

// toldOf returns the counts that the server has reported.
func toldOf(lives []greysLife) greysCounts {
	counts := greysCounts{}
	for _, life := range lives {
		for name, of := range life.Told {
			counts.add(life.ProcessID, name, 0, of.Calls)
			counts.add(life.ProcessID, name, 1, of.Failed)
		}
	}
	return counts
}

func (c greysCounts) add(process int64, name string, at int, n int64) {
	if c[process] == nil {
		c[process] = map[string][2]int64{}
	}
	of := c[process][name]
	of[at] += n
	c[process][name] = of
}

// countsOf returns the last counts that the collector has written. A decreasing sum is an error.
func countsOf(t *testing.T, c *kit.Collector) greysCounts {
	t.Helper()
	counts := greysCounts{}
	eachLine(t, filepath.Join(c.Dir, "metrics.json"), func(line json.RawMessage) {
		metrics, err := new(pmetric.JSONUnmarshaler).UnmarshalMetrics(line)
		require.NoError(t, err)
		for _, resource := range metrics.ResourceMetrics().All() {
			pid, _ := resource.Resource().Attributes().Get("process.pid")
			for _, m := range resource.ScopeMetrics().At(0).Metrics().All() {
				at, is := map[string]int{"java.method.calls": 0, "java.method.failures": 1}[m.Name()]
				if !is {
					continue
				}
				for _, p := range m.Sum().DataPoints().All() {
					function, _ := p.Attributes().Get("code.function.name")
					name := function.Str()
					more := p.IntValue() - counts[pid.Int()][name][at]
					require.GreaterOrEqual(t, more, int64(0), "%v fell", name)
					counts.add(pid.Int(), name, at, more)
				}
			}
		}
	})
	return counts
}

// sum returns the calls of all processes.
func (c greysCounts) sum() (calls int64) {
	for _, methods := range c {
		for _, of := range methods {
			calls += of[0]
		}
	}
	return calls
}

// greysSeconds is how long servers with load run: short in `make test`, and a minute with
//
//	CALLBRAID_GREYS_SECONDS=60 make e2e-test E2E_ONLY=GreysSums
func greysSeconds(t testing.TB) int {
	t.Helper()
	text := os.Getenv("CALLBRAID_GREYS_SECONDS")
	if text == "" {
		return 14
	}
	seconds, err := strconv.Atoi(text)
	require.NoError(t, err)
	return seconds
}

// treesASecond is the minimum rate of call trees, or of recorded calls.
const treesASecond = 50

// The load is 500 methods in cycles of a second, and at least 50 call trees a second. By GP, which has no trees, it is
// recorded calls. Connections are lost, and the server is restarted half-way. On the console, only a part of 500
// methods can have a command of their own, and 10 methods all have one.
func TestGreysSumsEqualTheServers(t *testing.T) {
	t.Parallel()
	for _, protocol := range greysProtocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			seconds := greysSeconds(t)
			tt := "com.example.shop.Service20"
			if protocol == "gp" {
				tt = "com.example.*"
			}
			server := newGreysServer(t)
			c := kit.Start(t, server.client(`
    protocol: `+protocol+`
    monitors: [{class: "com.example.*", method: "*", cycle: 1s}]
    traces: [{class: "com.example.shop.Service11", method: "*", limit: -1}, {class: "com.example.shop.Service12", method: "*", limit: -1},
      {class: "com.example.shop.Service13", method: "*", limit: -1}, {class: "com.example.shop.Service14", method: "*", limit: -1}]
    tt: [{class: "`+tt+`", method: "*", limit: -1}]
    tt_details: false`))
			played := server.play(t, "--protocol", protocol, "--codes", "--classes", "50", "--methods", "10", "--rate", "500",
				"--record-every", "5", "--fault", "close,cut", "--fault-every", "40", "--fault-times", "4",
				"--restart-every", fmt.Sprintf("%ds", (seconds+1)/2), "--duration", fmt.Sprintf("%ds", seconds), "--end-delay", "20ms")
			played.wait()
			lives := played.lives()
			told := toldOf(lives)
			require.GreaterOrEqual(t, len(lives), 2)
			require.GreaterOrEqual(t, len(told), 2, "each life has reported calls")
			testkit.Eventually(t, "all reported calls to be read", func() (bool, string) {
				n := c.Metric(t, "otelcol_receiver_greys_servers")
				return n == 0, fmt.Sprint(n)
			})
			c.Stop(t)
			assert.Equal(t, told, countsOf(t, c))
			methods := map[string]bool{}
			for _, of := range told {
				for name := range of {
					methods[name] = true
				}
			}
			assert.Greater(t, len(methods), 100, "more methods than commands")
			spans := readSpans(t, c)
			roots := checkGreysSpans(t, spans)
			var trees, records, missed, recorded int64
			for _, life := range lives {
				trees, records = trees+life.Trees, records+life.Records
				missed, recorded = missed+life.Missed, recorded+life.Recorded
			}
			assert.Zero(t, missed)
			if protocol == "console" {
				assert.Equal(t, trees+records, roots, "a trace for each call tree and record")
				assert.GreaterOrEqual(t, trees, int64(treesASecond*seconds))
			} else {
				// Calls that were recorded after the last list of a life are not read.
				assert.LessOrEqual(t, roots, recorded)
				assert.GreaterOrEqual(t, roots, int64(treesASecond*seconds))
			}
			t.Logf("%d calls in %d lives, %d traces in %d s, %d spans", told.sum(), len(lives), roots, seconds, len(spans))
		})
	}
}

// checkGreysSpans checks that there are spans, that none is empty, and that all are inside their parents and follow
// each other. It returns the number of spans without a parent.
func checkGreysSpans(t *testing.T, spans []ptrace.Span) (roots int64) {
	t.Helper()
	require.NotEmpty(t, spans)
	type key struct {
		trace pcommon.TraceID
		span  pcommon.SpanID
	}
	byID, last := map[key]ptrace.Span{}, map[key]pcommon.Timestamp{}
	for _, s := range spans {
		of := key{s.TraceID(), s.SpanID()}
		_, twice := byID[of]
		require.False(t, twice, "each span was forwarded once")
		byID[of] = s
		require.Less(t, s.StartTimestamp(), s.EndTimestamp())
		name, _ := s.Attributes().Get("code.function.name")
		require.Contains(t, name.Str(), s.Name())
		if s.ParentSpanID().IsEmpty() {
			roots++
			continue
		}
		above := key{s.TraceID(), s.ParentSpanID()}
		parent, ok := byID[above]
		require.True(t, ok, "callers precede their callees")
		require.Less(t, parent.StartTimestamp(), s.StartTimestamp())
		require.Less(t, s.EndTimestamp(), parent.EndTimestamp())
		require.Less(t, last[above], s.StartTimestamp())
		last[above] = s.EndTimestamp()
	}
	return roots
}

func TestGreysServersAreRestoredAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, protocol := range greysProtocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			server := newGreysServer(t)
			played := server.play(t, "--protocol", protocol, "--codes", "--end-delay", "20ms")
			c := kit.Start(t, server.client(`
    monitors: [{class: "com.example.*", method: "*", cycle: 1s}]
    stacks: [{class: "com.example.shop.Service1", method: "*", limit: 5}]
    classes: [{class: "com.example.*"}]
    methods: [{class: "com.example.shop.Service3", method: "*"}, {class: "com.nowhere.*", method: "*"}]`))
			c.AwaitMetric(t, 4, "otelcol_receiver_greys_commands", `outcome="ended"`)
			testkit.Eventually(t, "calls to be counted", func() (bool, string) {
				got := countsOf(t, c)
				return got.sum() > 0, fmt.Sprint(got)
			})
			c.Stop(t)
			played.stop()
			lives := played.lives()
			require.Len(t, lives, 1)
			assert.Zero(t, lives[0].Enhanced)
			assert.Positive(t, lives[0].Resets)
			said := map[string]int{}
			eachLog(t, c, func(resource pcommon.Resource, r plog.LogRecord) {
				said[r.EventName()]++
				version, _ := resource.Attributes().Get("greys.server.version")
				assert.Equal(t, "1.7.6.6", version.Str())
			})
			assert.Equal(t, map[string]int{
				"greys.server.connected": 1, "greys.server.gone": 1, "greys.stack": 5, "greys.class": 10, "greys.method": 10, "greys.pattern.unmatched": 1,
			}, said)
		})
	}
}

// greysMetrics are the types of all metrics in Prometheus.
var greysMetrics = map[string]string{
	"greys_matched_classes": "gauge", "greys_matched_methods": "gauge", "greys_reconnects_total": "counter",
	"greys_replies_total": "counter", "greys_replies_bad_total": "counter", "greys_replies_missing_total": "counter", "greys_session_count": "gauge",
	"java_method_calls_total": "counter", "java_method_failures_total": "counter", "java_method_time_seconds_total": "counter",
	"java_method_duration_max_seconds": "gauge", "java_method_duration_mean_seconds": "gauge", "java_method_duration_min_seconds": "gauge",
	"java_method_failure_ratio": "gauge",
	"target_info":               "gauge", // the exporter's metric of resources
}

// greysOnly are metrics that only one protocol has: GP reports no shortest and longest call, and the console no
// sessions.
var greysOnly = map[string]string{
	"greys_session_count": "gp", "java_method_duration_max_seconds": "console", "java_method_duration_min_seconds": "console",
}

func TestPrometheusHasTheNumbersOfGreysServers(t *testing.T) {
	t.Parallel()
	for _, protocol := range greysProtocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			server := newGreysServer(t)
			c := kit.Start(t, server.client("protocol: "+protocol+`
    monitors: [{class: "com.example.*", method: "*", cycle: 1s}]`))
			p := prometheus.Start(t, server.metrics)
			played := server.play(t, "--protocol", protocol, "--codes", "--rate", "500", "--classes", "3", "--methods", "2", "--failures", "0.2", "--end-delay", "20ms")
			p.Await(t, "count(java_method_calls_total > 50)", 6)
			p.Await(t, "count(java_method_failure_ratio > 0)", 6)
			p.Await(t, `greys_matched_classes{greys_pattern="com.example.* *"}`, 3)
			p.Await(t, `greys_matched_methods{greys_command="monitor"}`, 6)
			want := map[string]string{}
			for name, kind := range greysMetrics {
				if only, is := greysOnly[name]; !is || only == protocol {
					want[name] = kind
				}
			}
			testkit.Eventually(t, "all metrics to be known", func() (bool, string) {
				got := map[string]string{}
				for name, m := range p.Metadata(t) {
					got[name] = m.Type
				}
				return assert.ObjectsAreEqual(want, got), fmt.Sprint(got)
			})
			played.stop()
			told := toldOf(played.lives())
			for process, methods := range told {
				for name, of := range methods {
					here := fmt.Sprintf("{code_function_name=%q}", name)
					p.Await(t, "java_method_calls_total"+here, float64(of[0]))
					p.Await(t, "java_method_failures_total"+here, float64(of[1]))
				}
				p.Await(t, fmt.Sprintf(`count(target_info{process_pid="%d"})`, process), 1)
			}
			c.Stop(t)
			assert.NotContains(t, strings.ToLower(c.Log()), "panic")
		})
	}
}
