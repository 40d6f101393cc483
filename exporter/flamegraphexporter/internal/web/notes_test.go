// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

func TestThePageOfAllServicesHasNotes(t *testing.T) {
	p := playing("shop", "Cart.add")
	assert.NotContains(t, page(t, serve(p), "/"), "class=\"note\"", "no note")
	p.counters = calltree.Counters{
		Spans: 1_000_000, Forgotten: 900_000, DroppedKept: 800_000, DroppedTraces: 7, // as it has to be
		ParentsNotSeen: calltree.ParentsNotSeen{Limit: 1001, Timeout: 1002, Cycle: 1003},
		FoldedPaths:    1004, OtherServices: 1005, SilentServices: 1006, DroppedSamples: 1007,
		YieldedServices: 1008, Shed: calltree.Shed{Paths: 1009}, MixedServices: 1010,
	}
	text := textOf(t, page(t, serve(p), "/"))
	for _, want := range []string{
		"given up: 1,001,", "within pending_timeout: 1,002;", "as their caller: 1,003;", "folded: 1,004,",
		"beyond max_services: 1,005;", "all of their counts: 1,006;", "dropped: 1,007,", "more active ones: 1,008;", "because of the memory budget: 1,009;", "both count: 1,010;",
	} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, "000")
}

// The store of this test gives up a caller that arrives later, and folds paths.
func TestPagesHaveTheNotesOfTheirTree(t *testing.T) {
	store := calltree.NewStore(calltree.Settings{
		PendingTimeout: time.Hour, MaxServices: 1, MaxNodes: calltree.LeastNodes, MaxPending: calltree.LeastPending,
		MaxNameBytes: 100, MaxNamesBytes: 1 << 20,
	})
	h := serve(store)
	call := func(id, caller int, function string) {
		s := calltree.Span{Trace: calltree.TraceID{1}, ID: spanID(id), Function: function, Start: 1000, End: 2000}
		if caller != 0 {
			s.ParentTrace, s.Parent = s.Trace, spanID(caller)
		}
		store.Fold(calltree.Origin{Service: "shop"}, []calltree.Span{s})
	}
	call(1, 0, "main")
	call(2, 1, "work")
	const twice = "calls count twice: set count_spans to false"
	assert.NotContains(t, page(t, h, "/services/shop/"), twice)
	paths := calltree.NewCallPaths()
	paths.Add(paths.RestBelow(0, calltree.Folded), 1, 0, 1, false)
	store.FoldPaths(calltree.Origin{Service: "shop"}, paths, time.Second)
	assert.Contains(t, page(t, h, "/services/shop/"), twice)
	assert.Contains(t, page(t, h, "/services/shop/"), "(folded: small paths): 1; their sender had no room for all paths")
	store.Reset("shop")
	call(3, 1, "work")
	assert.NotContains(t, page(t, h, "/services/shop/"), twice)
	for _, target := range []string{"/", "/services/shop/", "/services/shop/ui/flamegraph", "/services/shop/ui/top"} {
		assert.NotContains(t, page(t, h, target), "(parent not seen)", target)
	}

	for i := range calltree.LeastPending + 1 { // each has a caller of its own that doesn't arrive
		call(10_000+i, 20_000+i, "orphan")
	}
	const orphans = "Calls in (parent not seen): 101;"
	for _, target := range []string{"/services/shop/", "/services/shop/ui/flamegraph", "/services/shop/ui/top?f=work"} {
		assert.Contains(t, page(t, h, target), orphans, target)
	}
	assert.Regexp(t, `Callers that were given up: [1-9]`, page(t, h, "/"))

	call(3, 1, "late") // main arrived, and was forgotten
	assert.Contains(t, page(t, h, "/services/shop/"), "Calls in (parent not seen): 102;")
	assert.Regexp(t, `and calls that were forgotten: [1-9]`, page(t, h, "/services/shop/"))

	for i := range 2 * calltree.LeastNodes {
		call(30_000+i, 0, segment(string(rune('a'+i))))
	}
	assert.Regexp(t, `Paths that were folded: [1-9]`, page(t, h, "/"))
	assert.Regexp(t, `Calls in \(folded: small paths\): [1-9]`, page(t, h, "/services/shop/"))
}
