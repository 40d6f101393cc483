// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// crowded is a store of few nodes, with a service of so many calls "f0", "f1", … below "main". Each
// took as long as its number.
func crowded(t *testing.T, nodes, calls int) *Store {
	t.Helper()
	set := settings()
	set.MaxNodes = nodes
	s := NewStore(set)
	for i := range calls {
		_, id := scriptID("a")
		trace, _ := scriptID("a")
		span := Span{Trace: trace, ID: spanID(i), ParentTrace: trace, Parent: id, Function: fmt.Sprint("f", i), Start: 1, End: uint64(1 + i)}
		s.Fold(Origin{Service: "s"}, []Span{span})
	}
	script(t, s, "main a took 1000000")
	return s
}

func TestTheSmallestPathsAreFoldedFirst(t *testing.T) {
	s := crowded(t, 20, 22)
	got := treeOf(t, s, "s")
	assert.Contains(t, got, "main: 1 calls, 0 errors, total 1000000, self 999769") // 231 less
	assert.Contains(t, got, "main/f21: 1 calls, 0 errors, total 21, self 21")
	assert.NotContains(t, got, "main/f0:")
	assert.NotContains(t, got, "main/f1:")
	assert.Contains(t, got, "main/(folded: small paths): ")
	assert.Positive(t, s.Counters().FoldedPaths)
	assert.LessOrEqual(t, s.Usage().Nodes, 20)
}

func TestCalleesOfAFoldedPathAreFoldedToo(t *testing.T) {
	s := crowded(t, 100, 101)
	before := treeOf(t, s, "s")
	count := s.Counters().FoldedPaths
	// f0 was the first, and was folded. Its callee arrives late.
	trace, _ := scriptID("a")
	s.Fold(Origin{Service: "s"}, []Span{{Trace: trace, ID: spanID(1000), ParentTrace: trace, Parent: spanID(1), Function: "late", Start: 1, End: 2}})
	check(t, s)
	after := treeOf(t, s, "s")
	require.Equal(t, count, s.Counters().FoldedPaths, "nothing else was folded")
	assert.NotContains(t, after, "late")
	// One more call, whose time was part of f1's before.
	folded := func(text string) (calls, errors, total, self int) {
		_, text, _ = strings.Cut(text, "main/(folded: small paths): ")
		_, err := fmt.Sscanf(text, "%d calls, %d errors, total %d, self %d", &calls, &errors, &total, &self)
		require.NoError(t, err)
		return calls, errors, total, self
	}
	calls, _, total, self := folded(before)
	moreCalls, _, sameTotal, sameSelf := folded(after)
	assert.Equal(t, []int{calls + 1, total, self}, []int{moreCalls, sameTotal, sameSelf})
	// A callee that waited for it is folded too.
	s.Fold(Origin{Service: "s"}, []Span{{Trace: trace, ID: spanID(1002), ParentTrace: trace, Parent: spanID(1001), Function: "deep", Start: 1, End: 2}})
	s.Fold(Origin{Service: "s"}, []Span{{Trace: trace, ID: spanID(1001), ParentTrace: trace, Parent: spanID(1), Function: "late", Start: 1, End: 3}})
	check(t, s)
	calls, _, total, _ = folded(treeOf(t, s, "s"))
	assert.Equal(t, []int{moreCalls + 2, sameTotal}, []int{calls, total})
}

// In a chain of calls each has one below it, except the last. Only the end of the chain can be
// folded.
func TestADeepChainIsFoldedFromItsEnd(t *testing.T) {
	set := settings()
	set.MaxNodes = 100
	s := NewStore(set)
	trace, _ := scriptID("a")
	for i := range 1000 {
		span := Span{Trace: trace, ID: spanID(i), Function: fmt.Sprint("f", i), Start: 1, End: uint64(2001 - i)}
		if i > 0 {
			span.ParentTrace, span.Parent = trace, spanID(i-1)
		}
		s.Fold(Origin{Service: "s"}, []Span{span})
	}
	check(t, s)
	assert.LessOrEqual(t, s.Usage().Nodes, 100)
	snapshot, _ := s.Snapshot("s", Calls)
	calls := uint64(0)
	for _, n := range snapshot.Nodes {
		calls += n.Calls
	}
	assert.EqualValues(t, 1000, calls)
	assert.Equal(t, "f0", snapshot.Nodes[0].Function)
	assert.Equal(t, Folded, snapshot.Nodes[len(snapshot.Nodes)-1].Mark)
}

// A call that ran beside its caller can be larger than the caller.
func TestACallerIsNotFoldedBeforeItsCallees(t *testing.T) {
	set := settings()
	set.MaxNodes = 20
	s := NewStore(set)
	script(t, s, "small a took 1", "large b < a took 1000")
	for i := range 20 {
		s.Fold(Origin{Service: "s"}, []Span{{Function: fmt.Sprint("f", i), Start: 1, End: uint64(100 + i)}})
	}
	check(t, s)
	assert.Positive(t, s.Counters().FoldedPaths)
	assert.Contains(t, treeOf(t, s, "s"), "small/large: 1 calls, 0 errors, total 1000, self 1000")
}

// The size of a path is its part of its tree, for any unit of the tree.
func TestNoTreeIsFoldedBecauseItsNumbersAreSmall(t *testing.T) {
	set := settings()
	set.MaxNodes = 40
	s := NewStore(set)
	var samples []Sample
	for i := range 10 {
		samples = append(samples, Sample{Frames: []Frame{{Function: fmt.Sprint("g", i)}}, Count: 1, Value: 1})
	}
	s.FoldSamples(Origin{Service: "s"}, Kind{"samples", "count"}, samples...)
	for i := range 100 {
		s.Fold(Origin{Service: "s"}, []Span{{Function: fmt.Sprint("f", i), Start: 1, End: 1_000_000_000 + uint64(i)}})
	}
	check(t, s)
	snapshot, _ := s.Snapshot("s", Kind{"samples", "count"})
	assert.Len(t, snapshot.Nodes, 10)
}

