// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/connector/xconnector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/metadata"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/engine"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/budget/budgettest"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/heapsize"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor"
)

var (
	errFull    = errors.New("the queue is full")
	errUnknown = consumererror.NewPermanent(errors.New("unknown data"))
)

// output is a component behind the connector, for all signals. answer decides; nil: it accepts.
type output struct {
	consumertest.Consumer
	mu     sync.Mutex
	answer func(context.Context) error
	// answerMetrics and answerProfiles decide by the message; nil: answer decides.
	answerMetrics  func(pmetric.Metrics) error
	answerProfiles func(pprofile.Profiles) error
	metrics        []pmetric.Metrics
	profiles       []pprofile.Profiles
	traces         []ptrace.Traces
	spans          int
}

func newOutput() *output { return &output{Consumer: consumertest.NewNop()} }

func (o *output) answerWith(answer func(context.Context) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answer = answer
}

func (o *output) accepts(ctx context.Context, accept func()) error {
	o.mu.Lock()
	answer := o.answer
	o.mu.Unlock()
	if answer != nil {
		if err := answer(ctx); err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	accept()
	return nil
}

func (o *output) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	if o.answerMetrics != nil {
		return o.answerMetrics(md)
	}
	return o.accepts(ctx, func() { o.metrics = append(o.metrics, md) })
}

func (o *output) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	if o.answerProfiles != nil {
		return o.answerProfiles(pd)
	}
	return o.accepts(ctx, func() { o.profiles = append(o.profiles, pd) })
}

func (o *output) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	return o.accepts(ctx, func() { o.traces, o.spans = append(o.traces, td), o.spans+td.SpanCount() })
}

// calls are the values of code.function.calls of each message, by function; "": otel.metric.overflow. A point without a
// value is -1.
func (o *output) calls() (messages []map[string]int64) {
	for _, md := range o.metrics {
		all := map[string]int64{}
		for _, rm := range md.ResourceMetrics().All() {
			for _, p := range rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().All() {
				function := ""
				if name, ok := p.Attributes().Get("code.function.name"); ok {
					function = name.Str()
				}
				all[function] += p.IntValue()
				if p.Flags().NoRecordedValue() {
					all[function] = -1
				}
			}
		}
		messages = append(messages, all)
	}
	return messages
}

func samples(all []pprofile.Profiles) (n int64) {
	for _, pd := range all {
		for _, rp := range pd.ResourceProfiles().All() {
			for _, p := range rp.ScopeProfiles().At(0).Profiles().All() {
				if pd.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex())) == "calls" {
					for _, s := range p.Samples().All() {
						n += s.Values().At(0)
					}
				}
			}
		}
	}
	return n
}

// outputs are the components behind a bench. A nil one has no pipeline.
type outputs struct{ traces, metrics, profiles *output }

func allOutputs() outputs { return outputs{newOutput(), newOutput(), newOutput()} }

// bench is a connector as the Collector's graph builds it.
type bench struct {
	t         testing.TB
	to        outputs
	inputs    []consumer.Traces
	pairer    *pairer
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
	shut      func()
}

func newBench(t testing.TB, cfg *Config, to outputs) *bench {
	t.Helper()
	return newBenchIn(t, componenttest.NewNopHost(), cfg, to)
}

func newBenchIn(t testing.TB, host component.Host, cfg *Config, to outputs) *bench {
	t.Helper()
	b := &bench{t: t, to: to, telemetry: componenttest.NewTelemetry()}
	t.Cleanup(func() { require.NoError(t, b.telemetry.Shutdown(context.Background())) })
	require.NoError(t, cfg.Validate())
	f, set := NewFactory().(xconnector.Factory), connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = b.telemetry.NewTelemetrySettings()
	var core zapcore.Core
	core, b.logs = observer.New(zap.WarnLevel)
	set.Logger = zap.New(core)
	var all []*input
	if to.profiles != nil {
		i, err := f.CreateTracesToProfiles(t.Context(), set, cfg, to.profiles)
		require.NoError(t, err)
		all = append(all, i.(*input))
	}
	if to.metrics != nil {
		i, err := f.CreateTracesToMetrics(t.Context(), set, cfg, to.metrics)
		require.NoError(t, err)
		all = append(all, i.(*input))
	}
	if to.traces != nil {
		i, err := f.CreateTracesToTraces(t.Context(), set, cfg, to.traces)
		require.NoError(t, err)
		all = append(all, i.(*input))
	}
	for _, i := range all {
		require.NoError(t, i.Start(t.Context(), host))
		b.inputs = append(b.inputs, i)
	}
	b.pairer = all[0].pairer
	b.shut = func() {
		for _, i := range all {
			require.NoError(t, i.Shutdown(context.Background()))
		}
	}
	return b
}

func (b *bench) handOver(td ptrace.Traces) {
	b.t.Helper()
	for _, i := range b.inputs {
		require.NoError(b.t, i.ConsumeTraces(b.t.Context(), td))
	}
}

// calling is a program with a call of each of so many functions, whose names are a number and a text.
func calling(functions int, text string) *program {
	p := &program{id: callevent.StreamID{0: 1, 8: 1, 15: 1}, service: "shop"}
	for n := range functions {
		f := &callevent.Function{Qualified: fmt.Sprint(n, text), Display: "f"}
		for i, kind := range []callevent.Kind{callevent.KindEnter, callevent.KindExit} {
			at := uint64(2*n + i)
			p.events = append(p.events, event{kind: kind, sequence: at, time: int64(at), function: f})
		}
	}
	return p
}

// callEach hands over a call of each of so many functions.
func (b *bench) callEach(functions int, text string) {
	b.t.Helper()
	for _, td := range calling(functions, text).handOvers(b.t, delivery{packers: 1, batch: 1 << 20}, rand.New(rand.NewPCG(1, 1))) {
		b.handOver(td)
	}
}

func (b *bench) send() { b.pairer.send(b.t.Context(), time.Minute) }

// sum is the value of an own metric that is a sum, which must have the component's ID; of all points, or
// of those with the value of an attribute.
func (b *bench) sum(name string, attribute ...string) (sum int64) {
	b.t.Helper()
	m, err := b.telemetry.GetMetric("otelcol_connector_stack_pairing_" + name)
	if err != nil {
		return 0
	}
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		id, ok := p.Attributes.Value("connector")
		require.True(b.t, ok)
		require.Contains(b.t, id.AsString(), "stack_pairing")
		matches := len(attribute) == 0
		for _, a := range p.Attributes.ToSlice() {
			matches = matches || a.Value.AsString() == attribute[0]
		}
		if matches {
			sum += p.Value
		}
	}
	return sum
}

// whole is a hand-over of a stream with calls of a function. It ends if ends.
func whole(t testing.TB, stream byte, service, function string, first uint64, calls int, ends bool) ptrace.Traces {
	t.Helper()
	f := &callevent.Function{Qualified: function, Display: function}
	p := &program{id: callevent.StreamID{0: stream, 8: stream, 15: 1}, service: service}
	for n := range uint64(calls) {
		at := first + 2*n
		p.events = append(p.events,
			event{kind: callevent.KindEnter, sequence: at, time: int64(at), function: f},
			event{kind: callevent.KindExit, sequence: at + 1, time: int64(at + 1), function: f})
	}
	if ends {
		p.barriers = []callevent.Barrier{callevent.End(first+uint64(2*calls), callevent.CauseEnded)}
	}
	all := p.handOvers(t, delivery{packers: 1, batch: 1 << 20}, rand.New(rand.NewPCG(1, 1)))
	require.Len(t, all, 1)
	return all[0]
}

