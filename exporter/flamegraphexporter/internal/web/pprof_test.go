// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/pprofpages"
	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/treeformat"
)

// topTable is the data of pprof's top: the whole, and the functions.
var topTable = regexp.MustCompile(`makeTopTable\( ?([0-9]+) ?, (\[.*\])\);\n`)

// topOf returns the content of top.
func topOf(t *testing.T, page string) (whole string, functions []map[string]any) {
	t.Helper()
	found := topTable.FindStringSubmatch(page)
	require.Len(t, found, 3)
	require.NoError(t, json.Unmarshal([]byte(found[2]), &functions))
	return found[1], functions
}

// TestTopIsThatOfAllPaths compares with pprof's top of the profile of all paths.
func TestTopIsThatOfAllPaths(t *testing.T) {
	paths := 2_000
	if testing.Short() {
		paths = 500
	}
	s := large(paths)
	h := serve(&played{trees: map[treeKey]calltree.Snapshot{{"shop", calltree.Calls}: s}})
	for _, query := range []string{
		"", "si=calls", "sort=cum", "f=Class4[0-9]", "i=method1$&si=time", "f=Class[1-4]&i=method2", "n=5",
		"h=Class[1-3]", "s=Class[1-3]", "sf=package1[0-3]", "h=method[12]&s=method[1-8]&sf=Class4&si=calls", "f=Class2&i=Class3&h=method1$&sf=package4",
		"prunefrom=Class2&h=Class3",
	} {
		values, err := url.ParseQuery(query)
		require.NoError(t, err)
		all, err := pprofpages.Render(context.Background(), pprofpages.Top, values, treeformat.Profile(s))
		require.NoError(t, err)
		want, functions := topOf(t, string(all.Body))
		got, shown := topOf(t, page(t, h, "/services/shop/ui/top?"+query))
		assert.Equal(t, want, got, "the whole, %s", query)
		assert.ElementsMatch(t, functions, shown, query)
		assert.Greater(t, len(shown), 20, query)
	}
}

func TestPagesWithAllFramesHiddenShowNothing(t *testing.T) {
	h := serve(playing("shop", "Cart.add"))
	for _, query := range []string{"h=.", "s=nothing", "sf=nothing", "f=nothing"} {
		for _, name := range []string{"flamegraph", "top"} {
			text := page(t, h, "/services/shop/ui/"+name+"?"+query)
			assert.NotContains(t, text, "Cart.add")
			assert.NotContains(t, text, "(left out)")
		}
	}
}

// peeked are the functions that pprof's peek looks at: a line each, with their share of the whole.
var peeked = regexp.MustCompile(`(?m)^ +[0-9.]+[a-z]* +[0-9.]+% +[0-9.]+% .*\| ([^ \n]+)`)

func TestPeekShowsTheFunctionOfTheQuery(t *testing.T) {
	h := serve(playing("shop", "Cart.add"))
	for function, want := range map[string][]string{"Cart": {"Cart.add"}, "main": {"Main.main"}, "Cart|main": {"Cart.add", "Main.main"}} {
		text := textOf(t, page(t, h, "/services/shop/ui/peek?f="+url.QueryEscape(function)))
		var got []string
		for _, line := range peeked.FindAllStringSubmatch(text, -1) {
			got = append(got, line[1])
		}
		assert.ElementsMatch(t, want, got, function)
		assert.Contains(t, text, "Price.of", "its callee")
	}
}

func TestPagesOfEverySampleType(t *testing.T) {
	h := serve(playing("shop", "Cart.add"))
	for _, sampleType := range []string{"calls", "errors", "time", "0"} {
		for _, name := range []string{"flamegraph", "top", "peek"} {
			assert.Contains(t, page(t, h, "/services/shop/ui/"+name+"?si="+sampleType), "Cart.add")
		}
	}
}

func TestPagesOfATreeWithoutValues(t *testing.T) {
	for what, nodes := range map[string][]calltree.Node{
		"no node": nil, "no value": {{Parent: -1, Function: "f"}}, "no time": {{Parent: -1, Function: "f", Calls: 1}},
	} {
		h := serve(&played{trees: map[treeKey]calltree.Snapshot{{"shop", calltree.Calls}: {Service: "shop", Nodes: nodes}}})
		for _, target := range []string{"", "ui/flamegraph", "ui/top", "profile.pb.gz", "profile.folded", "profile.speedscope.json"} {
			t.Run(what+" "+target, func(t *testing.T) { page(t, h, "/services/shop/"+target) })
		}
	}
}

func TestTopUsesTheFunctionListUnlessTheQueryChangesStacks(t *testing.T) {
	for query, want := range map[string]bool{
		"": true, "si=calls&sort=cum": true, "n=50": true, "f=main&i=idle": true, "h=main&s=m&sf=main": true, "prunefrom=main": false, "g=lines": false, "nf=0": false,
	} {
		values, err := url.ParseQuery(query)
		require.NoError(t, err)
		p, err := profileFor(t.Context(), pprofpages.Top, values, large(2_000))
		require.NoError(t, err)
		assert.Equal(t, want, len(p.Sample) < 1_800, "%s: a profile of all paths has a stack for nearly each", query)
	}
}
