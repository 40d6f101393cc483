// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/testkit/profiletest"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor"
)

// patient is the configuration of a connector for which no time passes. Series end in the interval after
// their last points.
func patient() *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.Interval = 24 * time.Hour
	cfg.Metrics.Expiration = 0
	cfg.Reorder.MaxWait, cfg.IdleTimeout = time.Hour, 2*time.Hour
	return cfg
}

func keeping(cfg *Config, keep KeepConfig) *Config {
	keep.DecideAfter = 24 * time.Hour
	cfg.Keep = configoptional.Some(keep)
	cfg.Limits.MaxUndecidedMiB = 4096
	return cfg
}

// Metrics, profiles and kept traces agree exactly with the spans that the processor makes of the same
// hand-overs.
func TestTheOutputsAgreeWithTheProcessorsSpans(t *testing.T) {
	ways := map[string]delivery{
		"in order":          {packers: 1, batch: 300},
		"out of order":      {packers: 3, batch: 100, displaced: 20},
		"with repetitions":  {packers: 2, batch: 100, displaced: 5, repeated: 4},
		"with losses":       {packers: 2, batch: 60, displaced: 4, lost: 12},
		"with late breaks":  {packers: 1, batch: 50, lateBarriers: true},
		"of a moved stream": {packers: 1, batch: 50, moved: true},
		"of two collectors": {packers: 2, batch: 60, displaced: 4, lost: 12, divided: true},
	}
	seeds, events := uint64(2), 2_000
	if testing.Short() {
		seeds, events = 1, 600
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			for seed := range seeds {
				random := rand.New(rand.NewPCG(seed, 1))
				cfg := keeping(patient(), KeepConfig{
					SlowerThan: 60 * time.Second, Errors: seed%2 == 0, Ratio: 0.2,
					Functions: []FunctionConfig{{Name: `demo\.f3`, SlowerThan: 20 * time.Second}},
				})
				cfg.Reorder.MaxEvents = 1_000
				cfg.MaxSpansPerTrace, cfg.TraceRoots = 40, []string{`demo\.f7`}
				cfg.Profiles.ByThread = seed == 1
				// Two streams of one resource, and one of another.
				services := []string{"shop", "shop", "bank"}
				if way.moved { // a series that ends begins again with 0
					services[1] = "store"
				}
				var streams [][]ptrace.Traces
				for n, service := range services {
					p := generate(random, byte(n+1), service, events)
					if n < 2 {
						p.withBreaks(random, 4)
					}
					streams = append(streams, p.handOvers(t, way, random))
				}
				collectors := [][][]ptrace.Traces{streams}
				if way.divided {
					collectors = divided(streams, random)
				}
				for _, streams := range collectors {
					agree(t, cfg, mixed(streams, random), random, !way.lateBarriers)
				}
			}
		})
	}
}

func TestWithoutKeepTheConnectorMakesTheProcessorsSpans(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	cfg := patient()
	cfg.MaxSpansPerTrace, cfg.MinDuration, cfg.Truncated = 40, 20*time.Millisecond, "drop"
	all := generate(random, 1, "shop", 5_000).withBreaks(random, 4).handOvers(t, delivery{packers: 2, batch: 100, displaced: 5}, random)
	var sink consumertest.TracesSink
	f := stackpairingprocessor.NewFactory()
	p, err := f.CreateTraces(t.Context(), processortest.NewNopSettings(f.Type()), cfg.engine(), &sink)
	require.NoError(t, err)
	c := newBench(t, cfg, allOutputs())
	for _, td := range all {
		require.NoError(t, p.ConsumeTraces(t.Context(), td))
		c.handOver(td)
	}
	require.NoError(t, p.Shutdown(t.Context()))
	c.shut()
	require.Positive(t, sink.SpanCount())
	assert.Equal(t, sink.AllTraces(), c.to.traces.traces)
}

// divided are the hand-overs for two collectors. Each stream moves from one collector to the other.
func divided(streams [][]ptrace.Traces, random *rand.Rand) [][][]ptrace.Traces {
	both := make([][][]ptrace.Traces, 2)
	for _, s := range streams {
		at := len(s)/4 + random.IntN(len(s)/2)
		first := random.IntN(2)
		both[first], both[1-first] = append(both[first], s[:at:at]), append(both[1-first], s[at:])
	}
	return both
}

// mixed are the hand-overs of all streams. Those of a stream stay in their order, and all streams
// begin before one ends.
func mixed(streams [][]ptrace.Traces, random *rand.Rand) (all []ptrace.Traces) {
	for i := range streams {
		all, streams[i] = append(all, streams[i][0]), streams[i][1:]
	}
	for {
		streams = slices.DeleteFunc(streams, func(s []ptrace.Traces) bool { return len(s) == 0 })
		if len(streams) == 0 {
			return all
		}
		i := random.IntN(len(streams))
		all, streams[i] = append(all, streams[i][0]), streams[i][1:]
	}
}

