// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"fmt"
	"math/rand/v2"
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

// BenchmarkFoldPaths folds 100,000 call paths, which are new in the first round and known later, in
// pieces. It reports the longest time for a piece, which is that under the lock.
func BenchmarkFoldPaths(b *testing.B) {
	const pieces = 100_000 / PathsAtOnce
	random := rand.New(rand.NewPCG(1, 1))
	all := make([]*CallPaths, pieces)
	for i := range all {
		p := NewCallPaths()
		frames := make([]uint32, 1000)
		for f := range frames {
			frames[f] = p.AddFrame(Frame{Function: fmt.Sprintf("org.apache.maven.lifecycle.internal.Class%d.method", f), File: "Class.java", Line: 1})
		}
		at := []uint32{0}
		for p.Len() < PathsAtOnce {
			path := p.Below(at[random.IntN(len(at))], frames[random.IntN(len(frames))], Plain)
			p.Add(path, 1, 0, 1, false)
			at = append(at, path)
		}
		all[i] = p
	}
	for _, windows := range []int{0, 10} {
		b.Run(fmt.Sprint("windows_", windows), func(b *testing.B) {
			longest := time.Duration(0)
			for b.Loop() {
				set := settings()
				set.MaxWindows = windows
				s := NewStore(set)
				s.FoldPaths(Origin{Service: "s"}, NewCallPaths(), time.Second)
				for range windows {
					_, _, _ = s.openWindow("s", Calls)
				}
				for range 2 {
					for _, p := range all {
						begin := time.Now()
						s.FoldPaths(Origin{Service: "s"}, p, time.Second)
						longest = max(longest, time.Since(begin))
					}
				}
			}
			b.ReportMetric(float64(longest)/float64(time.Millisecond), "longest-ms")
		})
	}
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
