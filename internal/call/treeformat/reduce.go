// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"cmp"
	"slices"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// smaller is the name of the nodes for all paths that a reduced tree omits.
const smaller = "(smaller paths)"

// Bounds are the bounds of a tree. Frames is the sum of the lengths of all nodes' stacks: for a
// single chain it is half the square of the number of nodes.
type Bounds struct {
	Nodes, Frames int
}

// Reduce returns the snapshot with the largest nodes by the value, within the bounds (except for
// one more node below each). Nodes named "(smaller paths)" have the sums of all others, so all
// totals stay the same. Reduce returns a snapshot within the bounds unchanged.
func Reduce(s calltree.Snapshot, by Value, b Bounds) calltree.Snapshot {
	depths := depthsOf(s.Nodes)
	if len(s.Nodes) <= b.Nodes && sum(depths) <= b.Frames {
		return s
	}
	keep := largest(weights(s.Nodes, by.function()), depths, b)
	r := reduction{
		kept: make([]int32, len(s.Nodes)),
		rest: map[int32]int32{},
		out:  make([]calltree.Node, 0, min(len(s.Nodes), 2*b.Nodes)),
	}
	for i := range s.Nodes {
		if keep[i] {
			r.keep(i, s.Nodes[i])
		} else {
			r.leaveOut(i, &s.Nodes[i])
		}
	}
	s.Nodes = preOrder(r.out)
	return s
}

// largest reports for each node whether it is among the heaviest within the bounds. No node is
// heavier than the one above it, so the nodes above a large one are large too.
func largest(w []int64, depths []int32, b Bounds) []bool {
	order := indices(len(w))
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(w[b], w[a]), cmp.Compare(a, b)) })
	keep := make([]bool, len(w))
	frames := 0
	for _, i := range order[:min(len(order), b.Nodes)] {
		if frames += int(depths[i]); frames > b.Frames {
			break
		}
		keep[i] = true
	}
	return keep
}

func sum(depths []int32) (frames int) {
	for _, d := range depths {
		frames += int(d)
	}
	return frames
}

// reduction is a tree that is being reduced.
type reduction struct {
	// kept is the place in out of each node. For an omitted node it is -1 minus the place of the
	// node that stands for it.
	kept []int32
	rest map[int32]int32 // by parent in out: the node for omitted ones below it
	out  []calltree.Node
}

func (r *reduction) keep(i int, n calltree.Node) {
	if n.Parent >= 0 {
		n.Parent = r.kept[n.Parent]
	}
	r.kept[i] = int32(len(r.out))
	r.out = append(r.out, n)
}

func (r *reduction) leaveOut(i int, n *calltree.Node) {
	rest := r.restFor(n)
	r.kept[i] = -1 - rest
	addTo(&r.out[rest], n)
}

// addTo adds the values of a node to one that stands for several.
func addTo(to, n *calltree.Node) {
	to.Calls += n.Calls
	to.Errors += n.Errors
	to.Self = add(to.Self, max(n.Self, 0))
	to.Total = to.Self
}

// restFor returns the place of the node that stands for an omitted node.
func (r *reduction) restFor(n *calltree.Node) int32 {
	parent := int32(-1)
	if n.Parent >= 0 {
		if parent = r.kept[n.Parent]; parent < 0 {
			return -1 - parent
		}
	}
	rest, ok := r.rest[parent]
	if !ok {
		rest = int32(len(r.out))
		r.rest[parent] = rest
		r.out = append(r.out, calltree.Node{Parent: parent, Function: smaller, Mark: calltree.Folded})
	}
	return rest
}

// depthsOf returns for each node the number of frames of its stack.
func depthsOf(nodes []calltree.Node) []int32 {
	return calltree.Depths(nodes, func(n *calltree.Node) *int32 { return &n.Parent })
}

// preOrder sorts nodes, whose parents are before their children, into pre-order. Siblings keep their order.
func preOrder(nodes []calltree.Node) []calltree.Node {
	return calltree.PreOrder(nodes, indices(len(nodes)), func(n *calltree.Node) *int32 { return &n.Parent })
}

// indices returns the first n numbers.
func indices(n int) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}