func TestTheOutputsAgreeWithTheProcessorsSpansOfCaptures(t *testing.T) {
	for _, name := range []string{"shop", "suspend", "maven"} {
		if testing.Short() && name != "shop" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 1))
			cfg := keeping(patient(), KeepConfig{SlowerThan: 100 * time.Millisecond, Errors: true, Ratio: 0.1})
			cfg.MaxSpansPerTrace = 500
			p := capture(t, name)
			const most = 300_000 // a third of a Maven build
			p.events = p.events[:min(most, len(p.events))]
			all := p.handOvers(t, delivery{packers: 3, batch: 4_000, displaced: 30}, random)
			agree(t, cfg, all, random, true)
		})
	}
}

// agree sends the hand-overs through the processor and through two connectors, and compares.
func agree(t *testing.T, cfg *Config, all []ptrace.Traces, random *rand.Rand, pathsKnown bool) {
	t.Helper()
	var sink consumertest.TracesSink
	f := stackpairingprocessor.NewFactory()
	p, err := f.CreateTraces(t.Context(), processortest.NewNopSettings(f.Type()), cfg.engine(), &sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	first, second := newBench(t, cfg, allOutputs()), newBench(t, cfg, allOutputs())
	// Left-out calls count too.
	less := *cfg
	less.MinDuration, less.MaxDepth = 50*time.Millisecond, 6
	third := newBench(t, &less, allOutputs())
	folding := *cfg
	folding.Keep, folding.FoldRepeated.ShorterThan = configoptional.None[KeepConfig](), 20*time.Second
	fourth := newBench(t, &folding, allOutputs())
	dropping := *cfg
	dropping.Truncated = "drop"
	fifth := newBench(t, &dropping, allOutputs())
	sixth := newBench(t, cfg, outputs{profiles: newOutput()})
	for _, td := range all {
		require.NoError(t, p.ConsumeTraces(t.Context(), td))
		first.handOver(td)
		second.handOver(td)
		third.handOver(td)
		fourth.handOver(td)
		fifth.handOver(td)
		sixth.handOver(td)
		if random.IntN(10) == 0 {
			first.pairer.send(t.Context(), time.Minute)
			sixth.pairer.send(t.Context(), time.Minute)
		}
	}
	require.NoError(t, p.Shutdown(t.Context()))
	first.shut()
	second.shut()
	third.shut()
	fourth.shut()
	fifth.shut()
	sixth.shut()

	want := newExpected(t, sink.AllTraces(), false)
	want.compareMetrics(t, first.to.metrics.metrics, true)
	want.compareMetrics(t, second.to.metrics.metrics, true)
	want.compareProfiles(t, first.to.profiles.profiles, pathsKnown, cfg.Profiles.ByThread)
	want.compareProfiles(t, sixth.to.profiles.profiles, pathsKnown, cfg.Profiles.ByThread)
	want.compareMetrics(t, third.to.metrics.metrics, false)
	want.compareProfiles(t, third.to.profiles.profiles, pathsKnown, cfg.Profiles.ByThread)
	assert.Less(t, third.to.traces.spans, first.to.traces.spans)
	kept := want.compareKept(t, cfg, first.to.traces.traces)
	assert.Equal(t, kept, want.compareKept(t, cfg, second.to.traces.traces))
	want.compareFolded(t, fourth.to.traces.traces)
	want.compareMetrics(t, fourth.to.metrics.metrics, true)
	want.compareProfiles(t, fourth.to.profiles.profiles, pathsKnown, cfg.Profiles.ByThread)
	counted := newExpected(t, sink.AllTraces(), true)
	counted.compareMetrics(t, fifth.to.metrics.metrics, false)
	counted.compareProfiles(t, fifth.to.profiles.profiles, pathsKnown, cfg.Profiles.ByThread)
	t.Logf("%d spans in %d traces, %d functions and error types, %d paths; kept %d spans", len(want.spans), len(want.traces), len(want.outcomes), len(want.paths), kept)
}

// All outputs refuse from time to time, repeated calls share spans, and traces are decided in pieces. No call is lost or counted
// twice.
func TestTheOutputsAgreeAlsoIfTheyRefuseAndTracesAreDecidedInPieces(t *testing.T) {
	seeds, events := uint64(4), 6_000
	if testing.Short() {
		seeds, events = 1, 1_200
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 77))
			cfg := keeping(patient(), KeepConfig{Ratio: 1, Errors: seed == 1})
			cfg.FoldRepeated.ShorterThan = 20 * time.Second
			cfg.MaxSpansPerTrace, cfg.TraceRoots = 40*int(seed%3), []string{`demo\.f7`}
			cfg.Profiles.ByThread = seed >= 2
			drop := seed%2 == 0
			if drop {
				cfg.Truncated = "drop"
			}
			emit := *cfg
			emit.Truncated = "emit"
			way := delivery{packers: 1, batch: 50, repeated: 5, moved: true} // traces are decided when the resource changes
			var streams [][]ptrace.Traces
			for n, service := range []string{"shop", "store", "bank", "mint"} {
				p := nested(generate(random, byte(n+1), service, events))
				if n < 3 {
					p.withBreaks(random, 4)
				}
				streams = append(streams, p.handOvers(t, way, random))
			}
			all := mixed(streams, random)
			run := func(cfg *Config) *consumertest.TracesSink {
				sink := new(consumertest.TracesSink)
				f := stackpairingprocessor.NewFactory()
				p, err := f.CreateTraces(t.Context(), processortest.NewNopSettings(f.Type()), cfg.engine(), sink)
				require.NoError(t, err)
				require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
				for _, td := range all {
					require.NoError(t, p.ConsumeTraces(t.Context(), td))
				}
				require.NoError(t, p.Shutdown(t.Context()))
				return sink
			}
			to := allOutputs()
			answerWith := func(answers func() error) {
				for _, o := range []*output{to.traces, to.metrics, to.profiles} {
					answer := answers()
					o.answerWith(func(context.Context) error { return answer })
				}
			}
			accept := func() error { return nil }
			b := newBench(t, cfg, to)
			for _, td := range all {
				if random.IntN(4) == 0 {
					answerWith(func() error { return []error{nil, errFull}[random.IntN(2)] })
				}
				b.handOver(td)
				if random.IntN(10) == 0 {
					b.send()
				}
			}
			answerWith(accept)
			b.shut()
			for _, name := range []string{"dropped_spans", "dropped_samples", "refused_calls", "memory", "held_spans"} {
				assert.Zero(t, b.sum(name), name)
			}
			assert.Positive(t, b.sum("early_decisions", "resource_changed"))
			expected := newExpected(t, run(cfg).AllTraces(), false)
			expected.compareFolded(t, to.traces.traces)
			counted := newExpected(t, run(&emit).AllTraces(), drop)
			counted.longest = expected.longest
			counted.compareMetrics(t, to.metrics.metrics, !drop)
			counted.compareProfiles(t, to.profiles.profiles, true, cfg.Profiles.ByThread)
		})
	}
}

