// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/connector/xconnector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/callbraid/callbraid/connector/stackpairingconnector"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/capture"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/replay"
	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver"
)

const (
	capturedService = "captured"
	// mavenCalls is how many calls are in the capture of Maven.
	mavenCalls = 442_770
)

// sink holds the spans that it receives from the processor.
type sink struct {
	mu    sync.Mutex
	calls []ptrace.Traces
	spans int
}

func (s *sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *sink) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, td)
	s.spans += td.SpanCount()
	return nil
}

// await waits until so many spans have arrived.
func (s *sink) await(t testing.TB, want int) {
	t.Helper()
	testkit.EventuallyWithin(t, busyPatience, fmt.Sprintf("%d spans", want), func() (bool, string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.spans >= want, fmt.Sprint(s.spans)
	})
}

// busyPatience is the time that tests allow on a busy machine: no agent is disconnected, no name is
// late, and a slow shutdown drops nothing.
const busyPatience = 5 * time.Minute

var patientReceiver = map[string]any{
	"service_name": capturedService, "shutdown_timeout": busyPatience, "missed_heartbeats": 100_000, "name_wait": busyPatience / 2,
	"limits": map[string]any{"handshake_timeout": busyPatience, "message_timeout": busyPatience},
}

var patientProcessor = map[string]any{
	"reorder": map[string]any{"max_wait": busyPatience}, "idle_timeout": 2 * busyPatience, "max_clock_jump": time.Hour,
	"shutdown_timeout": busyPatience,
}

// lost are the counters of dropped or unpaired data.
var lost = []string{
	"receiver_bytefrog_bad_data", "receiver_bytefrog_batches_dropped", "receiver_bytefrog_events_dropped",
	"receiver_bytefrog_bytes_discarded", "receiver_bytefrog_barriers_dropped", "receiver_bytefrog_breaks",
	"receiver_bytefrog_names_unknown", "receiver_bytefrog_refused",
	"processor_stack_pairing_breaks", "processor_stack_pairing_corrupt_batches", "processor_stack_pairing_dropped_spans",
	"processor_stack_pairing_dropped_renames", "processor_stack_pairing_duplicate_events",
	"processor_stack_pairing_events_in_breaks", "processor_stack_pairing_late_events",
	"processor_stack_pairing_missing_numbers", "processor_stack_pairing_orphans",
}

// capturedTraces plays a capture by its agent into the receiver and the processor, and returns
// their spans.
func capturedTraces(t testing.TB, name string, maxSpansPerTrace, spans int) []ptrace.Traces {
	t.Helper()
	ctx, host, end := context.Background(), componenttest.NewNopHost(), &sink{}
	telemetry := componenttest.NewTelemetry()
	pairing := stackpairingprocessor.NewFactory()
	toProcessor := processortest.NewNopSettings(pairing.Type())
	toProcessor.TelemetrySettings = telemetry.NewTelemetrySettings()
	processor, err := pairing.CreateTraces(ctx, toProcessor,
		configured(t, pairing, patientProcessor, "max_spans_per_trace", maxSpansPerTrace), end)
	require.NoError(t, err)
	require.NoError(t, processor.Start(ctx, host))
	playInto(t, name, telemetry, processor, func() { end.await(t, spans) })
	for _, counter := range lost {
		require.Zero(t, telemetrytest.Sum(t, telemetry, "otelcol_"+counter), counter)
	}
	require.NoError(t, processor.Shutdown(ctx))
	require.NoError(t, telemetry.Shutdown(ctx))
	require.Equal(t, spans, end.spans)
	return end.calls
}

// playInto plays a capture by its agent into the receiver, which sends batches to a component. Then it
// waits.
func playInto(t testing.TB, name string, telemetry *componenttest.Telemetry, pairing consumer.Traces, wait func()) {
	t.Helper()
	ctx, receiving, endpoint := context.Background(), bytefrogreceiver.NewFactory(), testkit.Address(t)
	toReceiver := receivertest.NewNopSettings(receiving.Type())
	toReceiver.TelemetrySettings = telemetry.NewTelemetrySettings()
	receiver, err := receiving.CreateTraces(ctx, toReceiver,
		configured(t, receiving, patientReceiver, "endpoint", endpoint), pairing)
	require.NoError(t, err)
	require.NoError(t, receiver.Start(ctx, componenttest.NewNopHost()))
	play(t, name, endpoint)
	wait()
	require.NoError(t, receiver.Shutdown(ctx))
}

