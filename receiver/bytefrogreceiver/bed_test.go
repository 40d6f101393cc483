// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"errors"
	"fmt"
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
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/pairingmark"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/schema"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
	"github.com/callbraid/callbraid/internal/testkit/lanenames"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/runmemory"
)

// patience is how long a test waits for what has to come, on however busy a machine;
// never is longer than any test takes.
const (
	patience = time.Minute
	never    = time.Hour
)

// bed is a running receiver with everything that it hands on and says.
type bed struct {
	t         testing.TB
	receiver  *bytefrogReceiver
	pipeline  *pipeline
	logs      *consumertest.LogsSink
	metrics   *consumertest.MetricsSink
	said      *observer.ObservedLogs
	telemetry *componenttest.Telemetry
	// host is what the receiver is started with.
	host component.Host
	// timing replaces the times of leaving, if it is set.
	timing *timing
	// next has what the receiver hands on to, as it is when component is first called.
	next   sharedreceiver.Signals
	making sync.Once
	made   component.Component
}

// option changes what a receiver is made with.
type option func(b *bed, c *Config)

func withoutTraces(b *bed, _ *Config) { b.pipeline = nil }

// quickly makes the times of leaving short, for tests that are not about them.
func quickly(b *bed, _ *Config) {
	b.timing = &timing{
		farewell: 200 * time.Millisecond, quiet: 100 * time.Millisecond, complete: 10 * time.Millisecond,
		drain: never, discard: 200 * time.Millisecond, parting: 200 * time.Millisecond, control: 30 * time.Millisecond,
		answer: 100 * time.Millisecond, hello: 200 * time.Millisecond, ready: 20 * time.Millisecond, prepared: 20 * time.Millisecond,
		unproven: never, giveWay: never, slotGrace: never, untraced: never,
	}
}

// patiently gives agents all the time they need, for tests in which the agent, and
// not the clock, decides what comes next.
func patiently(b *bed, c *Config) {
	b.timing = &timing{
		farewell: never, quiet: never, complete: time.Millisecond, drain: never, discard: never,
		parting: never, control: never, answer: never, hello: never, ready: never,
		unproven: never, giveWay: never, slotGrace: never, untraced: never,
		// The played agents report no classes.
		prepared: time.Nanosecond,
	}
	c.ShutdownTimeout = 10 * time.Minute
}

func newBed(t testing.TB, options ...option) *bed {
	t.Helper()
	b := unstartedBed(t, options...)
	b.start()
	return b
}

// start starts the receiver, and ends it with the test.
func (b *bed) start() {
	b.t.Helper()
	require.NoError(b.t, b.component().Start(context.Background(), b.host))
	b.t.Cleanup(b.shutdown)
}

