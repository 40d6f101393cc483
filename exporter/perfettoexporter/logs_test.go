// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package perfettoexporter

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/testkit/perfettofile"
)

// logsOf is a message of one service.
func logsOf(service string, fills ...func(plog.LogRecord)) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", service)
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName("receiver")
	for _, fill := range fills {
		fill(sl.LogRecords().AppendEmpty())
	}
	return ld
}

// byName are the slices of the only file of a path.
func byName(t testing.TB, path string) map[string]*perfettofile.Slice {
	t.Helper()
	all := map[string]*perfettofile.Slice{}
	for _, s := range readAll(t, path)[0].Slices {
		all[s.Name] = s
	}
	return all
}

func TestLogRecordsAreInstantsOfTheirThread(t *testing.T) {
	path := newFile(t)
	b := started(t, path, slow)
	require.NoError(t, b.consumeLogs(t.Context(), logsOf("shop",
		func(r plog.LogRecord) {
			r.SetTimestamp(15)
			r.SetSeverityText("WARNING")
			r.SetSeverityNumber(plog.SeverityNumberWarn)
			r.Body().SetStr("Cart is empty\nsecond line")
			r.SetTraceID(pcommon.TraceID{1})
			r.SetSpanID(pcommon.SpanID{2})
			r.Attributes().PutInt("thread.id", 7)
			r.Attributes().PutStr("user", "me")
		},
		func(r plog.LogRecord) {
			r.SetObservedTimestamp(40)
			r.SetSeverityNumber(plog.SeverityNumberError2)
			r.SetEventName("shop.closed")
			r.Body().SetEmptyMap().PutInt("carts", 3)
		},
		func(r plog.LogRecord) { r.SetTimestamp(41); r.SetSeverityNumber(plog.SeverityNumberInfo) },
		func(r plog.LogRecord) { r.SetTimestamp(42) },
		func(r plog.LogRecord) { r.SetTimestamp(43); r.Body().SetStr(strings.Repeat("ä", 100)) },
		func(plog.LogRecord) {}, // without a time
	)))
	require.NoError(t, b.consumeTraces(t.Context(), message("shop", span(1, 0, 10, 20, inThread(7, "worker")))))
	require.NoError(t, b.signal.Shutdown(t.Context()))

	all := byName(t, path)
	log := all["Cart is empty"]
	require.NotNil(t, log, "%v", all)
	assert.True(t, log.Instant)
	assert.EqualValues(t, 15, log.Start)
	assert.Same(t, all["b"], log.Parent, "it is inside the call of its time")
	assert.Equal(t, "worker", log.Track.Thread.Name, "the name that arrived later")
	assert.Equal(t, []string{"log", "receiver"}, log.Categories)
	assert.Equal(t, map[string]any{
		"severity": "WARNING", "body": "Cart is empty\nsecond line", "user": "me",
		"trace_id": "01000000000000000000000000000000", "span_id": "0200000000000000",
	}, log.Args)

	closed := all["shop.closed"]
	assert.Nil(t, closed.Track.Thread)
	assert.EqualValues(t, 40, closed.Start)
	assert.Equal(t, []string{"log", "receiver", "error"}, closed.Categories)
	assert.Equal(t, map[string]any{"severity": "ERROR2", "body": map[string]any{"carts": int64(3)}}, closed.Args)
	assert.Contains(t, all, "INFO")
	assert.Contains(t, all, "log record")
	assert.Contains(t, all, strings.Repeat("ä", 60)+"…")
	assert.EqualValues(t, 5, b.counts(t)["log_records"])
	assert.EqualValues(t, 1, b.counts(t)["invalid_times"])
}

func TestAllSignalsOfAConfigurationAreInOneFile(t *testing.T) {
	path := newFile(t)
	factory := NewFactory()
	cfg := factory.CreateDefaultConfig().(*Config)
	cfg.Path = path
	set := exportertest.NewNopSettings(factory.Type())
	traces, err := factory.CreateTraces(t.Context(), set, cfg)
	require.NoError(t, err)
	metrics, err := factory.CreateMetrics(t.Context(), set, cfg)
	require.NoError(t, err)
	logs, err := factory.CreateLogs(t.Context(), set, cfg)
	require.NoError(t, err)
	all := []component.Component{traces, metrics, logs}
	for _, c := range all {
		require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	}
	require.NoError(t, traces.ConsumeTraces(t.Context(), message("shop", span(1, 0, 10, 20))))
	require.NoError(t, traces.Shutdown(t.Context()))
	require.NoError(t, metrics.ConsumeMetrics(t.Context(), metricsOf("shop", func(m pmetric.Metric) {
		m.SetName("g")
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		at(p, 15)
		p.SetIntValue(1)
	})))
	require.NoError(t, metrics.Shutdown(t.Context()))
	require.NoError(t, logs.ConsumeLogs(t.Context(), logsOf("shop", func(r plog.LogRecord) { r.SetTimestamp(16) })))
	require.NoError(t, logs.Shutdown(t.Context()))
	assert.Equal(t, []string{"b", "log record"}, names(t, path))
	assert.Len(t, values(t, path), 1)

	// The next start of the configuration makes a new exporter, as a reload does.
	again, err := factory.CreateLogs(t.Context(), set, cfg)
	require.NoError(t, err)
	require.NoError(t, again.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, again.Shutdown(t.Context()))
	assert.Len(t, files(t, path), 2)
}
