// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

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
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/pairingmark"
	"github.com/callbraid/callbraid/internal/componentkit/schema"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/sim/capture"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

const kib, mib = 1 << 10, 1 << 20

// patience is the time limit for expected events.
const patience = time.Minute

// bed is a receiver with its deliveries and its log.
type bed struct {
	t         testing.TB
	receiver  *liveReceiver
	whole     *receiverkit.Receiver
	pipeline  *pipeline
	logs      *logPipeline
	metrics   *consumertest.MetricsSink
	said      *observer.ObservedLogs
	telemetry *componenttest.Telemetry
	host      component.Host
	// next contains the consumers at the time of the first call of component.
	next   sharedreceiver.Signals
	making sync.Once
	made   component.Component
}

// option changes the settings of a receiver.
type option func(b *bed, c *Config)

func withoutTraces(b *bed, _ *Config) { b.pipeline = nil }
func withoutLogs(b *bed, _ *Config)   { b.logs = nil }

// reading is an option: the address of the relay daemon.
func reading(address string) option {
	return func(_ *bed, c *Config) { c.Endpoint = address }
}

// newBed makes a receiver and starts it. It ends with the test.
func newBed(t testing.TB, options ...option) *bed {
	t.Helper()
	b := unstartedBed(t, options...)
	require.NoError(t, b.component().Start(context.Background(), b.host))
	t.Cleanup(b.shutdown)
	return b
}

