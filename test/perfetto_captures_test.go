// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/perfettofile"
	"github.com/callbraid/callbraid/internal/testkit/traceprocessor"
	"github.com/callbraid/callbraid/test/kit"
)

// Trace files of captures have the spans, values and log records that the collector also wrote to other files: as this
// project's own reader shows them, and as Perfetto's trace_processor does, if it is there.

// traceFileWritten is the trace file of withTraceFile.
const traceFileWritten = "spans.perfetto-trace"

// withTraceFile adds the exporter perfetto to all pipelines of a configuration.
func withTraceFile(config string) string {
	const exporter = `perfetto: {path: "${env:DIR}/` + traceFileWritten + `"}`
	config = strings.Replace(config, "exporters: {file:", "exporters: {"+exporter+", file:", 1)
	config = strings.Replace(config, "exporters:\n", "exporters:\n  "+exporter+"\n", 1)
	for _, list := range []string{"[file]", "[file/spans]", "[file/logs]", "[file/metrics]", "[prometheus, file/metrics]"} {
		config = strings.ReplaceAll(config, "exporters: "+list, "exporters: [perfetto, "+list[1:])
	}
	return config
}

func TestTraceFilesOfCapturesHaveTheirSpansValuesAndLogRecords(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(t *testing.T) *kit.Collector{
		"bytefrog maven": func(t *testing.T) *kit.Collector {
			traceprocessor.Require(t) // the tests of the exporter compare it with this project's reader
			return bytefrogToTraceFile(t, "maven")
		},
		"bytefrog shop": func(t *testing.T) *kit.Collector { return bytefrogToTraceFile(t, "shop") },
		"lttng cyg1":    func(t *testing.T) *kit.Collector { return lttngToTraceFile(t, "cyg1") },
		"lttng cygok":   func(t *testing.T) *kit.Collector { return lttngToTraceFile(t, "cygok") },
		"lttng jul1":    func(t *testing.T) *kit.Collector { return lttngToTraceFile(t, "jul1") },
		"rbkit":         rbkitToTraceFile,
		"arthas":        arthasToTraceFile,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := play(t)
			// Arthas' trees have no exact times, so they may overlap.
			if name != "arthas" {
				assert.Zero(t, c.Metric(t, "otelcol_exporter_perfetto_overlapping_tracks"))
			}
			c.Stop(t)
			want := writtenBeside(t, c)
			require.NotEmpty(t, want.slices)
			path := filepath.Join(c.Dir, traceFileWritten)
			t.Logf("%d slices, %d values, %d log records, %d flows", len(want.slices), len(want.values), len(want.logs), want.flows)
			t.Run("own reader", func(t *testing.T) { want.compare(t, decoded(t, path)) })
			t.Run("trace_processor", func(t *testing.T) {
				traceprocessor.Require(t)
				want.compare(t, judged(t, path))
			})
		})
	}
}

func bytefrogToTraceFile(t *testing.T, capture string) *kit.Collector {
	endpoint := testkit.Address(t)
	// Messages of one connection do not overtake each other.
	c := kit.Start(t, withTraceFile(pipeline(endpoint, "agent: {data_connections: 1}, service_name: "+capture, "", "file: "+kit.FileExporter("spans.bin"))))
	agent{endpoint: endpoint, capture: capture}.complete(t)
	c.AwaitMetric(t, 1, runsEnded)
	return c
}

func lttngToTraceFile(t *testing.T, name string) *kit.Collector {
	capture := lttngCaptures[slices.IndexFunc(lttngCaptures, func(c lttngCapturedFigures) bool { return c.name == name })]
	endpoint := testkit.Address(t)
	relayDaemon(t, endpoint, lttngCapture(name))
	c := kit.Start(t, withTraceFile(viewer(endpoint, "")))
	c.AwaitMetric(t, float64(capture.events), lttngEvents)
	c.AwaitMetric(t, float64(capture.discarded), lttngDiscarded)
	c.AwaitMetric(t, float64(capture.calls), lttngCalls)
	return c
}

