// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
)

func TestNodesOfASnapshotAreInPreOrderTheLargestFirst(t *testing.T) {
	s := NewStore(settings())
	script(t, s, "c c < a took 1", "d d < a took 3", "e e < d took 1", "b b < a took 1", "a a took 9", "z z took 10", "w w < y took 5")
	snapshot, _ := s.Snapshot("s", Calls)
	var got []string
	for _, n := range snapshot.Nodes {
		got = append(got, fmt.Sprint(n.Function, n.Parent))
	}
	assert.Equal(t, []string{"z-1", "a-1", "d1", "e2", "b1", "c1", "(parent not seen)-1", "w6"}, got)
	assert.Equal(t, Node{Parent: -1, Function: "(parent not seen)", Mark: MissingParent, Total: 5}, snapshot.Nodes[6])
	// A snapshot changes nothing: a waiting call finds its caller later.
	script(t, s, "y y took 6")
	assert.NotContains(t, treeOf(t, s, "s"), "not seen")
	_, ok := s.Snapshot("s", Kind{"cpu", ""})
	assert.False(t, ok)
	_, ok = s.Snapshot("nobody", Calls)
	assert.False(t, ok)
}

// deepCalls folds a chain of so many calls, with two at its end.
func deepCalls(s *Store, depth int) {
	trace := traceID(1)
	for i := range depth + 1 {
		span := Span{Trace: trace, ID: spanID(i), ParentTrace: trace, Function: fmt.Sprint("f", i), Start: 1, End: 11}
		if i > 0 {
			span.Parent = spanID(min(i, depth-1) - 1)
		}
		s.Fold(Origin{Service: "s"}, []Span{span})
	}
}

func TestEverythingTooDeepIsOneNode(t *testing.T) {
	s := NewStore(settings())
	deepCalls(s, MaxDepth+5)
	snapshot, _ := s.Snapshot("s", Calls)
	require.Len(t, snapshot.Nodes, MaxDepth)
	assert.Equal(t, Node{Parent: MaxDepth - 3, Function: fmt.Sprint("f", MaxDepth-2), Calls: 1, Total: 10}, snapshot.Nodes[MaxDepth-2])
	assert.Equal(t, Node{
		Parent: MaxDepth - 2, Function: "(deeper calls)", Mark: Deep, Calls: 7, Total: 10, Self: 20,
	}, snapshot.Nodes[MaxDepth-1])

	s = NewStore(settings())
	deepCalls(s, MaxDepth-1)
	snapshot, _ = s.Snapshot("s", Calls)
	require.Len(t, snapshot.Nodes, MaxDepth)
	for _, n := range snapshot.Nodes {
		require.Equal(t, Plain, n.Mark)
	}
}

// noWait is a turn without a queue.
func noWait(context.Context) error { return nil }

func TestAWindowIsCollected(t *testing.T) {
	s := NewStore(settings())
	script(t, s, "f a took 5")
	_, err := s.Collect(t.Context(), "nobody", Calls, time.Hour, noWait)
	require.ErrorIs(t, err, ErrNotThere)
	snapshot, err := s.Collect(t.Context(), "s", Calls, time.Nanosecond, noWait)
	require.NoError(t, err)
	assert.Empty(t, snapshot.Nodes)
	assert.Equal(t, "s", snapshot.Service)
	assert.False(t, snapshot.To.Before(snapshot.From))

	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Collect(canceled, "s", Calls, time.Hour, noWait)
	require.ErrorIs(t, err, context.Canceled)
	check(t, s)
	assert.Zero(t, s.windows)
	assert.Empty(t, s.services.byName["s"].calls.windows)
}

// Data that arrives after the end of a window, and before its turn, is not in it. It can place
// calls and renumber nodes without changing the window.
func TestAWindowEndsBeforeItsTurn(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(*Store)
		want      string
	}{
		"more calls": {func(s *Store) {
			script(t, s, "f x took 9", "h d < b took 1")
			s.room.compact(func(*tree) bool { return true })
			script(t, s, "f a took 5")
		}, "f/g: 2 calls, 0 errors, total 4, self 4\n"},
		"a reset": {func(s *Store) { s.Reset("s"); script(t, s, "f y took 9") }, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			set := settings()
			set.PendingTimeout = 10 * time.Hour
			s := NewStore(set)
			script(t, s, "g e < a took 1")
			from := time.Now()
			var window Snapshot
			go func() {
				var err error
				window, err = s.Collect(t.Context(), "s", Calls, time.Hour, func(context.Context) error {
					time.Sleep(time.Minute)
					test.meanwhile(s)
					return nil
				})
				assert.NoError(t, err)
			}()
			synctest.Wait()
			script(t, s, "g b < a took 2", "g c < a took 2")
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			assert.Equal(t, []time.Time{from, from.Add(time.Hour)}, []time.Time{window.From, window.To}, name)
			assert.Equal(t, test.want, lines(paths(t, window.Nodes)), name)
			check(t, s)
		})
	}
}

