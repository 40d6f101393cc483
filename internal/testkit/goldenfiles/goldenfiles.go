// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package goldenfiles compares what a receiver has sent with files that a person has checked. With the flag -update a test
// writes the files instead.
package goldenfiles

import (
	"encoding/binary"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/plogtest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

var update = flag.Bool("update", false, "write the golden files")

// Compare compares the spans and the log records of one resource with spans.yaml and logs.yaml of a folder. The file of
// spans is missing if there are none. IDs of spans and traces are numbered, because they are random.
func Compare(t *testing.T, folder string, traces []ptrace.Traces, logs []plog.Logs) {
	t.Helper()
	spans, records := joinedSpans(traces), joinedRecords(logs)
	numberIDs(spans)
	replaceTabs(spans, records)
	spansFile, recordsFile := filepath.Join(folder, "spans.yaml"), filepath.Join(folder, "logs.yaml")
	if *update {
		require.NoError(t, os.MkdirAll(folder, 0o755))
		if spans.SpanCount() > 0 {
			require.NoError(t, golden.WriteTracesToFile(spansFile, spans))
		}
		require.NoError(t, golden.WriteLogsToFile(recordsFile, records))
	}
	if spans.SpanCount() > 0 {
		want, err := golden.ReadTraces(spansFile)
		require.NoError(t, err)
		assert.NoError(t, ptracetest.CompareTraces(want, spans))
	} else {
		assert.NoFileExists(t, spansFile)
	}
	want, err := golden.ReadLogs(recordsFile)
	require.NoError(t, err)
	assert.NoError(t, plogtest.CompareLogs(want, records))
}

// CompareMetrics compares metrics with metrics.yaml of a folder.
func CompareMetrics(t *testing.T, folder string, metrics pmetric.Metrics) {
	t.Helper()
	file := filepath.Join(folder, "metrics.yaml")
	if *update {
		require.NoError(t, golden.WriteMetricsToFile(file, metrics, golden.SkipMetricTimestampNormalization()))
	}
	want, err := golden.ReadMetrics(file)
	require.NoError(t, err)
	assert.NoError(t, pmetrictest.CompareMetrics(want, metrics, pmetrictest.IgnoreMetricsOrder(), pmetrictest.IgnoreMetricDataPointsOrder()))
}

// joinedSpans returns all spans in one scope of one resource.
func joinedSpans(all []ptrace.Traces) ptrace.Traces {
	joined := ptrace.NewTraces()
	for _, traces := range all {
		for _, resource := range traces.ResourceSpans().All() {
			if joined.ResourceSpans().Len() == 0 {
				resource.MoveTo(joined.ResourceSpans().AppendEmpty())
			} else {
				resource.ScopeSpans().At(0).Spans().MoveAndAppendTo(joined.ResourceSpans().At(0).ScopeSpans().At(0).Spans())
			}
		}
	}
	return joined
}

// joinedRecords returns all log records in one scope of one resource.
func joinedRecords(all []plog.Logs) plog.Logs {
	joined := plog.NewLogs()
	for _, logs := range all {
		for _, resource := range logs.ResourceLogs().All() {
			if joined.ResourceLogs().Len() == 0 {
				resource.MoveTo(joined.ResourceLogs().AppendEmpty())
			} else {
				resource.ScopeLogs().At(0).LogRecords().MoveAndAppendTo(joined.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords())
			}
		}
	}
	return joined
}

// replaceTabs replaces tabs: YAML files cannot contain them.
func replaceTabs(spans ptrace.Traces, logs plog.Logs) {
	replace := func(v pcommon.Value) {
		if v.Type() == pcommon.ValueTypeStr {
			v.SetStr(strings.ReplaceAll(v.Str(), "\t", "    "))
		}
	}
	for _, resource := range spans.ResourceSpans().All() {
		for _, s := range resource.ScopeSpans().At(0).Spans().All() {
			for _, event := range s.Events().All() {
				for _, v := range event.Attributes().All() {
					replace(v)
				}
			}
		}
	}
	for _, resource := range logs.ResourceLogs().All() {
		for _, r := range resource.ScopeLogs().At(0).LogRecords().All() {
			replace(r.Body())
			for _, v := range r.Attributes().All() {
				replace(v)
			}
		}
	}
}

// numberIDs replaces the IDs of spans and traces by consecutive numbers.
func numberIDs(traces ptrace.Traces) {
	spans, ids := map[pcommon.SpanID]uint64{}, map[pcommon.TraceID]uint64{}
	idOf := func(id pcommon.SpanID) (numbered pcommon.SpanID) {
		if id.IsEmpty() {
			return id
		}
		if spans[id] == 0 {
			spans[id] = uint64(len(spans) + 1)
		}
		binary.BigEndian.PutUint64(numbered[:], spans[id])
		return numbered
	}
	for _, resource := range traces.ResourceSpans().All() {
		for _, s := range resource.ScopeSpans().At(0).Spans().All() {
			if ids[s.TraceID()] == 0 {
				ids[s.TraceID()] = uint64(len(ids) + 1)
			}
			var trace pcommon.TraceID
			binary.BigEndian.PutUint64(trace[8:], ids[s.TraceID()])
			s.SetTraceID(trace)
			s.SetSpanID(idOf(s.SpanID()))
			s.SetParentSpanID(idOf(s.ParentSpanID()))
		}
	}
}
