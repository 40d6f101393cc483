// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treediff

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// lines are nodes as a person reads them.
func lines(nodes []Node) string {
	depth := make([]int, len(nodes))
	var b strings.Builder
	for i, n := range nodes {
		if n.Parent >= 0 {
			depth[i] = depth[n.Parent] + 1
		}
		fmt.Fprintf(&b, "%s%s %d/%d→%d/%d\n", strings.Repeat(" ", depth[i]), n.Function, n.Before.Self, n.Before.Calls, n.After.Self, n.After.Calls)
	}
	return b.String()
}

func TestPathsOfBothTreesHaveTheValuesOfBoth(t *testing.T) {
	before := []calltree.Node{
		{Parent: -1, Function: "main", Calls: 1, Total: 100, Self: 10},
		{Parent: 0, Function: "f", File: "f.go", Line: 3, Calls: 2, Total: 60, Self: 60},
		{Parent: 0, Function: "gone", Calls: 3, Total: 30, Self: 20},
		{Parent: 2, Function: "f", Calls: 1, Errors: 1, Total: 10, Self: 10},
	}
	after := []calltree.Node{
		{Parent: -1, Function: "new", Calls: 1, Total: 1000, Self: 900},
		{Parent: 0, Function: "f", Calls: 1, Total: 100, Self: 100},
		{Parent: -1, Function: "main", Calls: 1, Total: 50, Self: 20},
		{Parent: 2, Function: "f", File: "moved.go", Line: 5, Calls: 4, Total: 30, Self: 30},
		{Parent: 2, Function: "f", Mark: calltree.Truncated, Calls: 1, Total: 5, Self: 5},
	}
	got := Merge(before, after)
	assert.Equal(t, `new 0/0→900/1
 f 0/0→100/1
main 10/1→20/1
 f 60/2→30/4
 gone 20/3→0/0
  f 10/1→0/0
 f 0/0→5/1
`, lines(got))
	assert.Equal(t, Values{Calls: 2, Total: 60, Self: 60}, got[3].Before)
	assert.Equal(t, Values{Calls: 1, Errors: 1, Total: 10, Self: 10}, got[5].Before)
	assert.Equal(t, calltree.Truncated, got[6].Mark)
}

// tree is a random tree in pre-order.
func tree(r *rand.Rand, size int) []calltree.Node {
	nodes := make([]calltree.Node, size)
	var open []int32
	for i := range nodes {
		for len(open) > 0 && r.IntN(100) < 45 {
			open = open[:len(open)-1]
		}
		nodes[i] = calltree.Node{Parent: -1, Function: fmt.Sprint("f", r.IntN(5)), Calls: r.Uint64N(10), Self: r.Int64N(100) - 10}
		if len(open) > 0 {
			nodes[i].Parent = open[len(open)-1]
		}
		open = append(open, int32(i))
	}
	return nodes
}

// weigh adds the own values above 0 of nodes to their paths and all paths above.
func weigh(weights map[string]int64, nodes []calltree.Node) {
	for i := range nodes {
		var names []string
		for at := int32(i); at >= 0; at = nodes[at].Parent {
			names = append(names, nodes[at].Function)
		}
		below := ""
		for _, name := range slices.Backward(names) {
			below += "/" + name
			weights[below] += max(nodes[i].Self, 0)
		}
	}
}

// byPath sums values up by path.
func byPath(nodes []calltree.Node) map[string]Values {
	paths := make([]string, len(nodes))
	sums := map[string]Values{}
	for i, n := range nodes {
		paths[i] = n.Function
		if n.Parent >= 0 {
			paths[i] = paths[n.Parent] + "/" + n.Function
		}
		v := sums[paths[i]]
		sums[paths[i]] = Values{Calls: v.Calls + n.Calls, Self: v.Self + n.Self}
	}
	return sums
}

func TestMergingLosesNothingAndKeepsPreOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		before, after := tree(r, r.IntN(60)), tree(r, r.IntN(60))
		merged := Merge(before, after)
		wantBefore, wantAfter := byPath(before), byPath(after)
		paths := make([]string, len(merged))
		identities := map[uint64]string{}
		weights := map[string]int64{}
		weigh(weights, before)
		weigh(weights, after)
		lastOf := map[int32]int64{}
		for i, n := range merged {
			paths[i] = n.Function
			if n.Parent >= 0 {
				require.Less(t, n.Parent, int32(i))
				paths[i] = paths[n.Parent] + "/" + n.Function
			}
			for above := int32(i) - 1; above != n.Parent; above = merged[above].Parent {
				require.GreaterOrEqual(t, above, int32(0), "its subtree follows a node without a gap")
			}
			if last, ok := lastOf[n.Parent]; ok {
				require.LessOrEqual(t, weights["/"+paths[i]], last, "the heaviest first")
			}
			lastOf[n.Parent] = weights["/"+paths[i]]
			require.Equal(t, wantBefore[paths[i]], n.Before, paths[i])
			require.Equal(t, wantAfter[paths[i]], n.After, paths[i])
			require.Empty(t, identities[n.Path])
			identities[n.Path] = paths[i]
			delete(wantBefore, paths[i])
			delete(wantAfter, paths[i])
		}
		require.Empty(t, wantBefore)
		require.Empty(t, wantAfter)
	}
}

func TestAPathHasTheSameNumberInOtherComparisons(t *testing.T) {
	nodes := []calltree.Node{{Parent: -1, Function: "a", Self: 1}, {Parent: 0, Function: "b", Self: 1}}
	one, other := Merge(nodes, nil), Merge([]calltree.Node{{Parent: -1, Function: "x", Self: 9}}, nodes)
	assert.Equal(t, []uint64{one[0].Path, one[1].Path}, []uint64{other[1].Path, other[2].Path})
	assert.NotEqual(t, Merge(nodes[1:1], []calltree.Node{{Parent: -1, Function: "b"}})[0].Path, one[1].Path)
}