// nested puts all calls of a lane below a call that stays open.
func nested(p *program) *program {
	for i := range p.events {
		p.events[i].sequence += 4
	}
	var first []event
	for lane := range uint64(4) {
		first = append(first, event{kind: callevent.KindEnter, sequence: lane, lane: lane, function: &callevent.Function{Qualified: "main", Display: "main"}})
	}
	p.events = append(first, p.events...)
	return p
}

// Streams of many goroutines, with intervals meanwhile. Names are forgotten, and so are paths.
func TestNoCallIsLostBetweenStreamsAndIntervals(t *testing.T) {
	cfg := keeping(patient(), KeepConfig{Ratio: 0.5})
	cfg.Limits.MaxNamesMiB, cfg.Metrics.MaxFunctions, cfg.Profiles.MaxPaths = 1, 10, 200
	cfg.Limits.MaxUndecidedMiB = 1
	c := newBench(t, cfg, allOutputs())
	streams := make([][]ptrace.Traces, 6)
	for n := range streams {
		random := rand.New(rand.NewPCG(uint64(n), 2))
		p := generate(random, byte(n+1), fmt.Sprint("service ", n%2), 2_000)
		for i, e := range p.events {
			if e.function != nil { // the names of some batches exceed their bound
				e.function = &callevent.Function{Qualified: e.function.Qualified + strings.Repeat("x", 3_000+i/25), Display: "x"}
			}
			p.events[i] = e
		}
		if n < 4 {
			p.withBreaks(random, 2)
		}
		streams[n] = p.handOvers(t, delivery{packers: 2, batch: 50, displaced: 2}, random)
	}
	var sending sync.WaitGroup
	for _, all := range streams {
		sending.Go(func() {
			for _, td := range all {
				for _, i := range c.inputs {
					assert.NoError(t, i.ConsumeTraces(t.Context(), td))
				}
			}
		})
	}
	intervals, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(intervals)
		for {
			select {
			case <-stop:
				return
			default:
				c.pairer.send(context.Background(), time.Minute)
			}
		}
	}()
	sending.Wait()
	close(stop)
	<-intervals
	c.shut()

	var sink consumertest.TracesSink
	f := stackpairingprocessor.NewFactory()
	p, err := f.CreateTraces(t.Context(), processortest.NewNopSettings(f.Type()), cfg.engine(), &sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	for _, all := range streams {
		for _, td := range all {
			require.NoError(t, p.ConsumeTraces(t.Context(), td))
		}
	}
	require.NoError(t, p.Shutdown(t.Context()))
	forgotten := 0
	each(sink.AllTraces(), func(_ string, span ptrace.Span) {
		if text(span, "callbraid.truncated") == "limit" {
			forgotten++
		}
	})
	require.Positive(t, forgotten)
	assert.EqualValues(t, sink.SpanCount(), samples(c.to.profiles.profiles))
	// A series that ended begins again, so the metrics of one start time count once.
	counted, last := int64(0), map[string]int64{}
	for _, md := range c.to.metrics.metrics {
		for _, rm := range md.ResourceMetrics().All() {
			for _, p := range rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().All() {
				key := fmt.Sprint(resourceText(rm.Resource()), p.Attributes().AsRaw(), p.StartTimestamp())
				if !p.Flags().NoRecordedValue() {
					counted += p.IntValue() - last[key]
					last[key] = p.IntValue()
				}
			}
		}
	}
	assert.EqualValues(t, sink.SpanCount(), counted)
}

