// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/prometheus"
)

// numbers are the metrics of a collector in a Prometheus.
type numbers struct {
	*prometheus.Server
	collector *kit.Collector
}

// notPlayed are the metrics that the simulated tracers need not have, and the reason.
var notPlayed = map[string]string{
	"greys.session.count":   "only GP has it",
	"ruby.allocation.count": "of the documented dialect",
	"ruby.allocation.size":  "of the documented dialect",
	"lttng.lag":             "sessions are read faster than metrics are collected",
	// Statistics of other Rubies than that of the capture.
	"ruby.gc.compact_count": "other Ruby", "ruby.gc.heap_allocatable_slots": "other Ruby", "ruby.gc.heap_available_slots": "other Ruby",
	"ruby.gc.heap_empty_pages": "other Ruby", "ruby.gc.heap_marked_slots": "other Ruby", "ruby.gc.heap_swept_slots": "other Ruby",
	"ruby.gc.marking_time": "other Ruby", "ruby.gc.stat": "off by default", "ruby.gc.read_barrier_faults": "other Ruby",
	"ruby.gc.retained_weak_references_count": "other Ruby", "ruby.gc.sweeping_time": "other Ruby", "ruby.gc.time": "other Ruby",
	"ruby.gc.total_allocated_pages": "other Ruby", "ruby.gc.total_freed_pages": "other Ruby", "ruby.gc.total_moved_objects": "other Ruby",
	"ruby.gc.weak_references_count": "other Ruby",
}

// check compares all metrics of receivers: their descriptions with the metadata, and their values
// with the simulated data.
func (n *numbers) check(t *testing.T, lives playedMethodsOf) {
	t.Run("values", func(t *testing.T) { n.checkValues(t, lives) })
	t.Run("names, types, units and helps", n.checkDeclared)
}

// checkValues has a value of each metric.
func (n *numbers) checkValues(t *testing.T, lives playedMethodsOf) {
	for expression, want := range n.wanted(t) {
		n.Await(t, expression, want)
	}
	for key, value := range statisticsOf(t, openRbkit(t, playedRuby), 6) {
		n.Await(t, rbkitStatistics[key].metric, value)
	}
	checkHistogram(t, n.Server, "ruby_gc_mark_phase_duration_seconds", "", playedMarks)
	checkHistogram(t, n.Server, "ruby_gc_cycle_duration_seconds", "", playedCollections)
	for _, of := range [][]greysLife{lives.greys, lives.arthas} {
		require.Len(t, of, 1)
		for name, of := range of[0].Told {
			here := fmt.Sprintf("{code_function_name=%q}", name)
			n.Await(t, "java_method_calls_total"+here, float64(of.Calls))
			n.Await(t, "java_method_failures_total"+here, float64(of.Failed))
		}
	}
}

