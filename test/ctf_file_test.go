// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/lttng"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
	"github.com/callbraid/callbraid/test/kit"
)

// Recorded CTF traces: those of captures, and those that LTTng's daemons record now. The built distribution reads them.

// Metrics of the receiver.
const (
	ctfEvents  = "otelcol_receiver_ctf_file_events"
	ctfDamaged = "otelcol_receiver_ctf_file_packets_damaged"
)

// fileReader configures a collector that reads the traces in a directory. It writes spans to a file, and log records to
// another.
func fileReader(dir, receiver string) string {
	return fmt.Sprintf(`
receivers:
  ctf_file:
    include: [%q]
    batch: {max_delay: 20ms}
    symbol_paths: ["/"]
    %s
processors: {stack_pairing: {span_attributes: {sequence: true, function_text: true}}}
exporters:
  file/spans: %s
  file/logs: {path: "${env:DIR}/logs.json"}
service:
  pipelines:
    traces: {receivers: [ctf_file], processors: [stack_pairing], exporters: [file/spans]}
    logs: {receivers: [ctf_file], exporters: [file/logs]}
`, dir, receiver, kit.FileExporter("spans.bin"))
}

// callStreams returns the IDs of the call streams of all log records.
func callStreams(t *testing.T, c *kit.Collector) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	eachLog(t, c, func(resource pcommon.Resource, _ plog.LogRecord) {
		id, _ := resource.Attributes().Get("service.instance.id")
		ids[id.Str()] = true
	})
	return ids
}

// A collector that reads traces once ends by itself, and has delivered everything.
func TestACollectorEndsAfterTheLastTrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	events, spans := 0, 0
	for _, capture := range lttngCaptures {
		if capture.name == "meta1" {
			continue // its trace was not stored
		}
		require.NoError(t, os.CopyFS(filepath.Join(dir, capture.name), lttngdata.OpenCapture(t, capture.name)))
		events += capture.events
		spans += capture.spans
	}
	c := kit.Run(t, fileReader(dir, "at_end: stop_collector"))
	assert.Len(t, readLogs(t, c), events)
	assert.Len(t, readSpans(t, c), spans)
	assert.Contains(t, c.Log(), "All traces are read")
}

func TestTheShippedConfigurationShowsARecordedTrace(t *testing.T) {
	t.Parallel()
	dir, data, pages := t.TempDir(), t.TempDir(), testkit.Address(t)
	require.NoError(t, os.CopyFS(dir, lttngdata.OpenCapture(t, "cygok")))
	c := kit.Start(t, shipped(t, "ctf-file.yaml", map[string]string{
		"endpoint: localhost:13133": "${env:HEALTH}", "endpoint: localhost:8889": testkit.Address(t), "endpoint: localhost:4040": pages,
	}), "CTF_TRACE="+dir, "CALLBRAID_DATA="+data)
	awaitSaid(t, c, "All traces are read", 1)
	testkit.Eventually(t, "the function main in the flame graph", func() (bool, string) {
		response, err := http.Get("http://" + pages + "/")
		if err != nil {
			return false, err.Error()
		}
		defer response.Body.Close() // only read
		text, err := io.ReadAll(response.Body)
		return err == nil && strings.Contains(string(text), "unknown_service:cyg"), string(text)
	})
	c.Stop(t)
	records := 0
	eachLogIn(t, filepath.Join(data, "ctf-file", "logs.json"), func(pcommon.Resource, pcommon.InstrumentationScope, plog.LogRecord) { records++ })
	assert.Equal(t, 245, records)
}