// foldCapturedPaths plays a capture into the connector, and folds its profiles of call paths.
func foldCapturedPaths(t testing.TB, name string, calls int, byThread bool) *bed {
	t.Helper()
	g := newBed(t)
	next, err := xconsumer.NewProfiles(g.consumeProfiles)
	require.NoError(t, err)
	settings := maps.Clone(patientProcessor)
	settings["interval"] = 100 * time.Millisecond
	pairing := stackpairingconnector.NewFactory().(xconnector.Factory)
	cfg := configured(t, pairing, settings, "profiles", map[string]any{"by_thread": byThread})
	playThrough(t, name, func(set connector.Settings) (connector.Traces, error) {
		return pairing.CreateTracesToProfiles(context.Background(), set, cfg, next)
	}, func() (bool, string) {
		folded := g.store.Counters().Calls
		return folded >= uint64(calls), fmt.Sprint(folded)
	})
	return g
}

// foldCapturedRepetitions plays a capture into the connector, and folds its spans, of which each can be many calls.
func foldCapturedRepetitions(t testing.TB, name string, calls int) *bed {
	t.Helper()
	g := newBed(t)
	next, err := consumer.NewTraces(g.consumeTraces)
	require.NoError(t, err)
	pairing := stackpairingconnector.NewFactory()
	cfg := configured(t, pairing, patientProcessor, "fold_repeated", map[string]any{"shorter_than": time.Hour})
	playThrough(t, name, func(set connector.Settings) (connector.Traces, error) {
		return pairing.CreateTracesToTraces(context.Background(), set, cfg, next)
	}, func() (bool, string) {
		folded := uint64(0)
		for _, service := range g.store.Services() {
			folded += service.Calls
		}
		return folded >= uint64(calls), fmt.Sprint(folded)
	})
	return g
}

// playThrough plays a capture into the connector, until all calls are folded.
func playThrough(t testing.TB, name string, create func(connector.Settings) (connector.Traces, error), areFolded func() (bool, string)) {
	t.Helper()
	telemetry, ctx := componenttest.NewTelemetry(), context.Background()
	set := connectortest.NewNopSettings(stackpairingconnector.NewFactory().Type())
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	pairing, err := create(set)
	require.NoError(t, err)
	require.NoError(t, pairing.Start(ctx, componenttest.NewNopHost()))
	playInto(t, name, telemetry, pairing, func() { testkit.EventuallyWithin(t, busyPatience, "all calls", areFolded) })
	require.NoError(t, pairing.Shutdown(ctx))
	require.NoError(t, telemetry.Shutdown(ctx))
}

// configured is the configuration of a component: its defaults, settings, and one more.
func configured(t testing.TB, factory component.Factory, settings map[string]any, name string, value any) component.Config {
	t.Helper()
	config := factory.CreateDefaultConfig()
	settings = maps.Clone(settings)
	settings[name] = value
	require.NoError(t, confmap.NewFromStringMap(settings).Unmarshal(config))
	return config
}

// play has an agent send a capture.
func play(t testing.TB, name, endpoint string) {
	t.Helper()
	c, err := capture.Open(capturePath(name))
	require.NoError(t, err)
	recording, err := replay.Load(c)
	require.NoError(t, err)
	agent := bytefrogagent.New(bytefrogagent.Options{
		Endpoint: endpoint, ConnectTimeout: busyPatience, StartTimeout: busyPatience,
	}, replay.New(recording, replay.Options{}))
	result := agent.Run(context.Background())
	require.Equal(t, bytefrogagent.Completed, result.Outcome, "%s (%v)", result.Reason, result.Err)
}

func capturePath(name string) string { return "../../testdata/bytefrog/" + name + ".zip" }

// callPath has the values of a path of calls. A hash identifies the path, because paths of real
// programs are long.
type callPath struct {
	name          string
	calls, errors uint64
	total, self   int64
}

var seed = maphash.MakeSeed()

func below(caller uint64, name string) uint64 {
	return maphash.Comparable(seed, struct {
		caller uint64
		name   string
	}{caller, name})
}

