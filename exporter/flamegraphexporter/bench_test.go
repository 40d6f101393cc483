// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package flamegraphexporter

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/calltree"
	"github.com/callbraid/callbraid/internal/cputime"
)

// BenchmarkConsumeTraces folds the spans of a captured Maven build, over and over: as
// processors hand them on, callees first; and callers first. Each round has other traces,
// so that all its spans are new and all its paths are known.
func BenchmarkConsumeTraces(b *testing.B) {
	traces := capturedTraces(b, "maven", 20_000)
	for _, bench := range []struct {
		name  string
		calls []ptrace.Traces
	}{
		{"callees_first", traces},
		{"callers_first", orders[2].of(nil, traces)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			g := newBed(b)
			spans := eachSpan(bench.calls)
			round := byte(0)
			fold := func() {
				round++
				renew(spans, round)
				for _, td := range bench.calls {
					require.NoError(b, g.consumeTraces(context.Background(), td))
				}
			}
			// What is remembered reaches its bound, where it stays.
			fold()
			fold()
			cputime.Events(b, len(spans), fold)
			require.Zero(b, g.store.Counters().Duplicates)
		})
	}
}

// renew gives the spans other trace IDs than in the last round.
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

// BenchmarkMemory measures what a path takes once a Maven build was folded, and how much
// more that is after many.
func BenchmarkMemory(b *testing.B) {
	traces := capturedTraces(b, "maven", 20_000)
	spans := eachSpan(traces)
	for b.Loop() {
		g := newBed(b, func(c *Config) { c.Traces.MaxSpans = 0 })
		before := heap()
		fold := func(round byte) {
			renew(spans, round)
			for _, td := range traces {
				require.NoError(b, g.consumeTraces(context.Background(), td))
			}
		}
		fold(1)
		snapshot, _ := g.store.Snapshot(capturedService, calltree.Calls)
		paths := len(snapshot.Nodes)
		snapshot = calltree.Snapshot{}
		once := heap() - before
		fold(2)
		full := heap() - before
		for round := range byte(20) {
			fold(3 + round)
		}
		many := heap() - before
		b.ReportMetric(float64(paths), "paths")
		b.ReportMetric(float64(once)/float64(paths), "B/path")
		b.ReportMetric(float64(many)/float64(full), "times-after-20")
		b.ReportMetric(float64(full)/(1<<20), "MiB")
		runtime.KeepAlive(g)
	}
	runtime.KeepAlive(traces)
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
