// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
)

// The sums of the connector stack_pairing, as a backend receives them by OTLP.

// sumBackend is a backend of all outputs of the connector: spans, metrics and profiles. It answers each
// signal as the test demands, and adds up the accepted data.
type sumBackend struct {
	backend

	mu             sync.Mutex // of what follows
	answerMetrics  func() int
	answerProfiles func() int
	points         map[series]float64
	paths          map[string]map[string]values // by instance and path
	resources      map[string]map[string]any    // by instance
	// Numbers of refused data.
	refusedMessages, refusedPoints, refusedSamples int
	refusedCalls                                   int64 // in profiles
}

// series identifies a value. Start is the start time of its points: a series begins again with another one.
type series struct {
	instance string
	key      string
	start    pcommon.Timestamp
}

func newSumBackend(t testing.TB) *sumBackend {
	t.Helper()
	b := &sumBackend{
		backend: backend{t: t, answer: accept, streams: streams{}}, answerMetrics: accept, answerProfiles: accept,
		points: map[series]float64{}, paths: map[string]map[string]values{}, resources: map[string]map[string]any{},
	}
	b.endpoint, _ = kit.ServeOTLP(t, kit.Accept{Traces: b.backend.accept, Metrics: b.acceptMetrics, Profiles: b.acceptProfiles})
	return b
}

// answerSums sets the answers for metrics and profiles.
func (b *sumBackend) answerSums(metrics, profiles func() int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answerMetrics, b.answerProfiles = metrics, profiles
}

// start starts a collector that pairs the calls of a receiver in the connector, and sends all outputs to
// the backend. With an address for pages it also makes flame graphs of profiles.
func (b *sumBackend) start(receiver, settings, pages string) *kit.Collector {
	b.t.Helper()
	exporters, profiles := toBackend(b.endpoint), "otlp_http"
	if pages != "" {
		exporters += fmt.Sprintf("\n  flame_graph: {endpoint: %q}", pages)
		profiles += ", flame_graph"
	}
	return kit.Start(b.t, fmt.Sprintf(`
receivers:
  %s
connectors:
  stack_pairing: {span_attributes: {sequence: true, function_text: true}, interval: 200ms, %s}
exporters:
  %s
service:
  pipelines:
    traces/calls: {receivers: [%s], exporters: [stack_pairing]}
    traces/kept: {receivers: [stack_pairing], exporters: [otlp_http]}
    metrics: {receivers: [stack_pairing], exporters: [otlp_http]}
    profiles: {receivers: [stack_pairing], exporters: [%s]}
`, receiver, settings, exporters, exporterName(receiver), profiles))
}

// Metrics of the connector, as the collector shows them.
const (
	connectorMetrics = "otelcol_connector_stack_pairing_"
	droppedPoints    = connectorMetrics + "dropped_points"
	droppedSamples   = connectorMetrics + "dropped_samples"
	droppedSpans     = connectorMetrics + "dropped_spans"
)

func instanceOf(resource pcommon.Resource) string {
	return textAt(resource.Attributes(), "service.instance.id")
}

// textAt returns the text of an attribute; empty: it is not there.
func textAt(attributes pcommon.Map, key string) string {
	if v, ok := attributes.Get(key); ok {
		return v.Str()
	}
	return ""
}

func (b *sumBackend) acceptMetrics(metrics pmetric.Metrics) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if status := b.answerMetrics(); status != http.StatusOK {
		b.refusedPoints += metrics.DataPointCount()
		b.refusedMessages++
		return status
	}
	for _, rm := range metrics.ResourceMetrics().All() {
		instance := instanceOf(rm.Resource())
		b.resources[instance] = rm.Resource().Attributes().AsRaw()
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch name := strings.TrimPrefix(m.Name(), "code.function."); m.Type() {
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						b.set(instance, name+"_total", p.Attributes(), p.StartTimestamp(), p.Flags(), float64(p.IntValue()))
					}
				case pmetric.MetricTypeExponentialHistogram:
					for _, p := range m.ExponentialHistogram().DataPoints().All() {
						b.set(instance, name+"_seconds_count", p.Attributes(), p.StartTimestamp(), p.Flags(), float64(p.Count()))
						b.set(instance, name+"_seconds_sum", p.Attributes(), p.StartTimestamp(), p.Flags(), p.Sum())
					}
				}
			}
		}
	}
	return http.StatusOK
}

// set keeps the value of a point, which must not be less than that of the point before.
func (b *sumBackend) set(instance, metric string, attributes pcommon.Map, start pcommon.Timestamp, flags pmetric.DataPointFlags, value float64) {
	if flags.NoRecordedValue() {
		return
	}
	key := functionSum(metric, textAt(attributes, "code.function.name"), textAt(attributes, "error.type"))
	s := series{instance, key, start}
	if before := b.points[s]; value < before {
		b.t.Errorf("%+v: expected at least %v as before, got %v", s, before, value)
	}
	b.points[s] = value
}