// wanted are expressions of PromQL with their values. Numbers that are not known from the capture
// are those of the collector's own telemetry.
func (n *numbers) wanted(t *testing.T) map[string]float64 {
	t.Helper()
	own := func(name string) float64 { return n.collector.Metric(t, name) }
	rubyEvents, _ := eventsOf(openRbkit(t, playedRuby).Messages...)
	lttngEvents := 0
	for _, c := range lttngCaptures {
		if slices.Contains(playedSessions, c.name) {
			lttngEvents += c.events
		}
	}
	return map[string]float64{
		"count(bytefrog_events_total)":                                 float64(len(playedRuns)),
		"max(bytefrog_events_total)":                                   47_870,
		"min(bytefrog_events_total)":                                   9_628,
		"sum(bytefrog_breaks_total)":                                   2,
		`sum(bytefrog_breaks_total{bytefrog_break_cause="suspended"})`: 2,
		"sum(bytefrog_network_io_bytes_total)":                         own("otelcol_receiver_bytefrog_bytes"),
		"sum(bytefrog_connection_count)":                               0,
		"sum(bytefrog_agent_send_buffers)":                             0,
		"sum(bytefrog_agent_status)":                                   0,
		"count(bytefrog_agent_status)":                                 float64(6 * len(playedRuns)),

		"sum(lttng_events_total)":           float64(lttngEvents),
		"sum(lttng_events_discarded_total)": 0,
		"sum(lttng_packets_total)":          own("otelcol_receiver_lttng_live_packets"),
		"sum(lttng_packets_lost_total)":     0,
		"sum(lttng_network_io_bytes_total)": own("otelcol_receiver_lttng_live_bytes"),
		"sum(lttng_process_count)":          0,
		"sum(lttng_stream_count)":           0,

		`lttng_agent_count{lttng_agent_domain="jul"}`:                                 1,
		`lttng_agent_registrations_total{lttng_agent_domain="jul"}`:                   1,
		`lttng_logger_count{lttng_agent_domain="jul"}`:                                2,
		`sum(lttng_agent_commands_total{lttng_agent_command=~"enable.*"})`:            1,
		`sum(lttng_agent_commands_total{lttng_agent_result!="success"}) or vector(0)`: 0,

		"rbkit_messages_total":             float64(len(openRbkit(t, playedRuby).Messages)),
		"rbkit_messages_lost_total":        0,
		"rbkit_events_total":               rubyEvents,
		"rbkit_cpu_samples_total":          993,
		"rbkit_network_io_bytes_total":     own("otelcol_receiver_rbkit_bytes"),
		"sum(ruby_heap_live_objects)":      16_751,
		"sum(ruby_heap_live_size_bytes)":   3_666_604,
		"sum(ruby_object_created_total)":   45_662,
		"sum(ruby_object_destroyed_total)": 38_849,
		"ruby_object_tracked":              8_711,

		`greys_matched_classes{greys_command="trace"}`:   playedClasses,
		`greys_matched_classes{greys_command="monitor"}`: playedClasses,
		`greys_matched_methods{greys_command="trace"}`:   playedMethods,
		`greys_matched_methods{greys_command="monitor"}`: playedMethods,
		"count(greys_reconnects_total)":                  1, // the server may be connected to before it is there
		"greys_replies_total":                            own("otelcol_receiver_greys_replies"),
		"greys_replies_bad_total":                        0,
		"greys_replies_missing_total":                    0,
		// The state of the JVM disappears from the page with the server, and Prometheus has it for some minutes.
		"jvm_class_count": playedLoaded,

		// The shortest call is no longer than the mean one, which is no longer than the longest.
		"count(java_method_duration_mean_seconds < java_method_duration_min_seconds) or vector(0)": 0,
		"count(java_method_duration_mean_seconds > java_method_duration_max_seconds) or vector(0)": 0,
		"count(java_method_failure_ratio > 1) or vector(0)":                                        0,
	}
}

// declared is a metric as the metadata of a receiver declares it.
type declared struct {
	Description, Unit string
	Gauge             *struct{}
	Sum               *struct{ Monotonic bool }
	Attributes        []string
}

// declaredMetrics are those of all receivers of the distribution. They are played.
func declaredMetrics(t *testing.T) map[string]declared {
	t.Helper()
	all := map[string]declared{}
	for _, path := range receiverMetadata(t) {
		var metadata struct {
			Metrics    map[string]declared
			Attributes map[string]struct {
				RequirementLevel string `yaml:"requirement_level"`
			}
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, &metadata))
		require.NotEmpty(t, metadata.Metrics, path)
		for name, m := range metadata.Metrics {
			m.Attributes = slices.DeleteFunc(m.Attributes, func(of string) bool { return metadata.Attributes[of].RequirementLevel == "opt_in" })
			all[name] = m
		}
	}
	return all
}

// kind is the type that Prometheus has for a metric.
func (d declared) kind() string {
	if d.Sum != nil && d.Sum.Monotonic {
		return "counter"
	}
	return "gauge"
}

// unitsInNames are the units of UCUM as Prometheus' names have them. A count of items has none.
var unitsInNames = map[string]string{"By": "bytes", "s": "seconds", "ms": "milliseconds", "1": "ratio"}