func rbkitToTraceFile(t *testing.T) *kit.Collector {
	server := newRbkitServer(t)
	c := kit.Start(t, withTraceFile(server.client("memory_profile: true", "")))
	server.play(t, "replay", rbkitCapture("released-30s"))
	c.AwaitMetric(t, 132, rbkitMessages)
	return c
}

func arthasToTraceFile(t *testing.T) *kit.Collector {
	server := newArthasServer(t)
	server.play(t)
	c := kit.Start(t, withTraceFile(server.client(t.TempDir(), allArthasCommands)))
	const results = 6 + 5 + 4 + 3
	c.AwaitMetric(t, results+1, "otelcol_receiver_arthas_results")
	return c
}

// drawing is the content of a trace file, as sorted texts.
type drawing struct {
	slices, values, logs []string
	// threads are the possible names of each thread. A file has one of them.
	threads map[string][]string
	// flows is the number of arrows. The captures have links only where a trace was cut: the call is inside its caller.
	flows int
}

func (want drawing) compare(t *testing.T, got drawing) {
	t.Helper()
	for what, texts := range map[string][2][]string{"slice": {want.slices, got.slices}, "value": {want.values, got.values}, "log record": {want.logs, got.logs}} {
		slices.Sort(texts[0])
		slices.Sort(texts[1])
		assert.Equal(t, len(texts[0]), len(texts[1]), "%ss", what)
		for i := range min(len(texts[0]), len(texts[1])) {
			if texts[0][i] != texts[1][i] {
				t.Errorf("first %s that differs:\n  expected %s\n  got      %s", what, texts[0][i], texts[1][i])
				break
			}
		}
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(want.threads)), slices.Collect(maps.Keys(got.threads)))
	for thread, names := range got.threads {
		assert.Subset(t, want.threads[thread], names, "names of %s", thread)
	}
	assert.Equal(t, want.flows, got.flows, "flows")
}

// ofThread describes a process and one of its threads, or no thread.
func ofThread(process string, pid int64, thread string) string {
	return fmt.Sprintf("process %q (%d), thread %s", process, pid, thread)
}

const noThread = "none"

func (s drawnCall) String() string {
	return fmt.Sprintf("%020d %d ns, depth %d, %q (%s) %s error=%v truncated=%q", s.start, s.duration, s.depth, s.name, s.function, s.thread, s.failed, s.truncated)
}

// drawnCall is a slice.
type drawnCall struct {
	start, duration           int64
	depth                     int
	name, function, truncated string
	thread                    string
	failed                    bool
}

func drawnValue(process string, at int64, counter, unit string, value float64) string {
	return fmt.Sprintf("%020d %q: %s = %g [%s]", at, process, counter, value, unit)
}

func drawnLog(at int64, thread, severity, body string) string {
	return fmt.Sprintf("%020d %s: %s %.100q", at, thread, severity, body)
}

func attributeText(m pcommon.Map, key string) string {
	if v, ok := m.Get(key); ok {
		return v.AsString()
	}
	return ""
}

// threadOf returns the thread of a span or a log record, and remembers its name.
func (want *drawing) threadOf(resource pcommon.Resource, attributes pcommon.Map) string {
	pid := int64(0)
	if v, ok := resource.Attributes().Get("process.pid"); ok {
		pid = v.Int()
	}
	process := cmp.Or(attributeText(resource.Attributes(), "service.name"), "unknown_service")
	id, ok := attributes.Get("thread.id")
	if !ok {
		return ofThread(process, pid, noThread)
	}
	thread := ofThread(process, pid, strconv.FormatInt(id.Int(), 10))
	want.threads[thread] = append(want.threads[thread], attributeText(attributes, "thread.name"))
	return thread
}