func (b *sumBackend) acceptProfiles(profiles pprofile.Profiles) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	status := b.answerProfiles()
	if status != http.StatusOK {
		b.refusedSamples += profiles.SampleCount()
		b.refusedMessages++
	}
	d := profiles.Dictionary()
	text := func(i int32) string { return d.StringTable().At(int(i)) }
	for _, rp := range profiles.ResourceProfiles().All() {
		instance := instanceOf(rp.Resource())
		if b.paths[instance] == nil {
			b.paths[instance] = map[string]values{}
		}
		for _, p := range rp.ScopeProfiles().At(0).Profiles().All() {
			kind := slices.Index([]string{"calls", "errors", "wall"}, text(p.SampleType().TypeStrindex()))
			for _, s := range p.Samples().All() {
				if status != http.StatusOK {
					if kind == 0 {
						b.refusedCalls += s.Values().At(0)
					}
					continue
				}
				path := pathOf(d, s)
				v := b.paths[instance][path]
				v[kind] += s.Values().At(0)
				b.paths[instance][path] = v
			}
		}
	}
	return status
}

// truncatedPath ends the path of calls whose ends were not seen.
const truncatedPath = "_(truncated)"

// pathOf is the path of a sample as in callPaths.stacks.
func pathOf(d pprofile.ProfilesDictionary, s pprofile.Sample) string {
	var names []string
	for _, l := range d.StackTable().At(int(s.StackIndex())).LocationIndices().All() {
		f := d.FunctionTable().At(int(d.LocationTable().At(int(l)).Lines().At(0).FunctionIndex()))
		names = append(names, strings.ReplaceAll(d.StringTable().At(int(f.NameStrindex())), " ", "_"))
	}
	slices.Reverse(names)
	path := strings.Join(names, ";")
	for _, i := range s.AttributeIndices().All() {
		if d.StringTable().At(int(d.AttributeTable().At(int(i)).KeyStrindex())) == "callbraid.truncated" {
			path += truncatedPath
		}
	}
	return path
}

// sums returns the metrics of an instance so far by functionSum, and its paths. Series that began again count
// together.
func (b *sumBackend) sums(instance string) (functions map[string]float64, paths map[string]values) {
	b.mu.Lock()
	defer b.mu.Unlock()
	functions = map[string]float64{}
	for s, value := range b.points {
		if s.instance == instance {
			functions[s.key] += value
		}
	}
	return functions, maps.Clone(b.paths[instance])
}

// only returns the only instance with metrics.
func (b *sumBackend) only(t *testing.T) string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Len(t, b.resources, 1, "instances")
	return slices.Collect(maps.Keys(b.resources))[0]
}

// awaitCalls waits until the metrics and the profiles of all programs have this number of calls.
func (b *sumBackend) awaitCalls(n int) {
	b.t.Helper()
	testkit.Eventually(b.t, fmt.Sprintf("%d calls in metrics and profiles", n), func() (bool, string) {
		inMetrics, inProfiles := b.callsInMetrics(), int64(0)
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, paths := range b.paths {
			for _, v := range paths {
				inProfiles += v[0]
			}
		}
		return inMetrics == float64(n) && inProfiles == int64(n), fmt.Sprint(inMetrics, inProfiles)
	})
}

// callsInMetrics returns the number of calls of all programs in metrics.
func (b *sumBackend) callsInMetrics() (calls float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s, value := range b.points {
		if strings.HasPrefix(s.key, "calls_total ") {
			calls += value
		}
	}
	return calls
}

// check compares the sums of an instance with the calls of the reference.
func (b *sumBackend) check(t *testing.T, want *reference.Result, instance string) {
	t.Helper()
	functions, paths := b.sums(instance)
	assertFunctionSums(t, functionSumsOf(want), functions)
	assertSame(t, pathsOfSpans(want.Spans, true).stacks(), paths)
}

// functionSum is the key of a value of a metric by function, with the metric's name as in Prometheus.
func functionSum(metric, function, failure string) string {
	return metric + " " + function + " " + failure
}

// functionSumsOf returns the metrics by function of the calls of a reference.
func functionSumsOf(want *reference.Result) map[string]float64 {
	sums := map[string]float64{}
	for _, s := range want.Spans {
		function, failure := reference.Qualified(s.Function), ""
		sums[functionSum("calls_total", function, "")]++
		if s.Unwound {
			failure = s.ErrorType
			sums[functionSum("errors_total", function, failure)]++
		}
		sums[functionSum("duration_seconds_count", function, failure)]++
		sums[functionSum("duration_seconds_sum", function, failure)] += float64(s.End-s.Start) / 1e9
	}
	return sums
}

// assertFunctionSums compares metrics by function.
func assertFunctionSums(t *testing.T, want, got map[string]float64) {
	t.Helper()
	assertSame(t, want, roundedAs(want, got))
}

// roundedAs returns metrics by function, with the wanted sum of durations where it differs by an error of rounding.
func roundedAs(want, got map[string]float64) map[string]float64 {
	const rounding = 1e-9
	equal := maps.Clone(got)
	for key, w := range want {
		if g, there := got[key]; there && strings.HasPrefix(key, "duration_seconds_sum ") && max(w-g, g-w) <= rounding*max(1, w) {
			equal[key] = w
		}
	}
	return equal
}