// A program reports in attributes, and changes them while calls are open: those of its resource, and those of its scope.
func TestEachCallCountsOnceUnderTheResourceAndScopeThatItHad(t *testing.T) {
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 5))
		cfg := patient()
		cfg.Profiles.ByThread = seed == 1
		all := generate(random, 1, "shop", 8_000).withBreaks(random, 3).handOvers(t, delivery{packers: 2, batch: 20, displaced: 3}, random)
		var sink consumertest.TracesSink
		f := stackpairingprocessor.NewFactory()
		p, err := f.CreateTraces(t.Context(), processortest.NewNopSettings(f.Type()), cfg.engine(), &sink)
		require.NoError(t, err)
		b := newBench(t, cfg, allOutputs())
		state, report := "one", int64(0)
		for _, td := range all {
			if random.IntN(10) == 0 {
				state = []string{"one", "two", "three"}[random.IntN(3)]
			}
			if random.IntN(2) == 0 {
				report++
			}
			rs := td.ResourceSpans().At(0)
			rs.Resource().Attributes().PutStr("state", state)
			rs.ScopeSpans().At(0).Scope().Attributes().PutInt("report", report/2)
			require.NoError(t, p.ConsumeTraces(t.Context(), td))
			b.handOver(td)
			if random.IntN(30) == 0 {
				b.send()
			}
		}
		require.NoError(t, p.Shutdown(t.Context()))
		b.shut()
		want, got := map[string]int64{}, map[string]int64{}
		key := func(r pcommon.Resource, scope pcommon.InstrumentationScope) string {
			return fmt.Sprint(r.Attributes().AsRaw(), scope.Attributes().AsRaw())
		}
		for _, td := range sink.AllTraces() {
			for _, rs := range td.ResourceSpans().All() {
				want[key(rs.Resource(), rs.ScopeSpans().At(0).Scope())] += int64(rs.ScopeSpans().At(0).Spans().Len())
			}
		}
		for _, pd := range b.to.profiles.profiles {
			for _, rp := range pd.ResourceProfiles().All() {
				for _, sample := range rp.ScopeProfiles().At(0).Profiles().At(0).Samples().All() {
					got[key(rp.Resource(), rp.ScopeProfiles().At(0).Scope())] += sample.Values().At(0)
				}
			}
		}
		require.Greater(t, len(want), 50)
		assert.Equal(t, want, got)
		newExpected(t, sink.AllTraces(), false).compareProfiles(t, b.to.profiles.profiles, true, cfg.Profiles.ByThread)
	}
}

// shortThreads is a program that makes random calls in new threads, inside those of a main thread. It ends last.
func shortThreads(random *rand.Rand, threads int) *program {
	p := &program{id: callevent.StreamID{0: 1, 8: 1, 15: 1}, service: "shop"}
	functions := make([]*callevent.Function, 6)
	for i := range functions {
		functions[i] = &callevent.Function{Qualified: fmt.Sprint("demo.f", i), Display: fmt.Sprint("f", i)}
	}
	add := func(kind callevent.Kind, lane uint64, f *callevent.Function) {
		n := uint64(len(p.events))
		p.events = append(p.events, event{kind: kind, sequence: n, time: int64(n), lane: lane, function: f})
	}
	add(callevent.KindEnter, 0, functions[0])
	add(callevent.KindEnter, 0, functions[1])
	for thread := range uint64(threads) {
		var stack []*callevent.Function
		for range 20 {
			f := functions[random.IntN(len(functions))]
			add(callevent.KindEnter, 1+thread, f)
			if stack = append(stack, f); random.IntN(2) == 0 {
				add(callevent.KindExit, 1+thread, f)
				stack = stack[:len(stack)-1]
			}
		}
		for _, f := range slices.Backward(stack) {
			add(callevent.KindExit, 1+thread, f)
		}
		if random.IntN(10) == 0 { // a call of the main thread
			f := functions[random.IntN(len(functions))]
			add(callevent.KindEnter, 0, f)
			add(callevent.KindExit, 0, f)
		}
	}
	add(callevent.KindExit, 0, functions[1])
	add(callevent.KindExit, 0, functions[0])
	p.barriers = append(p.barriers, callevent.End(uint64(len(p.events)), callevent.CauseEnded))
	return p
}

