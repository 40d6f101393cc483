// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"slices"

	"github.com/callbraid/callbraid/internal/calltree"
)

// smaller is the name of the nodes that stand for the paths that a reduced tree leaves
// out.
const smaller = "(smaller paths)"

// Value is one of a node's values by which a tree can be shown.
type Value int

// The values.
const (
	Self Value = iota
	Calls
	Errors
)

func (v Value) of() func(*calltree.Node) int64 {
	switch v {
	case Calls:
		return callsOf
	case Errors:
		return errorsOf
	}
	return selfOf
}

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
	deepest := deepestWithin(depths, b.Frames)
	if len(s.Nodes) <= b.Nodes && (len(depths) == 0 || int(slices.Max(depths)) <= deepest) {
		return s
	}
	w := weights(s.Nodes, by.of())
	least := leastWithin(w, b.Nodes)
	r := reduction{
		kept: make([]int32, len(s.Nodes)),
		rest: map[int32]int32{},
		out:  make([]calltree.Node, 0, min(len(s.Nodes), 2*b.Nodes)),
	}
	for i := range s.Nodes {
		if w[i] >= least && int(depths[i]) <= deepest && r.nodes < b.Nodes && r.hasParent(&s.Nodes[i]) {
			r.keep(i, s.Nodes[i])
		} else {
			r.leaveOut(i, &s.Nodes[i])
		}
	}
	s.Nodes = preOrder(r.out)
	return s
}

// reduction is a tree while it is reduced.
type reduction struct {
	// kept is for each node where it, or the node for what is left out that it is part
	// of, stands in out; -1 - that for the latter.
	kept  []int32
	rest  map[int32]int32 // by parent in out: the node for what is left out below it
	out   []calltree.Node
	nodes int // in out, without those for what is left out
}

// hasParent says whether the node's parent is kept.
func (r *reduction) hasParent(n *calltree.Node) bool {
	return n.Parent < 0 || r.kept[n.Parent] >= 0
}

func (r *reduction) keep(i int, n calltree.Node) {
	if n.Parent >= 0 {
		n.Parent = r.kept[n.Parent]
	}
	r.kept[i] = int32(len(r.out))
	r.out = append(r.out, n)
	r.nodes++
}

func (r *reduction) leaveOut(i int, n *calltree.Node) {
	rest := r.restFor(n)
	r.kept[i] = -1 - rest
	o := &r.out[rest]
	o.Calls += n.Calls
	o.Errors += n.Errors
	o.Self = add(o.Self, max(n.Self, 0))
	o.Total = o.Self
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

// leastWithin is the weight that a node needs to be among the n heaviest.
func leastWithin(w []int64, n int) int64 {
	if len(w) <= n {
		return 0
	}
	sorted := slices.Clone(w)
	slices.Sort(sorted)
	return sorted[len(sorted)-n]
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

// deepestWithin is the depth at which stacks have to be cut to have so many frames
// together, or more where even stacks of one frame had.
func deepestWithin(depths []int32, frames int) int {
	var deeper []int // by depth: how many nodes are as deep or deeper
	for _, d := range depths {
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