// A window reports the losses of its tree between its begin and its end.
func TestAWindowReportsTheLossesOfItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := settings()
		set.MaxPending = LeastPending
		s := NewStore(set)
		var id atomic.Int64
		forget := func(number int) {
			for range number {
				s.Fold(Origin{Service: "s"}, []Span{{Trace: traceID(1), ID: spanID(int(id.Add(1))), Function: "f", Start: 1, End: 2}})
			}
		}
		forget(LeastPending + 10)
		before := s.Counters().Forgotten
		require.Positive(t, before)
		var window Snapshot
		var during uint64
		go func() {
			window, _ = s.Collect(t.Context(), "s", Calls, time.Hour, func(context.Context) error {
				during = s.Counters().Forgotten - before
				forget(7)
				return nil
			})
		}()
		synctest.Wait()
		forget(20)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.Positive(t, during)
		assert.Equal(t, Lost{Forgotten: during}, window.Lost)
	})
}

// The oldest spans are dropped first, also after those of one service were dropped.
func TestRemainingSpansAreDroppedInOrder(t *testing.T) {
	set := settings()
	set.MaxKeptSpans = 4
	s := NewStore(set)
	fold := func(service string, ids ...int) {
		for _, id := range ids {
			s.Fold(Origin{Service: service}, []Span{{Trace: traceID(1), ID: spanID(id), Function: "f", Start: uint64(id), End: uint64(id)}})
		}
	}
	fold("s", 1)
	fold("other", 2)
	fold("s", 3)
	fold("other", 4)
	fold("s", 5) // in the place of 1
	s.Reset("other")
	check(t, s)
	fold("s", 6, 7, 8) // the last in the place of 3
	var kept []int64
	spans, _ := s.Trace(traceID(1))
	for _, span := range spans {
		kept = append(kept, span.Start)
	}
	assert.Equal(t, []int64{5, 6, 7, 8}, kept)
}

func TestAWindowWithoutATurnIsRemoved(t *testing.T) {
	s := NewStore(settings())
	script(t, s, "f a took 5")
	noTurn := errors.New("no turn")
	_, err := s.Collect(t.Context(), "s", Calls, time.Nanosecond, func(context.Context) error {
		assert.Equal(t, 1, s.Usage().Windows, "others see it until then")
		return noTurn
	})
	require.ErrorIs(t, err, noTurn)
	assert.Zero(t, s.Usage().Windows)
	assert.Empty(t, s.services.byName["s"].calls.windows)
}

func TestTheNumberOfWindowsIsBounded(t *testing.T) {
	set := settings()
	set.MaxWindows = 2
	s := NewStore(set)
	script(t, s, "f a took 5")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	for range 2 {
		go func() {
			_, err := s.Collect(ctx, "s", Calls, time.Hour, noWait)
			done <- err
		}()
	}
	require.True(t, testkit.Happens(func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.windows == 2
	}))
	_, err := s.Collect(ctx, "s", Calls, time.Hour, noWait)
	require.ErrorIs(t, err, ErrBusy)
	assert.EqualValues(t, 1, s.Counters().RefusedWindows)
	cancel()
	for range 2 {
		require.ErrorIs(t, <-done, context.Canceled)
	}
	_, err = s.Collect(t.Context(), "s", Calls, time.Nanosecond, noWait)
	require.NoError(t, err)
}