// writtenBeside is what the collector wrote to the other files. The depth of a span is the number of its callers.
func writtenBeside(t *testing.T, c *kit.Collector) (want drawing) {
	want.threads = map[string][]string{}
	type called struct {
		ptrace.Span
		thread string
	}
	var spans []called
	byID := map[pcommon.SpanID]called{}
	c.ReadTraces(t, "spans.bin", func(traces ptrace.Traces) {
		for _, resource := range traces.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, s := range scope.Spans().All() {
					of := called{s, want.threadOf(resource.Resource(), s.Attributes())}
					spans = append(spans, of)
					byID[s.SpanID()] = of
				}
			}
		}
	})
	for _, s := range spans {
		call := drawnCall{
			start: int64(s.StartTimestamp()), duration: int64(s.EndTimestamp() - s.StartTimestamp()), name: s.Name(), thread: s.thread,
			function: attributeText(s.Attributes(), "code.function.name"), truncated: attributeText(s.Attributes(), "callbraid.truncated"),
			failed: s.Status().Code() == ptrace.StatusCodeError,
		}
		for at := s; ; call.depth++ {
			id := at.ParentSpanID()
			if id.IsEmpty() && at.Links().Len() > 0 {
				id = at.Links().At(0).SpanID()
			}
			above, ok := byID[id]
			if !ok || above.thread != s.thread {
				break
			}
			at = above
		}
		want.slices = append(want.slices, call.String())
		for _, event := range s.Events().All() {
			instant := drawnCall{start: int64(event.Timestamp()), depth: call.depth + 1, name: event.Name(), thread: s.thread}
			want.slices = append(want.slices, instant.String())
		}
	}
	want.addLogs(t, c)
	want.addValues(t, c)
	return want
}

func (want *drawing) addLogs(t *testing.T, c *kit.Collector) {
	path := filepath.Join(c.Dir, "logs.json")
	if matches, _ := filepath.Glob(path); len(matches) == 0 {
		return
	}
	eachLogIn(t, path, func(resource pcommon.Resource, _ pcommon.InstrumentationScope, r plog.LogRecord) {
		body := r.Body().AsString()
		if r.Body().Type() == pcommon.ValueTypeMap || r.Body().Type() == pcommon.ValueTypeSlice {
			body = "" // it is in several annotations
		}
		severity := r.SeverityText()
		if severity == "" && r.SeverityNumber() != 0 {
			severity = strings.ToUpper(r.SeverityNumber().String())
		}
		want.logs = append(want.logs, drawnLog(int64(cmp.Or(r.Timestamp(), r.ObservedTimestamp())), want.threadOf(resource, r.Attributes()), severity, body))
	})
}

// addValues adds the points of gauges and sums, and counts and sums of histograms.
func (want *drawing) addValues(t *testing.T, c *kit.Collector) {
	path := filepath.Join(c.Dir, "metrics.json")
	if matches, _ := filepath.Glob(path); len(matches) == 0 {
		return
	}
	eachLine(t, path, func(line json.RawMessage) {
		metrics, err := new(pmetric.JSONUnmarshaler).UnmarshalMetrics(line)
		require.NoError(t, err)
		for _, resource := range metrics.ResourceMetrics().All() {
			process := cmp.Or(attributeText(resource.Resource().Attributes(), "service.name"), "unknown_service")
			for _, scope := range resource.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					want.addMetric(process, m)
				}
			}
		}
	})
}

func (want *drawing) addMetric(process string, m pmetric.Metric) {
	add := func(part, unit string, at pcommon.Timestamp, value float64) {
		if unit == "By" {
			unit = "bytes"
		}
		want.values = append(want.values, drawnValue(process, int64(at), m.Name()+part, unit, value))
	}
	numbers := func(points pmetric.NumberDataPointSlice) {
		for _, p := range points.All() {
			value := p.DoubleValue()
			if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
				value = float64(p.IntValue())
			}
			if !p.Flags().NoRecordedValue() {
				add("", m.Unit(), p.Timestamp(), value)
			}
		}
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		numbers(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		numbers(m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			add(" count", "", p.Timestamp(), float64(p.Count()))
			add(" sum", m.Unit(), p.Timestamp(), p.Sum())
		}
	}
}

// leastSyntheticPID is the least number of a process whose own one the file does not have.
const leastSyntheticPID = 1 << 30

func pidOf(pid int64) int64 {
	if pid >= leastSyntheticPID {
		return 0
	}
	return pid
}

// nameOfMetric returns the name of a counter without its attributes.
func nameOfMetric(counter string) string {
	name, _, _ := strings.Cut(counter, " {")
	return name
}

