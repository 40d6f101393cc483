// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/prometheus"
)

// These tests run the built distribution with Arthas servers that agentsim simulates.

// arthasServer has the address of a simulated server, and of the collector's metrics.
type arthasServer struct{ endpoint, metrics string }

func newArthasServer(t testing.TB) arthasServer {
	return arthasServer{testkit.Address(t), testkit.Address(t)}
}

func (s arthasServer) url() string { return "http://" + s.endpoint }

// client configures a collector with the server, with pipelines for all signals. The state of open sessions is in a folder.
func (s arthasServer) client(folder, receiver string) string {
	return fmt.Sprintf(`
extensions:
  file_storage: {directory: %q}
receivers:
  arthas:
    servers: [{endpoint: %q}]
    storage: file_storage
    poll_interval: 50ms
    idle_poll_interval: 50ms
    reconnect: {initial_interval: 10ms, max_interval: 100ms}
    collection_interval: 1s
    %s
exporters:
  file/spans: %s
  file/logs: {path: "${env:DIR}/logs.json"}
  file/metrics: {path: "${env:DIR}/metrics.json"}
  prometheus: {endpoint: %q, metric_expiration: 1h}
service:
  extensions: [health_check, pprof, file_storage]
  pipelines:
    traces: {receivers: [arthas], exporters: [file/spans]}
    logs: {receivers: [arthas], exporters: [file/logs]}
    metrics: {receivers: [arthas], exporters: [prometheus, file/metrics]}
`, folder, s.url(), receiver, kit.FileExporter("spans.bin"), s.metrics)
}

// play runs a server until it is stopped, or the test ends.
func (s arthasServer) play(t *testing.T, arguments ...string) *playedServer {
	t.Helper()
	return playServer(t, "arthas", s.endpoint, arguments...)
}

// Every result that the server has sent without a fault is a number or a span exactly once: over lost answers, ended
// sessions, interrupted commands, and a restart of the program.
func TestArthasSumsEqualTheServers(t *testing.T) {
	t.Parallel()
	server := newArthasServer(t)
	c := kit.Start(t, server.client(t.TempDir(), `
    monitors: [{class: "com.example.*", method: "*", cycle: 1s}]
    traces: [{class: "com.example.shop.Service3", method: "*", limit: -1}]`))
	seconds := greysSeconds(t)
	played := server.play(t, "--classes", "20", "--rate", "20", "--fault", "close,cut,not-json,interrupt,expire", "--fault-every", "20",
		"--restart-every", fmt.Sprintf("%ds", (seconds+1)/2), "--duration", fmt.Sprintf("%ds", seconds))
	played.wait()
	lives := played.lives()
	told := toldOf(lives)
	require.GreaterOrEqual(t, len(lives), 2)
	require.GreaterOrEqual(t, len(told), 2, "each life has reported calls")
	testkit.Eventually(t, "the loss of the server", func() (bool, string) {
		up := c.Metric(t, "otelcol_receiver_arthas_server_up")
		return up == 0, fmt.Sprint(up)
	})
	c.Stop(t)
	assert.Equal(t, told, countsOf(t, c))
	spans := readSpans(t, c)
	trees := int64(0)
	for _, life := range lives {
		trees += life.Trees
	}
	assert.Equal(t, trees, checkGreysSpans(t, spans), "a trace for each call tree")
	assert.NotContains(t, strings.ToLower(c.Log()), "panic")
	t.Logf("%d calls in %d lives, %d call trees, %d spans", told.sum(), len(lives), trees, len(spans))
}

// allArthasCommands has each kind of command, and a pattern that matches nothing.
const allArthasCommands = `
    monitors: [{class: "com.example.*", method: "*", cycle: 1s}]
    traces: [{class: "com.example.shop.Service1", method: "*", limit: 6}]
    stacks: [{class: "com.example.shop.Service1", method: "*", limit: 5}, {class: "com.nowhere.*", method: "*"}]
    watches: [{class: "com.example.shop.Service2", method: "*", limit: 4}]
    records: [{class: "com.example.shop.Service2", method: "*", limit: 3}]
    jvm: {interval: 1s}`

