// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"math"
	"slices"

	"github.com/callbraid/callbraid/internal/calltree"
)

// smaller is the name of the nodes that stand for the paths that a reduced tree leaves
// out.
const smaller = "(smaller paths)"

// Bounds are how large a tree may be. Frames are those of all stacks, if each node's was
// written down: a tree that is a single chain has half the square of its nodes.
type Bounds struct {
	Nodes, Frames int
}

// Reduce returns the snapshot with what is largest by the value, within the bounds (but
// for one node below each that is kept). What is left out is added up in nodes named
// "(smaller paths)", so that all sums stay the same. A snapshot that is within them is
// returned as it is.
func Reduce(s calltree.Snapshot, by Value, b Bounds) calltree.Snapshot {
	depths := depthsOf(s.Nodes)
	keep := largest(s.Nodes, by, b.Nodes)
	deepest := deepestWithin(depths, keep, b.Frames)
	r := reduction{
		kept: make([]int32, len(s.Nodes)),
		rest: map[int32]int32{},
		out:  make([]calltree.Node, 0, min(len(s.Nodes), 2*b.Nodes)),
	}
	for i := range s.Nodes {
		if keep[i] && int(depths[i]) <= deepest {
			r.keep(i, s.Nodes[i])
		} else {
			r.leaveOut(i, &s.Nodes[i])
		}
	}
	if len(r.rest) > 0 {
		s.Nodes = preOrder(r.out)
	}
	return s
}

// largest says of each node whether it is among the n with the largest weights; with a
// node those above it are.
func largest(nodes []calltree.Node, by Value, n int) []bool {
	keep := make([]bool, len(nodes))
	w := weights(nodes, by.function())
	least, equal := leastWithin(w, n)
	for i := range nodes {
		switch parent := nodes[i].Parent; {
		case w[i] > least:
			keep[i] = true
		case w[i] == least && equal > 0 && (parent < 0 || keep[parent]):
			keep[i] = true
			equal--
		}
	}
	return keep
}

// reduction is a tree while it is reduced.
type reduction struct {
	// kept is for each node where it, or the node for what is left out that it is part
	// of, stands in out; -1 - that for the latter.
	kept []int32
	rest map[int32]int32 // by parent in out: the node for what is left out below it
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

// restFor is the node that stands for what is left out where the node is.
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

// leastWithin is the weight that a node needs to be among the n heaviest, and how many of
// those that have just that weight are.
func leastWithin(w []int64, n int) (least int64, equal int) {
	if len(w) <= n {
		return 0, n
	}
	if n <= 0 {
		return math.MaxInt64, 0
	}
	sorted := slices.Clone(w)
	slices.Sort(sorted)
	least = sorted[len(sorted)-n]
	for equal < n && sorted[len(sorted)-n+equal] == least {
		equal++
	}
	return least, equal
}

// depthsOf is for each node how many frames its stack has.
func depthsOf(nodes []calltree.Node) []int32 {
	depths := make([]int32, len(nodes))
	for i := range nodes {
		depths[i] = 1
		if parent := nodes[i].Parent; parent >= 0 {
			depths[i] += depths[parent]
		}
	}
	return depths
}

// deepestWithin is the depth at which stacks of the nodes to keep have to be cut to have
// so many frames together, or 1 where even stacks of one frame had more.
func deepestWithin(depths []int32, keep []bool, frames int) int {
	var deeper []int // by depth: how many nodes are as deep or deeper
	for i, d := range depths {
		if !keep[i] {
			continue
		}
		for len(deeper) < int(d) {
			deeper = append(deeper, 0)
		}
		deeper[d-1]++
	}
	for d := len(deeper) - 2; d >= 0; d-- {
		deeper[d] += deeper[d+1]
	}
	sum := 0
	for d, n := range deeper {
		if sum += n; sum > frames {
			return max(d, 1)
		}
	}
	return len(deeper)
}

// preOrder puts nodes, whose parents stand before them, in pre-order.
func preOrder(nodes []calltree.Node) []calltree.Node {
	// Children of each as lists: first child and next sibling, in the order they have.
	first := make([]int32, len(nodes)+1) // that of the top is the last one
	next := make([]int32, len(nodes))
	for i := range first {
		first[i] = -1
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		parent := nodes[i].Parent
		if parent < 0 {
			parent = int32(len(nodes))
		}
		next[i], first[parent] = first[parent], int32(i)
	}
	out := make([]calltree.Node, 0, len(nodes))
	place := make([]int32, len(nodes))
	for todo := []int32{first[len(nodes)]}; len(todo) > 0; {
		i := todo[len(todo)-1]
		if i < 0 {
			todo = todo[:len(todo)-1]
			continue
		}
		n := nodes[i]
		if n.Parent >= 0 {
			n.Parent = place[n.Parent]
		}
		place[i] = int32(len(out))
		out = append(out, n)
		todo[len(todo)-1] = next[i]
		todo = append(todo, first[i])
	}
	return out
}
