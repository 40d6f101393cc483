// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// sumOf returns the value of a metric that is a sum, or 0 if there is none yet: of all points, or
// of the points with the value of an attribute.
func sumOf(t testing.TB, telemetry *componenttest.Telemetry, name string, attributes ...string) (sum int64) {
	t.Helper()
	metric, err := telemetry.GetMetric("otelcol_processor_stack_pairing_" + name)
	if err != nil {
		return 0
	}
	for _, point := range metric.Data.(metricdata.Sum[int64]).DataPoints {
		if len(attributes) == 0 || hasValue(point.Attributes, attributes[0]) {
			sum += point.Value
		}
	}
	return sum
}

func hasValue(set attribute.Set, value string) bool {
	for _, a := range set.ToSlice() {
		if a.Value.AsString() == value {
			return true
		}
	}
	return false
}

// points returns the data points of a sum: a value, or values by an attribute, as key, value, and
// number in turn.
func points(values ...any) (all []metricdata.DataPoint[int64]) {
	if len(values) == 1 {
		return []metricdata.DataPoint[int64]{{Value: int64(values[0].(int))}}
	}
	for ; len(values) > 0; values = values[3:] {
		all = append(all, metricdata.DataPoint[int64]{
			Attributes: attribute.NewSet(attribute.String(values[0].(string), values[1].(string))),
			Value:      int64(values[2].(int)),
		})
	}
	return all
}

// assertPoints compares the data points of a sum.
func assertPoints(t *testing.T, telemetry *componenttest.Telemetry, name string, want []metricdata.DataPoint[int64]) {
	t.Helper()
	got, err := telemetry.GetMetric("otelcol_processor_stack_pairing_" + name)
	require.NoError(t, err)
	data := got.Data.(metricdata.Sum[int64])
	metricdatatest.AssertEqual(t, metricdata.Sum[int64]{
		Temporality: data.Temporality, IsMonotonic: data.IsMonotonic, DataPoints: want,
	}, data, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
}

// One story with every counted event.
func TestEverythingIsCounted(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.MinDuration, c.Limits.MaxExceptionsPerSpan, c.Limits.MaxStreams = 2*time.Millisecond, 1, 2
	})
	b.handOver(batch{stream: 3}) // it makes room for stream 2
	corrupt := call(9, "f", 0)
	corrupt.adjust = func(span ptrace.Span) { span.Attributes().PutInt(callevent.AttributeVersion, 99) }
	b.handOver(corrupt)
	require.Error(t, b.ConsumeTraces(context.Background(), nestedTraces(33, func(td ptrace.Traces) pcommon.Map {
		return td.ResourceSpans().AppendEmpty().Resource().Attributes()
	})))
	// 0 to 5: main calls f, in which two exceptions are thrown and which one of them leaves; and g,
	// which is short.
	b.handOver(batch{stream: 1, events: []string{"enter main", "enter f", "throw f E", "throw f F", "unwind f E", "enter g"}})
	b.handOver(batch{stream: 1, first: 6, events: []string{"exit g", "exit nobody"}})
	// 8 is missing. 9 to 11 wait: h, and then i, which returns over it.
	b.handOver(batch{stream: 1, first: 9, events: []string{"enter i", "enter h", "exit i"}})
	b.handOver(batch{stream: 1, first: 9, events: []string{"enter i"}}) // a second time
	assertPoints(t, b.telemetry, "waiting_events", points(3))
	b.passAlive(5 * time.Second)
	b.tick()
	b.handOver(batch{stream: 1, first: 8, events: []string{"skip"}}) // too late
	// A break, over two events.
	b.handOver(batch{
		stream: 1, first: 12, events: []string{"enter j", "skip", "skip", "enter k", "enter l"},
		barriers: []callevent.Barrier{callevent.Interval(13, 15, callevent.CauseDiscarded)},
	})
	// One more rename than the limit for later numbers: a quarter is dropped.
	b.handOver(batch{stream: 1, first: 20_000, renames: callevent.MaxRenames})
	b.handOver(batch{stream: 1, first: 30_000, renames: 1})
	b.next.answerWith(failsForGood)
	b.handOver(batch{stream: 2, events: []string{"enter m", "skip", "skip", "exit m"}, attributes: 130})
	b.next.answerWith(refuses)
	b.handOver(batch{stream: 2, first: 4, events: []string{"enter n", "skip", "skip", "exit n"}})
	b.refuse(call(2, "o", 8))

	tt := b.telemetry
	assertPoints(t, tt, "batches", points(13))
	assertPoints(t, tt, "breaks", points("cause", "gap", 1, "cause", "discarded", 1))
	assertPoints(t, tt, "corrupt_batches", points(1))
	assertPoints(t, tt, "dropped_attributes", points(2))
	assertPoints(t, tt, "dropped_exceptions", points(1))
	assertPoints(t, tt, "dropped_renames", points(1024))
	assertPoints(t, tt, "dropped_spans", points("reason", "refused_for_good", 1))
	assertPoints(t, tt, "duplicate_events", points(1))
	assertPoints(t, tt, "events", points(26))
	assertPoints(t, tt, "events_in_breaks", points(2))
	assertPoints(t, tt, "held_spans", points(1))
	assertPoints(t, tt, "late_events", points(1))
	assertPoints(t, tt, "left_out", points(1))
	assertPoints(t, tt, "missing_numbers", points(1))
	assertPoints(t, tt, "nested_calls", points(1))
	assertPoints(t, tt, "open_frames", points(2))
	assertPoints(t, tt, "orphans", points(1))
	assertPoints(t, tt, "refused_calls", points(1))
	assertPoints(t, tt, "shed_streams", points("bound", "max_streams", 1))
	// f, main by the gap, h by i, i, j by the break, m, n.
	assertPoints(t, tt, "spans", points(7))
	assertPoints(t, tt, "streams", points(2))
	assertPoints(t, tt, "truncated_frames",
		points("cause", "gap", 1, "cause", "mismatch", 1, "cause", "discarded", 1))
	assertPoints(t, tt, "waiting_events", points(0))
	assert.Equal(t, b.accounts.bytes.Load(), b.sum("memory"))
	assert.Positive(t, b.sum("memory"))

	b.next.answerWith(nil)
	b.finish()
	assertPoints(t, tt, "memory", points(0))
	assertPoints(t, tt, "open_frames", points(0))
	assertPoints(t, tt, "streams", points(0))
	assertPoints(t, tt, "held_spans", points(0))

	// The story covers every counter.
	all := reflect.TypeFor[Instruments]()
	for i := range all.NumField() {
		_, err := tt.GetMetric("otelcol_processor_stack_pairing" + snake(all.Field(i).Name))
		assert.NoError(t, err)
	}
}

