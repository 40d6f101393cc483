// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/metadata"
)

// patience is how long a test waits for what has to come.
const patience = time.Minute

// bed is a receiver with everything that it hands on and says.
type bed struct {
	t         testing.TB
	receiver  *julReceiver
	logs      *logPipeline
	metrics   *consumertest.MetricsSink
	said      *observer.ObservedLogs
	telemetry *componenttest.Telemetry
	component component.Component
	// host is what the receiver is started with.
	host component.Host
}

// newBed makes a receiver and starts it; it ends with the test.
func newBed(t testing.TB, change func(c *Config)) *bed {
	t.Helper()
	b := unstartedBed(t, change)
	b.start()
	return b
}

func unstartedBed(t testing.TB, change func(c *Config)) *bed {
	t.Helper()
	core, said := observer.New(zapcore.DebugLevel)
	b := &bed{
		t: t, logs: &logPipeline{}, metrics: new(consumertest.MetricsSink),
		said: said, telemetry: componenttest.NewTelemetry(), host: componenttest.NewNopHost(),
	}
	t.Cleanup(func() { assert.NoError(t, b.telemetry.Shutdown(context.Background())) })
	settings := receiver.Settings{
		ID:                receivertest.NewNopSettings(metadata.Type).ID,
		TelemetrySettings: b.telemetry.NewTelemetrySettings(),
	}
	settings.Logger = zap.New(core)
	settings.BuildInfo.Version = "v1.2.3"
	config := createDefaultConfig()
	config.Endpoint = "localhost:0"
	config.Retry = RetryConfig{InitialInterval: time.Millisecond, MaxInterval: 20 * time.Millisecond}
	config.CollectionInterval = 100 * time.Millisecond
	config.CommandTimeout = patience
	config.Limits.RegistrationTimeout = patience
	config.ShutdownTimeout = 2 * patience
	if change != nil {
		change(config)
	}
	require.NoError(t, config.Validate())
	r, err := newReceiver(settings, config)
	require.NoError(t, err)
	r.env.checkPortFiles = 5 * time.Millisecond
	r.env.silence = time.Millisecond
	b.receiver = r
	b.component = sharedreceiver.Once(r, sharedreceiver.Signals{Logs: b.logs, Metrics: b.metrics})
	return b
}

func (b *bed) start() {
	b.t.Helper()
	require.NoError(b.t, b.component.Start(context.Background(), b.host))
	b.t.Cleanup(b.shutdown)
}

func (b *bed) shutdown() {
	assert.NoError(b.t, b.component.Shutdown(context.Background()))
}

// address is where agents connect.
func (b *bed) address() string { return b.receiver.listener.Addr().String() }

// port is that of the address.
func (b *bed) port() int { return b.receiver.listener.Addr().(*net.TCPAddr).Port }

// await waits for a condition.
func (b *bed) await(what string, condition func() bool) {
	b.t.Helper()
	if !assert.Eventually(b.t, condition, patience, time.Millisecond, "waited for %s", what) {
		for _, entry := range b.said.All() {
			b.t.Log(entry.Level, entry.Message, entry.ContextMap())
		}
		for _, r := range b.logs.all() {
			b.t.Log(r)
		}
		b.t.FailNow()
	}
}

// awaitSaid waits for a line in the log.
func (b *bed) awaitSaid(message string) observer.LoggedEntry {
	b.t.Helper()
	b.await("log line "+message, func() bool { return b.said.FilterMessage(message).Len() > 0 })
	return b.said.FilterMessage(message).All()[0]
}

// awaitRecords waits until there are so many log records of an event, and gives them.
func (b *bed) awaitRecords(event string, n int) []record {
	b.t.Helper()
	b.await("log records "+event, func() bool { return len(b.logs.of(event)) >= n })
	records := b.logs.of(event)
	require.Len(b.t, records, n)
	return records
}

// metric is the sum of a counter of the receiver's own over all its attributes.
func (b *bed) metric(name string) int64 {
	b.t.Helper()
	return telemetrytest.Sum(b.t, b.telemetry, "otelcol_receiver_lttng_jul_"+name)
}

// record is a log record with its resource.
type record struct {
	event, body string
	severity    plog.SeverityNumber
	time        time.Time
	attributes  map[string]any
	resource    map[string]any
	// schemas are the schema URLs of the resource and of the scope.
	schemas [2]string
}

// logPipeline takes log records.
type logPipeline struct {
	mu      sync.Mutex
	records []record
	// refusing says that it takes none for now.
	refusing bool
}

func (*logPipeline) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (p *logPipeline) ConsumeLogs(_ context.Context, logs plog.Logs) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusing {
		return errors.New("not now")
	}
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, r := range scope.LogRecords().All() {
				p.records = append(p.records, record{
					event: r.EventName(), body: r.Body().Str(), severity: r.SeverityNumber(), time: r.Timestamp().AsTime(),
					attributes: r.Attributes().AsRaw(), resource: rawOf(resource.Resource()),
					schemas: [2]string{resource.SchemaUrl(), scope.SchemaUrl()},
				})
			}
		}
	}
	return nil
}

func rawOf(r pcommon.Resource) map[string]any { return r.Attributes().AsRaw() }

func (p *logPipeline) refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = refuse
}

func (p *logPipeline) all() []record {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]record(nil), p.records...)
}

// of are the records of an event.
func (p *logPipeline) of(event string) (records []record) {
	for _, r := range p.all() {
		if r.event == event {
			records = append(records, r)
		}
	}
	return records
}

// loggersOf are the names of the loggers in records.
func loggersOf(records []record) []string {
	names := make([]string, len(records))
	for i, r := range records {
		names[i] = r.attributes[attributeLogger].(string)
	}
	return names
}
