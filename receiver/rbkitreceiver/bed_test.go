// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"
	"net"
	"path/filepath"
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
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/componentkit/schema"
	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/capture"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
)

// patience is how long a test waits for what has to come.
const patience = time.Minute

func openCapture(t testing.TB, name string) *capture.Capture {
	t.Helper()
	c, err := capture.Open(filepath.Join("..", "..", "testdata", "rbkit", name+".zip"))
	require.NoError(t, err)
	return c
}

// bed is a receiver with everything that it hands on and says.
type bed struct {
	t         testing.TB
	receiver  *rbkitReceiver
	traces    *consumertest.TracesSink
	logs      *consumertest.LogsSink
	metrics   *consumertest.MetricsSink
	profiles  *consumertest.ProfilesSink
	said      *observer.ObservedLogs
	telemetry *componenttest.Telemetry
	next      sharedreceiver.Signals
	// prepare changes what the receiver is made of; nil: nothing does.
	prepare func(*environment)
	making  sync.Once
	made    component.Component
	// host is what the receiver is started with.
	host component.Host
}

// option changes what a receiver is made with.
type option func(b *bed, c *Config)

// following is an option: which servers.
func following(servers ...*played) option {
	return func(_ *bed, c *Config) {
		for _, s := range servers {
			c.Servers = append(c.Servers, s.config())
		}
	}
}

// newBed makes a receiver and starts it; it ends with the test.
func newBed(t testing.TB, options ...option) *bed {
	t.Helper()
	b := unstartedBed(t, options...)
	b.start()
	return b
}

// start starts the receiver; it ends with the test.
func (b *bed) start() {
	b.t.Helper()
	require.NoError(b.t, b.component().Start(context.Background(), b.host))
	b.t.Cleanup(b.shutdown)
}

