// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/componentkit/schema"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/metadata"
)

// patience is how long a test waits for what has to come.
const patience = time.Minute

// bed is a receiver with everything that it hands on and says.
type bed struct {
	t         testing.TB
	receiver  *greysReceiver
	traces    *consumertest.TracesSink
	logs      *consumertest.LogsSink
	metrics   *consumertest.MetricsSink
	said      *observer.ObservedLogs
	telemetry *componenttest.Telemetry
	host      component.Host
	next      sharedreceiver.Signals
	making    sync.Once
	made      component.Component
	// sumsNow are those of the metrics that were looked at, of which there are summed.
	sumsNow map[int64][2]int64
	summed  int
}

// newBed makes a receiver, which is not started. Its configuration is the default one with
// short pauses, changed by set.
func newBed(t testing.TB, set func(c *Config)) *bed {
	t.Helper()
	core, said := observer.New(zapcore.DebugLevel)
	b := &bed{
		t: t, traces: new(consumertest.TracesSink), logs: new(consumertest.LogsSink), metrics: new(consumertest.MetricsSink),
		said: said, telemetry: componenttest.NewTelemetry(), host: componenttest.NewNopHost(), sumsNow: map[int64][2]int64{},
	}
	t.Cleanup(func() { assert.NoError(t, b.telemetry.Shutdown(context.Background())) })
	settings := receiver.Settings{
		ID:                receivertest.NewNopSettings(metadata.Type).ID,
		TelemetrySettings: b.telemetry.NewTelemetrySettings(),
	}
	settings.Logger = zap.New(core)
	settings.BuildInfo.Version = "v1.2.3"
	config := createDefaultConfig()
	config.Servers = []ServerConfig{{Endpoint: "shop.example:3658"}}
	config.Timezone = "UTC" // so that results are the same everywhere
	config.StateInterval = time.Hour
	config.PerMethod = false // what a test sets is asked as it stands
	config.RecursionCheck = 0
	config.CollectionInterval = time.Hour
	config.Reconnect = RetryConfig{InitialInterval: time.Millisecond, MaxInterval: 10 * time.Millisecond}
	config.Retry = RetryConfig{InitialInterval: time.Millisecond, MaxInterval: 20 * time.Millisecond}
	b.next = sharedreceiver.Signals{Traces: b.traces, Logs: b.logs, Metrics: b.metrics}
	set(config)
	require.NoError(t, config.Validate())
	r, err := newReceiver(settings, config)
	require.NoError(t, err)
	r.env.host = "" // results are the same on all machines
	b.receiver = r
	return b
}

// start starts the receiver, which ends with the test.
func (b *bed) start() *bed {
	b.t.Helper()
	require.NoError(b.t, b.component().Start(context.Background(), b.host))
	b.t.Cleanup(b.shutdown)
	return b
}

// component is the receiver as the collector has it.
func (b *bed) component() component.Component {
	b.making.Do(func() { b.made = sharedreceiver.Once(b.receiver, b.next) })
	return b.made
}

func (b *bed) shutdown() {
	b.t.Helper()
	assert.NoError(b.t, b.component().Shutdown(context.Background()))
}

// await waits for a condition.
func (b *bed) await(what string, condition func() bool) {
	b.t.Helper()
	if !assert.Eventually(b.t, condition, patience, time.Millisecond, "waited for %s", what) {
		for _, entry := range b.said.All() {
			b.t.Log(entry.Level, entry.Message, entry.ContextMap())
		}
		b.t.FailNow()
	}
}

// awaitSaid waits for a line in the log.
func (b *bed) awaitSaid(message string) observer.LoggedEntry {
	b.t.Helper()
	b.await("log line "+message, func() bool { return b.said.FilterMessageSnippet(message).Len() > 0 })
	return b.said.FilterMessageSnippet(message).All()[0]
}

// points are those of all counters of the receiver's own.
func (b *bed) points() map[string]int64 {
	b.t.Helper()
	return telemetrytest.Points(b.t, b.telemetry, "otelcol_receiver_greys_")
}

// point is that of one counter with its attributes.
func (b *bed) point(name string) int64 {
	b.t.Helper()
	return b.points()[name]
}

// records are all log records that have the name of an event.
func (b *bed) records(event string) (records []plog.LogRecord) {
	for _, logs := range b.logs.AllLogs() {
		for _, resource := range logs.ResourceLogs().All() {
			assert.Equal(b.t, [2]string{schema.URL, schema.URL}, [2]string{resource.SchemaUrl(), resource.ScopeLogs().At(0).SchemaUrl()})
			for _, r := range resource.ScopeLogs().At(0).LogRecords().All() {
				if r.EventName() == event {
					records = append(records, r)
				}
			}
		}
	}
	return records
}

// spans are all that were handed on.
func (b *bed) spans() (spans []ptrace.Span) {
	for _, traces := range b.traces.AllTraces() {
		for _, resource := range traces.ResourceSpans().All() {
			assert.Equal(b.t, [2]string{schema.URL, schema.URL}, [2]string{resource.SchemaUrl(), resource.ScopeSpans().At(0).SchemaUrl()})
			for _, s := range resource.ScopeSpans().At(0).Spans().All() {
				spans = append(spans, s)
			}
		}
	}
	return spans
}

// collect collects metrics of what lives now. Nobody else may at the time.
func (b *bed) collect() pmetric.Metrics {
	b.t.Helper()
	states := b.receiver.living()
	return b.receiver.env.metrics.metrics(states, b.receiver.env.now())
}

// values are the points of a metric, by class and method, or command and pattern.
func values(metrics pmetric.Metrics, name string) map[string]float64 {
	all := map[string]float64{}
	for _, resource := range metrics.ResourceMetrics().All() {
		for _, m := range resource.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() != name {
				continue
			}
			var points pmetric.NumberDataPointSlice
			if m.Type() == pmetric.MetricTypeSum {
				points = m.Sum().DataPoints()
			} else {
				points = m.Gauge().DataPoints()
			}
			for _, p := range points.All() {
				key := ""
				for _, attribute := range []string{"greys.command", "greys.pattern", "code.function.name", "java.class"} {
					if v, ok := p.Attributes().Get(attribute); ok {
						key += " " + v.Str()
					}
				}
				value := p.DoubleValue()
				if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
					value = float64(p.IntValue())
				}
				all[key[min(1, len(key)):]] += value
			}
		}
	}
	return all
}
