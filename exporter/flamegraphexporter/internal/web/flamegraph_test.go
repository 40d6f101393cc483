// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/treeformat"
)

// serving serves a tree as that of the service shop.
func serving(s calltree.Snapshot) *Handler {
	return serve(&played{trees: map[treeKey]calltree.Snapshot{{"shop", calltree.Calls}: s}})
}

// flameOf returns the data of a flame graph.
func flameOf(t *testing.T, h http.Handler, query string) flameView {
	t.Helper()
	var view flameView
	require.NoError(t, json.Unmarshal([]byte(page(t, h, "/services/shop/ui/flamegraph.json?"+query)), &view))
	return view
}

// flameNames are the names of the functions with frames of their own.
func flameNames(v *flameView) []string {
	var names []string
	for _, frame := range v.Frames {
		if frame.Paths == 0 {
			names = append(names, v.Functions[frame.Function].Name)
		}
	}
	return names
}

// embedded returns the data in a page with a flame graph.
func embedded(t *testing.T, text string) flameView {
	t.Helper()
	for _, e := range elements(t, text) {
		if attribute(e, "id") == "view" {
			var view flameView
			require.NoError(t, json.Unmarshal([]byte(e.FirstChild.Data), &view))
			return view
		}
	}
	require.Fail(t, "the page has no data")
	return flameView{}
}

func TestThePageOfAFlameGraphHasItsData(t *testing.T) {
	h := serve(playing("shop", "com.example.Cart.add"))
	for query, unit := range map[string]string{"": "nanoseconds", "si=calls": "count", "si=errors": "count", "q=cart&f=Cart": "nanoseconds"} {
		view := embedded(t, page(t, h, "/services/shop/ui/flamegraph?"+query))
		assert.Equal(t, flameOf(t, h, query), view, query)
		assert.Contains(t, flameNames(&view), "com.example.Cart.add", query)
		assert.Equal(t, unit, view.Unit, query)
	}
}

func TestOnlyScriptsOfTheServerRunOnTheFlameGraph(t *testing.T) {
	w := get(t, serve(playing("shop", "f")), "/services/shop/ui/flamegraph")
	policy := w.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"} {
		assert.Contains(t, policy, want)
	}
	assert.NotContains(t, policy, "unsafe")
	for _, e := range elements(t, w.Body.String()) {
		assert.Empty(t, attribute(e, "style"), "the policy forbids it")
	}
}

func TestNamesInFlameGraphsAreText(t *testing.T) {
	for what, name := range someNames(testing.Short()) {
		t.Run(what, func(t *testing.T) {
			query := url.QueryEscape(name)
			if len(query) > 4000 { // the name is longer than an expression may be
				query = ""
			}
			text := page(t, serve(playing("shop", name)), "/services/shop/ui/flamegraph?q="+query)
			view := embedded(t, text)
			assert.Contains(t, flameNames(&view), treeformat.Name(name))
			for _, e := range elements(t, text) {
				assert.NotContains(t, []string{"img", "b"}, e.Data)
			}
		})
	}
}

func TestAFlameGraphShowsPathsThatAreTooNarrowInTheWhole(t *testing.T) {
	s := large(5_000)
	for i := range s.Nodes {
		s.Nodes[i].Self += 1000
	}
	last := &s.Nodes[len(s.Nodes)-1]
	last.Function, last.Self = "needle", 1
	h := serving(s)
	whole := flameOf(t, h, "")
	assert.NotContains(t, flameNames(&whole), "needle")
	assert.Positive(t, whole.Folded)
	assert.Equal(t, 5_000, whole.Paths)

	found := flameOf(t, h, "q=NEEDLE")
	assert.Equal(t, &treeformat.FlameFound{Functions: 1, Paths: 1, Value: 1}, found.Found)
	marked := slices.IndexFunc(found.Frames, func(f treeformat.FlameFrame) bool { return f.Found })
	require.GreaterOrEqual(t, marked, 0)
	assert.Positive(t, found.Frames[marked].Paths, "the frame that stands for it is marked")

	focused := flameOf(t, h, "f=needle")
	assert.Contains(t, flameNames(&focused), "needle")
	assert.Equal(t, []string{"Focus: needle"}, focused.Refined)
	assert.EqualValues(t, whole.Whole, focused.Whole+focused.LeftOut)

	top := slices.IndexFunc(whole.Frames, func(f treeformat.FlameFrame) bool { return f.Caller < 0 && f.ID != "" })
	part := flameOf(t, h, "at="+whole.Frames[top].ID)
	assert.Less(t, part.Paths, whole.Paths)
	assert.EqualValues(t, 0, part.At)
}