// Negative values count by their amount.
func TestNegativeValuesCountByTheirAmount(t *testing.T) {
	set := settings()
	set.MaxNodes = 100
	s := NewStore(set)
	growth := Kind{"growth", "bytes"}
	for i := range 10 {
		s.FoldSamples(Origin{Service: "s"}, growth,
			Sample{Frames: []Frame{{Function: fmt.Sprint("more", i)}}, Count: 1, Value: 1000},
			Sample{Frames: []Frame{{Function: fmt.Sprint("less", i)}}, Count: 1, Value: -1000})
	}
	for i := range 100 {
		s.FoldSamples(Origin{Service: "s"}, growth, Sample{Frames: []Frame{{Function: fmt.Sprint("bit", i)}}, Count: 1, Value: -1})
	}
	check(t, s)
	assert.Positive(t, s.Counters().FoldedPaths)
	snapshot, _ := s.Snapshot("s", growth)
	var far []string
	for _, n := range snapshot.Nodes {
		if !strings.HasPrefix(n.Function, "bit") {
			far = append(far, n.Function)
		}
	}
	assert.Len(t, far, 21, "all of them, and the node of folded paths: %q", far)
}

func TestTheMemoryOfNamesIsBounded(t *testing.T) {
	set := settings()
	set.MaxNameBytes, set.MaxNamesBytes = 1024, 32<<10
	s := NewStore(set)
	for i := range 300 {
		s.Fold(Origin{Service: fmt.Sprint("s", i%3)}, []Span{{Function: fmt.Sprint(i, strings.Repeat("x", 2000)), Start: 1, End: 5}})
		require.LessOrEqual(t, s.Usage().NameBytes, set.MaxNamesBytes+1024+bytesOfFunction)
	}
	check(t, s)
	assert.Positive(t, s.Counters().FoldedPaths)
	assert.Positive(t, s.Counters().DroppedKept, "names of spans that are kept count as well")
}

func TestCallersThatWaitLongestAreGivenUp(t *testing.T) {
	set := settings()
	set.MaxNodes = 100
	s := NewStore(set)
	for i := range 200 {
		s.Fold(Origin{Service: "s"}, []Span{{ID: spanID(2 * i), Parent: spanID(2*i + 1), Function: "f", Start: 1, End: 2}})
		require.LessOrEqual(t, s.Usage().Nodes, 102)
	}
	check(t, s)
	assert.Equal(t, "(parent not seen)/f: 200 calls, 0 errors, total 200, self 200", treeOf(t, s, "s"))
	assert.Positive(t, s.Counters().ParentsNotSeen.Limit)
	assert.Zero(t, s.Counters().FoldedPaths)
}

// A service with long names, such as SQL, is folded itself, and its own kept spans are dropped.
func TestLongNamesOfAServiceFoldNoOther(t *testing.T) {
	set := settings()
	set.MaxNamesBytes, set.MaxKeptSpans = 64<<10, 500
	s := NewStore(set)
	good := make([]Span, 100)
	for i := range good {
		good[i] = Span{Trace: traceID(1), ID: spanID(i), Function: fmt.Sprint("good", i), Start: 1, End: 2}
	}
	s.Fold(Origin{Service: "good"}, good)
	for i := range 300 {
		s.Fold(Origin{Service: "sql"}, []Span{{Trace: traceID(2), ID: spanID(i), Function: fmt.Sprint(i, strings.Repeat("x", 700)), Start: 1, End: 1_000_000}})
	}
	check(t, s)
	assert.LessOrEqual(t, s.Usage().NameBytes, set.MaxNamesBytes+1000)
	snapshot, _ := s.Snapshot("good", Calls)
	assert.Len(t, snapshot.Nodes, len(good))
	kept, _ := s.Trace(traceID(1))
	assert.Len(t, kept, len(good))
	assert.Contains(t, treeOf(t, s, "sql"), "(folded: small paths): ")
}

// Waiting paths are folded like all others.
func TestTheMemoryOfNamesOfWaitingPathsIsBounded(t *testing.T) {
	set := settings()
	set.MaxNamesBytes = 64 << 10
	s := NewStore(set)
	for i := range 300 {
		s.Fold(Origin{Service: "sql"}, []Span{{
			Trace: traceID(1), ParentTrace: traceID(1), ID: spanID(2 * i), Parent: spanID(2*i + 1),
			Function: fmt.Sprint(i, strings.Repeat("x", 700)), Start: 1, End: 2,
		}})
		require.LessOrEqual(t, s.Usage().NameBytes, set.MaxNamesBytes+1000)
	}
	check(t, s)
	assert.Contains(t, treeOf(t, s, "sql"), "(parent not seen)/(folded: small paths): ")
}

// Services hold the names of their instances. The store cannot free them, and stops trying.
func TestTheStoreDoesNotFreeNamesOfInstances(t *testing.T) {
	set := settings()
	set.MaxServices, set.MaxNamesBytes = 1000, 3<<10
	s := NewStore(set)
	for i := range 20 {
		s.Fold(Origin{Service: fmt.Sprint("s", i), Instance: fmt.Sprint(strings.Repeat("x", 120), i)},
			[]Span{{Trace: traceID(i), ID: spanID(1), Function: "f", Start: 1, End: 2}})
	}
	check(t, s)
	assert.Len(t, s.Services(), 20)
	assert.LessOrEqual(t, s.Usage().NameBytes, 20*NamesOfService)
}