func TestAHandOverToThreePipelinesCountsOnce(t *testing.T) {
	to := allOutputs()
	b := newBench(t, patient(), to)
	b.handOver(whole(t, 1, "shop", "f", 0, 10, false))
	b.send()
	assert.EqualValues(t, 20, b.sum("events"))
	assert.Equal(t, 10, to.traces.spans)
	assert.EqualValues(t, 10, samples(to.profiles.profiles))
	assert.Equal(t, []map[string]int64{{"f": 10}}, to.metrics.calls())
	b.shut()
}

// The processor leaves the connector spans, and nothing to count.
func TestAProcessorInFrontOfTheConnectorIsLoggedOnce(t *testing.T) {
	const line = "Remove it from the pipeline"
	to := allOutputs()
	b := newBench(t, patient(), to)
	b.handOver(whole(t, 1, "shop", "f", 0, 1, false))
	assert.Zero(t, b.logs.FilterMessageSnippet(line).Len())
	f := stackpairingprocessor.NewFactory()
	processor, err := f.CreateTraces(t.Context(), processortest.NewNopSettings(f.Type()), f.CreateDefaultConfig(), b.inputs[2])
	require.NoError(t, err)
	for n := range uint64(3) {
		require.NoError(t, processor.ConsumeTraces(t.Context(), whole(t, 2, "shop", "f", 2*n, 1, false)))
	}
	assert.Equal(t, 4, to.traces.spans)
	assert.Equal(t, 1, b.logs.FilterMessageSnippet(line).Len())
	require.NoError(t, processor.Shutdown(t.Context()))
	b.shut()
}

// The Collector marks data as read-only that it gives to several components. Only the input to traces
// receives data that the components behind it may change.
func TestSpansThatAreNoBatchesPassByTheInputToTraces(t *testing.T) {
	to := allOutputs()
	b := newBench(t, patient(), to)
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("web")
	for _, i := range b.inputs[:2] {
		require.NoError(t, i.ConsumeTraces(t.Context(), td))
		assert.Zero(t, to.traces.spans)
	}
	require.NoError(t, b.inputs[2].ConsumeTraces(t.Context(), td))
	assert.Equal(t, 1, to.traces.spans)
	b.shut()

	b = newBench(t, patient(), outputs{metrics: newOutput(), profiles: newOutput()})
	b.handOver(td)
	assert.EqualValues(t, 1, b.sum("ignored_spans"))
	b.shut()
}

// A stream's series end with its last values, and then with points without values. Streams of one
// resource share the series.
func TestSeriesEndWithTheLastStreamOfTheirResource(t *testing.T) {
	metrics := newOutput()
	b := newBench(t, patient(), outputs{metrics: metrics})
	b.handOver(whole(t, 1, "shop", "f", 0, 1, true))
	b.handOver(whole(t, 2, "shop", "f", 0, 1, false))
	b.send()
	b.send()
	b.handOver(whole(t, 2, "shop", "f", 2, 1, true))
	for range 4 {
		b.send()
	}
	assert.Equal(t, []map[string]int64{{"f": 2}, {"f": 2}, {"f": 3}, {"f": -1}}, metrics.calls())
	b.shut()
}

func TestAStreamWithANewResourceEndsTheSeriesOfTheFormerOne(t *testing.T) {
	metrics := newOutput()
	b := newBench(t, patient(), outputs{metrics: metrics})
	b.handOver(whole(t, 1, "shop", "f", 0, 1, false))
	b.handOver(whole(t, 1, "store", "g", 2, 1, false))
	b.send()
	b.send()
	b.send()
	assert.Equal(t, []map[string]int64{{"f": 1, "g": 1}, {"f": -1, "g": 1}, {"g": 1}}, metrics.calls())
	b.shut()
}

// A call that waited for its trace keeps the resource that it had when it ended.
func TestAStreamWithANewResourceDecidesItsTraces(t *testing.T) {
	traces := newOutput()
	b := newBench(t, keeping(patient(), KeepConfig{Ratio: 1}), outputs{traces: traces})
	open := whole(t, 1, "shop", "f", 1, 1, false)
	b.handOver(open)
	first := &program{id: callevent.StreamID{0: 1, 8: 1, 15: 1}, service: "shop", events: []event{
		{kind: callevent.KindEnter, function: &callevent.Function{Qualified: "main", Display: "main"}},
	}}
	b.handOver(first.handOvers(t, delivery{packers: 1, batch: 1}, rand.New(rand.NewPCG(1, 1)))[0])
	assert.Zero(t, traces.spans)
	b.handOver(whole(t, 1, "store", "g", 3, 1, false))
	assert.Equal(t, 1, traces.spans)
	assert.EqualValues(t, 1, b.sum("early_decisions", "resource_changed"))
	assert.EqualValues(t, 1, b.sum("early_decisions"))
	b.shut()
	assert.Equal(t, 3, traces.spans)
}

// A receiver reports on its agent in attributes of the scope, also while a trace goes on.
func TestAStreamWithANewAttributeOfItsScopeDecidesNothing(t *testing.T) {
	to := allOutputs()
	b := newBench(t, keeping(patient(), KeepConfig{Ratio: 1}), to)
	report := func(missing int64, td ptrace.Traces) {
		td.ResourceSpans().At(0).ScopeSpans().At(0).Scope().Attributes().PutInt("callbraid.missing.classes", missing)
		b.handOver(td)
	}
	main := &program{id: callevent.StreamID{0: 1, 8: 1, 15: 1}, service: "shop", events: []event{
		{kind: callevent.KindEnter, function: &callevent.Function{Qualified: "main", Display: "main"}},
	}}
	report(0, main.handOvers(t, delivery{packers: 1, batch: 1}, rand.New(rand.NewPCG(1, 1)))[0])
	report(0, whole(t, 1, "shop", "f", 1, 1, false))
	report(1, whole(t, 1, "shop", "f", 3, 1, false))
	assert.Zero(t, to.traces.spans)
	b.send()
	assert.Equal(t, []map[string]int64{{"f": 2}}, to.metrics.calls())
	assert.EqualValues(t, 2, samples(to.profiles.profiles))
	report(1, whole(t, 1, "shop", "f", 5, 1, true))
	require.Len(t, to.traces.traces, 1)
	assert.Equal(t, 4, to.traces.spans)
	missing, _ := to.traces.traces[0].ResourceSpans().At(0).ScopeSpans().At(0).Scope().Attributes().Get("callbraid.missing.classes")
	assert.EqualValues(t, 1, missing.Int(), "the last report")
	assert.Zero(t, b.sum("early_decisions"))
	b.shut()
}

