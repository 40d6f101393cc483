// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

const everything = 1 << 30

func TestReduce(t *testing.T) {
	for _, test := range []struct {
		name       string
		bounds     Bounds
		tree, want string
	}{
		{
			"a tree within the bounds stays", Bounds{3, 6},
			"a 1\n  b 2\n    c 3\n", "a 1\n  b 2\n    c 3\n",
		},
		{
			"the smallest paths go", Bounds{3, everything},
			"a 1\n  b 5\n  c 2\n    d 1\n  e 4\n",
			"a 1\n  b 5\n  (smaller paths) 3\n  e 4\n",
		},
		{
			"nodes below count", Bounds{3, everything},
			"a\n  b 5\n  c\n    d 9\n",
			"a\n  (smaller paths) 5\n  c\n    d 9\n",
		},
		{
			"at the top, too", Bounds{1, everything},
			"a 1\nb 7\nc 2\n  d 3\n",
			"(smaller paths) 6\nb 7\n",
		},
		{
			"of equal ones the first", Bounds{2, everything},
			"a 1\n  b 1\n  c 1\n  d 1\n",
			"a 1\n  b 1\n  (smaller paths) 2\n",
		},
		{
			"equal nodes do not displace larger ones", Bounds{3, everything},
			"a 1\n  b 1\n  c 1\n  d 5\n  e 5\n",
			"a 1\n  (smaller paths) 2\n  d 5\n  e 5\n",
		},
		{
			"frames of all stacks are bounded", Bounds{everything, 4},
			"a 1\n  b 1\n    c 1\n      d 1\n        e 1\n",
			"a 1\n  b 1\n    (smaller paths) 3\n",
		},
		{
			"no room for one", Bounds{everything, 0},
			"a 1\n  b 1\nc 1\n", "(smaller paths) 3\n",
		},
		{"nothing", Bounds{1, 1}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Reduce(calltree.Snapshot{Nodes: tree(test.tree)}, Value{}, test.bounds)
			assert.Equal(t, test.want, text(got.Nodes))
		})
	}
}

func TestReducedByCallsTheMostCalledStay(t *testing.T) {
	nodes := tree("a 1\nb 9\n")
	nodes[0].Calls = 100
	calls, err := SampleValue(calltree.Calls, "calls")
	require.NoError(t, err)
	got := Reduce(calltree.Snapshot{Nodes: nodes}, calls, Bounds{1, everything})
	assert.Equal(t, "a 1\n(smaller paths) 9\n", text(got.Nodes))
}

// random returns a tree of n nodes.
func random(r *rand.Rand, n int) []calltree.Node {
	nodes := make([]calltree.Node, n)
	for i := range nodes {
		nodes[i] = calltree.Node{
			Parent: int32(r.IntN(i+1)) - 1, Function: fmt.Sprint("f", r.IntN(10)),
			Calls: r.Uint64N(5), Errors: r.Uint64N(2), Self: r.Int64N(20),
		}
	}
	return preOrder(nodes)
}

// assertPreOrder fails unless each node is inside the subtree of its parent.
func assertPreOrder(t *testing.T, nodes []calltree.Node) {
	t.Helper()
	open := []int32{-1}
	for i, n := range nodes {
		for open[len(open)-1] != n.Parent {
			open = open[:len(open)-1]
			require.NotEmpty(t, open, "node %d has the parent %d, whose subtree has ended", i, n.Parent)
		}
		open = append(open, int32(i))
	}
}

// sums adds up all nodes.
func sums(nodes []calltree.Node) (sum calltree.Node) {
	for _, n := range nodes {
		sum.Calls += n.Calls
		sum.Errors += n.Errors
		sum.Self += n.Self
	}
	return sum
}

