// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/callbraid/callbraid/internal/bytefrog/capture"
	"github.com/callbraid/callbraid/internal/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrogagent/replay"
	"github.com/callbraid/callbraid/internal/calltree"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver"
	"github.com/callbraid/callbraid/test/reference"
	"github.com/callbraid/callbraid/test/testbed"
)

const capturedService = "captured"

// sink keeps what the processor hands on.
type sink struct {
	mu    sync.Mutex
	calls []ptrace.Traces
}

func (s *sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *sink) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, td)
	return nil
}

// capturedTraces plays a capture by its agent into the receiver and the processor, and gives
// what they make of it.
func capturedTraces(t testing.TB, name string, maxSpansPerTrace int) []ptrace.Traces {
	t.Helper()
	ctx, host, end := context.Background(), componenttest.NewNopHost(), &sink{}
	pairing := stackpairingprocessor.NewFactory()
	config := pairing.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"max_spans_per_trace": maxSpansPerTrace,
		// The machine may be busy.
		"reorder": map[string]any{"max_wait": "5m"}, "idle_timeout": "10m",
	}).Unmarshal(config))
	processor, err := pairing.CreateTraces(ctx, processortest.NewNopSettings(pairing.Type()), config, end)
	require.NoError(t, err)
	receiving := bytefrogreceiver.NewFactory()
	config = receiving.CreateDefaultConfig()
	endpoint := testbed.Address(t)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"endpoint": endpoint, "service_name": capturedService}).Unmarshal(config))
	receiver, err := receiving.CreateTraces(ctx, receivertest.NewNopSettings(receiving.Type()), config, processor)
	require.NoError(t, err)
	require.NoError(t, processor.Start(ctx, host))
	require.NoError(t, receiver.Start(ctx, host))

	c, err := capture.Open(capturePath(name))
	require.NoError(t, err)
	recording, err := replay.Load(c)
	require.NoError(t, err)
	agent := bytefrogagent.New(bytefrogagent.Options{
		Endpoint: endpoint, ConnectTimeout: testbed.Patience, StartTimeout: testbed.Patience,
	}, replay.New(recording, replay.Options{}))
	result := agent.Run(ctx)
	require.Equal(t, bytefrogagent.Completed, result.Outcome, "%s (%v)", result.Reason, result.Err)
	require.NoError(t, receiver.Shutdown(ctx))
	require.NoError(t, processor.Shutdown(ctx))
	return end.calls
}

func capturePath(name string) string { return "../../testdata/bytefrog/" + name + ".zip" }

// callPath is what is to be known of a path of calls. Which one it is says a hash, since those
// of real programs are long.
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

// referenceTree is the call tree of a capture, computed from its bytes alone.
func referenceTree(t testing.TB, name string) map[uint64]callPath {
	t.Helper()
	run, err := reference.Open(capturePath(name))
	require.NoError(t, err)
	spans := reference.Spans(run, reference.Rules{End: "ended"}).Spans
	called := map[int64]int64{}
	for _, s := range spans {
		called[s.Parent] += s.End - s.Start
	}
	var place func(s *reference.Span) uint64
	place = func(s *reference.Span) uint64 {
		caller := uint64(0)
		if s.Parent >= 0 {
			caller = place(spans[s.Parent])
		}
		return below(caller, referenceName(s))
	}
	tree := map[uint64]callPath{}
	for _, s := range spans {
		p := tree[place(s)]
		p.name = referenceName(s)
		p.calls++
		if s.Unwound {
			p.errors++
		}
		p.total += s.End - s.Start
		p.self += max(0, s.End-s.Start-called[s.Sequence])
		tree[place(s)] = p
	}
	return tree
}

func referenceName(s *reference.Span) string {
	if s.Truncated != "" {
		return reference.Qualified(s.Function) + " truncated"
	}
	return reference.Qualified(s.Function)
}

// snapshotTree is the tree of a snapshot.
func snapshotTree(t testing.TB, snapshot calltree.Snapshot) map[uint64]callPath {
	t.Helper()
	tree, places := map[uint64]callPath{}, make([]uint64, len(snapshot.Nodes))
	for i, n := range snapshot.Nodes {
		caller, name := uint64(0), n.Function
		if n.Mark == calltree.Truncated {
			name += " truncated"
		}
		if n.Parent >= 0 {
			caller = places[n.Parent]
		}
		places[i] = below(caller, name)
		tree[places[i]] = callPath{name, n.Calls, n.Errors, n.Total, n.Self}
	}
	require.Len(t, tree, len(snapshot.Nodes), "a path has one node")
	return tree
}

// orders are ways in which the spans come: in the order, and in as many calls, that the
// processor hands them on, or all mixed up.
var orders = []struct {
	name string
	of   func(*rand.Rand, []ptrace.Traces) iter.Seq[ptrace.Traces]
}{
	{"as the processor hands them on", func(_ *rand.Rand, calls []ptrace.Traces) iter.Seq[ptrace.Traces] {
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

// The call trees of real programs are those of their captures, computed slowly and
// obviously from the bytes, however their traces are cut and their spans come.
func TestTreesOfCapturesAreThoseOfTheReference(t *testing.T) {
	for _, test := range []struct {
		capture string
		calls   int
	}{{"shop", 4_793}, {"maven", 442_770}} {
		want := referenceTree(t, test.capture)
		for _, maxSpansPerTrace := range []int{20_000, 100} {
			traces := capturedTraces(t, test.capture, maxSpansPerTrace)
			for _, order := range orders {
				t.Run(fmt.Sprintf("%s, %d spans in a trace, %s", test.capture, maxSpansPerTrace, order.name), func(t *testing.T) {
					g := newBed(t)
					for td := range order.of(rand.New(rand.NewPCG(1, 2)), traces) {
						require.NoError(t, g.consumeTraces(t.Context(), td))
					}
					snapshot, ok := g.store.Snapshot(capturedService, calltree.Calls)
					require.True(t, ok)
					compare(t, want, snapshotTree(t, snapshot))
					counters := g.store.Counters()
					assert.EqualValues(t, test.calls, counters.Spans)
					assert.Zero(t, counters.Duplicates+counters.Forgotten+counters.FoldedPaths)
					assert.Zero(t, counters.ParentsNotSeen)
					assert.Zero(t, g.store.Usage().Waiting)
				})
			}
		}
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