// One refusal does not lose the last points of a stream.
func TestRefusedMetricsAreSentAgain(t *testing.T) {
	metrics := newOutput()
	b := newBench(t, patient(), outputs{metrics: metrics})
	b.handOver(whole(t, 1, "shop", "f", 0, 1, true))
	metrics.answerWith(func(context.Context) error { return errFull })
	b.send()
	assert.Positive(t, b.pairer.sums.held.Load())
	metrics.answerWith(nil)
	b.send()
	b.send()
	assert.Equal(t, []map[string]int64{{"f": 1}, {"f": 1}, {"f": -1}}, metrics.calls())
	assert.Zero(t, b.sum("dropped_points"))
	assert.Zero(t, b.pairer.sums.held.Load())

	b.handOver(whole(t, 2, "shop", "f", 0, 1, false))
	metrics.answerWith(func(context.Context) error { return errFull })
	b.send()
	b.send()
	assert.EqualValues(t, 2, b.sum("dropped_points", "refused_twice"))
	metrics.answerWith(func(context.Context) error { return errUnknown })
	b.send()
	assert.EqualValues(t, 4, b.sum("dropped_points", "refused_for_good"))
	b.shut()
}

// Many programs end while the next component refuses all messages, and need the places of each other. Their last points
// arrive when it accepts, and each program without a place is in otel.metric.overflow.
func TestLastPointsOfEndedProgramsOutliveAnOutage(t *testing.T) {
	metrics := newOutput()
	cfg := patient()
	cfg.Metrics.MaxFunctions = 4
	b := newBench(t, cfg, outputs{metrics: metrics})
	metrics.answerWith(func(context.Context) error { return errFull })
	const programs = 20
	for n := range programs {
		b.handOver(whole(t, byte(n+1), fmt.Sprint("shop ", n), "f", 0, 10, true))
		b.send()
	}
	require.Positive(t, b.sum("dropped_points", "refused_twice"))
	metrics.answerWith(nil)
	b.send()
	last := metrics.calls()[len(metrics.calls())-1]
	assert.EqualValues(t, 10*programs, last["f"]+last[""])
	assert.Positive(t, last["f"])
	b.send()
	assert.EqualValues(t, map[string]int64{"f": -1, "": -1}, metrics.calls()[len(metrics.calls())-1])
	b.handOver(whole(t, programs+1, "store", "f", 0, 10, false))
	b.send()
	assert.Equal(t, map[string]int64{"f": 10}, metrics.calls()[len(metrics.calls())-1], "the places are free again")
	b.shut()
}

// An output that refuses the first message of each interval accepts it before the next one. So series end.
func TestSeriesEndIfEachIntervalIsRefusedOnce(t *testing.T) {
	metrics := newOutput()
	b := newBench(t, patient(), outputs{metrics: metrics})
	b.handOver(whole(t, 1, "shop", "f", 0, 1, true))
	for range 6 {
		refusals := 0
		metrics.answerWith(func(context.Context) error {
			if refusals++; refusals == 2 {
				return errFull
			}
			return nil
		})
		if b.pairer.metrics.queue == nil {
			refusals = 1
		}
		b.send()
	}
	assert.Contains(t, metrics.calls(), map[string]int64{"f": -1})
	assert.Zero(t, b.pairer.sums.metrics.Bytes())
	b.shut()
}

// Refused profiles wait. Without room the oldest are dropped.
func TestRefusedProfilesWaitWithinTheirBound(t *testing.T) {
	profiles := newOutput()
	cfg := patient()
	cfg.Limits.MaxHeldMiB = 1
	b := newBench(t, cfg, outputs{profiles: profiles})
	profiles.answerWith(func(context.Context) error { return errFull })
	const sent = 400
	for n := range uint64(sent) {
		b.handOver(whole(t, 1, "shop", fmt.Sprint(n, strings.Repeat("f", 4_000)), 2*n, 1, false))
		b.send()
		if n == 10 {
			assert.Greater(t, b.sum("memory"), int64(40_000), "held messages count")
			assert.Zero(t, b.sum("dropped_samples"))
		}
		require.LessOrEqual(t, b.pairer.profiles.bytes, 1<<20)
	}
	dropped := b.sum("dropped_samples", "no_room") / 2 // calls and wall
	assert.Positive(t, dropped)
	profiles.answerWith(nil)
	b.send()
	assert.Equal(t, sent-dropped, samples(profiles.profiles))
	b.shut()
	assert.Zero(t, b.sum("memory"))
}

// A message goes on when it is made. So profiles of any size pass a component that accepts them.
func TestProfilesBeyondMaxHeldMiBPassWhileTheyAreAccepted(t *testing.T) {
	profiles := newOutput()
	cfg := patient()
	cfg.Limits.MaxHeldMiB = 1
	b := newBench(t, cfg, outputs{profiles: profiles})
	const functions = 1_200
	b.callEach(functions, strings.Repeat("f", 8_000))
	b.send()
	assert.Greater(t, len(profiles.profiles), 3)
	assert.EqualValues(t, functions, samples(profiles.profiles))
	assert.Zero(t, b.sum("dropped_samples"))
	assert.Zero(t, b.pairer.sums.held.Load())
	b.shut()
}

// Messages fit into what gRPC accepts by default. A refusal does not lose any of them.
func TestMetricsOfManyFunctionsAreSeveralMessages(t *testing.T) {
	metrics := newOutput()
	b := newBench(t, patient(), outputs{metrics: metrics})
	const functions = 6_000
	b.callEach(functions, strings.Repeat("f", 500))
	metrics.answerWith(func(context.Context) error { return errFull })
	b.send()
	metrics.answerWith(nil)
	b.pairer.metrics.sendWaiting(t.Context())
	assert.Greater(t, len(metrics.metrics), 2)
	points := 0
	for _, md := range metrics.metrics {
		assert.LessOrEqual(t, new(pmetric.ProtoMarshaler).MetricsSize(md), maxMessageBytes)
		points += md.DataPointCount()
	}
	assert.Equal(t, 2*functions, points)
	assert.Zero(t, b.sum("dropped_points"))
	b.shut()
}

// changing is a component that changes what it accepts, as an exporter that merges messages does.
type changing struct{ *output }

func (c changing) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	err := c.output.ConsumeMetrics(ctx, md)
	md.MoveTo(pmetric.NewMetrics())
	return err
}

func (c changing) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	err := c.output.ConsumeProfiles(ctx, pd)
	pd.MoveTo(pprofile.NewProfiles())
	return err
}

func TestAnAcceptedMessageIsNotReadAgain(t *testing.T) {
	b := newBench(t, patient(), outputs{metrics: newOutput(), profiles: newOutput()})
	b.pairer.metrics.signal = toMetrics(changing{b.to.metrics})
	b.pairer.profiles.signal = toProfiles(changing{b.to.profiles})
	b.handOver(whole(t, 1, "shop", "f", 0, 1, false))
	b.send()
	assert.Zero(t, b.pairer.sums.held.Load())
	for _, o := range []*output{b.to.metrics, b.to.profiles} {
		o.answerWith(func(context.Context) error { return errUnknown })
	}
	b.handOver(whole(t, 1, "shop", "f", 2, 1, false))
	b.send()
	assert.EqualValues(t, 2, b.sum("dropped_points", "refused_for_good"))
	assert.EqualValues(t, 2, b.sum("dropped_samples", "refused_for_good"))
	assert.Zero(t, b.pairer.sums.held.Load())
	b.shut()
}