func unstartedBed(t testing.TB, options ...option) *bed {
	t.Helper()
	core, said := observer.New(zapcore.DebugLevel)
	b := &bed{
		t: t, pipeline: &pipeline{}, logs: &logPipeline{}, metrics: new(consumertest.MetricsSink),
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
	config.Batch.MaxDelay = 20 * time.Millisecond
	config.Poll.ListInterval = 10 * time.Millisecond
	config.Reconnect = RetryConfig{InitialInterval: 5 * time.Millisecond, MaxInterval: 50 * time.Millisecond}
	config.Retry = RetryConfig{InitialInterval: time.Millisecond, MaxInterval: 20 * time.Millisecond}
	config.SymbolPaths = nil
	for _, o := range options {
		o(b, config)
	}
	require.NoError(t, config.Validate())
	r, err := newReceiver(settings, config)
	require.NoError(t, err)
	b.whole, b.receiver = r, r.Protocol.(*liveReceiver)
	if b.pipeline != nil {
		b.next.Traces = b.pipeline
	}
	if b.logs != nil {
		b.next.Logs = b.logs
	}
	b.next.Metrics = b.metrics
	return b
}

// component returns the receiver as a component of the collector.
func (b *bed) component() component.Component {
	b.making.Do(func() { b.made = sharedreceiver.Once(b.whole, b.next) })
	return b.made
}

func (b *bed) shutdown() {
	assert.NoError(b.t, b.component().Shutdown(context.Background()))
}

// await waits for a condition.
func (b *bed) await(what string, condition func() bool) {
	b.t.Helper()
	if !assert.True(b.t, testkit.Happens(condition), "waited for %s", what) {
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

// saidAloud returns the number of log lines above debug level with this message.
func (b *bed) saidAloud(message string) int {
	loud := func(entry observer.LoggedEntry) bool { return entry.Level > zapcore.DebugLevel }
	return b.said.FilterMessage(message).Filter(loud).Len()
}

// metric returns the sum of one of the receiver's counters over all its attributes.
func (b *bed) metric(name string) int64 {
	b.t.Helper()
	return telemetrytest.Sum(b.t, b.telemetry, "otelcol_"+name)
}

// relay is a relay daemon that serves recordings.
type relay struct {
	t        testing.TB
	listener net.Listener
	relay    *lttnglive.Relay
	serving  sync.WaitGroup
	cancel   context.CancelFunc

	mu    sync.Mutex
	conns map[net.Conn]bool
	// wrap, if set, wraps the connections of viewers.
	wrap func(net.Conn) net.Conn
}

// captured returns the recordings of captures.
func captured(t testing.TB, names ...string) []*lttnglive.Recording {
	t.Helper()
	var all []*lttnglive.Recording
	for i, name := range names {
		c, err := capture.Open(lttngdata.CaptureFile(t, name))
		require.NoError(t, err)
		recordings, err := c.Recordings()
		require.NoError(t, err)
		for _, r := range recordings {
			r.Session.ID += uint64(1000 * i)
			for j := range r.Streams {
				r.Streams[j].ID += uint64(1000 * i)
			}
		}
		all = append(all, recordings...)
	}
	return all
}

func newRelay(t testing.TB, recordings []*lttnglive.Recording, options lttnglive.RelayOptions) *relay {
	t.Helper()
	return newRelayAt(t, testkit.Address(t), recordings, options)
}

func newRelayAt(t testing.TB, address string, recordings []*lttnglive.Recording, options lttnglive.RelayOptions) *relay {
	t.Helper()
	served, err := lttnglive.NewRelay(recordings, options)
	require.NoError(t, err)
	r := &relay{t: t, relay: served, conns: map[net.Conn]bool{}, wrap: func(c net.Conn) net.Conn { return c }}
	r.listener, err = net.Listen("tcp", address)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.serving.Add(1)
	go r.serve(ctx)
	t.Cleanup(r.stop)
	return r
}

func (r *relay) address() string { return r.listener.Addr().String() }

func (r *relay) serve(ctx context.Context) {
	defer r.serving.Done()
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		conn = r.wrap(conn)
		r.conns[conn] = true
		r.mu.Unlock()
		r.serving.Add(1)
		go func() {
			defer r.serving.Done()
			_ = r.relay.Serve(ctx, conn)
			_ = conn.Close()
			r.mu.Lock()
			delete(r.conns, conn)
			r.mu.Unlock()
		}()
	}
}

// hangUp closes all connections.
func (r *relay) hangUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for conn := range r.conns {
		_ = conn.Close()
	}
}

func (r *relay) stop() {
	r.cancel()
	_ = r.listener.Close()
	r.hangUp()
	r.serving.Wait()
}

// pipeline accepts batches, or refuses them after refuseWith.
type pipeline struct {
	mu      sync.Mutex
	batches []ptrace.Traces
	refuse  error
	tries   int
}

var (
	errRefused = errors.New("not now")
	_          = consumer.Traces((*pipeline)(nil))
)

func (*pipeline) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (p *pipeline) ConsumeTraces(ctx context.Context, traces ptrace.Traces) error {
	pairingmark.Set(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries++
	if p.refuse != nil {
		return p.refuse
	}
	p.batches = append(p.batches, traces)
	return nil
}

func (p *pipeline) refuseWith(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = err
}

func (p *pipeline) tried() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tries
}

// logPipeline accepts log records, or refuses them after refuseWith.
type logPipeline struct {
	consumertest.LogsSink
	mu     sync.Mutex
	refuse error
	tries  int
}

func (p *logPipeline) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	p.mu.Lock()
	refuse := p.refuse
	p.tries++
	p.mu.Unlock()
	if refuse != nil {
		return refuse
	}
	return p.LogsSink.ConsumeLogs(ctx, logs)
}

func (p *logPipeline) refuseWith(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = err
}

// record is a log record with its resource and scope.
type record struct {
	plog.LogRecord
	scope    string
	resource pcommon.Resource
}

// records returns all log records of the pipeline, in order.
func (b *bed) records() []record {
	var records []record
	for _, logs := range b.logs.AllLogs() {
		for _, resource := range logs.ResourceLogs().All() {
			assert.Equal(b.t, schema.URL, resource.SchemaUrl())
			for _, scope := range resource.ScopeLogs().All() {
				assert.Equal(b.t, schema.URL, scope.SchemaUrl())
				for _, r := range scope.LogRecords().All() {
					records = append(records, record{r, scope.Scope().Name(), resource.Resource()})
				}
			}
		}
	}
	return records
}

