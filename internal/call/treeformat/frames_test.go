// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

func TestFramesThatAreShown(t *testing.T) {
	const shop = "main 1\n  add 2\n    price 3\n      add 4\n  price 5\nidle 6\n"
	for _, test := range []struct{ name, hide, show, from, want string }{
		{"all", "", "", "", shop},
		{"without hidden frames, whose values their callers get", "^add$", "", "", "main 3\n  price 7\n  price 5\nidle 6\n"},
		{"without hidden frames that have no caller", "^(main|idle)$", "", "", "add 2\n  price 3\n    add 4\nprice 5\n(left out) 7\n"},
		{"only some", "", "^price$", "", "price 7\nprice 5\n(left out) 9\n"},
		{"only some, and of them not all", "^add$", "^(add|price)$", "", "price 7\nprice 5\n(left out) 9\n"},
		{"from the first that matches", "", "", "^(add|price)$", "add 2\n  price 3\n    add 4\nprice 5\n(left out) 7\n"},
		{"its callees, too", "", "", "^add$", "add 2\n  price 3\n    add 4\n(left out) 12\n"},
		{"from the first that matches and isn't hidden", "^add$", "", "^(add|price)$", "price 7\nprice 5\n(left out) 9\n"},
		{"none", ".", "", "", "(left out) 21\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := ShowFrames(calltree.Snapshot{Nodes: tree(shop)}, Frames{matching(test.hide), matching(test.show), matching(test.from)})
			require.NoError(t, err)
			assert.Equal(t, strings.ReplaceAll(test.want, "(left out)", LeftOut), text(got.Nodes))
			assertPreOrder(t, got.Nodes)
		})
	}
}

func TestShownFramesHaveTheValuesOfHiddenOnes(t *testing.T) {
	all := shop()
	got, err := ShowFrames(all, Frames{Hide: matching(`Price\.of$`)})
	require.NoError(t, err)
	assert.Equal(t, sums(all.Nodes), sums(got.Nodes))
	assert.EqualValues(t, 3, got.Nodes[0].Calls, "with those of the hidden frame")
	assert.EqualValues(t, 900, got.Nodes[0].Total, "which has it already")
	assert.EqualValues(t, 1, all.Nodes[0].Calls, "the snapshot is as it was")
}

func TestFramesAreHiddenByTheirFile(t *testing.T) {
	got, err := ShowFrames(shop(), Frames{Show: matching(`^Cart\.java$`)})
	require.NoError(t, err)
	assert.Equal(t, "com.example.Cart.add 500\ncom.example.Cart.add\n"+LeftOut+" 500\n", text(got.Nodes))
}

// The node LeftOut of Focus stays, and is no frame.
func TestTheNodeLeftOutIsNeitherHiddenNorShown(t *testing.T) {
	s, err := Focus(calltree.Snapshot{Nodes: tree("main 1\nidle 6\n")}, matching("main"), nil)
	require.NoError(t, err)
	for _, frames := range []Frames{{Hide: matching("left")}, {Show: matching("main")}, {From: matching("main")}} {
		got, err := ShowFrames(s, frames)
		require.NoError(t, err)
		assert.Equal(t, "main 1\n"+LeftOut+" 6\n", text(got.Nodes))
	}
}

func TestShowFramesMatchesEachFunctionOnceAndReturnsTheError(t *testing.T) {
	s, ask, asked := asking()
	for _, frames := range []Frames{{Hide: ask}, {Show: ask}, {From: ask}} {
		clear(asked)
		_, err := ShowFrames(s, frames)
		assert.EqualError(t, err, "enough")
		assert.Equal(t, map[string]int{"main": 1, "cart": 1, "price": 1}, asked)
	}
}