// Only the part that an error names is offered again, or lost.
func TestOnlyTheRefusedPartOfAMessageIsSentAgain(t *testing.T) {
	for name, wrap := range map[string]func(error) error{
		"offered again": func(err error) error { return err },
		"lost":          consumererror.NewPermanent,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, patient(), outputs{metrics: newOutput(), profiles: newOutput()})
			b.handOver(whole(t, 1, "shop", "f", 0, 1, true))
			b.handOver(whole(t, 2, "bank", "g", 0, 1, true))
			b.to.metrics.answerMetrics = func(md pmetric.Metrics) error {
				part := pmetric.NewMetrics()
				md.ResourceMetrics().At(1).CopyTo(part.ResourceMetrics().AppendEmpty())
				return wrap(consumererror.NewMetrics(errFull, part))
			}
			b.to.profiles.answerProfiles = func(pd pprofile.Profiles) error {
				part := pprofile.NewProfiles()
				pd.CopyTo(part)
				isFirst := true
				part.ResourceProfiles().RemoveIf(func(pprofile.ResourceProfiles) bool {
					removed := isFirst
					isFirst = false
					return removed
				})
				return wrap(xconsumererror.NewProfiles(errFull, part))
			}
			b.send()
			b.to.metrics.answerMetrics, b.to.profiles.answerProfiles = nil, nil
			if name == "lost" {
				assert.EqualValues(t, 2, b.sum("dropped_points", "refused_for_good"))
				assert.EqualValues(t, 2, b.sum("dropped_samples", "refused_for_good"))
				assert.Empty(t, b.pairer.metrics.queue)
				assert.Empty(t, b.pairer.profiles.queue)
			} else {
				b.pairer.metrics.sendWaiting(t.Context())
				b.pairer.profiles.sendWaiting(t.Context())
				assert.Equal(t, []map[string]int64{{"g": 1}}, b.to.metrics.calls())
				assert.EqualValues(t, 1, samples(b.to.profiles.profiles))
			}
			assert.Zero(t, b.pairer.sums.held.Load())
			b.shut()
		})
	}
}

// A message needs several times the memory of its protobuf. It counts while it is sent, too.
func TestAMessageThatWaitsCountsWithItsMemory(t *testing.T) {
	b := newBench(t, patient(), outputs{metrics: newOutput(), profiles: newOutput()})
	defer b.shut()
	b.callEach(2_000, "com.example.shop.checkout.Checkout.run")
	b.to.metrics.answerWith(func(context.Context) error {
		assert.Positive(t, b.pairer.sums.held.Load())
		return nil
	})
	b.send()
	assert.Zero(t, b.pairer.sums.held.Load())
	refuse := func(context.Context) error { return errFull }
	b.to.metrics.answerWith(refuse)
	b.to.profiles.answerWith(refuse)

	metrics, err := new(pmetric.ProtoMarshaler).MarshalMetrics(b.to.metrics.metrics[0])
	require.NoError(t, err)
	profiles, err := new(pprofile.ProtoMarshaler).MarshalProfiles(b.to.profiles.profiles[0])
	require.NoError(t, err)
	heapsize.AssertCounted(t, func() int { return b.pairer.metrics.bytes + b.pairer.profiles.bytes }, func() {
		for range 10 {
			md, err := new(pmetric.ProtoUnmarshaler).UnmarshalMetrics(metrics)
			require.NoError(t, err)
			b.pairer.metrics.send(t.Context(), md)
			pd, err := new(pprofile.ProtoUnmarshaler).UnmarshalProfiles(profiles)
			require.NoError(t, err)
			b.pairer.profiles.send(t.Context(), pd)
		}
	}, 0.3)
	b.to.metrics.answerWith(nil)
	b.to.profiles.answerWith(nil)
}

// What an output refuses is offered until the shutdown timeout, and then counted.
func TestAShutdownEndsInTimeWhateverTheOutputsDo(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(context.Context) error{
		"they block":  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"they refuse": func(context.Context) error { return errFull },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := allOutputs()
			cfg := patient()
			cfg.ShutdownTimeout = time.Second
			b := newBench(t, cfg, to)
			for _, o := range []*output{to.metrics, to.profiles} {
				o.answerWith(answer)
			}
			b.handOver(whole(t, 1, "shop", "f", 0, 1, false))
			to.traces.answerWith(func(context.Context) error { return errFull })
			b.handOver(whole(t, 1, "shop", "f", 2, 1, false))
			to.traces.answerWith(answer)
			began := time.Now()
			b.shut()
			assert.Less(t, time.Since(began), 10*time.Second)
			assert.EqualValues(t, 2, b.sum("dropped_points", "shutdown"))
			assert.EqualValues(t, 2, b.sum("dropped_samples", "shutdown"))
			assert.EqualValues(t, 1, b.sum("dropped_spans", "shutdown"))
			assert.Zero(t, b.sum("memory"))
		})
	}
}

// One output that blocks takes no time of the others, also at shutdown.
func TestAnOutputThatBlocksLeavesTimeForTheOthers(t *testing.T) {
	t.Parallel()
	blocks := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, which := range []string{"traces", "metrics", "profiles"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			all := map[string]*output{"traces": newOutput(), "metrics": newOutput(), "profiles": newOutput()}
			cfg := patient()
			cfg.ShutdownTimeout = 6 * time.Second
			b := newBench(t, cfg, outputs{all["traces"], all["metrics"], all["profiles"]})
			if which == "traces" {
				all["traces"].answerWith(func(context.Context) error { return errFull })
			}
			b.handOver(whole(t, 1, "shop", "f", 0, 3, false))
			all[which].answerWith(blocks)
			b.shut()
			assert.Equal(t, which == "traces", all["traces"].spans == 0)
			assert.Equal(t, which == "metrics", len(all["metrics"].metrics) == 0)
			assert.Equal(t, which == "profiles", len(all["profiles"].profiles) == 0)
		})
	}
}

// A backend of traces that is away for some time costs no numbers.
func TestMetricsAndProfilesGoOnWhileTracesAreRefused(t *testing.T) {
	to := allOutputs()
	b := newBench(t, patient(), to)
	to.traces.answerWith(func(context.Context) error { return errFull })
	for n := range uint64(10) {
		b.handOver(whole(t, 1, "shop", "f", 2*n, 1, false))
		b.send()
	}
	assert.EqualValues(t, 10, to.metrics.calls()[9]["f"])
	assert.EqualValues(t, 10, samples(to.profiles.profiles))
	assert.EqualValues(t, 10, b.sum("held_spans"))
	assert.Zero(t, b.sum("refused_calls"))
	to.traces.answerWith(nil)
	require.True(t, testkit.Happens(func() bool {
		to.traces.mu.Lock()
		defer to.traces.mu.Unlock()
		return to.traces.spans == 10
	}), "the timers deliver held spans")
	b.shut()
}