func unstartedBed(t testing.TB, options ...option) *bed {
	t.Helper()
	core, said := observer.New(zapcore.DebugLevel)
	b := &bed{
		t: t, traces: new(consumertest.TracesSink), logs: new(consumertest.LogsSink),
		metrics: new(consumertest.MetricsSink), profiles: new(consumertest.ProfilesSink),
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
	config.Timeout = 5 * time.Second
	config.Reconnect = RetryConfig{InitialInterval: 5 * time.Millisecond, MaxInterval: 50 * time.Millisecond}
	config.Retry = RetryConfig{InitialInterval: time.Millisecond, MaxInterval: 20 * time.Millisecond}
	b.next = sharedreceiver.Signals{Traces: b.traces, Logs: b.logs, Metrics: b.metrics, Profiles: b.profiles}
	for _, o := range options {
		o(b, config)
	}
	require.NoError(t, config.Validate())
	r, err := newReceiver(settings, config)
	require.NoError(t, err)
	r.env.host = "" // results are the same on all machines
	b.receiver = r
	if b.prepare != nil {
		b.prepare(r.env)
	}
	return b
}

// alone is a server without sockets, whose messages and time the test gives. Metrics are
// collected by the test.
func alone(t testing.TB, options ...option) (*bed, *server) {
	t.Helper()
	options = append([]option{func(_ *bed, c *Config) { c.Servers = []ServerConfig{{Publish: "localhost:5555"}} }}, options...)
	b := unstartedBed(t, options...)
	b.receiver.env.ctx = context.Background()
	next := b.next
	next.Metrics = nil
	b.receiver.open(next)
	b.receiver.env.measured = b.next.Metrics != nil
	return b, b.receiver.servers[0]
}

// finish hands on all that there is of a server that is alone.
func (b *bed) finish(s *server) {
	s.end()
	b.receiver.env.close()
}

// component is the receiver as the collector has it.
func (b *bed) component() component.Component {
	b.making.Do(func() { b.made = sharedreceiver.Once(b.receiver, b.next) })
	return b.made
}

func (b *bed) shutdown() {
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
	b.await("log line "+message, func() bool { return b.said.FilterMessage(message).Len() > 0 })
	return b.said.FilterMessage(message).All()[0]
}

// counter is the sum of a counter of the receiver's own over all its attributes.
func (b *bed) counter(name string) int64 {
	b.t.Helper()
	return telemetrytest.Sum(b.t, b.telemetry, "otelcol_receiver_rbkit_"+name)
}

// points are those of all counters of the receiver's own.
func (b *bed) points() map[string]int64 {
	b.t.Helper()
	return telemetrytest.Points(b.t, b.telemetry, "otelcol_receiver_rbkit_")
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

// state is what is known of the first server's process.
func (b *bed) state() processState {
	b.t.Helper()
	s := b.receiver.servers[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotNil(b.t, s.process)
	return s.process.state()
}

// pointsOf are the points of a metric by the value of an attribute.
func pointsOf(metrics pmetric.Metrics, name, attribute string) map[string]int64 {
	points := map[string]int64{}
	for _, resource := range metrics.ResourceMetrics().All() {
		for _, m := range resource.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() != name {
				continue
			}
			var all pmetric.NumberDataPointSlice
			if m.Type() == pmetric.MetricTypeSum {
				all = m.Sum().DataPoints()
			} else {
				all = m.Gauge().DataPoints()
			}
			for _, p := range all.All() {
				v, _ := p.Attributes().Get(attribute)
				points[v.AsString()] += p.IntValue()
			}
		}
	}
	return points
}

// played is a server that is played.
type played struct {
	*rbkitserver.Server
	t                testing.TB
	publish, request net.Listener
	addresses        ServerConfig
	options          rbkitserver.Options
	end              func()
}

// play plays a server on ports that are free, until the test ends.
func play(t testing.TB, options rbkitserver.Options) *played {
	t.Helper()
	p := &played{t: t, options: options}
	p.start("localhost:0", "localhost:0")
	t.Cleanup(p.stop)
	return p
}

func (p *played) start(publish, request string) {
	p.t.Helper()
	p.publish, p.request = p.listen(publish), p.listen(request)
	p.addresses = ServerConfig{Publish: p.publish.Addr().String(), Request: p.request.Addr().String()}
	p.Server = rbkitserver.New(p.options)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func(s *rbkitserver.Server) { served <- s.Serve(ctx, p.publish, p.request) }(p.Server)
	p.end = sync.OnceFunc(func() {
		cancel()
		assert.NoError(p.t, <-served)
	})
}

// listen waits until an address is free: while a server is away somebody's connection, even
// one to it, can have been given its port.
func (p *played) listen(address string) (listener net.Listener) {
	p.t.Helper()
	require.EventuallyWithT(p.t, func(c *assert.CollectT) {
		var err error
		listener, err = net.Listen("tcp", address)
		require.NoError(c, err)
	}, patience, time.Millisecond)
	return listener
}

// config is how the server is reached.
func (p *played) config() ServerConfig { return p.addresses }

func (p *played) stop() { p.end() }

// restart ends the server and starts another one on the same ports.
func (p *played) restart(options rbkitserver.Options) {
	p.t.Helper()
	p.stop()
	p.options = options
	p.start(p.addresses.Publish, p.addresses.Request)
}

// awaitSubscriber waits until the receiver has subscribed.
func (p *played) awaitSubscriber() {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return p.Subscribers() > 0 }, patience, time.Millisecond)
}

// replay publishes a capture as fast as it can.
func (p *played) replay(c *capture.Capture) {
	p.t.Helper()
	p.awaitSubscriber()
	require.NoError(p.t, p.Replay(context.Background(), c, 0, nil))
}

var (
	released = rbkit.HandshakeReply{
		Dialect: rbkit.Released, ServerVersion: "0.1.10", ProtocolVersion: "2.1", ProcessName: "prog.rb",
		WorkingDirectory: "/nowhere", PID: 4711, Clock: "wall", CPUProfilingMode: "sampling",
	}
)
