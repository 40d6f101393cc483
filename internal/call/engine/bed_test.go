// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/pairing"
)

// bed is a processor for tests. The test lets time pass, sets the answers of the next component,
// and runs the timers.
type bed struct {
	*Engine
	t         testing.TB
	next      *next
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
	time      atomic.Int64
}

// allAttributes are the attributes that are off by default.
var allAttributes = SpanAttributesConfig{Sequence: true, FunctionText: true}

// testID is the component's in tests.
const testID = "stack_pairing"

// quietSettings are those of an engine without logs and metrics.
func quietSettings(next consumer.Traces) Settings {
	return Settings{ID: component.MustNewID(testID), Logger: zap.NewNop(), Instruments: newInstruments(noop.NewMeterProvider()), Next: next}
}

// newInstruments makes the own metrics of a processor.
func newInstruments(provider metric.MeterProvider) (all Instruments) {
	meter := provider.Meter("engine")
	fields := reflect.ValueOf(&all).Elem()
	for i := range fields.NumField() {
		name := "otelcol_processor_stack_pairing" + snake(fields.Type().Field(i).Name)
		var err error
		switch field := fields.Field(i).Addr().Interface().(type) {
		case *metric.Int64Counter:
			*field, err = meter.Int64Counter(name)
		case *metric.Int64UpDownCounter:
			*field, err = meter.Int64UpDownCounter(name)
		case *metric.Float64Histogram:
			*field, err = meter.Float64Histogram(name)
		}
		if err != nil {
			panic(err)
		}
	}
	return all
}

func newBed(t testing.TB, changes ...func(*Config)) *bed {
	t.Helper()
	return newBedWith(t, &next{}, changes...)
}

func newBedWith(t testing.TB, n *next, changes ...func(*Config)) *bed {
	t.Helper()
	return newBedKeeping(t, nil, n, changes...)
}

// newBedKeeping selects traces.
func newBedKeeping(t testing.TB, keep *pairing.Keep, n *next, changes ...func(*Config)) *bed {
	t.Helper()
	return newBedOf(t, Settings{Keep: keep}, n, changes...)
}

// newBedOf has further settings.
func newBedOf(t testing.TB, set Settings, n *next, changes ...func(*Config)) *bed {
	t.Helper()
	b := &bed{t: t, next: n, telemetry: componenttest.NewTelemetry()}
	t.Cleanup(func() { require.NoError(t, b.telemetry.Shutdown(context.Background())) })
	cfg := DefaultConfig()
	// Most tests distinguish spans by the number of their entry.
	cfg.SpanAttributes = allAttributes
	for _, change := range changes {
		change(cfg)
	}
	require.NoError(t, cfg.Validate())
	set.ID, set.Instruments, set.Next = component.MustNewID(testID), newInstruments(b.telemetry.NewTelemetrySettings().MeterProvider), n
	var core zapcore.Core
	core, b.logs = observer.New(zapcore.InfoLevel)
	set.Logger = zap.New(core)
	var err error
	b.Engine, err = New(set, cfg)
	require.NoError(t, err)
	b.clock.elapsed = func() time.Duration { return time.Duration(b.time.Load()) }
	return b
}

// pass lets time pass.
func (b *bed) pass(d time.Duration) { b.time.Add(int64(d)) }

// passAlive lets time pass while empty batches of stream 1 arrive.
func (b *bed) passAlive(d time.Duration) {
	b.t.Helper()
	const interval = 2500 * time.Millisecond
	for ; d > 0; d -= interval {
		b.pass(min(d, interval))
		b.handOver(batch{stream: 1})
	}
}

// tick runs the timers once.
func (b *bed) tick() { b.expire(context.Background()) }

// handOver hands over batches, and expects that the processor accepts them.
func (b *bed) handOver(batches ...batch) {
	b.t.Helper()
	require.NoError(b.t, b.ConsumeTraces(context.Background(), traces(b.t, batches...)))
}

// refuse hands over batches, and expects a temporary error.
func (b *bed) refuse(batches ...batch) error {
	b.t.Helper()
	err := b.ConsumeTraces(context.Background(), traces(b.t, batches...))
	require.Error(b.t, err)
	require.False(b.t, consumererror.IsPermanent(err), "%v", err)
	return err
}

// finish shuts the processor down.
func (b *bed) finish() {
	b.t.Helper()
	require.NoError(b.t, b.Shutdown(context.Background()))
}

