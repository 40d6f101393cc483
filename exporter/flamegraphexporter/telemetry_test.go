// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/metadata"
	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/metadatatest"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
)

// sum is the value of a metric of the exporter.
func (b *bed) sum(t testing.TB, name string) int64 {
	t.Helper()
	return telemetrytest.Sum(t, b.telemetry, "otelcol_exporter_flame_graph_"+name)
}

func TestTheCountersOfTheStoreAreMetrics(t *testing.T) {
	b := newBed(t, func(c *Config) { c.MaxServices, c.MaxPending, c.Traces.MaxSpans = 1, 100, 10 })
	td := ptrace.NewTraces()
	for i := range 80 {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr(attributeService, []string{"one", "two"}[i%2])
		span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetTraceID([16]byte{1, byte(i)})
		span.SetSpanID([8]byte{1, byte(i)})
		if i < 60 {
			span.SetParentSpanID([8]byte{2, byte(i)})
		}
		span.SetName("f")
	}
	td.ResourceSpans().At(79).CopyTo(td.ResourceSpans().AppendEmpty())
	own := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	own.SetSpanID([8]byte{3})
	own.SetParentSpanID([8]byte{3})
	require.NoError(t, b.consumeTraces(t.Context(), td))
	w := newWritten("three", "main")
	w.sample(1, 1)
	require.NoError(t, b.consumeProfiles(t.Context(), w.Profiles))
	usage, counters := b.store.Usage(), b.store.Counters()
	for name, want := range map[string]int{
		"spans": 81, "duplicate_spans": 1, "samples": 1, "dropped_samples": 0, "other_services": 43,
		"forgotten_spans": int(counters.Forgotten), "folded_paths": 0, "dropped_traces": 71, "dropped_kept_spans": int(counters.DroppedKept), "silent_services": 0, "services": 2,
		"nodes": usage.Nodes, "pending_spans": usage.Waiting, "remembered_spans": usage.Remembered,
		"name_memory": usage.NameBytes, "kept_spans": 10, "parents_not_seen": int(counters.ParentsNotSeen.Limit) + 1,
	} {
		assert.EqualValues(t, want, b.sum(t, name), name)
	}
	reason := func(text string, count uint64) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Attributes: attribute.NewSet(
			attribute.String("exporter", metadata.Type.String()), attribute.String("reason", text)), Value: int64(count)}
	}
	metadatatest.AssertEqualExporterFlameGraphParentsNotSeen(t, b.telemetry, []metricdata.DataPoint[int64]{
		reason("timeout", 0), reason("limit", counters.ParentsNotSeen.Limit), reason("cycle", 1),
	}, metricdatatest.IgnoreTimestamp())
	assert.Positive(t, counters.DroppedKept)
	assert.Positive(t, counters.Forgotten)
	assert.Positive(t, usage.Waiting)
}