// A snapshot reports only the losses of its tree, in its time.
func TestASnapshotReportsItsLosses(t *testing.T) {
	set := settings()
	c := newClock(&set)
	set.MaxPending, set.MaxNodes = LeastPending, LeastNodes
	s := NewStore(set)
	lost := func(service string) Lost {
		snapshot, ok := s.Snapshot(service, Calls)
		require.True(t, ok)
		return snapshot.Lost
	}
	id := 0
	fold := func(service string, number int, waits bool) {
		for range number {
			span := Span{Trace: traceID(1), ID: spanID(id), Function: fmt.Sprint("f", id), Start: 1, End: 2}
			if waits {
				span.ParentTrace, span.Parent = traceID(2), spanID(id)
			}
			s.Fold(Origin{Service: service}, []Span{span})
			id++
		}
	}
	fold("late", 7, true)
	c.pass(2 * time.Hour)
	fold("other", 1, false)
	assert.Equal(t, Lost{GivenUp: 7}, lost("late"))
	assert.Zero(t, lost("other"))
	fold("waits", LeastPending+3, true)
	counters := s.Counters()
	assert.Positive(t, counters.ParentsNotSeen.Limit)
	assert.Equal(t, counters.ParentsNotSeen.Limit, lost("waits").GivenUp)
	assert.Equal(t, counters.Forgotten, lost("waits").Forgotten+lost("other").Forgotten)
	before := lost("waits")
	tree, window, err := s.openWindow("waits", Calls)
	require.NoError(t, err)
	fold("waits", LeastNodes, false)
	s.endWindow(tree, window)
	s.copyAndCloseWindow(tree, window)
	assert.Positive(t, lost("waits").FoldedPaths)
	assert.Equal(t, lost("waits").since(before), window.lost)
	assert.Equal(t, s.Counters().FoldedPaths, lost("waits").FoldedPaths+lost("late").FoldedPaths+lost("other").FoldedPaths)
	s.Reset("waits")
	assert.Zero(t, lost("waits"))
	check(t, s)
}

func TestStoredSpansEqualTheReceivedSpans(t *testing.T) {
	set := settings()
	set.MaxKeptSpans = 4
	s := NewStore(set)
	one, two, three := traceID(1), traceID(2), traceID(3)
	s.Fold(Origin{Service: "s"}, []Span{
		{Trace: one, ID: spanID(1), ParentTrace: one, Parent: spanID(2), Function: "g", Start: 10, End: 20, HasThread: true, Thread: 7, ThreadName: "main", Error: true},
		{Trace: one, ID: spanID(2), Function: "f", File: "f.go", Line: 3, Start: 10, End: 30, HasThread: true, Thread: 7, ThreadName: "main"},
		// Its caller is in another trace.
		{Trace: two, ID: spanID(3), ParentTrace: one, Parent: spanID(2), Function: "h", Start: 40, End: 35, Truncated: true},
	})
	check(t, s)
	assert.Equal(t, []TraceSummary{
		{ID: two, Root: "h", Spans: 1, Start: time.Unix(0, 40), End: time.Unix(0, 40)},
		{ID: one, Root: "g", Spans: 2, Errors: 1, Start: time.Unix(0, 10), End: time.Unix(0, 30)},
	}, s.Traces("s"))
	spans, ok := s.Trace(one)
	require.True(t, ok)
	assert.Equal(t, []KeptSpan{
		{ID: spanID(2), Service: "s", Function: "f", File: "f.go", Line: 3, Thread: 7, ThreadName: "main", Start: 10, End: 30},
		{ID: spanID(1), Parent: spanID(2), Service: "s", Function: "g", Thread: 7, ThreadName: "main", Start: 10, End: 20, Error: true},
	}, spans)
	spans, _ = s.Trace(two)
	assert.Equal(t, []KeptSpan{{ID: spanID(3), Service: "s", Function: "h", Start: 40, End: 40, Truncated: true}}, spans)

	// Older spans make room. A trace has spans of several services.
	s.Fold(Origin{Service: "other"}, []Span{
		{Trace: one, ID: spanID(4), Function: "x", Start: 5, End: 6},
		{Trace: one, ID: spanID(5), Function: "x", Start: 5, End: 7},
	})
	check(t, s)
	assert.Equal(t, []TraceSummary{{ID: one, Root: "x", Spans: 3, Dropped: 1, Start: time.Unix(0, 5), End: time.Unix(0, 30)}}, s.Traces("other"))
	assert.Len(t, s.Traces("s"), 2)
	assert.Nil(t, s.Traces("nobody"))
	for i := range 10 {
		s.Fold(Origin{Service: "s"}, []Span{{Trace: three, ID: spanID(10 + i), Function: "y"}})
		check(t, s)
	}
	_, ok = s.Trace(one)
	assert.False(t, ok)
	assert.Equal(t, []TraceSummary{{ID: three, Root: "y", Spans: 4, Dropped: 6, Start: time.Unix(0, 0), End: time.Unix(0, 0)}}, s.Traces("s"))
	assert.EqualValues(t, 2, s.Counters().DroppedTraces)
	assert.EqualValues(t, 11, s.Counters().DroppedKept)
	assert.Empty(t, s.Traces("other"))
}

func TestAResetRestartsAWindow(t *testing.T) {
	set := settings()
	c := newClock(&set)
	s := NewStore(set)
	script(t, s, "f a took 1")
	_, window, err := s.openWindow("s", Calls)
	require.NoError(t, err)
	script(t, s, "f b took 2")
	c.pass(time.Minute)
	s.Reset("s")
	script(t, s, "f c took 4")
	copied := s.copyAndCloseWindow(s.services.tree("s", Calls), window)
	showWindow(copied, window.values)
	assert.Equal(t, "f: 1 calls, 0 errors, total 4, self 4\n", lines(paths(t, snapshotNodes(copied))))
	assert.Equal(t, c.now, window.from)
}