// With by_thread each thread has paths of its own. Those of threads that have ended must neither fill profiles.max_paths nor
// memory, and no call may be lost with them.
func TestPathsOfManyShortThreadsAreFreed(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	cfg := patient()
	cfg.Profiles.ByThread, cfg.Profiles.MaxPaths = true, 8_000
	cfg.Limits.MaxLanes, cfg.Limits.MaxNamesMiB = 500, 1
	threads, batch := 3_000, 800
	if testing.Short() {
		threads, batch, cfg.Limits.MaxLanes = 1_400, 400, 220
	}
	all := shortThreads(random, threads).handOvers(t, delivery{packers: 1, batch: batch}, random)
	var sink consumertest.TracesSink
	f := stackpairingprocessor.NewFactory()
	p, err := f.CreateTraces(t.Context(), processortest.NewNopSettings(f.Type()), cfg.engine(), &sink)
	require.NoError(t, err)
	b := newBench(t, cfg, outputs{profiles: newOutput()})
	var bytes []int64
	for i, td := range all {
		require.NoError(t, p.ConsumeTraces(t.Context(), td))
		b.handOver(td)
		if i%4 == 3 {
			b.send()
			bytes = append(bytes, b.sum("memory"))
		}
	}
	last := len(bytes) - 1
	require.Greater(t, last, 30)
	assert.Less(t, slices.Max(bytes[last/2:]), slices.Max(bytes[:last/2])*5/4, "memory is flat")
	assert.Zero(t, b.sum("folded_calls"), "paths have room")
	require.NoError(t, p.Shutdown(t.Context()))
	b.shut()
	newExpected(t, sink.AllTraces(), false).compareProfiles(t, b.to.profiles.profiles, true, true)
}

// outcome is a function of a program, with an error type for calls that an exception left.
type outcome struct{ resource, function, errorType string }

// pathKey is a call path: its caller's path, and the function. The path 0 is the top.
type pathKey struct {
	caller   int
	function string
}

// sampleKey is a path of a program, and its thread if threads are apart.
type sampleKey struct {
	resource    string
	path        int
	thread      int64
	isTruncated bool
}

type sampleValues struct{ calls, errors, self int64 }

// expected are the processor's spans, and what they add up to.
type expected struct {
	spans     map[pcommon.SpanID]ptrace.Span
	resources map[pcommon.SpanID]string
	traces    map[pcommon.TraceID][]ptrace.Span
	outcomes  map[outcome][]int64
	pathOf    map[pcommon.SpanID]int
	paths     map[pathKey]int
	// dropped are the truncated calls, if they count nowhere. inside is the time of the counted callees. The time of a dropped
	// callee stays with its caller, except the time of that one's counted callees.
	dropped map[pcommon.SpanID]bool
	inside  map[pcommon.SpanID]int64
	// longest are the times of the longest calls of spans with repeated calls.
	longest map[pcommon.SpanID]int64
}

func newExpected(t *testing.T, all []ptrace.Traces, dropsTruncated bool) *expected {
	e := &expected{
		spans: map[pcommon.SpanID]ptrace.Span{}, resources: map[pcommon.SpanID]string{}, traces: map[pcommon.TraceID][]ptrace.Span{},
		outcomes: map[outcome][]int64{}, pathOf: map[pcommon.SpanID]int{}, paths: map[pathKey]int{}, inside: map[pcommon.SpanID]int64{},
		dropped: map[pcommon.SpanID]bool{},
	}
	each(all, func(resource string, span ptrace.Span) {
		_, twice := e.spans[span.SpanID()]
		require.False(t, twice, "a span ID twice")
		e.spans[span.SpanID()], e.resources[span.SpanID()] = span, resource
		e.traces[span.TraceID()] = append(e.traces[span.TraceID()], span)
		if dropsTruncated && text(span, "callbraid.truncated") != "" {
			e.dropped[span.SpanID()] = true
			return
		}
		key := outcome{resource: resource, function: text(span, "code.function.name")}
		if span.Status().Code() == ptrace.StatusCodeError {
			key.errorType = cmp.Or(text(span, "error.type"), "_OTHER")
		}
		e.outcomes[key] = append(e.outcomes[key], took(span))
	})
	for id, span := range e.spans {
		caller := callerOf(span)
		for e.dropped[caller] {
			caller = callerOf(e.spans[caller])
		}
		if !caller.IsEmpty() && !e.dropped[id] {
			e.inside[caller] += took(span)
		}
	}
	return e
}