// sum returns the value of a metric that is a sum: of all points, or of the points with the value
// of an attribute.
func (b *bed) sum(name string, attribute ...string) int64 {
	b.t.Helper()
	return sumOf(b.t, b.telemetry, name, attribute...)
}

// next is the component behind the processor.
type next struct {
	// mutates: it changes the data that it receives.
	mutates bool

	mu sync.Mutex
	// answer decides about spans; nil: all are accepted.
	answer func(context.Context, ptrace.Traces) error
	// calls are the accepted calls, each in the lines of spanLines.
	calls [][]string
	// clients are the clients of the accepted calls.
	clients []string
	// asked counts calls with any answer.
	asked int
}

func (n *next) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: n.mutates}
}

func (n *next) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	n.mu.Lock()
	answer := n.answer
	n.asked++
	n.mu.Unlock()
	if answer != nil {
		if err := answer(ctx, td); err != nil {
			return err
		}
	}
	n.accept(ctx, td)
	return nil
}

func (n *next) accept(ctx context.Context, td ptrace.Traces) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, spanLines(td))
	n.clients = append(n.clients, strings.Join(client.FromContext(ctx).Metadata.Get("tenant"), ","))
}

// answerWith sets the answer.
func (n *next) answerWith(answer func(context.Context, ptrace.Traces) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answer = answer
}

// Answers of the next component.
var errFull = errors.New("the queue is full")

func refuses(context.Context, ptrace.Traces) error { return errFull }

func failsForGood(context.Context, ptrace.Traces) error {
	return consumererror.NewPermanent(errors.New("unknown data"))
}

// acceptsHalf accepts the first half, and refuses the rest.
func (n *next) acceptsHalf(ctx context.Context, td ptrace.Traces) error {
	half := (td.SpanCount() + 1) / 2
	seen, looked := 0, 0
	taken := without(td, func(ptrace.Span) bool { seen++; return seen > half })
	rest := without(td, func(ptrace.Span) bool { looked++; return looked <= half })
	n.accept(ctx, taken)
	return consumererror.NewTraces(errFull, rest)
}

// accepted returns the accepted spans, in order, and forgets them.
func (n *next) accepted() (lines []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, call := range n.calls {
		lines = append(lines, call...)
	}
	n.calls, n.clients = nil, nil
	return lines
}

func (n *next) timesAsked() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