// referenceTree is the call tree of a capture, computed from its bytes alone. If it is marked,
// truncated calls have paths of their own.
func referenceTree(t testing.TB, name string, marked bool) map[uint64]callPath {
	t.Helper()
	run, err := reference.Open(capturePath(name))
	require.NoError(t, err)
	spans := reference.Spans(run, reference.Rules{End: "ended"}).Spans
	called := map[int64]int64{}
	for _, s := range spans {
		called[s.Parent] += s.End - s.Start
	}
	places := map[int64]uint64{} // by the number of the call
	var place func(s *reference.Span) uint64
	place = func(s *reference.Span) uint64 {
		at, ok := places[s.Sequence]
		if !ok {
			caller := uint64(0)
			if s.Parent >= 0 {
				caller = place(spans[s.Parent])
			}
			at = below(caller, referenceName(s, marked))
			places[s.Sequence] = at
		}
		return at
	}
	tree := map[uint64]callPath{}
	for _, s := range spans {
		at := place(s)
		p := tree[at]
		if p.calls == 0 {
			p.name = referenceName(s, marked)
		}
		p.calls++
		if s.Unwound {
			p.errors++
		}
		p.total += s.End - s.Start
		p.self += max(0, s.End-s.Start-called[s.Sequence])
		tree[at] = p
	}
	return tree
}

func referenceName(s *reference.Span, marked bool) string {
	if marked && s.Truncated != "" {
		return reference.Qualified(s.Function) + " truncated"
	}
	return reference.Qualified(s.Function)
}

// snapshotTree is the tree of a snapshot, with or without marks.
func snapshotTree(t testing.TB, snapshot calltree.Snapshot, marked bool) map[uint64]callPath {
	t.Helper()
	tree, places := map[uint64]callPath{}, make([]uint64, len(snapshot.Nodes))
	for i, n := range snapshot.Nodes {
		caller, name := uint64(0), n.Function
		if marked && n.Mark == calltree.Truncated {
			name += " truncated"
		}
		if n.Parent >= 0 {
			caller = places[n.Parent]
		}
		places[i] = below(caller, name)
		p := tree[places[i]]
		tree[places[i]] = callPath{name, p.calls + n.Calls, p.errors + n.Errors, p.total + n.Total, p.self + n.Self}
	}
	if marked {
		require.Len(t, tree, len(snapshot.Nodes), "a path has one node")
	}
	return tree
}

// orders are the orders in which spans arrive: as the processor sends them, in as many calls, or
// shuffled.
var orders = []struct {
	name string
	of   func(*rand.Rand, []ptrace.Traces) iter.Seq[ptrace.Traces]
}{
	{"as the processor sends them", func(_ *rand.Rand, calls []ptrace.Traces) iter.Seq[ptrace.Traces] {
		return slices.Values(calls)
	}},
	{"calls the other way round", func(_ *rand.Rand, calls []ptrace.Traces) iter.Seq[ptrace.Traces] {
		calls = slices.Clone(calls)
		slices.Reverse(calls)
		return slices.Values(calls)
	}},
	{"callers first", func(_ *rand.Rand, calls []ptrace.Traces) iter.Seq[ptrace.Traces] {
		spans := eachSpan(calls)
		slices.SortFunc(spans, func(a, b ptrace.Span) int { return int(a.StartTimestamp()) - int(b.StartTimestamp()) })
		return batches(spans, func() int { return 500 })
	}},
	{"at random", func(random *rand.Rand, calls []ptrace.Traces) iter.Seq[ptrace.Traces] {
		spans := eachSpan(calls)
		random.Shuffle(len(spans), func(i, j int) { spans[i], spans[j] = spans[j], spans[i] })
		return batches(spans, func() int { return 1 + random.IntN(3000) })
	}},
}

func eachSpan(calls []ptrace.Traces) (spans []ptrace.Span) {
	for _, td := range calls {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					spans = append(spans, span)
				}
			}
		}
	}
	return spans
}

// batches are the spans in calls of these sizes, each made when it is asked for.
func batches(spans []ptrace.Span, size func() int) iter.Seq[ptrace.Traces] {
	return func(yield func(ptrace.Traces) bool) {
		for rest := spans; len(rest) > 0; {
			n := min(size(), len(rest))
			td := ptrace.NewTraces()
			rs := td.ResourceSpans().AppendEmpty()
			rs.Resource().Attributes().PutStr(attributeService, capturedService)
			to := rs.ScopeSpans().AppendEmpty().Spans()
			to.EnsureCapacity(n)
			for _, span := range rest[:n] {
				span.CopyTo(to.AppendEmpty())
			}
			if !yield(td) {
				return
			}
			rest = rest[n:]
		}
	}
}

