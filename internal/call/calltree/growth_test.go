// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func periods() Settings {
	s := settings()
	s.Periods = true
	return s
}

// For any order of calls and callers: a period has the calls that arrived in it, and no other.
func TestAPeriodHasTheCallsThatArrivedInIt(t *testing.T) {
	ended := 0
	for seed := range stories(testing.Short()) {
		st := newStory(t, seed, periods())
		from := 0
		for len(st.rest) > 0 {
			st.foldNext()
			isEnd := st.random.IntN(8) == 0 || len(st.rest) == 0
			if !isEnd && st.random.IntN(4) > 0 {
				continue
			}
			for _, service := range st.services() {
				growth, _ := st.store.Growth(service, Calls, isEnd)
				require.Equal(t, lines(st.model.tree(service, from)), lines(paths(t, growth.Nodes)), "seed %d, %s", seed, service)
				if isEnd {
					again, _ := st.store.Growth(service, Calls, false)
					require.Empty(t, again.Nodes)
				}
			}
			check(t, st.store)
			if isEnd {
				from = len(st.model.spans)
				ended++
			}
		}
	}
	assert.Greater(t, ended, int(2*stories(testing.Short())))
}

// If paths are folded, callers are given up, and services leave their places, no call is in two periods, or in none. Calls of an
// evicted service since the last look at it are missing, and no other.
func TestNoCallIsInTwoPeriodsIfThereIsTooLittleRoom(t *testing.T) {
	folded, yielded := uint64(0), uint64(0)
	for seed := range stories(testing.Short()) {
		s := periods()
		random := rand.New(rand.NewPCG(seed, 3))
		s.MaxNodes, s.MaxPending, s.MaxServices = 10+random.IntN(30), 4+random.IntN(60), 1+random.IntN(3)
		st := newStory(t, seed, s)
		for i := range st.rest {
			st.rest[i].Calls = 1
		}
		// The last growth of each tree in the current period, and of ended ones.
		type place struct {
			service string
			number  uint64
		}
		current, sum := map[place]uint64{}, uint64(0)
		for len(st.rest) > 0 {
			st.now = st.now.Add(time.Duration(random.IntN(2)) * time.Second)
			st.foldNext()
			isEnd := random.IntN(5) == 0 || len(st.rest) == 0
			for _, tree := range st.store.Trees() {
				growth, ok := st.store.Growth(tree.Service, tree.Kind, isEnd)
				require.True(t, ok)
				calls, _ := countsOf(growth.Nodes)
				current[place{tree.Service, growth.Number}] = calls
			}
			if isEnd {
				for _, calls := range current {
					sum += calls
				}
				clear(current)
			}
			check(t, st.store)
		}
		counters := st.store.Counters()
		require.LessOrEqual(t, sum, counters.Spans, "seed %d", seed)
		// A service leaves when the next spans arrive: all its calls were looked at.
		require.Equal(t, counters.Spans, sum, "seed %d", seed)
		folded += counters.FoldedPaths
		yielded += counters.YieldedServices
	}
	assert.Positive(t, folded)
	assert.Positive(t, yielded)
}

// A restored tree is the tree of before, and belongs to no period.
func TestARestoredTreeIsTheTreeOfBefore(t *testing.T) {
	for seed := range stories(testing.Short()) {
		st := newStory(t, seed, periods())
		for len(st.rest) > 0 {
			st.foldNext()
		}
		s := periods()
		now := st.now.Add(time.Hour)
		s.Now = func() time.Time { return now }
		next := NewStore(s)
		for _, service := range st.store.Services() {
			was, ok := st.store.Snapshot(service.Name, Calls)
			require.True(t, ok)
			was.Lost.FoldedPaths, was.Missing = 7, Missing{Classes: 3, First: "A"}
			next.Restore(was)
			is, ok := next.Snapshot(service.Name, Calls)
			require.True(t, ok)
			was.To = now
			require.Equal(t, was, is, "seed %d", seed)
			growth, _ := next.Growth(service.Name, Calls, false)
			require.Empty(t, growth.Nodes)
			require.Zero(t, growth.Lost)

			next.Fold(Origin{Service: service.Name}, []Span{{Function: "f0", Start: 1, End: 6}, {Function: "late", Start: 1, End: 2}})
			growth, _ = next.Growth(service.Name, Calls, false)
			require.Equal(t, "f0: 1 calls, 0 errors, total 5, self 5\nlate: 1 calls, 0 errors, total 1, self 1\n", lines(paths(t, growth.Nodes)))
			all, _ := next.Snapshot(service.Name, Calls)
			calls, _ := countsOf(all.Nodes)
			require.Equal(t, service.Calls+2, calls)
		}
		for i, service := range next.Services() {
			require.Equal(t, st.store.Services()[i].Calls+2, service.Calls)
			require.Equal(t, st.store.Services()[i].From, service.From)
		}
		check(t, next)
	}
}