func TestANarrowPictureHasFewerFrames(t *testing.T) {
	h := serving(large(5_000))
	wide, narrow := flameOf(t, h, "width=4000"), flameOf(t, h, "width=390")
	assert.Less(t, len(narrow.Frames), len(wide.Frames))
	assert.Greater(t, narrow.Folded, wide.Folded)
	assert.Equal(t, wide.Frames, flameOf(t, h, "width=9999999").Frames, "the width is bounded")
	assert.LessOrEqual(t, len(wide.Frames), 2*mostFlameNodes)
}

func TestASearchThatIsNoExpressionIsText(t *testing.T) {
	h := serve(playing("shop", "Array#[](*)"))
	for query, want := range map[string]int{"[](": 1, "[]": 1, "ARRAY": 1, "array#.*price": 0, "^price": 2, "nothing": 0} {
		view := flameOf(t, h, "q="+url.QueryEscape(query))
		assert.Equal(t, want, view.Found.Paths, query)
	}
	assert.Nil(t, flameOf(t, h, "").Found)
	w := get(t, h, "/services/shop/ui/flamegraph?q="+strings.Repeat("a", maxExpression+1))
	assert.Equal(t, http.StatusBadRequest, w.Code)
	assert.Contains(t, w.Body.String(), "q: expected an expression of at most")
}

// The script expects lists, also if they are empty.
func TestTheDataOfAFlameGraphHasNoNulls(t *testing.T) {
	for what, h := range map[string]http.Handler{
		"a tree that lacks nothing": serving(calltree.Snapshot{Service: "shop", From: started, To: started, Nodes: []calltree.Node{{Parent: -1, Function: "f", Calls: 1, Total: 1, Self: 1}}}),
		"no paths":                  serving(calltree.Snapshot{Service: "shop", From: started, To: started}),
	} {
		data := page(t, h, "/services/shop/ui/flamegraph.json")
		assert.NotContains(t, data, "null", what)
		assert.Contains(t, data, `"missing":[]`, what)
	}
}

func TestAFlameGraphSaysWhatItLacks(t *testing.T) {
	s := shop("shop", calltree.Calls, "f")
	s.Missing = calltree.Missing{Classes: 3, First: "com.example.A"}
	view := flameOf(t, serving(s), "")
	require.Len(t, view.Missing, 2)
	assert.Contains(t, view.Missing[0], "The tracer could not instrument some classes: 3 (com.example.A, …)")
	assert.Contains(t, view.Missing[1], "(parent not seen)")
	assert.Contains(t, textOf(t, page(t, serving(s), "/services/shop/ui/flamegraph")), "could not instrument some classes")
}

// All frames are too narrow, because they are equal.
func TestAFlameGraphOfManyEqualFunctionsFoldsThem(t *testing.T) {
	s := calltree.Snapshot{Service: "shop", From: started, To: started.Add(time.Second)}
	for i := range 5_000 {
		s.Nodes = append(s.Nodes, calltree.Node{Parent: -1, Function: fmt.Sprintf("needle%d", i), Calls: 1, Total: 1000, Self: 1000})
	}
	view := flameOf(t, serving(s), "f=needle")
	require.Len(t, view.Frames, 1)
	assert.Equal(t, 5_000, view.Frames[0].Paths)
}