// shown is the name of a metric in Prometheus: its words, the unit if it is not one of them,
// and at the end of a counter total.
func (d declared) shown(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '_' })
	if unit := unitsInNames[d.Unit]; unit != "" && !slices.Contains(words, unit) {
		words = append(words, unit)
	}
	if d.kind() == "counter" {
		words = append(slices.DeleteFunc(words, func(w string) bool { return w == "total" }), "total")
	}
	return strings.Join(words, "_")
}

// labels are the names of labels that its series have in Prometheus, in order.
func (d declared) labels() []string {
	names := slices.Clone(labelsOfAll)
	for _, attribute := range d.Attributes {
		names = append(names, strings.ReplaceAll(attribute, ".", "_"))
	}
	slices.Sort(names)
	return names
}

// labelsOfAll are the traced program, and the receiver that speaks of it.
var labelsOfAll = []string{"instance", "job", "otel_scope_name", "otel_scope_version"}

// described is the description of a metric in Prometheus.
type described struct {
	kind, help string
	labels     []string
}

// undeclared are the metrics that no metadata declares, by their names without the endings of
// series: the histograms of rbkit, and the metrics of the connector.
var undeclared = map[string]described{
	"ruby_gc_mark_phase_duration_seconds": {"histogram", "Time from the start of a garbage collection to the end of its mark phase. No pause: the program may run between steps of marking.", labelsOfAll},
	"ruby_gc_cycle_duration_seconds":      {"histogram", "Time from the start of a garbage collection to the end of its sweep phase. No pause: the program runs most of it.", labelsOfAll},
	"code_function_calls_total":           {"counter", "Calls of a function that ended.", labelsOfCalls},
	"code_function_errors_total":          {"counter", "Calls of a function that an exception left.", labelsOfOutcomes},
	"code_function_duration_seconds":      {native, "Duration of the calls of a function, with the time of its callees.", labelsOfOutcomes},
}

// labelsOfCalls are the labels of the connector's number of calls. Errors, and durations of calls that an
// exception left, also have its type.
var (
	labelsOfCalls    = []string{"code_function_name", "instance", "job", "otel_scope_name", "otel_scope_version"}
	labelsOfOutcomes = []string{"code_function_name", "error_type", "instance", "job", "otel_scope_name", "otel_scope_version"}
)

// native is the kind of a native histogram, which Prometheus calls histogram too.
const native = "native histogram"

// endings are the endings of the series of a metric, by its kind.
var endings = map[string][]string{"gauge": {""}, "counter": {""}, "histogram": {"_bucket", "_count", "_sum"}, native: {""}}

// othersShown are metrics of the exporter, of resources, and of Prometheus itself.
var othersShown = regexp.MustCompile(`^(target_info|up|scrape_.*)$`)

// checkDeclared compares the series and types of each metric in Prometheus with its declaration.
func (n *numbers) checkDeclared(t *testing.T) {
	want := maps.Clone(undeclared)
	labels := n.Labels(t)
	for name, d := range declaredMetrics(t) {
		shown := d.shown(name)
		if labels[shown] == nil {
			assert.Contains(t, notPlayed, name, "it has no series %s", shown)
			continue
		}
		want[shown] = described{d.kind(), d.Description, d.labels()}
	}
	known := n.Metadata(t)
	for name, d := range want {
		assert.Equal(t, prometheus.Metadata{Type: strings.TrimPrefix(d.kind, "native "), Help: d.help}, known[name], name)
		for _, ending := range endings[d.kind] {
			of := d.labels
			if ending == "_bucket" {
				of = slices.Sorted(slices.Values(append(slices.Clone(of), "le")))
			}
			assert.Equal(t, of, labels[name+ending], "labels of %s", name+ending)
			delete(labels, name+ending)
		}
	}
	for name := range labels {
		assert.Regexp(t, othersShown, name, "no metadata declares it")
	}
}

// callBounds are bounds of buckets that every native histogram has, in seconds.
var callBounds = []float64{1. / 1024, 1. / 128, 1. / 16, 0.25, 1, 4, 16, 64}

// methodCalls are the calls of a method.
type methodCalls struct {
	calls, errors float64
	seconds       float64
	atMost        map[float64]float64 // calls by callBounds
}