func TestTheLastSumsOfAStreamDoNotWaitForItsSpans(t *testing.T) {
	to := allOutputs()
	b := newBench(t, patient(), to)
	blocked, goOn := make(chan struct{}), make(chan struct{})
	to.traces.answerWith(func(context.Context) error {
		close(blocked)
		<-goOn
		return nil
	})
	var group sync.WaitGroup
	last := whole(t, 1, "shop", "f", 0, 3, true)
	group.Go(func() { assert.NoError(t, b.inputs[2].ConsumeTraces(context.Background(), last)) })
	<-blocked
	b.send()
	assert.Equal(t, []map[string]int64{{"f": 3}}, to.metrics.calls())
	assert.EqualValues(t, 3, samples(to.profiles.profiles))
	close(goOn)
	group.Wait()
	b.shut()
}

// A step that finishes many calls delivers under the lock of its shard.
func TestBlockedTracesDelayNeitherTheOtherStreamsNorTheShutdown(t *testing.T) {
	t.Parallel()
	to := outputs{traces: newOutput(), metrics: newOutput()}
	cfg := patient()
	cfg.Interval, cfg.ShutdownTimeout = 100*time.Millisecond, 2*time.Second
	b := newBench(t, cfg, to)
	blocked := make(chan struct{}, 10)
	to.traces.answerWith(func(ctx context.Context) error {
		blocked <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	var group sync.WaitGroup
	for i, calls := range []int{5_000, 1} {
		td := whole(t, byte(i+1), "shop", fmt.Sprint("f", i+1), 0, calls, false)
		group.Go(func() {
			for _, i := range b.inputs {
				_ = i.ConsumeTraces(context.Background(), td)
			}
		})
		if i == 0 {
			<-blocked
		}
	}
	require.True(t, testkit.Happens(func() bool {
		to.metrics.mu.Lock()
		defer to.metrics.mu.Unlock()
		all := to.metrics.calls()
		return len(all) > 0 && all[len(all)-1]["f2"] == 1
	}))
	began := time.Now()
	b.shut()
	assert.Less(t, time.Since(began), 10*time.Second)
	group.Wait()
	assert.EqualValues(t, 5_001, b.sum("dropped_spans", "shutdown"))
	all := to.metrics.calls()
	assert.EqualValues(t, 5_000, all[len(all)-1]["f1"])
}

// A message is made while the sums are locked, and sent after that.
func TestTheEndOfAStreamDoesNotWaitForADelivery(t *testing.T) {
	for _, which := range []string{"metrics", "profiles"} {
		t.Run(which, func(t *testing.T) {
			to := allOutputs()
			b := newBench(t, patient(), to)
			b.handOver(whole(t, 1, "shop", "f", 0, 1, false))
			blocked, goOn, sent := make(chan struct{}), make(chan struct{}), make(chan struct{})
			var once sync.Once
			map[string]*output{"metrics": to.metrics, "profiles": to.profiles}[which].answerWith(func(context.Context) error {
				once.Do(func() { close(blocked) })
				<-goOn
				return nil
			})
			go func() {
				defer close(sent)
				b.send()
			}()
			<-blocked
			ended := make(chan struct{})
			last := whole(t, 1, "shop", "f", 2, 1, true)
			go func() {
				defer close(ended)
				b.handOver(last)
			}()
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Error("the end of a stream waits for a delivery")
			}
			close(goOn)
			<-sent
			<-ended
			b.shut()
			assert.EqualValues(t, 2, samples(to.profiles.profiles))
		})
	}
}

// The sender may be inside a component that does not return. The spans of open calls are delivered first.
func TestAShutdownDeliversSpansBeforeItWaitsForTheSender(t *testing.T) {
	to := outputs{traces: newOutput(), metrics: newOutput()}
	cfg := patient()
	cfg.Interval = 100 * time.Millisecond
	b := newBench(t, cfg, to)
	b.handOver(whole(t, 1, "shop", "f", 0, 1, false))
	blocked, delivered := make(chan struct{}), make(chan struct{})
	var once, twice sync.Once
	to.metrics.answerWith(func(ctx context.Context) error {
		once.Do(func() { close(blocked) })
		select {
		case <-delivered:
		case <-ctx.Done():
			t.Error("the shutdown waits for the sender first, or cancels its message")
		}
		return ctx.Err()
	})
	<-blocked
	main := &program{id: callevent.StreamID{0: 2, 8: 2, 15: 1}, service: "shop", events: []event{
		{kind: callevent.KindEnter, function: &callevent.Function{Qualified: "main", Display: "main"}},
	}}
	b.handOver(main.handOvers(t, delivery{packers: 1, batch: 1}, rand.New(rand.NewPCG(1, 1)))[0])
	to.traces.answerWith(func(context.Context) error {
		twice.Do(func() { close(delivered) })
		return nil
	})
	b.shut()
	assert.Equal(t, 2, to.traces.spans)
	assert.Equal(t, []map[string]int64{{"f": 1}, {"f": 1, "main": 1}}, to.metrics.calls(), "each message once")
}

// The calls of the last messages were accepted. Only the shutdown timeout bounds them.
func TestAShutdownDropsNoProfilesOfABackEndThatAcceptsThemInTime(t *testing.T) {
	for name, interval := range map[string]time.Duration{"the last message": 24 * time.Hour, "a message of the interval": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			to := outputs{traces: newOutput(), profiles: newOutput()}
			cfg := patient()
			cfg.Limits.MaxHeldMiB, cfg.Interval = 1, interval
			b := newBench(t, cfg, to)
			stopped, refused := make(chan struct{}), make(chan struct{})
			var once sync.Once
			to.profiles.answerWith(func(context.Context) (err error) {
				once.Do(func() {
					close(refused)
					<-stopped
					err = errFull
				})
				return err
			})
			const functions = 600
			p := calling(functions, strings.Repeat("f", 8_000))
			open := &callevent.Function{Qualified: "main", Display: "main"}
			p.events = append(p.events, event{kind: callevent.KindEnter, sequence: 2 * functions, time: 2 * functions, function: open})
			for _, td := range p.handOvers(t, delivery{packers: 1, batch: 1 << 20}, rand.New(rand.NewPCG(1, 1))) {
				b.handOver(td)
			}
			if interval < time.Hour {
				<-refused
			}
			to.traces.answerWith(func(context.Context) error { close(stopped); return nil })
			b.shut()
			assert.Greater(t, len(to.profiles.profiles), 2)
			assert.EqualValues(t, functions+1, samples(to.profiles.profiles))
			assert.Zero(t, b.sum("dropped_samples"))
			assert.Zero(t, b.sum("memory"))
		})
	}
}

func TestTheLastMessagesHaveAllOfTheShutdownTimeout(t *testing.T) {
	to := outputs{metrics: newOutput(), profiles: newOutput()}
	cfg := patient()
	cfg.ShutdownTimeout = time.Hour
	b := newBench(t, cfg, to)
	b.handOver(whole(t, 1, "shop", "f", 0, 1, false))
	for _, o := range []*output{to.metrics, to.profiles} {
		o.answerWith(func(ctx context.Context) error {
			deadline, _ := ctx.Deadline()
			assert.Greater(t, time.Until(deadline), 50*time.Minute)
			return nil
		})
	}
	b.shut()
	assert.Len(t, to.metrics.metrics, 1)
	assert.Len(t, to.profiles.profiles, 1)
}