func TestReducedTreesHaveTheSameSums(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		nodes := random(r, r.IntN(80))
		bounds := Bounds{1 + r.IntN(60), 1 + r.IntN(300)}
		got := Reduce(calltree.Snapshot{Nodes: nodes}, Value{}, bounds).Nodes
		assert.Equal(t, sums(nodes), sums(got))
		assertPreOrder(t, got)
		kept := 0
		for _, n := range got {
			if n.Function != smaller {
				kept++
			}
		}
		assert.LessOrEqual(t, kept, bounds.Nodes)
	}
}

func TestAChainIsCutBeforeItsStacksFillTheMemory(t *testing.T) {
	nodes := make([]calltree.Node, 200_000)
	for i := range nodes {
		nodes[i] = calltree.Node{Parent: int32(i - 1), Function: "f", Calls: 1, Self: 1}
	}
	got := Reduce(calltree.Snapshot{Nodes: nodes}, Value{}, Bounds{len(nodes), 1_000_000})
	frames := 0
	for _, sample := range Profile(got).Sample {
		frames += len(sample.Location)
	}
	assert.LessOrEqual(t, frames, 1_001_000, "and one stack below each for omitted nodes")
	assert.Greater(t, frames, 900_000)
	assert.Equal(t, sums(nodes), sums(got.Nodes))
}

func TestFocus(t *testing.T) {
	const shop = "main 1\n  cart 2\n    price 3\n  price 4\n  log 5\nidle 6\n"
	for _, test := range []struct{ name, only, without, want string }{
		{"no expression", "", "", shop},
		{"stacks that have it", "price", "", "main\n  cart\n    price 3\n  price 4\n(left out) 14\n"},
		{"its callees, too", "^cart$", "", "main\n  cart 2\n    price 3\n(left out) 16\n"},
		{"stacks that don't have it", "", "cart|idle", "main 1\n  price 4\n  log 5\n(left out) 11\n"},
		{"both", "price", "cart", "main\n  price 4\n(left out) 17\n"},
		{"no stack", "nowhere", "", "(left out) 21\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Focus(calltree.Snapshot{Nodes: tree(shop)}, matching(test.only), matching(test.without))
			require.NoError(t, err)
			assert.Equal(t, strings.ReplaceAll(test.want, "(left out)", LeftOut), text(got.Nodes))
			assertPreOrder(t, got.Nodes)
		})
	}
}

// matching returns a matcher of an expression, or nil for an empty one.
func matching(expression string) Matcher {
	if expression == "" {
		return nil
	}
	compiled := regexp.MustCompile(expression)
	return func(name string) (bool, error) { return compiled.MatchString(name), nil }
}

// asking returns a tree, and a matcher that counts its calls by function and fails for "price".
func asking() (s calltree.Snapshot, ask Matcher, asked map[string]int) {
	asked = map[string]int{}
	return calltree.Snapshot{Nodes: tree("main 1\n  cart 2\n    cart 3\n  price 4\n  log 5\n")}, func(name string) (bool, error) {
		asked[name]++
		if name == "price" {
			return false, errors.New("enough")
		}
		return name != "", nil
	}, asked
}

func TestFocusMatchesEachFunctionOnceAndReturnsTheError(t *testing.T) {
	s, ask, asked := asking()
	for _, matchers := range [][2]Matcher{{ask, nil}, {nil, ask}} {
		clear(asked)
		_, err := Focus(s, matchers[0], matchers[1])
		assert.EqualError(t, err, "enough")
		assert.Equal(t, map[string]int{"main": 1, "cart": 1, "price": 1}, asked)
	}
}

func TestFocusLooksAtFilesAndMarks(t *testing.T) {
	all := shop()
	got, err := Focus(all, matching(`^Cart\.java$`), matching(`\(truncated\)$`))
	require.NoError(t, err)
	assert.Equal(t, "com.example.Main.main\n  com.example.Cart.add 300\n    com.example.Price.of 200\n"+LeftOut+" 500\n", text(got.Nodes))
	assert.EqualValues(t, 100, all.Nodes[0].Self, "the snapshot is as it was")
}