// spanLines returns a line for each span: "service/function entry", and the cause of a truncation.
func spanLines(td ptrace.Traces) (lines []string) {
	for _, rs := range td.ResourceSpans().All() {
		service := "no service"
		if v, ok := rs.Resource().Attributes().Get("service.name"); ok {
			service = v.AsString()
		}
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				line := service + "/" + span.Name()
				if v, ok := span.Attributes().Get(attributeSequence); ok {
					line += " " + v.AsString()
				}
				if v, ok := span.Attributes().Get(attributeTruncated); ok {
					line += " truncated:" + v.Str()
				}
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// testEpoch is tick 0 of the streams' clocks, which tick in milliseconds.
const testEpoch = 1_700_000_000_000_000_000

// batch describes a batch of a stream.
type batch struct {
	stream  byte
	service string
	// id is the ID of the stream, if stream does not name it.
	id callevent.StreamID
	// first is the number of the first event. An event is written as "enter f", "exit f", "throw f
	// Exception", "unwind f Exception", "exit top" or "skip". The suffix "@2" puts it on lane 2
	// instead of 1. Event number n happens in millisecond n.
	first  uint64
	events []string
	// numbers, if not empty, are the numbers of the events.
	numbers  []uint64
	barriers []callevent.Barrier
	// attributes is the number of attributes of the first event.
	attributes int
	// renames is the number of renames of lane 1 in the batch, from first on.
	renames int
	// next is the number after the highest received one, if that is more than the batch shows.
	next uint64
	// adjust changes the span that carries the batch.
	adjust func(ptrace.Span)
}

// call returns a batch with a whole call.
func call(stream byte, function string, first uint64) batch {
	return batch{stream: stream, first: first, events: []string{"enter " + function, "exit " + function}}
}

func streamID(n byte) callevent.StreamID { return callevent.StreamID{0: n, 8: n, 15: 1} }

// traces returns the batches as a receiver hands them over.
func traces(t testing.TB, batches ...batch) ptrace.Traces {
	t.Helper()
	td := ptrace.NewTraces()
	for _, b := range batches {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", cmp.Or(b.service, "s"+strconv.Itoa(int(b.stream))))
		span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		b.pack(t).To(span)
		if b.adjust != nil {
			b.adjust(span)
		}
	}
	return td
}

func (b batch) pack(t testing.TB) callevent.Packed {
	t.Helper()
	packer, err := callevent.NewPacker(callevent.Stream{ID: cmp.Or(b.id, streamID(b.stream)), Epoch: testEpoch, Resolution: 1e6}, callevent.MaxBatchBytes)
	require.NoError(t, err)
	following := b.next
	functions, known := map[string]*callevent.Function{}, map[string]callevent.Event{}
	for i, words := range b.events {
		sequence := b.first + uint64(i)
		if len(b.numbers) > 0 {
			sequence = b.numbers[i]
		}
		e, ok := known[words]
		if !ok {
			e = eventOf(t, packer, functions, words)
			known[words] = e
		}
		e.Sequence, e.Time = sequence, int64(sequence)
		if !packer.Add(&e) {
			t.Fatalf("expected room for event %d of %d", i, len(b.events))
		}
		for n := range b.attributes {
			if i == 0 {
				require.True(t, packer.Attribute("key "+strconv.Itoa(n), callevent.IntValue(int64(n))))
			}
		}
		following = max(following, sequence+1)
	}
	for n := range b.renames {
		from := b.first + uint64(n)
		require.True(t, packer.Rename(callevent.Rename{Lane: 1, Time: int64(from), Name: "n"}))
	}
	packed, err := packer.Close(b.barriers, following, testEpoch+int64(time.Hour))
	require.NoError(t, err)
	return packed
}

var kinds = map[string]callevent.Kind{
	"enter": callevent.KindEnter, "exit": callevent.KindExit, "throw": callevent.KindThrow,
	"unwind": callevent.KindUnwind, "skip": callevent.KindSkip,
}

// eventOf returns an event without its number, with its names in the packer.
func eventOf(t testing.TB, packer *callevent.Packer, functions map[string]*callevent.Function, words string) (e callevent.Event) {
	t.Helper()
	lane := uint64(1)
	text, number, found := strings.Cut(words, " @")
	if found {
		n, err := strconv.ParseUint(number, 10, 64)
		require.NoError(t, err)
		lane = n
	}
	word := strings.Fields(text)
	e.Kind = kinds[word[0]]
	require.NotZero(t, e.Kind, "event %q", words)
	var ok bool
	e.Lane, ok = packer.Lane(callevent.Lane{ID: lane, Name: "lane " + strconv.FormatUint(lane, 10)})
	require.True(t, ok)
	switch {
	case len(word) > 1 && word[1] == "top":
		e.Kind = callevent.KindExitTop
	case len(word) > 1:
		f := functions[word[1]]
		if f == nil {
			f = &callevent.Function{Qualified: "demo." + word[1], Display: word[1]}
			functions[word[1]] = f
		}
		e.Function, ok = packer.Function(f)
		require.True(t, ok)
	}
	if len(word) > 2 {
		e.Exception, ok = packer.Exception(word[2])
		require.True(t, ok)
	}
	return e
}

// many repeats events.
func many(times int, events ...string) []string { return slices.Repeat(events, times) }

// ordinary adds a span that is no batch.
func ordinary(td ptrace.Traces, name string) {
	rs := td.ResourceSpans().AppendEmpty()
	rs.SetSchemaUrl("https://opentelemetry.io/schemas/1.40.0")
	rs.Resource().Attributes().PutStr("service.name", "web")
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("web.scope")
	span := ss.Spans().AppendEmpty()
	span.SetName(name)
	span.SetTraceID([16]byte{1})
	span.SetSpanID([8]byte{2})
	span.Attributes().PutStr("http.route", "/"+name)
	span.Events().AppendEmpty().SetName("event")
}

// text returns all contents of td, for comparison.
func text(t testing.TB, td ptrace.Traces) string {
	t.Helper()
	b, err := new(ptrace.JSONMarshaler).MarshalTraces(td)
	require.NoError(t, err)
	return string(b)
}

// tenant returns a context with a client.
func tenant(name string) context.Context {
	return client.NewContext(context.Background(), client.Info{
		Metadata: client.NewMetadata(map[string][]string{"tenant": {name}}),
	})
}