// A shutdown counts the samples that it drops, without messages of them.
func TestAShutdownCountsAllThatABlockingOutputMisses(t *testing.T) {
	t.Parallel()
	for name, interval := range map[string]time.Duration{"the last message": 24 * time.Hour, "a message of the interval": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := outputs{metrics: newOutput(), profiles: newOutput()}
			cfg := patient()
			cfg.ShutdownTimeout, cfg.Interval = time.Second, interval
			b := newBench(t, cfg, to)
			const functions = 600
			blocked := make(chan struct{}, 1_000)
			for _, o := range []*output{to.metrics, to.profiles} {
				o.answerWith(func(ctx context.Context) error {
					blocked <- struct{}{}
					<-ctx.Done()
					return ctx.Err()
				})
			}
			b.callEach(functions, strings.Repeat("f", 8_000))
			if interval < time.Hour {
				<-blocked
			}
			began := time.Now()
			b.shut()
			assert.Less(t, time.Since(began), 10*time.Second)
			assert.EqualValues(t, 2*functions, b.sum("dropped_samples", "shutdown"))
			assert.EqualValues(t, 2*functions, b.sum("dropped_samples"))
			assert.Zero(t, b.sum("memory"))
		})
	}
}

func TestTheMemoryBudgetCountsSumsUntilTheyAreSent(t *testing.T) {
	all := budget.New(100 << 20)
	t.Cleanup(all.Stop)
	to := outputs{metrics: newOutput(), profiles: newOutput()}
	b := newBenchIn(t, budgettest.Host(componenttest.NewNopHost(), all), patient(), to)
	for _, o := range []*output{to.metrics, to.profiles} {
		o.answerWith(func(context.Context) error {
			assert.Positive(t, all.Used())
			return nil
		})
	}
	b.handOver(whole(t, 1, "shop", "f", 0, 1, false))
	b.shut()
	assert.Len(t, to.metrics.metrics, 1)
	assert.Len(t, to.profiles.profiles, 1)
	assert.Zero(t, all.Used())
}

// Messages are made of the growth of paths, and of the points of an interval.
func TestTheMemoryOfAnIntervalCountsWhileItsMessagesAreSent(t *testing.T) {
	to := outputs{metrics: newOutput(), profiles: newOutput()}
	b := newBench(t, patient(), to)
	b.callEach(6_000, strings.Repeat("f", 500))
	b.pairer.engine.PassSums()
	growth := b.pairer.sums.growth
	growth.SampleCount()
	var whileMetrics []int64
	to.metrics.answerWith(func(context.Context) error {
		whileMetrics = append(whileMetrics, b.pairer.sums.held.Load())
		return nil
	})
	to.profiles.answerWith(func(context.Context) error {
		assert.EqualValues(t, growth.Bytes()+b.pairer.profiles.bytes, b.pairer.sums.held.Load())
		return nil
	})
	b.send()
	assert.Greater(t, len(to.profiles.profiles), 1)
	require.Greater(t, len(whileMetrics), 2)
	bytes := 0
	for _, md := range to.metrics.metrics {
		bytes += b.pairer.metrics.measured(md).bytes
	}
	for _, held := range whileMetrics {
		assert.Greater(t, held, int64(growth.Bytes()+bytes))
	}
	assert.Zero(t, b.pairer.sums.held.Load())
	b.shut()
	assert.Zero(t, b.sum("memory"))
}

// A reload makes another instance with the same ID and another configuration. Nothing that the former one
// accepted is lost, and the new one counts from 0, from a later time on.
func TestAReloadLosesNoCall(t *testing.T) {
	var lastStart pcommon.Timestamp
	for _, interval := range []time.Duration{time.Hour, 2 * time.Hour} {
		to := allOutputs()
		cfg := keeping(patient(), KeepConfig{Functions: []FunctionConfig{{Name: "main"}}})
		cfg.Interval = interval
		b := newBench(t, cfg, to)
		main := &program{id: callevent.StreamID{0: 1, 8: 1, 15: 1}, service: "shop", events: []event{
			{kind: callevent.KindEnter, function: &callevent.Function{Qualified: "main", Display: "main"}},
		}}
		b.handOver(main.handOvers(t, delivery{packers: 1, batch: 1}, rand.New(rand.NewPCG(1, 1)))[0])
		b.handOver(whole(t, 1, "shop", "f", 1, 3, false))
		b.send()
		b.handOver(whole(t, 1, "shop", "f", 7, 2, false))
		assert.Zero(t, to.traces.spans, "undecided")
		b.shut()
		require.Error(t, b.inputs[2].ConsumeTraces(t.Context(), whole(t, 1, "shop", "f", 11, 1, false)))

		assert.Equal(t, 6, to.traces.spans, "main keeps its trace")
		assert.Equal(t, []map[string]int64{{"f": 3}, {"f": 5, "main": 1}}, to.metrics.calls())
		assert.EqualValues(t, 3, samples(to.profiles.profiles[:1]))
		assert.EqualValues(t, 3, samples(to.profiles.profiles[1:]), "the growth since then")
		for _, md := range to.metrics.metrics {
			point := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0)
			assert.Greater(t, point.StartTimestamp(), lastStart)
			assert.Greater(t, point.Timestamp(), point.StartTimestamp())
		}
		last := to.metrics.metrics[1].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0)
		lastStart = last.Timestamp()
	}
}

func TestTheIntervalSendsByItself(t *testing.T) {
	cfg := patient()
	cfg.Interval = 100 * time.Millisecond
	to := outputs{metrics: newOutput(), profiles: newOutput()}
	b := newBench(t, cfg, to)
	for n := range uint64(50) {
		b.handOver(whole(t, 1, "shop", "f", 2*n, 1, false))
	}
	require.True(t, testkit.Happens(func() bool {
		to.metrics.mu.Lock()
		defer to.metrics.mu.Unlock()
		return len(to.metrics.metrics) > 0
	}))
	b.shut()
	assert.EqualValues(t, 50, samples(to.profiles.profiles))
}

// Streams never wait while a message is made: their last sums wait for it instead.
func TestTheEndOfAStreamDoesNotWaitForAMessage(t *testing.T) {
	to := outputs{metrics: newOutput(), profiles: newOutput()}
	b := newBench(t, patient(), to)
	b.pairer.sums.mu.Lock()
	for stream := range byte(20) {
		b.handOver(whole(t, stream, "shop", "f", 0, 1, true))
	}
	b.pairer.sums.unlock()
	b.send()
	assert.Equal(t, []map[string]int64{{"f": 20}}, to.metrics.calls())
	assert.EqualValues(t, 20, samples(to.profiles.profiles))
	b.send()
	assert.Equal(t, map[string]int64{"f": -1}, to.metrics.calls()[1], "all streams ended")
	b.shut()
}

// Beyond a number they wait with their streams, so that they need little memory.
func TestManyStreamsThatEndWaitForAMessage(t *testing.T) {
	s := newSums(patient(), true, true, noop.Int64UpDownCounter{})
	from := &engine.Source{Resource: pcommon.NewResource(), Scope: pcommon.NewInstrumentationScope()}
	s.mu.Lock()
	for range mostArrivals {
		s.Begin().Add(oneCall(), from)
	}
	var group sync.WaitGroup
	var waited atomic.Bool
	group.Go(func() {
		s.Begin().Add(oneCall(), from)
		waited.Store(true)
	})
	require.True(t, testkit.Happens(func() bool {
		s.arrivalsMu.Lock()
		defer s.arrivalsMu.Unlock()
		return len(s.arrivals) > mostArrivals
	}))
	assert.False(t, waited.Load())
	s.unlock()
	group.Wait()
	assert.False(t, s.hasArrivals())
	assert.EqualValues(t, mostArrivals+1, takeAnswered(s).
		ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).IntValue())
}