func TestRestoredTreesAreWithinTheBounds(t *testing.T) {
	s := periods()
	s.MaxNodes, s.MaxServices = LeastNodes, 2
	store := NewStore(s)
	for i := range 3 {
		tree := Snapshot{Service: fmt.Sprint("s", i), From: time.Unix(1, 0), To: time.Unix(2, 0)}
		for f := range 900 {
			tree.Nodes = append(tree.Nodes, Node{Parent: -1, Function: fmt.Sprint("f", f), Calls: 1, Total: 1, Self: 1})
		}
		store.Restore(tree)
	}
	calls := uint64(0)
	for _, service := range store.Services() {
		tree, _ := store.Snapshot(service.Name, Calls)
		sum, _ := countsOf(tree.Nodes)
		calls += sum
		growth, _ := store.Growth(service.Name, Calls, false)
		assert.Empty(t, growth.Nodes)
	}
	assert.EqualValues(t, 2700, calls)
	assert.Len(t, store.Services(), 3, "two, and one for all others")
	assert.Less(t, store.Usage().Nodes, LeastNodes)
	check(t, store)
}

func TestASampledTreeHasPeriods(t *testing.T) {
	store := NewStore(periods())
	kind := Kind{"cpu", "nanoseconds"}
	sample := Sample{Frames: []Frame{{Function: "main"}, {Function: "work"}}, Count: 2, Value: 5}
	store.FoldSamples(Origin{Service: "s"}, kind, sample)
	first, _ := store.Growth("s", kind, true)
	store.FoldSamples(Origin{Service: "s"}, kind, sample, sample)
	second, _ := store.Growth("s", kind, false)
	assert.Equal(t, "main: 0 calls, 0 errors, total 5, self 0\nmain/work: 2 calls, 0 errors, total 5, self 5\n", lines(paths(t, first.Nodes)))
	assert.Equal(t, "main: 0 calls, 0 errors, total 10, self 0\nmain/work: 4 calls, 0 errors, total 10, self 10\n", lines(paths(t, second.Nodes)))
	store.Restore(Snapshot{Service: "s", Kind: kind, Nodes: first.Nodes})
	third, _ := store.Growth("s", kind, false)
	assert.Equal(t, second.Nodes, third.Nodes)
}

func TestAResetMakesAnotherTree(t *testing.T) {
	store := NewStore(periods())
	fold := func() { store.Fold(Origin{Service: "s"}, []Span{{ID: SpanID{1}, Function: "f", Start: 1, End: 3}}) }
	fold()
	before, _ := store.Growth("s", Calls, true)
	store.Reset("s")
	store.Fold(Origin{Service: "s"}, []Span{{Function: "g", Start: 1, End: 3}})
	after, _ := store.Growth("s", Calls, false)
	assert.NotEqual(t, before.Number, after.Number)
	assert.Equal(t, "g: 1 calls, 0 errors, total 2, self 2\n", lines(paths(t, after.Nodes)))
}

// The obvious way: values by path are added up.
func TestASumHasTheValuesOfAllTrees(t *testing.T) {
	for seed := range stories(testing.Short()) {
		sum, want := NewSum(1_000_000), map[string]values{}
		for part := range 1 + seed%4 {
			st := newStory(t, seed+1000*part, settings())
			for len(st.rest) > 0 {
				st.foldNext()
			}
			tree, _ := st.store.Snapshot("service 0", Calls)
			tree.Remarks = []string{"a remark", fmt.Sprint(part)}
			tree.Lost.GivenUp = 2
			sum.Add(tree)
			for path, v := range paths(t, tree.Nodes) {
				all := want[path]
				all.add(&v)
				want[path] = all
			}
		}
		got := sum.Snapshot()
		require.Equal(t, lines(want), lines(paths(t, got.Nodes)), "seed %d", seed)
		require.Len(t, got.Remarks, 2+int(seed%4))
		require.EqualValues(t, 2*(1+seed%4), got.Lost.GivenUp)
	}
}

func TestASumFoldsItsSmallestPaths(t *testing.T) {
	sum := NewSum(LeastNodes)
	for part := range 3 {
		tree := Snapshot{Service: "s"}
		for f := range 900 {
			tree.Nodes = append(tree.Nodes, Node{Parent: -1, Function: fmt.Sprint("f", part, "-", f), Calls: 1, Total: int64(f), Self: int64(f)})
		}
		sum.Add(tree)
	}
	got := sum.Snapshot()
	calls, _ := countsOf(got.Nodes)
	assert.EqualValues(t, 2700, calls)
	assert.LessOrEqual(t, len(got.Nodes), LeastNodes)
	assert.Positive(t, got.Lost.FoldedPaths)
}

// BenchmarkGrowth takes the growth of a tree of 100,000 paths, and begins the next period.
func BenchmarkGrowth(b *testing.B) {
	store := NewStore(periods())
	for i := range 100_000 {
		store.Fold(Origin{Service: "s"}, []Span{{Function: fmt.Sprint("f", i), Start: 1, End: uint64(i + 2)}})
	}
	for b.Loop() {
		if growth, ok := store.Growth("s", Calls, true); !ok || growth.Number == 0 {
			b.Fatal("no growth")
		}
	}
}