// callsOfMethods are those of a run, as the reference has them.
func callsOfMethods(t *testing.T, run *reference.Result) map[string]*methodCalls {
	t.Helper()
	methods := map[string]*methodCalls{}
	for _, s := range run.Spans {
		name := reference.Qualified(s.Function)
		m := methods[name]
		if m == nil {
			m = &methodCalls{atMost: map[float64]float64{}}
			methods[name] = m
		}
		m.calls++
		if s.Unwound {
			m.errors++
		}
		seconds := float64(s.End-s.Start) / 1e9
		m.seconds += seconds
		for _, bound := range callBounds {
			if seconds <= bound {
				m.atMost[bound]++
			}
		}
	}
	return methods
}

// checkCalls compares calls and durations of each method with the reference.
func (n *numbers) checkCalls(t *testing.T) {
	instances := n.ByLabel(t, "bytefrog_events_total", "instance")
	for name := range playedRuns {
		t.Run(name, func(t *testing.T) {
			run := reference.Spans(openCapture(t, name), defaultRules)
			for instance, events := range instances {
				if int(events) == len(openCapture(t, name).Events) {
					n.checkCallsOf(t, instance, callsOfMethods(t, run), len(run.Spans))
					return
				}
			}
			assert.Fail(t, "no run has so many events", "%d, of %v", len(openCapture(t, name).Events), instances)
		})
	}
	// While the run was played that is slower, its methods had rates.
	n.Await(t, "count(rate(code_function_calls_total[1h]) > 0) > bool 0", 1)
}

// checkCallsOf compares those of one run, which has so many calls in all.
func (n *numbers) checkCallsOf(t *testing.T, instance string, want map[string]*methodCalls, all int) {
	run := fmt.Sprintf("instance=%q", instance)
	n.Await(t, fmt.Sprintf("sum(code_function_calls_total{%s})", run), float64(all))
	await := func(expression string, of func(*methodCalls) float64) {
		t.Helper()
		expression = strings.NewReplacer("CALLS", "code_function_calls_total{"+run+"}", "ERRORS", "code_function_errors_total{"+run+"}",
			"DURATION", "code_function_duration_seconds{"+run+"}").Replace(expression)
		values := map[string]float64{}
		for name, m := range want {
			values[name] = of(m)
		}
		n.AwaitByLabel(t, "sum by (code_function_name) ("+expression+")", "code_function_name", values)
	}
	await("CALLS", func(m *methodCalls) float64 { return m.calls })
	await("ERRORS or 0 * CALLS", func(m *methodCalls) float64 { return m.errors })
	await("histogram_count(DURATION)", func(m *methodCalls) float64 { return m.calls })
	await("histogram_sum(DURATION)", func(m *methodCalls) float64 { return m.seconds })
	for _, bound := range callBounds {
		await(fmt.Sprintf("round(histogram_fraction(-1, %v, DURATION) * histogram_count(DURATION))", bound),
			func(m *methodCalls) float64 { return m.atMost[bound] })
	}
}

// checkExemplars follows every exemplar to its span in Jaeger.
func (n *numbers) checkExemplars(t *testing.T, spans *jaegerSpans) {
	byIDs := map[string]ptrace.Span{}
	for _, of := range spans.byTracer {
		for _, s := range of {
			byIDs[s.TraceID().String()+s.SpanID().String()] = s
		}
	}
	var wrong differences
	methods := map[string]bool{}
	for _, e := range n.Exemplars(t, "code_function_calls_total") {
		s, is := byIDs[e.Labels["trace_id"]+e.Labels["span_id"]]
		if !is {
			wrong.add("%v leads to no span", e)
			continue
		}
		function, _ := s.Attributes().Get("code.function.name")
		if function.Str() != e.Series["code_function_name"] || e.Value != 1 {
			wrong.add("%v leads to %s", e, function.Str())
		}
		methods[function.Str()] = true
	}
	wrong.report(t, "exemplars lead elsewhere")
	// Exemplars between two scrapes are not kept.
	assert.NotEmpty(t, methods)
}