func each(all []ptrace.Traces, see func(resource string, span ptrace.Span)) {
	for _, td := range all {
		for _, rs := range td.ResourceSpans().All() {
			resource := resourceText(rs.Resource())
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					see(resource, span)
				}
			}
		}
	}
}

func resourceText(r pcommon.Resource) string { return fmt.Sprint(r.Attributes().AsRaw()) }

func text(span ptrace.Span, key string) string {
	if v, ok := span.Attributes().Get(key); ok {
		return v.AsString()
	}
	return ""
}

func took(span ptrace.Span) int64 { return int64(span.EndTimestamp() - span.StartTimestamp()) }

// callerOf is the caller, also if it is in another trace.
func callerOf(span ptrace.Span) pcommon.SpanID {
	if span.Links().Len() > 0 {
		return span.Links().At(0).SpanID()
	}
	return span.ParentSpanID()
}

// path numbers a path.
func (e *expected) path(caller int, function string) int {
	key := pathKey{caller, function}
	if _, ok := e.paths[key]; !ok {
		e.paths[key] = len(e.paths) + 1
	}
	return e.paths[key]
}

func (e *expected) pathOfSpan(id pcommon.SpanID) int {
	if known, ok := e.pathOf[id]; ok || id.IsEmpty() {
		return known
	}
	at := e.path(e.pathOfSpan(callerOf(e.spans[id])), text(e.spans[id], "code.function.name"))
	e.pathOf[id] = at
	return at
}

// compareMetrics compares the last values of all series. sameTraces: no call was left out, which would
// be in no trace.
func (e *expected) compareMetrics(t *testing.T, all []pmetric.Metrics, sameTraces bool) {
	t.Helper()
	calls, errors := map[outcome]int64{}, map[outcome]int64{}
	durations := map[outcome]pmetric.ExponentialHistogramDataPoint{}
	keyOf := func(resource string, attributes pcommon.Map) outcome {
		key := outcome{resource: resource}
		if v, ok := attributes.Get("code.function.name"); ok {
			key.function = v.Str()
		}
		if v, ok := attributes.Get("error.type"); ok {
			key.errorType = v.Str()
		}
		return key
	}
	for _, md := range all {
		for _, rm := range md.ResourceMetrics().All() {
			resource := resourceText(rm.Resource())
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				switch m.Name() {
				case "code.function.calls", "code.function.errors":
					to := calls
					if m.Name() == "code.function.errors" {
						to = errors
					}
					for _, p := range m.Sum().DataPoints().All() {
						if key := keyOf(resource, p.Attributes()); !p.Flags().NoRecordedValue() {
							assert.GreaterOrEqual(t, p.IntValue(), to[key], "a cumulative sum")
							to[key] = p.IntValue()
						}
					}
				case "code.function.duration":
					for _, p := range m.ExponentialHistogram().DataPoints().All() {
						if !p.Flags().NoRecordedValue() {
							durations[keyOf(resource, p.Attributes())] = p
						}
						for _, x := range p.Exemplars().All() {
							span, ok := e.spans[x.SpanID()]
							if assert.True(t, ok, "an exemplar has a span") {
								assert.True(t, !sameTraces || span.TraceID() == x.TraceID())
								longest, repeated := e.longest[x.SpanID()]
								if !repeated {
									longest = took(span)
								}
								assert.InDelta(t, float64(longest)/1e9, x.DoubleValue(), 1e-9)
								assert.Equal(t, keyOf(resource, p.Attributes()).function, text(span, "code.function.name"))
							}
						}
					}
				}
			}
		}
	}
	wantCalls, wantErrors := map[outcome]int64{}, map[outcome]int64{}
	for key, times := range e.outcomes {
		wantCalls[outcome{resource: key.resource, function: key.function}] += int64(len(times))
		if key.errorType != "" {
			wantErrors[key] = int64(len(times))
		}
		p, ok := durations[key]
		if !assert.True(t, ok, "a histogram of %v", key) {
			continue
		}
		total := int64(0)
		for _, ns := range times {
			total += ns
		}
		assert.EqualValues(t, len(times), p.Count())
		assert.InEpsilon(t, float64(total)/1e9, p.Sum(), 1e-12)
		scale := scaleOf(times)
		if strings.Contains(key.resource, moved) {
			// The stream's histograms keep the scale that their former values needed.
			assert.LessOrEqual(t, p.Scale(), scale)
			scale = p.Scale()
		}
		offset, counts := histogramOf(times, scale)
		assert.Equal(t, scale, p.Scale(), "%v", key)
		assert.Equal(t, offset, p.Positive().Offset(), "%v", key)
		assert.Equal(t, counts, p.Positive().BucketCounts().AsRaw(), "%v", key)
	}
	assert.Len(t, durations, len(e.outcomes))
	assert.Equal(t, wantCalls, calls)
	assert.Equal(t, wantErrors, errors)
}

