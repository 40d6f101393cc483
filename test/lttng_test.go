// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/lttng/ctf/printed"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
	"github.com/callbraid/callbraid/test/kit"
)

// LTTng: agentsim replays captures of real sessions as a relay daemon, and the built distribution reads them.

// Metrics of the receiver.
const (
	lttngEvents    = "otelcol_receiver_lttng_live_events"
	lttngDiscarded = "otelcol_receiver_lttng_live_events_discarded"
	lttngCalls     = "otelcol_receiver_lttng_live_call_events"
	lttngBreaks    = "otelcol_receiver_lttng_live_breaks"
	lttngFailures  = "otelcol_receiver_lttng_live_connection_failures"
)

// viewer configures a collector that reads from a relay daemon. It writes spans to a file, and log records to
// another.
func viewer(endpoint, receiver string) string {
	return fmt.Sprintf(`
receivers:
  lttng_live:
    endpoint: %q
    poll: {list_interval: 20ms}
    reconnect: {initial_interval: 10ms, max_interval: 100ms}
    batch: {max_delay: 20ms}
    symbol_paths: ["${env:DIR}/root"]
    %s
processors: {stack_pairing: {span_attributes: {sequence: true, function_text: true}}}
exporters:
  file/spans: %s
  file/logs: {path: "${env:DIR}/logs.json"}
service:
  pipelines:
    traces: {receivers: [lttng_live], processors: [stack_pairing], exporters: [file/spans]}
    logs: {receivers: [lttng_live], exporters: [file/logs]}
`, endpoint, receiver, kit.FileExporter("spans.bin"))
}

func lttngCapture(name string) string {
	return filepath.Join("..", "testdata", "lttng", "live", name+".zip")
}

// relayDaemon replays captures until the test ends.
func relayDaemon(t *testing.T, endpoint string, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), kit.AgentSim(t), append([]string{"lttng", "--listen", endpoint}, arguments...)...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = testkit.Patience
	output := &strings.Builder{}
	command.Stdout, command.Stderr = output, output
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Wait() // interrupted, or ended by itself
		if t.Failed() {
			t.Logf("Output of agentsim:\n%s", output)
		}
	})
}

// readLogs returns the log records of a collector.
func readLogs(t *testing.T, c *kit.Collector) (records []plog.LogRecord) {
	t.Helper()
	eachLog(t, c, func(_ pcommon.Resource, r plog.LogRecord) { records = append(records, r) })
	return records
}

// eachLog calls f with the log records of a collector.
func eachLog(t *testing.T, c *kit.Collector, f func(pcommon.Resource, plog.LogRecord)) {
	t.Helper()
	eachLogIn(t, filepath.Join(c.Dir, "logs.json"), func(resource pcommon.Resource, _ pcommon.InstrumentationScope, r plog.LogRecord) { f(resource, r) })
}

// eachLogIn calls f with the log records in a file.
func eachLogIn(t *testing.T, path string, f func(pcommon.Resource, pcommon.InstrumentationScope, plog.LogRecord)) {
	t.Helper()
	eachLine(t, path, func(line json.RawMessage) {
		logs, err := new(plog.JSONUnmarshaler).UnmarshalLogs(line)
		require.NoError(t, err)
		for _, resource := range logs.ResourceLogs().All() {
			for _, scope := range resource.ScopeLogs().All() {
				for _, r := range scope.LogRecords().All() {
					f(resource.Resource(), scope.Scope(), r)
				}
			}
		}
	})
}

// readSpans returns the spans of a collector.
func readSpans(t *testing.T, c *kit.Collector) []ptrace.Span {
	t.Helper()
	var spans []ptrace.Span
	c.ReadTraces(t, "spans.bin", func(traces ptrace.Traces) {
		for _, resource := range traces.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					spans = append(spans, span)
				}
			}
		}
	})
	return spans
}

// lttngCapturedFigures are those of a capture.
type lttngCapturedFigures struct {
	name                            string
	events, calls, discarded, spans int
}

// Figures of the captures (testdata/README.md).
var lttngCaptures = []lttngCapturedFigures{
	{name: "jul1", events: 282, calls: 216, spans: 108},
	{name: "julctx", events: 18},
	{name: "cygok", events: 245, calls: 218, spans: 109},
	{name: "cyg1", events: 7_886, calls: 7_859, discarded: 8_951, spans: 2_009},
	{name: "tp1", events: 152},
	// It was recorded without vpid, so calls of different processes are not distinguishable.
	{name: "meta1", events: 656},
}

func TestSessionsOfARelayDaemonAreRead(t *testing.T) {
	t.Parallel()
	for _, capture := range lttngCaptures {
		t.Run(capture.name, func(t *testing.T) {
			t.Parallel()
			endpoint := testkit.Address(t)
			relayDaemon(t, endpoint, lttngCapture(capture.name))
			c := kit.Start(t, viewer(endpoint, ""))
			c.AwaitMetric(t, float64(capture.events), lttngEvents)
			c.AwaitMetric(t, float64(capture.discarded), lttngDiscarded)
			c.AwaitMetric(t, float64(capture.calls), lttngCalls)
			c.Stop(t)
			assert.Len(t, readLogs(t, c), capture.events)
			assert.Len(t, readSpans(t, c), capture.spans)
			assert.Equal(t, capture.name == "meta1", strings.Contains(c.Log(), "lttng add-context"))
		})
	}
}

