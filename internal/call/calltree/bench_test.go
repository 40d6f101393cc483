// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkSnapshot takes snapshots of a tree of 100,000 paths: the whole snapshot, and only the
// part under the store's lock.
func BenchmarkSnapshot(b *testing.B) {
	const paths, children = 100_000, 10
	s := NewStore(settings())
	for i := range paths {
		span := Span{Trace: traceID(1), ID: spanID(i), ParentTrace: traceID(1), Function: fmt.Sprint("function ", i%1000, i%children), Start: 1, End: uint64(2 + paths - i)}
		if i > 0 {
			span.Parent = spanID((i - 1) / children)
		}
		s.Fold(Origin{Service: "s"}, []Span{span})
	}
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			s.Snapshot("s", Calls)
		}
	})
	b.Run("locked", func(b *testing.B) {
		t := s.services.tree("s", Calls)
		for b.Loop() {
			t.copy()
		}
	})
}

// BenchmarkShrink folds spans that all have a path of their own into a store that is full.
func BenchmarkShrink(b *testing.B) {
	set := settings()
	set.MaxNodes, set.MaxPending, set.MaxKeptSpans = 100_000, 100_000, 0
	s := NewStore(set)
	i, longest := 0, time.Duration(0)
	for b.Loop() {
		begin := time.Now()
		s.Fold(Origin{Service: "s"}, []Span{{Trace: traceID(i), ID: spanID(i), Function: fmt.Sprint("function ", i), Start: 1, End: uint64(2 + i%1000)}})
		longest = max(longest, time.Since(begin))
		i++
	}
	b.ReportMetric(float64(longest)/float64(time.Millisecond), "longest-ms")
}