func unstartedBed(t testing.TB, options ...option) *bed {
	t.Helper()
	core, said := observer.New(zapcore.DebugLevel)
	b := &bed{
		t: t, pipeline: &pipeline{}, logs: new(consumertest.LogsSink), metrics: new(consumertest.MetricsSink),
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
	config.MaxBlock = 0 // the clock decides nothing
	for _, o := range options {
		o(b, config)
	}
	r, err := newReceiver(settings, config)
	require.NoError(t, err)
	b.receiver = r
	if b.timing != nil {
		r.env.timing = *b.timing
	}
	r.env.timing.shutdown = patience
	if b.pipeline != nil {
		b.next.Traces = b.pipeline
	}
	b.next.Logs, b.next.Metrics = b.logs, b.metrics
	require.NoError(t, config.Validate())
	return b
}

// component is the receiver as the collector has it.
func (b *bed) component() component.Component {
	b.making.Do(func() { b.made = sharedreceiver.Once(b.receiver, b.next) })
	return b.made
}

func (b *bed) shutdown() {
	assert.NoError(b.t, b.component().Shutdown(context.Background()))
}

func (b *bed) address() string { return b.receiver.listener.Addr().String() }

// await waits for a condition.
func (b *bed) await(what string, condition func() bool) {
	b.t.Helper()
	require.Eventually(b.t, condition, patience, time.Millisecond, "waited for %s", what)
}

// awaitRuns waits until there are n runs.
func (b *bed) awaitRuns(n int) {
	b.t.Helper()
	b.await(fmt.Sprintf("%d runs", n), func() bool { return len(b.receiver.env.registry.list()) == n })
}

// metric is the sum of a counter of the receiver's own over all its attributes.
func (b *bed) metric(name string) int64 {
	b.t.Helper()
	return sumOf(b.t, b.telemetry, name)
}

// logEvents counts the log records of each event name.
func (b *bed) logEvents() map[string]int {
	counts := map[string]int{}
	b.eachLog(func(_ plog.ResourceLogs, r plog.LogRecord) { counts[r.EventName()]++ })
	return counts
}

func (b *bed) eachLog(do func(plog.ResourceLogs, plog.LogRecord)) {
	for _, logs := range b.logs.AllLogs() {
		for _, resource := range logs.ResourceLogs().All() {
			assert.Equal(b.t, schema.URL, resource.SchemaUrl())
			for _, scope := range resource.ScopeLogs().All() {
				assert.Equal(b.t, schema.URL, scope.SchemaUrl())
				for _, r := range scope.LogRecords().All() {
					do(resource, r)
				}
			}
		}
	}
}

// pipeline takes batches, or refuses them as it is told.
type pipeline struct {
	mu      sync.Mutex
	batches []ptrace.Traces
	refuse  error
	tries   int
	// hang, while not nil, holds every hand-over until it is closed, or its context is
	// over unless the pipeline is deaf.
	hang chan struct{}
	deaf bool
	// asked counts hand-overs that were begun, brokenOff those whose context was over
	// before they ended.
	asked, brokenOff int
}

var (
	errRefused   = errors.New("not now")
	_            = consumer.Traces((*pipeline)(nil))
	errPermanent = errors.New("never")
)

func (*pipeline) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (p *pipeline) ConsumeTraces(ctx context.Context, traces ptrace.Traces) error {
	pairingmark.Set(ctx)
	p.mu.Lock()
	p.asked++
	hang, over := p.hang, ctx.Done()
	if p.deaf {
		over = nil
	}
	p.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-over:
			p.mu.Lock()
			defer p.mu.Unlock()
			p.brokenOff++
			return ctx.Err()
		}
	}
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

func (p *pipeline) wasAsked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked > 0
}

func (p *pipeline) tried() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tries
}

// called is a call event with its names, as a person would read it.
type called struct {
	kind      callevent.Kind
	function  string
	lane      uint64
	thread    string
	exception string
	line      uint32
}

// events is how many events the pipeline was given.
func (p *pipeline) events() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, traces := range p.batches {
		span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		if v, ok := span.Attributes().Get(callevent.AttributeEvents); ok {
			n += int(v.Int())
		}
	}
	return n
}

// streamSeen is what the pipeline was given of one call stream.
type streamSeen struct {
	events   map[uint64]called
	times    map[uint64]int64
	barriers map[callevent.Barrier]int
	renames  []callevent.Rename
	// twice are numbers that came more than once.
	twice   []uint64
	batches int
	empty   int
	next    uint64
	service string
}

// streams unpacks all that the pipeline was given.
func (p *pipeline) streams(t testing.TB) map[callevent.StreamID]*streamSeen {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	streams := map[callevent.StreamID]*streamSeen{}
	for _, traces := range p.batches {
		require.Equal(t, 1, traces.SpanCount())
		resource := traces.ResourceSpans().At(0)
		span := resource.ScopeSpans().At(0).Spans().At(0)
		data, err := callevent.Data(span)
		require.NoError(t, err)
		var batch callevent.Batch
		require.NoError(t, batch.Unpack(data))
		s := streams[batch.Stream]
		if s == nil {
			s = &streamSeen{events: map[uint64]called{}, times: map[uint64]int64{}, barriers: map[callevent.Barrier]int{}}
			streams[batch.Stream] = s
		}
		service, _ := resource.Resource().Attributes().Get(attributeServiceName)
		s.service = service.Str()
		s.add(t, &batch)
	}
	for _, s := range streams {
		s.nameThreads()
	}
	return streams
}

