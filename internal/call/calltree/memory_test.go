// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func liveHeap() int64 {
	// Memory that finalizers hold is free after the second collection.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// callOf is a call by a function of its own, with the given numbers of trace and caller.
func callOf(trace, i, caller int, function string) Span {
	span := Span{Trace: traceID(trace), ID: spanID(i), ParentTrace: traceID(trace), Function: function, Start: 1, End: uint64(2 + i)}
	if caller >= 0 {
		span.Parent = spanID(caller)
	}
	return span
}

// The heap grows by the memory that a store reports, for any contents.
func TestTheReportedMemoryOfAStoreIsTheGrowthOfTheHeap(t *testing.T) {
	n := 60_000
	if testing.Short() {
		n = 10_000
	}
	shop := Origin{Service: "shop", Instance: "1"}
	for name, fill := range map[string]func(*Store){
		"paths": func(s *Store) {
			for i := range n {
				s.Fold(shop, []Span{callOf(1, i, (i-1)/10, fmt.Sprint("f", i%1000))})
			}
		},
		"paths that were folded": func(s *Store) {
			s.settings.MaxNodes, s.settings.MaxPending = n/5, n/5
			for i := range n {
				s.Fold(shop, []Span{callOf(i, i, -1, fmt.Sprint("some.Class.method", i))})
			}
		},
		"names": func(s *Store) {
			for i := range n / 4 {
				s.Fold(shop, []Span{callOf(1, i, 0, fmt.Sprint(strings.Repeat("n", i%300), i))})
			}
		},
		"calls that wait": func(s *Store) {
			for i := range n {
				s.Fold(shop, []Span{callOf(i, i, n+i, "f")})
			}
		},
		"spans that are kept, each of its trace": func(s *Store) {
			s.settings.MaxKeptSpans, s.kept.most = n, n
			for i := range n {
				s.Fold(shop, []Span{callOf(i, i, -1, "f")})
			}
		},
		"services": func(s *Store) {
			s.settings.MaxServices = n / 50
			for i := range n / 50 {
				s.Fold(Origin{Service: fmt.Sprint("service ", i)}, []Span{callOf(i, i, -1, "f")})
			}
		},
		"services that have no place": func(s *Store) {
			for i := range n {
				s.Fold(Origin{Service: fmt.Sprint(strings.Repeat("s", 100), i)}, []Span{callOf(i, i, -1, "f")})
			}
		},
		"threads": func(s *Store) {
			for i := range maxThreads {
				span := callOf(1, i, -1, "f")
				span.HasThread, span.Thread, span.ThreadName = true, int64(i), fmt.Sprint(strings.Repeat("t", 50), i)
				s.Fold(Origin{Service: "shop", Instance: "an instance"}, []Span{span})
			}
		},
		"a window": func(s *Store) {
			s.Fold(shop, []Span{callOf(0, 0, -1, "f")})
			_, _, err := s.openWindow("shop", Calls)
			require.NoError(t, err)
			for i := range n {
				s.Fold(shop, []Span{callOf(1, i, 0, fmt.Sprint("f", i))})
			}
		},
		"samples": func(s *Store) {
			for i := range n {
				s.FoldSamples(shop, Kind{"cpu", "ns"}, Sample{Frames: []Frame{{Function: fmt.Sprint("f", i%100)}, {Function: fmt.Sprint("g", i/100)}}, Count: 1, Value: 1})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := liveHeap()
			s := NewStore(settings())
			fill(s)
			grown, says := liveHeap()-before, s.Bytes()
			runtime.KeepAlive(s)
			ratio := float64(grown) / float64(says)
			t.Logf("%d bytes, %.2f of the reported bytes", grown, ratio)
			assert.InDelta(t, 1, ratio, 0.3)
			check(t, s)
		})
	}
}

// newBounded is a store whose Hold demands everything beyond a limit.
func newBounded(set *Settings, limit *int64) *Store {
	set.Hold = func(bytes int64) int64 { return max(0, bytes-*limit) }
	return NewStore(*set)
}

