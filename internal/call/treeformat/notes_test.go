// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"bytes"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

func TestNotesDescribeDataWithoutAPlace(t *testing.T) {
	marked := func(parent int32, mark calltree.Mark, calls uint64) calltree.Node {
		return calltree.Node{Parent: parent, Function: mark.String(), Mark: mark, Calls: calls}
	}
	s := calltree.Snapshot{Nodes: []calltree.Node{
		{Parent: -1, Function: "main", Calls: 1},
		marked(0, calltree.Folded, 1000),
		{Parent: 0, Function: "add", Calls: 2},
		marked(2, calltree.Folded, 200),
		marked(2, calltree.Deep, 30),
		marked(-1, calltree.MissingParent, 4),
		{Parent: 5, Function: "add", Calls: 5},
		{Parent: 6, Function: "price", Calls: 6},
		marked(6, calltree.Folded, 7),
		{Parent: -1, Function: "idle", Calls: 8},
		// Nodes that pages make are not counted.
		{Parent: -1, Function: smaller, Mark: calltree.Folded, Calls: 9},
		{Parent: -1, Function: LeftOut, Mark: calltree.Folded, Calls: 10},
	}, Lost: calltree.Lost{FoldedPaths: 1_000_000}}
	assert.Equal(t, []string{
		"Calls in (parent not seen): 22; their callers have not ended, did not arrive, or were forgotten.",
		"Calls in (folded: small paths): 1,207; 1,000,000 paths were folded, because there was no room for all paths, or for their names.",
		"Calls in (deeper calls): 30; 1000 levels are shown.",
	}, Notes(s))
	const lost = "Callers that were given up: 1,001, and calls that were forgotten: 1,002, for lack of room or time. " +
		"Their late callees are in (parent not seen). Their own time includes that of these callees."
	s.Lost.GivenUp, s.Lost.Forgotten = 1001, 1002
	assert.Equal(t, lost, Notes(s)[1])
	s.Lost.GivenUp = 0
	assert.Len(t, Notes(s), 4, "calls are missing that some may have called that were forgotten")
	assert.Empty(t, Notes(calltree.Snapshot{Nodes: tree("main 1\n"), Lost: calltree.Lost{Forgotten: 1}}), "that does no harm by itself")
	assert.Len(t, Notes(calltree.Snapshot{Nodes: tree("main 1\n"), Lost: calltree.Lost{GivenUp: 1}}), 1)
	s.Missing = calltree.Missing{Classes: 66, First: "Main, a.B"}
	assert.Equal(t, "The tracer could not instrument some classes: 66 (Main, a.B, …). Their calls are missing, "+
		"so the functions that they called are directly below their callers.", Notes(s)[0])
	s.Missing.Classes = 2
	assert.Contains(t, Notes(s)[0], ": 2 (Main, a.B). ")
	s.Lost.LeftOut = calltree.LeftOut{Calls: 1003, Errors: 4, Time: 1_500_000}
	assert.Contains(t, Notes(s), "Calls without spans: 1,003, with 4 errors and 1.5ms; stack_pairing left them out (min_duration, max_depth), "+
		"and their time is a part of their callers' own time.")
	s.Lost = calltree.Lost{}
	s.Kind = calltree.Kind{Type: "samples", Unit: "count"}
	assert.Equal(t, "Samples in (parent not seen): 22; their stacks are cut.", Notes(s)[0])
	assert.Empty(t, Notes(calltree.Snapshot{Nodes: tree("main 1\n  add 2\n")}))
}

func TestAProfilesFileHasTheNotes(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, WriteProfile(&file, shop()))
	read, err := profile.Parse(&file)
	require.NoError(t, err)
	assert.Equal(t, Notes(shop()), read.Comments)
	assert.Len(t, read.Comments, 2)
}