// arthasLogs are the log records that allArthasCommands causes, by their event.
var arthasLogs = map[string]int{
	"arthas.server.connected": 1, "arthas.server.gone": 1, "arthas.stack": 5, "arthas.watch": 4, "arthas.record": 3, "arthas.pattern.unmatched": 1,
}

func TestArthasServersAreRestoredAtTheEnd(t *testing.T) {
	t.Parallel()
	server := newArthasServer(t)
	played := server.play(t)
	c := kit.Start(t, server.client(t.TempDir(), allArthasCommands))
	const results = 6 + 5 + 4 + 3
	c.AwaitMetric(t, results+1, "otelcol_receiver_arthas_results") // and at least one cycle of the monitor
	testkit.Eventually(t, "calls to be counted", func() (bool, string) {
		got := countsOf(t, c)
		return got.sum() > 0, fmt.Sprint(got)
	})
	c.Stop(t)
	played.stop()
	lives := played.lives()
	require.Len(t, lives, 1)
	assert.Zero(t, lives[0].Enhanced)
	assert.Zero(t, lives[0].Sessions)
	assert.Positive(t, lives[0].Resets)
	assert.EqualValues(t, 6, checkGreysSpans(t, readSpans(t, c)))
	said := map[string]int{}
	eachLog(t, c, func(resource pcommon.Resource, r plog.LogRecord) {
		said[r.EventName()]++
		version, _ := resource.Attributes().Get("arthas.server.version")
		assert.Equal(t, "4.3.4", version.Str())
		pid, _ := resource.Attributes().Get("process.pid")
		assert.Equal(t, lives[0].ProcessID, pid.Int())
	})
	assert.Equal(t, arthasLogs, said)
}

// A killed collector leaves sessions and instrumented classes. The next one ends them, because it knows them from the storage.
func TestSessionsOfAKilledCollectorAreEnded(t *testing.T) {
	t.Parallel()
	server, folder := newArthasServer(t), t.TempDir()
	played := server.play(t)
	configuration := server.client(folder, `
    monitors: [{class: "com.example.*", method: "*", cycle: 1s}]
    stacks: [{class: "com.example.shop.Service1", method: "*", limit: -1}]`)
	killed := kit.Start(t, configuration)
	killed.AwaitMetric(t, 2, "otelcol_receiver_arthas_results")
	killed.Kill()
	next := kit.Start(t, strings.Replace(configuration, server.metrics, testkit.Address(t), 1))
	next.AwaitMetric(t, 2, "otelcol_receiver_arthas_leftover_sessions")
	next.AwaitMetric(t, 2, "otelcol_receiver_arthas_results")
	next.Stop(t)
	played.stop()
	lives := played.lives()
	require.Len(t, lives, 1)
	assert.Zero(t, lives[0].Enhanced)
	assert.Zero(t, lives[0].Sessions)
}

// arthasMetrics are the types of all metrics in Prometheus.
var arthasMetrics = map[string]string{
	"arthas_gc_collections_total": "counter", "arthas_gc_time_seconds_total": "counter",
	"java_method_calls_total": "counter", "java_method_failures_total": "counter", "java_method_time_seconds_total": "counter",
	"java_method_duration_mean_seconds": "gauge", "java_method_failure_ratio": "gauge",
	"jvm_class_count": "gauge", "jvm_class_loaded_total": "counter", "jvm_class_unloaded_total": "counter", "jvm_cpu_count": "gauge",
	"jvm_memory_committed_bytes": "gauge", "jvm_memory_limit_bytes": "gauge", "jvm_memory_used_bytes": "gauge",
	"jvm_system_cpu_load_1m": "gauge", "jvm_thread_count": "gauge",
	"target_info": "gauge", // the exporter's metric of resources
}