// The program of the capture is not available. The output of nm for it is, and the capture contains its build ID.
// This is enough to make an object file with its functions.
func TestFunctionsOfACProgramHaveTheirNames(t *testing.T) {
	t.Parallel()
	events, err := printed.Events(lttngdata.CaptureText(t, "cygok", "babeltrace1-offline.txt"))
	require.NoError(t, err)
	// event returns the event with this name and field.
	event := func(name, field, value string) printed.Event {
		i := slices.IndexFunc(events, func(e printed.Event) bool { return e.Name == name && strings.HasSuffix(e.Field(field), value) })
		require.GreaterOrEqual(t, i, 0, name)
		return events[i]
	}
	number := func(text string) uint64 {
		n, err := strconv.ParseUint(text, 0, 64)
		require.NoError(t, err)
		return n
	}
	info := event("lttng_ust_statedump:bin_info", "path", "/cyg")
	id := event("lttng_ust_statedump:build_id", "baddr", info.Field("baddr"))
	var buildID []byte
	for _, digits := range regexp.MustCompile(`0x[0-9A-F]+`).FindAllString(id.Field("build_id"), -1) {
		buildID = append(buildID, byte(number(digits)))
	}
	require.Len(t, buildID, 20, id.Text)

	var functions []function
	for line := range strings.Lines(lttngdata.CaptureText(t, "cygok", "cyg.nm")) {
		fields := strings.Fields(line)
		functions = append(functions, function{fields[2], number("0x" + fields[0])})
	}
	slices.SortFunc(functions, func(a, b function) int { return int(a.offset) - int(b.offset) })

	root := t.TempDir()
	path := filepath.Join(root, info.Field("path"))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, program(t, buildID, number(info.Field("memsz")), functions), 0o644))

	endpoint := testkit.Address(t)
	relayDaemon(t, endpoint, lttngCapture("cygok"))
	c := kit.Start(t, strings.Replace(viewer(endpoint, ""), "${env:DIR}/root", root, 1))
	c.AwaitMetric(t, 218, lttngCalls)
	withoutLine := c.Metric(t, "otelcol_receiver_lttng_live_lines_unknown")
	c.Stop(t)

	// The number of entries of each function, by its address.
	want := map[string]int{}
	for _, e := range events {
		if strings.HasSuffix(e.Name, ":func_entry") {
			offset := number(e.Field("addr")) - number(info.Field("baddr"))
			i := slices.IndexFunc(functions, func(f function) bool { return f.offset == offset })
			require.GreaterOrEqual(t, i, 0)
			want[functions[i].name]++
		}
	}
	got := map[string]int{}
	for _, span := range readSpans(t, c) {
		got[span.Name()]++
		v, _ := span.Attributes().Get("code.function.name")
		assert.Equal(t, span.Name(), v.Str())
	}
	assert.Equal(t, want, got)
	assert.EqualValues(t, len(want), withoutLine, "the file has no debug information")
	assert.Equal(t, 1, strings.Count(c.Log(), "Functions of an object have no source lines: compile it with -g"))
}

func TestFaultsOfARelayDaemonDropNoEvents(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"hangup:20", "stall:20", "announce:20"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			endpoint := testkit.Address(t)
			relayDaemon(t, endpoint, "--fault", fault, "--fault-times", "3", lttngCapture("cyg1"))
			c := kit.Start(t, viewer(endpoint, "request_timeout: 300ms"))
			c.AwaitMetric(t, 7_886, lttngEvents)
			c.AwaitMetric(t, 7_859, lttngCalls)
			assert.GreaterOrEqual(t, c.Metric(t, lttngFailures), 3.0)
			c.Stop(t)
			assert.Len(t, readLogs(t, c), 7_886)
			assert.Len(t, readSpans(t, c), 2_009)
		})
	}
}

func TestARestartedCollectorContinuesToRead(t *testing.T) {
	t.Parallel()
	endpoint := testkit.Address(t)
	// The session does not end while no collector runs.
	relayDaemon(t, endpoint, "--speed", "4x", "--again", lttngCapture("cyg1"))
	storage := t.TempDir()
	configuration := strings.Replace(viewer(endpoint, "storage: file_storage"), "service:\n", fmt.Sprintf(`extensions: {file_storage: {directory: %q}}
service:
  extensions: [health_check, pprof, file_storage]
`, storage), 1)
	first := kit.Start(t, configuration)
	first.AwaitMetric(t, 500, lttngEvents)
	first.Stop(t)
	records := len(readLogs(t, first))
	second := kit.Start(t, configuration)
	testkit.Eventually(t, "all events", func() (bool, string) {
		n := records + int(second.Metric(t, lttngEvents))
		return n >= 7_886, strconv.Itoa(n)
	})
	second.Stop(t)
	assert.Equal(t, 7_886, records+len(readLogs(t, second)))
	seen := map[string]bool{}
	for _, c := range []*kit.Collector{first, second} {
		for _, span := range readSpans(t, c) {
			id := span.SpanID().String()
			assert.False(t, seen[id], "span %s is there twice", id)
			seen[id] = true
		}
	}
}