// If memory is short, a service with many paths or long names is folded. A small service beside it
// stays complete.
func TestWhereMemoryIsShortTheLargestTreeIsFolded(t *testing.T) {
	for name, function := range map[string]func(int) string{
		"many paths": func(i int) string { return fmt.Sprint("f", i) },
		"long names": func(i int) string { return fmt.Sprint(strings.Repeat("select ", 100), i) },
	} {
		t.Run(name, func(t *testing.T) {
			set, limit := settings(), int64(2<<20)
			set.MaxPending = 1000
			s := newBounded(&set, &limit)
			for i := range 1000 {
				s.Fold(Origin{Service: "honest"}, []Span{callOf(0, i, -1, fmt.Sprint("h", i))})
			}
			for i := range 30_000 {
				s.Fold(Origin{Service: "hostile"}, []Span{callOf(1, 1000+i, -1, function(i))})
				if i%1000 == 0 {
					require.LessOrEqual(t, s.Bytes(), limit)
				}
			}
			check(t, s)
			assert.LessOrEqual(t, s.Bytes(), limit)
			honest, _ := s.Snapshot("honest", Calls)
			assert.Len(t, honest.Nodes, 1000)
			assert.Zero(t, honest.Lost.FoldedPaths)
			hostile, _ := s.Snapshot("hostile", Calls)
			assert.Positive(t, hostile.Lost.FoldedPaths)
			calls := uint64(0)
			for _, n := range hostile.Nodes {
				calls += n.Calls
			}
			assert.EqualValues(t, 30_000, calls, "no call is lost")
			assert.Equal(t, hostile.Lost.FoldedPaths, s.Counters().Shed.Paths)
		})
	}
}

// The store frees unused memory first.
func TestMemoryIsFreedInOrder(t *testing.T) {
	set, limit := settings(), int64(1<<40)
	set.MaxKeptSpans = 10_000
	c := newClock(&set)
	s := newBounded(&set, &limit)
	for i := range 30_000 {
		s.Fold(Origin{Service: "shop"}, []Span{callOf(1, i, -1, fmt.Sprint("f", i%100))})
	}
	c.pass(2 * time.Hour) // these are no longer remembered
	for i := range 10_000 {
		s.Fold(Origin{Service: "shop"}, []Span{callOf(0, i, (i-1)/10, fmt.Sprint("f", i%100))})
	}
	giveWay := func(least int64) Shed {
		t.Helper()
		limit = least
		s.GiveWay()
		check(t, s)
		require.LessOrEqual(t, s.Bytes(), limit)
		return s.Counters().Shed
	}
	all := s.Bytes()
	first := giveWay(all - 1000)
	assert.Less(t, s.Bytes(), all-all/shedSpare)
	assert.Zero(t, first, "only unused memory was freed")
	second := giveWay(s.Bytes() - 1000)
	assert.Positive(t, second.KeptSpans)
	assert.Zero(t, second.Calls+second.Paths)
	giveWay(s.Bytes() / 2)
	third := s.Counters().Shed
	assert.EqualValues(t, 10_000, third.KeptSpans)
	assert.Positive(t, third.Calls+third.Paths)
	assert.Zero(t, s.Usage().Kept)
	last := giveWay(100_000)
	assert.Positive(t, last.Calls)
	assert.Positive(t, last.Paths)
	snapshot, _ := s.Snapshot("shop", Calls)
	calls := uint64(0)
	for _, n := range snapshot.Nodes {
		calls += n.Calls
	}
	assert.EqualValues(t, 40_000, calls)
}

// After it could not free enough, the store does not try again with every span.
func TestTheStoreDoesNotTryToFreeMemoryWithEverySpan(t *testing.T) {
	set, asked := settings(), 0
	c := newClock(&set)
	set.Hold = func(bytes int64) int64 { asked++; return bytes }
	s := NewStore(set)
	for i := range 1000 {
		s.Fold(Origin{Service: "shop"}, []Span{callOf(i, i, -1, "f")})
	}
	assert.Less(t, asked, 1100)
	before := asked
	c.pass(time.Second)
	s.Fold(Origin{Service: "shop"}, []Span{callOf(1000, 1000, -1, "f")})
	assert.Equal(t, before+2, asked, "once a second")
	check(t, s)
}

// An open window counts on while memory is freed.
func TestAWindowCountsOnWhileMemoryIsFreed(t *testing.T) {
	set, limit := settings(), int64(1<<40)
	s := newBounded(&set, &limit)
	s.Fold(Origin{Service: "shop"}, []Span{callOf(0, 0, -1, "f")})
	collected := make(chan Snapshot)
	turn, opened := make(chan struct{}), make(chan struct{})
	go func() {
		snapshot, err := s.Collect(t.Context(), "shop", Calls, time.Nanosecond, func(context.Context) error { close(opened); <-turn; return nil })
		assert.NoError(t, err)
		collected <- snapshot
	}()
	<-opened
	for i := range 10_000 {
		s.Fold(Origin{Service: "shop"}, []Span{callOf(0, 1+i, 0, fmt.Sprint("f", i))})
	}
	limit = 200_000
	s.GiveWay()
	check(t, s)
	assert.LessOrEqual(t, s.Bytes(), limit)
	close(turn)
	<-collected
}