// snake returns SnakeCase as _snake_case.
func snake(name string) string {
	var b strings.Builder
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteString(strings.ToLower(string(c)))
	}
	return b.String()
}

// The delay is recorded once for each stream in a hand-over.
func TestTheDelayIsFromTheEndOfTheOldestCall(t *testing.T) {
	b := newBed(t)
	b.handOver(call(1, "f", 0), call(2, "g", 0))
	metric, err := b.telemetry.GetMetric("otelcol_processor_stack_pairing_delay")
	require.NoError(t, err)
	point := metric.Data.(metricdata.Histogram[float64]).DataPoints[0]
	assert.EqualValues(t, 2, point.Count)
	since := time.Since(time.Unix(0, testEpoch)).Seconds()
	assert.InDelta(t, 2*since, point.Sum, 60)
	b.finish()
}

func TestTheDelayOfALongCallIsNotItsDuration(t *testing.T) {
	const seconds = 1_800
	packer, err := callevent.NewPacker(callevent.Stream{ID: streamID(1), Epoch: testEpoch, Resolution: 1e9}, callevent.MinBatchBytes)
	require.NoError(t, err)
	lane, _ := packer.Lane(callevent.Lane{ID: 1})
	function, _ := packer.Function(&callevent.Function{Qualified: "f"})
	for i, kind := range []callevent.Kind{callevent.KindEnter, callevent.KindExit} {
		require.True(t, packer.Add(&callevent.Event{Kind: kind, Sequence: uint64(i), Time: int64(i) * seconds, Lane: lane, Function: function}))
	}
	packed, err := packer.Close(nil, 2, testEpoch+seconds*1e9)
	require.NoError(t, err)
	td := ptrace.NewTraces()
	packed.To(td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty())

	b := newBed(t)
	require.NoError(t, b.ConsumeTraces(t.Context(), td))
	metric, err := b.telemetry.GetMetric("otelcol_processor_stack_pairing_delay")
	require.NoError(t, err)
	point := metric.Data.(metricdata.Histogram[float64]).DataPoints[0]
	assert.InDelta(t, time.Since(time.Unix(testEpoch/1e9+seconds, 0)).Seconds(), point.Sum, seconds/2)
	b.finish()
}