// awaitRecords waits for n log records.
func (b *bed) awaitRecords(n int) []record {
	b.t.Helper()
	b.await("log records", func() bool { return b.logs.LogRecordCount() >= n })
	records := b.records()
	require.Len(b.t, records, n)
	return records
}

// called is a call event with names.
type called struct {
	kind     callevent.Kind
	function string
	lane     uint64
	thread   string
	time     int64
	values   map[string]string
}

// streamSeen contains the data of one call stream in the pipeline.
type streamSeen struct {
	events   map[uint64]called
	barriers map[callevent.Barrier]int
	// twice are sequence numbers that arrived more than once.
	twice    []uint64
	batches  int
	next     uint64
	resource pcommon.Resource
}

// streams unpacks all batches of the pipeline.
func (p *pipeline) streams(t testing.TB) map[callevent.StreamID]*streamSeen {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	streams := map[callevent.StreamID]*streamSeen{}
	for _, traces := range p.batches {
		require.Equal(t, 1, traces.SpanCount())
		resource := traces.ResourceSpans().At(0)
		data, err := callevent.Data(resource.ScopeSpans().At(0).Spans().At(0))
		require.NoError(t, err)
		var batch callevent.Batch
		require.NoError(t, batch.Unpack(data))
		s := streams[batch.Stream]
		if s == nil {
			s = &streamSeen{events: map[uint64]called{}, barriers: map[callevent.Barrier]int{}, resource: resource.Resource()}
			streams[batch.Stream] = s
		}
		s.add(t, &batch)
	}
	return streams
}

// events returns the number of call events in the pipeline.
func (p *pipeline) events() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, traces := range p.batches {
		if v, ok := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().Get(callevent.AttributeEvents); ok {
			n += int(v.Int())
		}
	}
	return n
}

func (s *streamSeen) add(t testing.TB, batch *callevent.Batch) {
	s.batches++
	s.next = max(s.next, batch.Next)
	for _, barrier := range batch.Barriers {
		s.barriers[barrier]++
	}
	events := make([]callevent.Event, batch.Len())
	batch.Events(events, 0)
	for i, e := range events {
		require.Less(t, e.Sequence, batch.Next)
		if _, twice := s.events[e.Sequence]; twice {
			s.twice = append(s.twice, e.Sequence)
		}
		c := called{kind: e.Kind, time: e.Time, lane: batch.Lanes[e.Lane].ID, thread: batch.Lanes[e.Lane].Name}
		if e.Kind != callevent.KindExitTop {
			c.function = batch.Functions[e.Function].Qualified
		}
		for _, a := range batch.Attributes {
			if int(a.Event) == i {
				if c.values == nil {
					c.values = map[string]string{}
				}
				c.values[batch.Values[a.Key].Str()] = batch.Values[a.Value].Str()
			}
		}
		s.events[e.Sequence] = c
	}
}

// inOrder returns the events by their sequence numbers, which must have no gaps.
func (s *streamSeen) inOrder(t testing.TB) []called {
	t.Helper()
	events := make([]called, len(s.events))
	for i := range events {
		e, ok := s.events[uint64(i)]
		require.True(t, ok, "event %d is missing", i)
		events[i] = e
	}
	return events
}

// only returns the one call stream of the pipeline.
func (p *pipeline) only(t testing.TB) *streamSeen {
	t.Helper()
	streams := p.streams(t)
	require.Len(t, streams, 1)
	for _, s := range streams {
		return s
	}
	return nil
}

// has reports whether there is a barrier of a kind and a cause.
func (s *streamSeen) has(kind callevent.BarrierKind, cause callevent.Cause) bool {
	for barrier := range s.barriers {
		if barrier.Kind == kind && barrier.Cause == cause {
			return true
		}
	}
	return false
}

// textOf returns a text attribute, or "".
func textOf(m pcommon.Map, key string) string {
	v, ok := m.Get(key)
	if !ok {
		return ""
	}
	return v.AsString()
}