// decoded is a file as this project's reader shows it.
func decoded(t *testing.T, path string) (got drawing) {
	read, err := perfettofile.Open(path)
	require.NoError(t, err)
	got.threads = map[string][]string{}
	flows := map[uint64]int{}
	text := func(args map[string]any, key string) string {
		s, _ := args[key].(string)
		return s
	}
	for _, s := range read.Slices {
		thread := ofThread(s.Track.Process.Name, pidOf(s.Track.Process.PID), noThread)
		if s.Track.Thread != nil {
			thread = ofThread(s.Track.Process.Name, pidOf(s.Track.Process.PID), strconv.FormatInt(s.Track.Thread.TID, 10))
			got.threads[thread] = []string{s.Track.Thread.Name}
		}
		if slices.Contains(s.Categories, "log") {
			got.logs = append(got.logs, drawnLog(int64(s.Start), thread, text(s.Args, "severity"), text(s.Args, "body")))
			continue
		}
		require.False(t, s.Open)
		got.slices = append(got.slices, drawnCall{
			start: int64(s.Start), duration: int64(s.End - s.Start), depth: s.Depth, name: s.Name, thread: thread,
			function: text(s.Args, "source.function_name"), truncated: text(s.Args, "callbraid.truncated"), failed: slices.Contains(s.Categories, "error"),
		}.String())
		for _, flow := range s.Flows {
			if flows[flow]++; flows[flow] > 1 {
				got.flows++
			}
		}
	}
	for _, v := range read.Values {
		got.values = append(got.values, drawnValue(v.Track.Process.Name, int64(v.Time), nameOfMetric(v.Track.Name), v.Track.Counter.Unit, v.Value))
	}
	return got
}

// judged is a file as Perfetto's trace_processor shows it.
func judged(t *testing.T, path string) (got drawing) {
	hex := traceprocessor.Hex
	argument := func(name string) string { return hex("extract_arg(s.arg_set_id, '" + name + "')") }
	const tracks = ` left join thread_track tt on tt.id = s.track_id left join thread th on th.utid = tt.utid
		left join process_track pt on pt.id = s.track_id left join process p on p.upid = ifnull(th.upid, pt.upid) `
	results := traceprocessor.Query(t, path,
		"select s.ts, s.dur, s.depth, "+hex("s.name")+", "+hex("s.category")+", ifnull(th.tid, ''), "+hex("th.name")+", ifnull(p.pid, 0), "+hex("p.name")+", "+
			argument("source.function_name")+", "+argument("debug.callbraid_truncated")+", "+argument("debug.severity")+", "+argument("debug.body")+
			" from slice s"+tracks,
		"select s.ts, printf('%!.17g', s.value), "+hex("ct.name")+", "+hex("ct.unit")+", "+hex("p.name")+
			" from counter s join process_counter_track ct on ct.id = s.track_id join process p on p.upid = ct.upid",
		"select count(*) from flow")
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		return n
	}
	got.threads = map[string][]string{}
	for _, row := range results[0] {
		text := func(i int) string { return traceprocessor.Text(t, row[i]) }
		categories := strings.Split(text(4), ",")
		thread := ofThread(text(8), pidOf(number(row[7])), cmp.Or(row[5], noThread))
		if row[5] != "" {
			got.threads[thread] = []string{text(6)}
		}
		if slices.Contains(categories, "log") {
			got.logs = append(got.logs, drawnLog(number(row[0]), thread, text(11), text(12)))
			continue
		}
		got.slices = append(got.slices, drawnCall{
			start: number(row[0]), duration: number(row[1]), depth: int(number(row[2])), name: text(3), thread: thread,
			function: text(9), truncated: text(10), failed: slices.Contains(categories, "error"),
		}.String())
	}
	for _, row := range results[1] {
		value, err := strconv.ParseFloat(row[1], 64)
		require.NoError(t, err)
		got.values = append(got.values, drawnValue(traceprocessor.Text(t, row[4]), number(row[0]), nameOfMetric(traceprocessor.Text(t, row[2])), traceprocessor.Text(t, row[3]), value))
	}
	got.flows = int(number(results[2][0][0]))
	return got
}