// capturedProgram is a program with a capture, and the number of its calls.
type capturedProgram struct {
	name  string
	calls int
}

func capturedPrograms(short bool) []capturedProgram {
	if short {
		return []capturedProgram{{"shop", 4_793}}
	}
	return []capturedProgram{{"shop", 4_793}, {"maven", mavenCalls}}
}

// The call trees of real programs equal those of their captures, which a slow and obvious reference
// computes from the bytes, for any cutting of traces and any order of spans.
func TestTreesOfCapturesAreThoseOfTheReference(t *testing.T) {
	for _, program := range capturedPrograms(testing.Short()) {
		want := referenceTree(t, program.name, true)
		for _, maxSpansPerTrace := range []int{20_000, 100} {
			traces := capturedTraces(t, program.name, maxSpansPerTrace, program.calls)
			for _, order := range orders {
				t.Run(fmt.Sprintf("%s, %d spans in a trace, %s", program.name, maxSpansPerTrace, order.name), func(t *testing.T) {
					g := newBed(t)
					for td := range order.of(rand.New(rand.NewPCG(1, 2)), traces) {
						require.NoError(t, g.consumeTraces(t.Context(), td))
					}
					snapshot, ok := g.store.Snapshot(capturedService, calltree.Calls)
					require.True(t, ok)
					compare(t, want, snapshotTree(t, snapshot, true))
					counters := g.store.Counters()
					assert.EqualValues(t, program.calls, counters.Spans)
					assert.Zero(t, counters.Duplicates+counters.Forgotten+counters.FoldedPaths)
					assert.Zero(t, counters.ParentsNotSeen)
					assert.Zero(t, g.store.Usage().Waiting)
				})
			}
		}
	}
}

// The profiles of the connector make the same trees. But callees of truncated calls are below the plain
// path there, so marks are not compared.
func TestTreesOfCapturesFromCallPathsAreThoseOfTheReference(t *testing.T) {
	for _, program := range capturedPrograms(testing.Short()) {
		want := referenceTree(t, program.name, false)
		for _, byThread := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, by thread: %v", program.name, byThread), func(t *testing.T) {
				g := foldCapturedPaths(t, program.name, program.calls, byThread)
				snapshot, ok := g.store.Snapshot(capturedService, calltree.Calls)
				require.True(t, ok)
				compare(t, want, snapshotTree(t, snapshot, false))
				service, counters := g.store.Services()[0], g.store.Counters()
				assert.EqualValues(t, program.calls, counters.Calls)
				assert.EqualValues(t, program.calls, service.Calls)
				assert.Zero(t, counters.CutSamples+counters.FoldedPaths+counters.Samples)
				assert.Equal(t, byThread, service.Threads > 0)
			})
		}
	}
}

// Spans of repeated calls make the same trees.
func TestTreesOfRepeatedCallsAreThoseOfTheReference(t *testing.T) {
	for _, program := range capturedPrograms(testing.Short()) {
		t.Run(program.name, func(t *testing.T) {
			g := foldCapturedRepetitions(t, program.name, program.calls)
			snapshot, ok := g.store.Snapshot(capturedService, calltree.Calls)
			require.True(t, ok)
			compare(t, referenceTree(t, program.name, true), snapshotTree(t, snapshot, true))
			counters := g.store.Counters()
			assert.EqualValues(t, program.calls, g.store.Services()[0].Calls)
			assert.Less(t, counters.Spans, uint64(program.calls))
			assert.Zero(t, counters.Duplicates+counters.Forgotten+counters.FoldedPaths)
			t.Logf("%d spans of %d calls", counters.Spans, program.calls)
		})
	}
}

// compare prints the first paths that differ.
func compare(t testing.TB, want, got map[uint64]callPath) {
	t.Helper()
	assert.Len(t, got, len(want))
	differ := 0
	for place, p := range want {
		if got[place] != p {
			if differ++; differ <= 5 {
				t.Errorf("expected %+v\ngot      %+v", p, got[place])
			}
		}
	}
	assert.Zero(t, differ, "paths that differ")
}