// bucketOf is the bucket of a duration by the definition of OpenTelemetry.
func bucketOf(ns int64, scale int32) int32 {
	seconds := float64(ns) / 1e9
	if fraction, exponent := math.Frexp(seconds); fraction == 0.5 {
		return (int32(exponent-1)<<4 - 1) >> (4 - scale)
	}
	return int32(math.Ceil(math.Ldexp(math.Log2(seconds), int(scale)))) - 1
}

// scaleOf is the largest scale at which 160 buckets are enough.
func scaleOf(times []int64) int32 {
	scale := int32(4)
	for bucketOf(slices.Max(times), scale)-bucketOf(slices.Min(times), scale) >= 160 {
		scale--
	}
	return scale
}

func histogramOf(times []int64, scale int32) (offset int32, counts []uint64) {
	offset = bucketOf(slices.Min(times), scale)
	counts = make([]uint64, bucketOf(slices.Max(times), scale)-offset+1)
	for _, ns := range times {
		counts[bucketOf(ns, scale)-offset]++
	}
	return offset, counts
}

// compareProfiles compares the sums of all profiles. After a break that arrives late the callers of
// calls that ended before are not in their spans, so then only the last function of a path counts.
func (e *expected) compareProfiles(t *testing.T, all []pprofile.Profiles, pathsKnown, byThread bool) {
	t.Helper()
	got, want := map[sampleKey]sampleValues{}, map[sampleKey]sampleValues{}
	for id, span := range e.spans {
		if e.dropped[id] {
			continue
		}
		key := sampleKey{resource: e.resources[id], path: e.pathOfSpan(id), isTruncated: text(span, "callbraid.truncated") != ""}
		if !pathsKnown {
			key.path = e.path(0, text(span, "code.function.name"))
		}
		if v, ok := span.Attributes().Get("thread.id"); ok && byThread {
			key.thread = v.Int()
		}
		values := want[key]
		values.calls++
		if span.Status().Code() == ptrace.StatusCodeError {
			values.errors++
		}
		values.self += max(0, took(span)-e.inside[id])
		want[key] = values
	}
	for _, pd := range all {
		profiletest.CheckValid(t, pd)
		e.readProfiles(pd, pathsKnown, got)
	}
	assert.Len(t, got, len(want))
	wrong := 0
	for key, values := range want {
		if got[key] != values {
			if wrong++; wrong < 5 {
				t.Errorf("sample %v: expected %v, got %v", key, values, got[key])
			}
		}
	}
	assert.Zero(t, wrong, "wrong samples")
}

func (e *expected) readProfiles(pd pprofile.Profiles, pathsKnown bool, got map[sampleKey]sampleValues) {
	d := pd.Dictionary()
	name := func(i int32) string { return d.StringTable().At(int(i)) }
	for _, rp := range pd.ResourceProfiles().All() {
		for _, profile := range rp.ScopeProfiles().At(0).Profiles().All() {
			kind := name(profile.SampleType().TypeStrindex())
			for _, sample := range profile.Samples().All() {
				key := sampleKey{resource: resourceText(rp.Resource())}
				for _, a := range sample.AttributeIndices().All() {
					attribute := d.AttributeTable().At(int(a))
					switch name(attribute.KeyStrindex()) {
					case "callbraid.truncated":
						key.isTruncated = true
					case "thread.id":
						key.thread = attribute.Value().Int()
					}
				}
				locations := d.StackTable().At(int(sample.StackIndex())).LocationIndices().AsRaw()
				for _, l := range slices.Backward(locations) {
					function := d.FunctionTable().At(int(d.LocationTable().At(int(l)).Lines().At(0).FunctionIndex()))
					if !pathsKnown {
						key.path = 0
					}
					key.path = e.path(key.path, name(function.NameStrindex()))
				}
				values, n := got[key], sample.Values().At(0)
				switch kind {
				case "calls":
					values.calls += n
				case "errors":
					values.errors += n
				case "wall":
					values.self += n
				}
				got[key] = values
			}
		}
	}
}