func TestStoredSpansHaveTheirInstance(t *testing.T) {
	set := settings()
	set.MaxKeptSpans = 3
	s := NewStore(set)
	trace := traceID(1)
	for i, instance := range []string{"gone", "pod-1", "pod-2", "", "pod-1", strings.Repeat("p", maxThreadName+1)} {
		s.Fold(Origin{Service: "s", Instance: instance}, []Span{{Trace: trace, ID: spanID(i), Function: "f", HasThread: true, Thread: 1, Start: uint64(i)}})
		s.room.compact(func(*tree) bool { return true })
		check(t, s)
	}
	spans, _ := s.Trace(trace)
	require.Len(t, spans, 3)
	assert.Equal(t, []string{"", "pod-1", strings.Repeat("p", maxThreadName)}, []string{spans[0].Instance, spans[1].Instance, spans[2].Instance})
	assert.Len(t, s.services.tree("s", Calls).functions.free, 0)
	s.Fold(Origin{Service: "s"}, []Span{{Trace: trace, ID: spanID(10), Function: "f"}})
	s.ResetAll()
	check(t, s)
	assert.Equal(t, 1, s.services.tree("s", Calls).functions.byName.used, "no instance is kept without its spans")
}

func TestSamplesAreFolded(t *testing.T) {
	s := NewStore(settings())
	cpu := Kind{"cpu", "nanoseconds"}
	s.FoldSamples(Origin{Service: "r"}, cpu,
		Sample{Frames: []Frame{{Function: "main", File: "m.rb", Line: 1}, {Function: "fib"}, {Function: "fib"}}, Count: 3, Value: 30},
		Sample{Frames: []Frame{{Function: "main"}}, Count: 1, Value: 5},
		Sample{Frames: []Frame{{Function: "x"}}, IsCut: true, Count: 1, Value: 1},
		Sample{Count: 1, Value: 2},
	)
	s.SeeThreads(Origin{Service: "r"}, Thread{1, "main"}, Thread{2, "x"}, Thread{1, "main"})
	assert.Equal(t, 2, s.Services()[0].Threads)
	check(t, s)
	snapshot, ok := s.Snapshot("r", cpu)
	require.True(t, ok)
	assert.Equal(t, []Node{
		{Parent: -1, Function: "main", File: "m.rb", Line: 1, Calls: 1, Total: 35, Self: 5},
		{Parent: 0, Function: "fib", Total: 30},
		{Parent: 1, Function: "fib", Calls: 3, Total: 30, Self: 30},
		{Parent: -1, Function: "(parent not seen)", Mark: MissingParent, Calls: 1, Total: 3, Self: 2},
		{Parent: 3, Function: "x", Calls: 1, Total: 1, Self: 1},
	}, snapshot.Nodes)
	assert.EqualValues(t, 6, s.Counters().Samples)
	s.Reset("r")
	check(t, s)
	snapshot, ok = s.Snapshot("r", cpu)
	assert.False(t, ok && len(snapshot.Nodes) > 0)
}

func TestTheNumberOfKindsIsBounded(t *testing.T) {
	s := NewStore(settings())
	for i := range maxKinds + 2 {
		s.FoldSamples(Origin{Service: "r"}, Kind{Type: fmt.Sprint(i)}, Sample{Count: 1, Value: 2}, Sample{Count: 1, Value: 2})
	}
	check(t, s)
	assert.Len(t, s.Services()[0].Kinds, maxKinds)
	assert.EqualValues(t, 4, s.Counters().DroppedSamples)
}

func TestTooDeepStacksAreCutAtTheTop(t *testing.T) {
	s := NewStore(settings())
	frames := make([]Frame, MaxDepth+10)
	for i := range frames {
		frames[i].Function = fmt.Sprint("f", i)
	}
	s.FoldSamples(Origin{Service: "r"}, Kind{Type: "cpu"}, Sample{Frames: frames, Count: 1, Value: 7})
	snapshot, _ := s.Snapshot("r", Kind{Type: "cpu"})
	require.Len(t, snapshot.Nodes, MaxDepth-1)
	assert.Equal(t, MissingParent, snapshot.Nodes[0].Mark)
	assert.Equal(t, fmt.Sprint("f", MaxDepth+9), snapshot.Nodes[MaxDepth-2].Function)
	assert.EqualValues(t, 7, snapshot.Nodes[MaxDepth-2].Self)
}