func (s *streamSeen) add(t testing.TB, batch *callevent.Batch) {
	s.batches++
	if batch.Len() == 0 {
		s.empty++
	}
	s.next = max(s.next, batch.Next)
	for _, barrier := range batch.Barriers {
		s.barriers[barrier]++
	}
	s.renames = append(s.renames, batch.Renames...)
	events := make([]callevent.Event, batch.Len())
	batch.Events(events, 0)
	for _, e := range events {
		require.Less(t, e.Sequence, batch.Next)
		if _, twice := s.events[e.Sequence]; twice {
			s.twice = append(s.twice, e.Sequence)
		}
		c := called{kind: e.Kind}
		if e.Kind != callevent.KindSkip {
			c.function, c.line = batch.Functions[e.Function].Qualified, e.Line
			c.lane, c.thread = batch.Lanes[e.Lane].ID, batch.Lanes[e.Lane].Name
			if e.Exception > 0 {
				c.exception = batch.Exceptions[e.Exception-1]
			}
		}
		s.events[e.Sequence], s.times[e.Sequence] = c, e.Time
	}
}

// nameThreads gives each event the name that its thread had, and leaves each rename once.
func (s *streamSeen) nameThreads() {
	s.renames = lanenames.Sorted(s.renames)
	for sequence, c := range s.events {
		c.thread = lanenames.At(s.renames, c.lane, s.times[sequence], c.thread)
		s.events[sequence] = c
	}
}

// only is the one call stream that the pipeline was given.
func (p *pipeline) only(t testing.TB) *streamSeen {
	t.Helper()
	streams := p.streams(t)
	require.Len(t, streams, 1)
	for _, s := range streams {
		return s
	}
	return nil
}

// end is the barrier with which the stream ended.
func (s *streamSeen) end(t testing.TB) callevent.Barrier {
	t.Helper()
	for barrier := range s.barriers {
		if barrier.Kind == callevent.BarrierEnd {
			return barrier
		}
	}
	require.Fail(t, "the call stream has no end")
	return callevent.Barrier{}
}

// breaks are the breaks of the stream.
func (s *streamSeen) breaks() []callevent.Barrier {
	var breaks []callevent.Barrier
	for barrier := range s.barriers {
		if barrier.Kind == callevent.BarrierBreak {
			breaks = append(breaks, barrier)
		}
	}
	return breaks
}

// newDataConnection is one that is ready to be read, and has not joined its run.
func newDataConnection(r *run, in *connreader.Reader) (*dataConnection, error) {
	d := &dataConnection{run: r, in: in}
	return d, d.prepare()
}

// memoryOf is the memory of a run in a process that has much.
func memoryOf(limit int) *runmemory.Memory {
	return newRunMemory(budget.New(1<<40).Group("test"), limit)
}

// newReader returns a reader of a connection.
func newReader(conn net.Conn, maxString int) *connreader.Reader {
	return connreader.New(conn, connreader.Settings{
		Buffer: dataBytes, MaxMessage: bytefrog.MaxMessageSize(maxString), MessageTimeout: time.Minute,
	})
}

// piece is a connection whose next read returns these bytes.
type piece struct {
	net.Conn
	bytes []byte
}

func (p *piece) Read(b []byte) (n int, err error) {
	n = copy(b, p.bytes)
	p.bytes = p.bytes[n:]
	return n, nil
}

func (p *piece) SetReadDeadline(time.Time) error { return nil }