// compareKept compares the kept spans with those of the traces to which a criterion applies. It returns
// their number. When a stream moves, its traces are decided in pieces.
func (e *expected) compareKept(t *testing.T, cfg *Config, all []ptrace.Traces) int {
	t.Helper()
	keep, selected := cfg.Keep.Get(), func(string) (int64, bool) { return 0, false }
	if len(keep.Functions) > 0 {
		selected = keep.function()
	}
	want := map[pcommon.SpanID]string{}
	for id, spans := range e.traces {
		always := false
		for _, span := range spans {
			isRoot := span.ParentSpanID().IsEmpty()
			least, named := selected(text(span, "code.function.name"))
			always = always || isRoot && keep.SlowerThan > 0 && took(span) >= keep.SlowerThan.Nanoseconds() ||
				keep.Errors && span.Status().Code() == ptrace.StatusCodeError || named && took(span) >= least
		}
		state := ""
		if always {
			state = "ot=th:0"
		} else if binary.BigEndian.Uint64(id[8:])<<8>>8 >= keep.threshold() {
			state = ratioState(keep.Ratio)
		}
		for _, span := range spans {
			if state != "" {
				want[span.SpanID()] = state
			}
		}
	}
	seen, movedAlong := map[pcommon.SpanID]bool{}, false
	for _, resource := range e.resources {
		movedAlong = movedAlong || strings.Contains(resource, moved)
	}
	wrong := 0
	each(all, func(resource string, span ptrace.Span) {
		id := span.SpanID()
		ok := !seen[id] && want[id] != "" && (movedAlong || span.TraceState().AsRaw() == want[id]) && resource == e.resources[id]
		seen[id] = true
		if ok {
			ok = contents(t, span) == contents(t, e.spans[id])
		}
		if !ok {
			if wrong++; wrong < 5 {
				t.Errorf("span %v %q of %s: expected tracestate %q of %s, got %q", id, span.Name(), resource, want[id], e.resources[id], span.TraceState().AsRaw())
			}
		}
	})
	assert.Zero(t, wrong, "wrong spans")
	if !movedAlong {
		assert.Len(t, seen, len(want), "kept spans")
	}
	return len(seen)
}

// calleeKey is a function below a caller.
type calleeKey struct {
	caller   pcommon.SpanID
	function string
	failed   bool
}

// compareFolded compares spans with repeated calls. All calls are in them, with their times. Each span begins as
// the processor's span of its ID, and a span of one call is that.
func (e *expected) compareFolded(t *testing.T, all []ptrace.Traces) {
	t.Helper()
	e.longest = map[pcommon.SpanID]int64{}
	got, want := map[calleeKey]sampleValues{}, map[calleeKey]sampleValues{}
	add := func(to map[calleeKey]sampleValues, span ptrace.Span, calls, time int64) {
		key := calleeKey{callerOf(span), text(span, "code.function.name"), span.Status().Code() == ptrace.StatusCodeError}
		to[key] = sampleValues{calls: to[key].calls + calls, self: to[key].self + time}
	}
	for _, span := range e.spans {
		add(want, span, 1, took(span))
	}
	each(all, func(resource string, span ptrace.Span) {
		first := e.spans[span.SpanID()]
		calls, repeated := span.Attributes().Get("callbraid.repeated.calls")
		if !repeated {
			assert.Equal(t, contents(t, first), contents(t, span))
			add(got, span, 1, took(span))
			return
		}
		number := func(name string) int64 {
			v, _ := span.Attributes().Get("callbraid.repeated." + name)
			return v.Int()
		}
		least, total := number("least"), number("total")
		e.longest[span.SpanID()] = number("greatest")
		assert.GreaterOrEqual(t, calls.Int(), int64(2))
		assert.True(t, 0 < least && least <= took(first) && took(first) <= number("greatest") && number("greatest") < total && total <= took(span))
		add(got, span, calls.Int(), total)
		assert.Equal(t, resource, e.resources[span.SpanID()])
		span.SetEndTimestamp(first.EndTimestamp())
		span.Attributes().RemoveIf(func(key string, _ pcommon.Value) bool { return strings.HasPrefix(key, "callbraid.repeated.") })
		assert.Equal(t, contents(t, first), contents(t, span))
	})
	assert.Equal(t, want, got)
	assert.NotEmpty(t, e.longest)
}

// contents are all fields of a span except its tracestate.
func contents(t *testing.T, span ptrace.Span) string {
	td := ptrace.NewTraces()
	copied := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.CopyTo(copied)
	copied.TraceState().FromRaw("")
	bytes, err := new(ptrace.ProtoMarshaler).MarshalTraces(td)
	require.NoError(t, err)
	return string(bytes)
}

// ratioState is the tracestate of a ratio whose threshold has few digits, or all.
func ratioState(ratio float64) string {
	digits := fmt.Sprintf("%014x", uint64(math.Round((1-ratio)*(1<<56))))
	for digits != "" && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return "ot=th:" + cmp.Or(digits, "0")
}