// The stored trace is a process that reads a file, waits for a disk, and is woken by an interrupt on another CPU.
func TestTheShippedConfigurationShowsARecordedTraceOfTheKernel(t *testing.T) {
	t.Parallel()
	data, pages, numbers := t.TempDir(), testkit.Address(t), testkit.Address(t)
	dir, err := filepath.Abs("../testdata/lttng/kernel")
	require.NoError(t, err)
	c := kit.Start(t, shipped(t, "ctf-file-kernel.yaml", map[string]string{
		"endpoint: localhost:13133": "${env:HEALTH}", "endpoint: localhost:8889": numbers, "endpoint: localhost:4040": pages,
		"interval: 5s": "200ms",
	}), "CTF_TRACE="+dir, "CALLBRAID_DATA="+data)
	want := []string{"block 8:0", "irq 11", "off CPU", "on CPU web", "on CPU web", "read", "waiting for a CPU"}
	awaitSaid(t, c, "All traces are read", 1)
	testkit.Eventually(t, "the process in the flame graph", func() (bool, string) {
		text := fetch(t, "http://"+pages+"/")
		return strings.Contains(text, "unknown_service:web"), text
	})
	testkit.Eventually(t, "metrics of all calls", func() (bool, string) {
		text := fetch(t, "http://"+numbers+"/metrics")
		return !slices.ContainsFunc(want, func(name string) bool {
			return !strings.Contains(text, fmt.Sprintf("code_function_calls_total{code_function_name=%q", name))
		}), text
	})
	c.Stop(t)
	records := 0
	eachLogIn(t, filepath.Join(data, "ctf-file-kernel", "logs.json"), func(pcommon.Resource, pcommon.InstrumentationScope, plog.LogRecord) { records++ })
	assert.Equal(t, 12, records)
	var whole []string
	eachTracesLine(t, filepath.Join(data, "ctf-file-kernel"), func(traces ptrace.Traces) {
		for _, resource := range traces.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					if _, truncated := span.Attributes().Get("callbraid.truncated"); !truncated {
						whole = append(whole, span.Name())
					}
				}
			}
		}
	})
	slices.Sort(whole)
	assert.Equal(t, want, whole)
}

// The files of the relay daemon have the same events, calls and call streams as its live session. Numbers and IDs of calls
// can differ here: events of two CPUs with the same time have no order.
func TestARecordingOfLTTngHasTheCallsOfItsLiveSession(t *testing.T) {
	t.Parallel()
	daemons := lttng.Start(t)
	live := kit.Start(t, reader(daemons.Relay.Live))
	session := daemons.Create(t, lttng.Session{Name: "both"})
	p := runC(t, daemons, daemons.BuildC(t, callsInC), "3", "20", "4", "0")
	session.Destroy(t)
	awaitClosed(t, live, 1)
	live.Stop(t)
	recorded := kit.Run(t, fileReader(daemons.Relay.Output, "at_end: stop_collector"))
	requireRecorded(t, daemons, recorded)
	requireAll(t, readStreams(t, recorded, "spans.bin"), p, "both")
	assert.Len(t, readSpans(t, recorded), len(readSpans(t, live)))
	requireLines(t, readSpans(t, live), callsInC)
	requireLines(t, readSpans(t, recorded), callsInC)
	assert.Equal(t, callStreams(t, live), callStreams(t, recorded))
}

// The session daemon writes the files itself, and rotates them while the program runs.
func TestARotatedRecordingIsWatched(t *testing.T) {
	t.Parallel()
	daemons := lttng.Start(t)
	output := filepath.Join(daemons.Dir, "recorded")
	session := daemons.Create(t, lttng.Session{Name: "rotated", Output: output})
	c := kit.Start(t, fileReader(output+"/**", "mode: watch\n    max_delay: 200ms\n    end_after: 10m\n    poll_interval: 100ms"))
	p := daemons.StartC(t, daemons.BuildC(t, callsInC), "3", "20", "4", "0")
	p.Step(t)
	session.Rotate(t)
	testkit.Eventually(t, "events of the first chunk", func() (bool, string) {
		n := c.Metric(t, ctfEvents)
		return n > 0, fmt.Sprint(n)
	})
	p.End(t)
	session.Destroy(t)
	want, _ := lttng.Recorded(t, output)
	testkit.Eventually(t, "all events", func() (bool, string) {
		n := int(c.Metric(t, ctfEvents))
		return n >= len(want), fmt.Sprint(n, " of ", len(want))
	})
	assert.Zero(t, c.Metric(t, ctfDamaged))
	c.Stop(t)
	slices.SortFunc(want, orderOfEvents)
	require.Equal(t, want, logged(t, c))
	// A rotation empties all buffers, as lttng stop does. So calls that are open then may be truncated.
	requireNothingWrong(t, readStreams(t, c, "spans.bin"), p, "rotated", lttng.ClockOffsets(t, output))
}

// The collector can have read all before it listens to signals.
func TestACollectorWithoutTracesEndsInOrder(t *testing.T) {
	t.Parallel()
	for range 30 {
		c := kit.Run(t, fileReader(t.TempDir(), "at_end: stop_collector"))
		require.Contains(t, c.Log(), "Shutdown complete")
	}
}