func TestPrometheusHasTheNumbersOfArthasServers(t *testing.T) {
	t.Parallel()
	server := newArthasServer(t)
	c := kit.Start(t, server.client(t.TempDir(), `
    monitors: [{class: "com.example.*", method: "*", cycle: 1s}]
    jvm: {interval: 1s}`))
	p := prometheus.Start(t, server.metrics)
	played := server.play(t, "--rate", "300", "--classes", "3", "--methods", "2", "--failures", "0.2", "--in-flight", "2")
	p.Await(t, "count(java_method_calls_total > 50)", 6)
	p.Await(t, "count(java_method_failures_total > 5)", 6)
	// No call takes the time since the host booted, which is 20 minutes.
	p.Await(t, "count(java_method_time_seconds_total / java_method_calls_total < 1)", 6)
	for expression, value := range map[string]float64{
		`jvm_memory_used_bytes{jvm_memory_pool_name="g1_eden_space",jvm_memory_type="heap"}`: 14680064,
		`jvm_memory_limit_bytes{jvm_memory_pool_name="g1_old_gen"}`:                          268435456,
		`arthas_gc_collections_total{jvm_gc_name="g1_young_generation"}`:                     8,
		`arthas_gc_time_seconds_total`:                                                       0.107,
		`jvm_thread_count{jvm_thread_daemon="false",jvm_thread_state="runnable"}`:            2,
		`jvm_class_count`:        5575,
		`jvm_class_loaded_total`: 5580,
		`jvm_cpu_count`:          2,
	} {
		p.Await(t, expression, value)
	}
	want := map[string]string{}
	for name, kind := range arthasMetrics {
		want[name] = kind
	}
	testkit.Eventually(t, "all metrics to be known", func() (bool, string) {
		got := map[string]string{}
		for name, m := range p.Metadata(t) {
			got[name] = m.Type
		}
		return assert.ObjectsAreEqual(want, got), fmt.Sprint(got)
	})
	played.stop()
	for process, methods := range toldOf(played.lives()) {
		for name, of := range methods {
			here := fmt.Sprintf("{code_function_name=%q}", name)
			p.Await(t, "java_method_calls_total"+here, float64(of[0]))
			p.Await(t, "java_method_failures_total"+here, float64(of[1]))
		}
		p.Await(t, fmt.Sprintf(`count(target_info{process_pid="%d"})`, process), 1)
	}
	c.Stop(t)
	assert.NotContains(t, strings.ToLower(c.Log()), "panic")
}

// telnet serves the telnet port of Arthas: it is silent about a request, and greets other clients.
func telnet(t *testing.T, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				first := make([]byte, 1)
				if _, err := conn.Read(first); err == nil && first[0] != 'P' {
					_, _ = io.WriteString(conn, "\xff\xfb\x01\xff\xfb\x03")
				}
				_, _ = io.Copy(io.Discard, conn)
			}()
		}
	}()
}

