// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package flamegraphexporter

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit/cputime"
)

// BenchmarkFoldTraces folds the spans of a captured Maven build, over and over: as
// processors send them, callees first; and callers first. Each round has other traces,
// so that all its spans are new and all its paths are known. The same spans are copied, too.
func BenchmarkFoldTraces(b *testing.B) {
	traces := capturedTraces(b, "maven", 20_000, mavenCalls)
	for _, bench := range []struct {
		name  string
		calls func() []ptrace.Traces
	}{
		{"callees_first", func() []ptrace.Traces {
			return slices.Collect(batches(eachSpan(traces), func() int { return 2048 }))
		}},
		{"callers_first", func() []ptrace.Traces { return slices.Collect(orders[2].of(nil, traces)) }},
	} {
		// Copies are contiguous in memory, like spans that a receiver just made.
		calls := bench.calls()
		b.Run(bench.name, func(b *testing.B) {
			g := newBed(b)
			spans := eachSpan(calls)
			round := byte(0)
			fold := func() {
				round++
				renew(spans, round)
				for _, td := range calls {
					require.NoError(b, g.consumeTraces(context.Background(), td))
				}
			}
			// The remembered calls reach their bound and stay there, and the garbage of the
			// preparation is collected before the measurement.
			fold()
			fold()
			heap()
			cputime.Events(b, len(spans), fold)
			require.Zero(b, g.store.Counters().Duplicates)
		})
		b.Run(bench.name+"_copied", func(b *testing.B) { cputime.CopyTracesOver(b, len(eachSpan(calls)), calls...) })
	}
}

// renew changes the trace IDs of the spans for a new round.
func renew(spans []ptrace.Span, round byte) {
	for _, span := range spans {
		span.SetTraceID(renewed(span.TraceID(), round))
		for _, link := range span.Links().All() {
			link.SetTraceID(renewed(link.TraceID(), round))
		}
	}
}

func renewed(id pcommon.TraceID, round byte) pcommon.TraceID {
	id[0] = round
	return id
}

// BenchmarkFoldCallPaths folds the message of an interval with 100,000 call paths of up to 30
// frames, with threads: paths that are new, or known; and paths in the order of their callers, or in
// none.
func BenchmarkFoldCallPaths(b *testing.B) {
	const paths, functions = 100_000, 2000
	random := rand.New(rand.NewPCG(1, 1))
	s, stack := sums{}, []string{"main"}
	for len(s) < paths {
		stack = stack[:max(1, len(stack)-random.IntN(5))]
		for range 1 + random.IntN(3) {
			stack = append(stack[:min(len(stack), 29)], fmt.Sprintf("org.apache.maven.lifecycle.internal.Class%d.method", random.IntN(functions)))
			s.of(false, 1+random.Int64N(8), stack...).values = [pathValues]int64{3, random.Int64N(2), 1 + random.Int64N(1000)}
		}
	}
	for _, order := range []struct {
		name string
		pd   pprofile.Profiles
	}{{"by_caller", s.profiles(nil, "s")}, {"in_no_order", s.profiles(random, "s")}} {
		for _, profile := range order.pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
			profile.SetProfileID(pprofile.NewProfileIDEmpty())
		}
		g := newBed(b)
		require.NoError(b, g.consumeProfiles(context.Background(), order.pd))
		b.Run(order.name+"_known", func(b *testing.B) {
			cputime.Events(b, len(s), func() { require.NoError(b, g.consumeProfiles(context.Background(), order.pd)) })
		})
		b.Run(order.name+"_new", func(b *testing.B) {
			cputime.Events(b, len(s), func() {
				g.store.ResetAll()
				require.NoError(b, g.consumeProfiles(context.Background(), order.pd))
			})
		})
		b.ReportMetric(float64(g.store.Usage().Nodes), "nodes")
	}
}

// BenchmarkFoldMemory folds a captured Maven build many times, 50 million spans of the same paths.
// It compares the memory at the end with that after the first million.
func BenchmarkFoldMemory(b *testing.B) {
	traces := capturedTraces(b, "maven", 20_000, mavenCalls)
	spans := eachSpan(traces)
	const rounds = 50_000_000/442_770 + 1
	for b.Loop() {
		g, before := newBed(b), heap()
		first := uint64(0)
		for round := range byte(rounds) {
			renew(spans, round)
			for _, td := range traces {
				require.NoError(b, g.consumeTraces(context.Background(), td))
			}
			if round == 2 {
				first = heap() - before
			}
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
		b.ReportMetric(float64(heap()-before)/float64(first), "times-at-50M")
		require.EqualValues(b, rounds*len(spans), g.store.Counters().Spans)
		runtime.KeepAlive(g)
	}
	runtime.KeepAlive(traces)
}

// BenchmarkPathMemory measures the memory of each of many paths, with the remembered call of its
// one span. Names are as long as those of Java methods, and half of all paths have a name of their
// own.
func BenchmarkPathMemory(b *testing.B) {
	const paths, children = 200_000, 10
	for b.Loop() {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr(attributeService, "s")
		to := rs.ScopeSpans().AppendEmpty().Spans()
		to.EnsureCapacity(paths)
		for i := range paths {
			span := to.AppendEmpty()
			span.SetTraceID([16]byte{1})
			span.SetSpanID(numbered(i + 1))
			if i > 0 {
				span.SetParentSpanID(numbered((i-1)/children + 1))
			}
			name := i
			if i%2 == 0 {
				name = i % (2 * children)
			}
			span.SetName(fmt.Sprintf("org.apache.maven.lifecycle.internal.builder.Class%d.method%d", name, name))
			span.SetStartTimestamp(1)
			span.SetEndTimestamp(pcommon.Timestamp(1 + paths - i))
		}
		g, before := newBed(b, func(c *Config) { c.Traces.MaxSpans = 0 }), heap()
		require.NoError(b, g.consumeTraces(context.Background(), td))
		used := heap() - before
		require.EqualValues(b, paths, g.store.Usage().Nodes)
		b.ReportMetric(float64(used)/paths, "B/path")
		runtime.KeepAlive(td)
		runtime.KeepAlive(g)
	}
}

func numbered(n int) (id pcommon.SpanID) {
	binary.BigEndian.PutUint64(id[:], uint64(n))
	return id
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