// Streams never wait while a message is made: their exemplars need no lock of the sums.
func TestKeptCallsDoNotWaitForAMessage(t *testing.T) {
	to := outputs{traces: newOutput(), metrics: newOutput()}
	b := newBench(t, patient(), to)
	b.pairer.sums.mu.Lock()
	b.handOver(whole(t, 1, "shop", "f", 0, 5_000, false))
	b.pairer.sums.mu.Unlock()
	assert.Equal(t, 5_000, to.traces.spans)
	b.send()
	points := to.metrics.metrics[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	for _, m := range points.All() {
		if m.Name() == "code.function.duration" {
			assert.Equal(t, 1, m.ExponentialHistogram().DataPoints().At(0).Exemplars().Len())
		}
	}
	b.shut()
}

// A step with many kept calls waits in the next component. Its sums follow later, and so do its exemplars.
func TestAnExemplarIsAtItsFunctionAlsoIfItsStepWaits(t *testing.T) {
	to := outputs{traces: newOutput(), metrics: newOutput()}
	cfg := patient()
	cfg.Metrics.MaxNameBytes = 4
	b := newBench(t, cfg, to)
	b.handOver(whole(t, 1, "shop", "too long", 0, 1, false))
	b.send()
	inside, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	to.traces.answerWith(func(context.Context) error {
		to.traces.answerWith(nil)
		close(inside)
		<-goOn
		return nil
	})
	go func() {
		defer close(done)
		assert.NoError(t, b.inputs[1].ConsumeTraces(t.Context(), whole(t, 1, "shop", "f", 2, 2_100, false)))
	}()
	<-inside
	b.send()
	close(goOn)
	<-done
	b.send()
	require.Len(t, to.metrics.metrics, 3)
	exemplars := func(message int) (all map[string]int) {
		all = map[string]int{}
		sums := to.metrics.metrics[message].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints()
		for _, p := range sums.All() {
			function := ""
			if name, ok := p.Attributes().Get("code.function.name"); ok {
				function = name.Str()
			}
			all[function] += p.Exemplars().Len()
		}
		return all
	}
	assert.Equal(t, map[string]int{"": 1}, exemplars(0))
	assert.Equal(t, map[string]int{"": 0}, exemplars(1))
	assert.Equal(t, map[string]int{"": 0, "f": 1}, exemplars(2))
	b.shut()
}

// Without keep all traces are kept, and repeated calls share a span. A trace has room for 20,000 calls.
func TestRepeatedCallsShareASpan(t *testing.T) {
	to := allOutputs()
	cfg := patient()
	cfg.FoldRepeated.ShorterThan = time.Second
	require.NoError(t, cfg.Validate())
	b := newBench(t, cfg, to)
	p := &program{id: callevent.StreamID{15: 1}, service: "shop"}
	happen := func(kind callevent.Kind, function string) {
		at := uint64(len(p.events))
		f := &callevent.Function{Qualified: function, Display: function}
		p.events = append(p.events, event{kind: kind, sequence: at, time: int64(at), function: f})
	}
	happen(callevent.KindEnter, "main")
	for range 40_000 {
		happen(callevent.KindEnter, "f")
		happen(callevent.KindExit, "f")
	}
	happen(callevent.KindExit, "main")
	for _, td := range p.handOvers(t, delivery{packers: 1, batch: 1 << 14}, rand.New(rand.NewPCG(1, 1))) {
		b.handOver(td)
	}
	b.shut()
	// One in the trace, and one in each of two continuations.
	assert.Equal(t, 4, to.traces.spans)
	assert.EqualValues(t, 40_000-3, b.sum("repeated_calls"))
	assert.EqualValues(t, 40_001, b.sum("decided_calls", "ratio"))
	cfg.FoldRepeated.ShorterThan = -1
	require.ErrorContains(t, cfg.Validate(), "fold_repeated.shorter_than")
}

// Fast calls that ratio keeps use up the limit of spans. The slow trace between them is the one that a user looks for.
func TestManyFastTracesDoNotDisplaceASlowOne(t *testing.T) {
	to := outputs{traces: newOutput()}
	b := newBench(t, keeping(patient(), KeepConfig{SlowerThan: time.Second, Ratio: 1, MaxSpansPerSecond: 100}), to)
	p := &program{id: callevent.StreamID{15: 1}, service: "shop"}
	happen := func(kind callevent.Kind, lane uint64, function string) {
		at := uint64(len(p.events))
		f := &callevent.Function{Qualified: function, Display: function}
		p.events = append(p.events, event{kind: kind, sequence: at, time: int64(at), lane: lane, function: f})
	}
	happen(callevent.KindEnter, 1, "slow")
	for range 200 {
		happen(callevent.KindEnter, 1, "callee")
		happen(callevent.KindExit, 1, "callee")
	}
	for range 20_000 {
		happen(callevent.KindEnter, 2, "fast")
		happen(callevent.KindExit, 2, "fast")
	}
	happen(callevent.KindExit, 1, "slow")
	for _, td := range p.handOvers(t, delivery{packers: 1, batch: 1 << 14}, rand.New(rand.NewPCG(1, 1))) {
		b.handOver(td)
	}
	b.shut()
	assert.EqualValues(t, 201, b.sum("decided_calls", "slow"))
	assert.Zero(t, b.sum("limited_calls", "slow"))
	assert.Positive(t, b.sum("limited_calls", "ratio"))
	assert.EqualValues(t, 20_000, b.sum("limited_calls", "ratio")+b.sum("decided_calls", "ratio"))
}

// Everything that only the connector counts. Package engine tests the same counters as the processor's.
func TestTheOwnMetricsOfTheOutputs(t *testing.T) {
	to := allOutputs()
	cfg := keeping(patient(), KeepConfig{SlowerThan: 5 * time.Millisecond, Functions: []FunctionConfig{{Name: "named"}}, MaxSpansPerSecond: 2})
	b := newBench(t, cfg, to)
	b.handOver(whole(t, 1, "shop", "f", 0, 3, false))
	assert.EqualValues(t, 3, b.sum("decided_traces", "none"))
	assert.EqualValues(t, 3, b.sum("decided_calls", "none"))
	b.handOver(whole(t, 1, "shop", "named", 6, 100, false))
	kept := b.sum("decided_calls", "function")
	assert.Positive(t, kept)
	assert.EqualValues(t, 100, kept+b.sum("limited_calls"))
	assert.EqualValues(t, kept, to.traces.spans)
	assert.EqualValues(t, 2, b.sum("batches"))
	assert.EqualValues(t, 103, b.sum("spans"))
	assert.EqualValues(t, 1, b.sum("streams"))

	ofStreams := b.sum("memory")
	b.send()
	assert.Greater(t, b.sum("memory"), ofStreams, "the sums count")
	assert.EqualValues(t, b.pairer.sums.summed+b.pairer.sums.exemplarBytes+int(b.pairer.sums.held.Load()), b.pairer.sums.Bytes())
	b.shut()
	assert.Zero(t, b.sum("memory"))
	assert.Zero(t, b.sum("streams"))
}

func TestCallsWithoutRoomAreCountedAndLogged(t *testing.T) {
	cfg := patient()
	cfg.Metrics.MaxFunctions, cfg.Profiles.MaxPaths = 1, 1
	b := newBench(t, cfg, allOutputs())
	b.handOver(whole(t, 1, "shop", "f", 0, 3, false))
	b.handOver(whole(t, 1, "shop", "g", 6, 4, false))
	b.send()
	assert.EqualValues(t, 4, b.sum("folded_calls", "max_functions"))
	assert.EqualValues(t, 4, b.sum("folded_calls", "max_paths"))
	b.handOver(whole(t, 1, "shop", strings.Repeat("g", 1025), 14, 6, false))
	b.handOver(whole(t, 1, "shop", "g", 26, 5, true))
	b.send()
	assert.EqualValues(t, 9, b.sum("folded_calls", "max_functions"))
	assert.EqualValues(t, 15, b.sum("folded_calls", "max_paths"))
	assert.Zero(t, b.sum("folded_calls", "max_sums_mib"))
	assert.EqualValues(t, 6, b.sum("folded_calls", "max_name_bytes"))
	assert.Equal(t, 1, b.logs.FilterMessageSnippet("raise metrics.max_functions").Len(), "one line in a burst")
	assert.Equal(t, 1, b.logs.FilterMessageSnippet("raise profiles.max_paths").Len())
	b.shut()
}

func TestEarlyDecisionsForTheMemoryBudgetNameIt(t *testing.T) {
	cfg := keeping(patient(), KeepConfig{Ratio: 1})
	cfg.MaxSpansPerTrace = 0
	to := outputs{traces: newOutput()}
	b := newBenchIn(t, budgettest.Host(componenttest.NewNopHost(), budget.New(4<<20)), cfg, to)
	main := &program{id: callevent.StreamID{0: 1, 8: 1, 15: 1}, service: "shop", events: []event{
		{kind: callevent.KindEnter, function: &callevent.Function{Qualified: "main", Display: "main"}},
	}}
	b.handOver(main.handOvers(t, delivery{packers: 1, batch: 1}, rand.New(rand.NewPCG(1, 1)))[0])
	for n := range uint64(10) {
		b.handOver(whole(t, 1, "shop", "f", 1+20_000*n, 10_000, false))
	}
	assert.Positive(t, b.sum("early_decisions", "memory_budget"))
	assert.Equal(t, b.sum("early_decisions"), b.sum("early_decisions", "memory_budget"))
	b.shut()
}

// Undecided calls beyond limits.max_undecided_mib are decided early.
func TestEndlessRootsAreDecidedInPieces(t *testing.T) {
	to := outputs{traces: newOutput()}
	cfg := keeping(patient(), KeepConfig{Ratio: 1})
	cfg.Limits.MaxUndecidedMiB, cfg.MaxSpansPerTrace = 1, 0
	b := newBench(t, cfg, to)
	const streams, calls = 20, 2_000
	for round := range uint64(2) {
		for n := range byte(streams) {
			p := &program{id: callevent.StreamID{0: n, 8: n, 15: 1}, service: "shop"}
			f := &callevent.Function{Qualified: "f", Display: "f"}
			at := round * 10_000
			p.events = append(p.events, event{kind: callevent.KindEnter, sequence: at, time: int64(at), function: f})
			for range calls {
				p.events = append(p.events,
					event{kind: callevent.KindEnter, sequence: at + 1, time: int64(at + 1), function: f},
					event{kind: callevent.KindExit, sequence: at + 2, time: int64(at + 2), function: f})
				at += 2
			}
			b.handOver(p.handOvers(t, delivery{packers: 1, batch: 1 << 20}, rand.New(rand.NewPCG(1, 1)))[0])
		}
	}
	assert.Positive(t, b.sum("early_decisions", "max_undecided_mib"))
	assert.Greater(t, to.traces.spans, streams*calls/2)
	b.shut()
	assert.EqualValues(t, b.sum("spans"), to.traces.spans)
}

// A component that ignores its context must not stop the shutdown of the whole collector.
func TestAShutdownEndsInTimeAlsoIfAComponentDoesNotReturn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		interval                time.Duration
		which                   func(outputs) *output
		points, samples, spans  int64
		metrics, profiles, kept bool
	}{
		"the last metrics":        {24 * time.Hour, func(o outputs) *output { return o.metrics }, 2, 0, 0, false, true, true},
		"the last profiles":       {24 * time.Hour, func(o outputs) *output { return o.profiles }, 0, 2, 0, true, false, true},
		"metrics of an interval":  {100 * time.Millisecond, func(o outputs) *output { return o.metrics }, 4, 4, 0, false, false, true},
		"profiles of an interval": {100 * time.Millisecond, func(o outputs) *output { return o.profiles }, 2, 4, 0, true, false, true},
		"the last spans":          {24 * time.Hour, func(o outputs) *output { return o.traces }, 0, 0, 1, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := allOutputs()
			cfg := patient()
			cfg.Interval, cfg.ShutdownTimeout = test.interval, time.Second
			b := newBench(t, cfg, to)
			blocked, release, returned := make(chan struct{}, 10), make(chan struct{}), make(chan struct{}, 10)
			calls := atomic.Int32{}
			test.which(to).answerWith(func(context.Context) error {
				calls.Add(1)
				blocked <- struct{}{}
				<-release
				defer func() { returned <- struct{}{} }()
				return errFull
			})
			open := &program{id: callevent.StreamID{0: 1, 8: 1, 15: 1}, service: "shop", events: []event{
				{kind: callevent.KindEnter, function: &callevent.Function{Qualified: "f", Display: "f"}},
			}}
			b.handOver(open.handOvers(t, delivery{packers: 1, batch: 1}, rand.New(rand.NewPCG(1, 1)))[0])
			if test.interval < time.Hour {
				b.handOver(whole(t, 2, "shop", "f", 0, 1, false))
				<-blocked
			}
			began := time.Now()
			var err error
			for _, i := range b.inputs {
				err = errors.Join(err, i.(*input).Shutdown(context.Background()))
			}
			assert.Less(t, time.Since(began), cfg.ShutdownTimeout+10*engine.Overtime)
			require.ErrorContains(t, err, "has not")
			assert.EqualValues(t, test.points, b.sum("dropped_points", "shutdown"))
			assert.EqualValues(t, test.samples, b.sum("dropped_samples", "shutdown"))
			assert.EqualValues(t, test.spans, b.sum("dropped_spans", "shutdown"))
			assert.Equal(t, test.metrics, len(to.metrics.metrics) > 0)
			assert.Equal(t, test.profiles, len(to.profiles.profiles) > 0)
			assert.Equal(t, test.kept, to.traces.spans > 0)
			assert.Positive(t, b.logs.FilterMessageSnippet("Dropped").Len())
			assert.Zero(t, b.sum("memory"))
			close(release)
			<-returned
			assert.EqualValues(t, 1, calls.Load(), "the component is not called again")
		})
	}
}