func TestOneLineNamesWhatIsWrongWithAnArthasServer(t *testing.T) {
	t.Parallel()
	absent, console, greys, locked, old, working := newArthasServer(t), newArthasServer(t), newGreysServer(t), newArthasServer(t), newArthasServer(t), newArthasServer(t)
	telnet(t, console.endpoint)
	greys.play(t, "--protocol", "console")
	locked.play(t, "--user", "arthas", "--password", "secret", "--password-locally")
	old.play(t, "--server-version", "3.3.9")
	working.play(t, "--user", "arthas", "--password", "secret", "--password-locally", "--fault", "expire", "--fault-times", "1")
	c := kit.Start(t, fmt.Sprintf(`
receivers:
  arthas:
    servers:
      - endpoint: http://%s
      - endpoint: http://%s
      - endpoint: http://%s
      - endpoint: http://%s
      - {endpoint: "http://%s", username: arthas, password: secret}
      - {endpoint: "http://%s", username: arthas, password: secret}
    stacks: [{class: "com.example.*", method: "*", limit: -1}]
    reconnect: {initial_interval: 10ms, max_interval: 100ms}
exporters: {nop: }
service: {pipelines: {logs: {receivers: [arthas], exporters: [nop]}}}
`, absent.endpoint, console.endpoint, greys.endpoint, locked.endpoint, old.endpoint, working.endpoint))
	const unreachable, repeated = "The server cannot be reached, or was lost", "A command was lost: the receiver sends it again"
	for _, want := range []struct{ endpoint, line, text string }{
		{absent.endpoint, unreachable, "nothing listens at the port: Arthas is not attached, or was stopped"},
		{console.endpoint, unreachable, "a telnet server answers, such as Arthas at port 3658: use the HTTP port of Arthas, which is 8563 by default"},
		{greys.endpoint, unreachable, "a Greys server answers, and not Arthas: use the receiver greys"},
		{locked.endpoint, unreachable, "the server wants a user and a password, or refuses those that were sent"},
		{old.endpoint, unreachable, `the version of Arthas is not supported: expected 3.4 or newer, received \"3.3.9\"`},
		{working.endpoint, repeated, "session not found"},
	} {
		testkit.Eventually(t, want.text, func() (bool, string) {
			for line := range strings.Lines(c.Log()) {
				if strings.Contains(line, want.line) && strings.Contains(line, `"server": "http://`+want.endpoint) && strings.Contains(line, want.text) {
					return true, ""
				}
			}
			return false, c.Log()
		})
	}
	c.Stop(t)
	assert.NotContains(t, c.Log(), "secret")
}

// The shipped configuration works unchanged: only addresses and folders are other ones.
func TestTheConfigurationOfArthasWorks(t *testing.T) {
	t.Parallel()
	server, data := newArthasServer(t), t.TempDir()
	played := server.play(t, "--rate", "20")
	c := kit.Start(t, shipped(t, "arthas.yaml", map[string]string{
		"endpoint: localhost:13133": "${env:HEALTH}", "endpoint: http://localhost:8563": server.url(), "endpoint: localhost:8889": server.metrics,
	}), "CALLBRAID_DATA="+data)
	c.AwaitMetric(t, 111, "otelcol_receiver_arthas_results") // 100 call trees, 10 stacks, and a cycle
	c.Stop(t)
	played.stop()
	assert.FileExists(t, filepath.Join(data, "arthas", "spans.json"))
	assert.FileExists(t, filepath.Join(data, "arthas", "logs.json"))
	assert.Zero(t, played.lives()[0].Enhanced)
}

// The same holds for the configuration with the profiler: the flame graphs have the functions of the program.
func TestTheConfigurationOfArthasProfilesWorks(t *testing.T) {
	t.Parallel()
	server, pages := newArthasServer(t), testkit.Address(t)
	played := server.play(t, "--rate", "50")
	c := kit.Start(t, shipped(t, "arthas-profiles.yaml", map[string]string{
		"endpoint: localhost:13133": "${env:HEALTH}", "endpoint: http://localhost:8563": server.url(), "endpoint: localhost:8889": server.metrics,
		"endpoint: localhost:4040": pages, "period: 30s": "2s",
	}), "CALLBRAID_DATA="+t.TempDir())
	testkit.Eventually(t, "the time of two periods", func() (bool, string) {
		if done := c.Metric(t, "otelcol_receiver_arthas_profile_periods", `outcome="done"`); done < 2 {
			return false, fmt.Sprint(done)
		}
		stacks, all := foldedStacks(t, fetch(t, "http://"+pages+"/services/unknown_service:java/profiles/cpu/nanoseconds/profile.folded"))
		for stack := range stacks {
			if !strings.Contains(stack, "com.example.shop.Service") {
				return false, stack
			}
		}
		return all > 0, fmt.Sprint(stacks)
	})
	c.Stop(t)
	played.stop()
	assert.False(t, played.lives()[0].Profiling)
	assert.NotContains(t, c.Log(), "service.profilesSupport")
}
