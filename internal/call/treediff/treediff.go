// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package treediff puts two call trees on top of each other, so that each path has the values of both. It knows no file
// formats, no pages and no measures.
package treediff

import (
	"hash/fnv"
	"slices"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/keytable"
)

// Values are those of a path in one of the trees. All are 0 if that tree does not have the path.
type Values struct {
	Calls, Errors uint64
	Total, Self   int64
}

// Node is a path of either tree.
type Node struct {
	// Parent is an index in the nodes, or -1 at the top.
	Parent   int32
	Function string
	Mark     calltree.Mark
	// Path identifies the path, by the names on it. The same path has the same number in other comparisons.
	Path          uint64
	Before, After Values
}

// Merge returns the paths of both trees, in pre-order. Of the nodes below one parent, those with the largest own values of
// both trees, with all nodes below them, are first. Paths are the same if the names and marks on them are: files and lines
// can differ between two versions of a program.
//
//  1. Each function gets a number, and each node its weight and the size of its subtree.
//  2. From the top down, nodes of both trees with the same function below the same path become one path. The heaviest of
//     these paths is the next one, with all below it.
//  3. Each path gets the values of its nodes.
func Merge(before, after []calltree.Node) []Node {
	numbers := numbers{byName: map[function]uint32{}}
	m := merger{trees: [2]side{sideOf(before, &numbers), sideOf(after, &numbers)}}
	m.sharing = make([]sharing, len(numbers.all))
	return m.valued(m.paths(), numbers.all)
}

// function is what makes nodes below the same parent the same path.
type function struct {
	name string
	mark calltree.Mark
}

// numbers are the numbers of functions, in the order of their first nodes.
type numbers struct {
	byText keytable.TextsByAddress // finds most, because the nodes of a tree share the texts of names
	byName map[function]uint32
	all    []function
}

func (ns *numbers) of(n *calltree.Node) uint32 {
	if number, ok := ns.byText.Find(n.Function, uint8(n.Mark)); ok {
		return number
	}
	f := function{n.Function, n.Mark}
	number, ok := ns.byName[f]
	if !ok {
		number = uint32(len(ns.all))
		ns.byName[f] = number
		ns.all = append(ns.all, f)
	}
	ns.byText.Put(n.Function, uint8(n.Mark), number)
	return number
}

// side is one of the trees, with what its nodes have besides.
type side struct {
	tree  []calltree.Node
	nodes []sideNode
}

type sideNode struct {
	weight   float64 // the own values above 0 of the node and all below it
	size     int32   // the number of these nodes
	function uint32
	same     int32 // another node of the same path, or none
}

const none = -1

func sideOf(tree []calltree.Node, numbers *numbers) side {
	nodes := make([]sideNode, len(tree))
	for i := range tree {
		nodes[i] = sideNode{weight: max(float64(tree[i].Self), 0), size: 1, function: numbers.of(&tree[i]), same: none}
	}
	for i := len(nodes) - 1; i >= 0; i-- { // children are behind their parents
		if parent := tree[i].Parent; parent >= 0 {
			nodes[parent].weight += nodes[i].weight
			nodes[parent].size += nodes[i].size
		}
	}
	return side{tree, nodes}
}

// path is a path of either tree.
type path struct {
	parent int32 // a place in the merged tree
	// first are nodes of both trees, or none. Each leads to the other nodes of its tree.
	first    [2]int32
	function uint32
	weight   float64
}

type merger struct {
	trees [2]side
	// waiting are paths whose parents are in the merged tree. The last one is the next there.
	waiting []path
	// sharing are by number of the function. They find the path of a function below the current parent.
	sharing []sharing
}

// sharing is the place of a path in waiting. It is out of date if the path has another parent.
type sharing struct {
	parent int32 // the place in the merged tree, plus 2: no zero value is one, and none is 1
	place  int32
}

// paths returns the paths of both trees in the order of the merged one.
func (m *merger) paths() []path {
	var out []path
	for t := range m.trees {
		m.add(t, 0, int32(len(m.trees[t].nodes)), none)
	}
	m.sort(0)
	for len(m.waiting) > 0 {
		p := m.waiting[len(m.waiting)-1]
		m.waiting = m.waiting[:len(m.waiting)-1]
		at := int32(len(out))
		out = append(out, p)
		begin := len(m.waiting)
		for t, n := range p.first {
			for nodes := m.trees[t].nodes; n != none; n = nodes[n].same {
				m.add(t, n+1, n+nodes[n].size, at)
			}
		}
		m.sort(begin)
	}
	return out
}

// add puts the siblings from begin to end, which are nodes of a tree, to the waiting paths below a parent.
func (m *merger) add(t int, begin, end, parent int32) {
	nodes := m.trees[t].nodes
	for i := begin; i < end; i += nodes[i].size {
		n := &nodes[i]
		shared := &m.sharing[n.function]
		if shared.parent != parent+2 {
			*shared = sharing{parent + 2, int32(len(m.waiting))}
			m.waiting = append(m.waiting, path{parent, [2]int32{none, none}, n.function, 0})
		}
		p := &m.waiting[shared.place]
		p.weight += n.weight
		n.same, p.first[t] = p.first[t], i
	}
}

// sort brings waiting paths with one parent into their order. The last is the next.
func (m *merger) sort(begin int) {
	if len(m.waiting)-begin < 2 {
		return
	}
	// No weight is NaN, so comparisons of floats are enough.
	slices.SortFunc(m.waiting[begin:], func(a, b path) int {
		switch {
		case a.weight > b.weight:
			return 1
		case a.weight < b.weight:
			return -1
		}
		return int(b.function) - int(a.function)
	})
}

// valued returns the paths with their values.
func (m *merger) valued(paths []path, functions []function) []Node {
	hashes := make([]uint64, len(functions))
	for i, f := range functions {
		h := fnv.New64a() // a hash returns no error
		_, _ = h.Write([]byte{byte(f.mark)})
		_, _ = h.Write([]byte(f.name))
		hashes[i] = h.Sum64()
	}
	out := make([]Node, len(paths))
	for i := range paths {
		p, n := &paths[i], &out[i]
		var above uint64
		if p.parent >= 0 {
			above = out[p.parent].Path
		}
		f := &functions[p.function]
		n.Parent, n.Function, n.Mark, n.Path = p.parent, f.name, f.mark, pathHash(above, hashes[p.function])
		m.trees[0].sum(&n.Before, p.first[0])
		m.trees[1].sum(&n.After, p.first[1])
	}
	return out
}

// sum sums up the values of all nodes of a path.
func (s *side) sum(v *Values, node int32) {
	for ; node != none; node = s.nodes[node].same {
		n := &s.tree[node]
		v.Calls += n.Calls
		v.Errors += n.Errors
		v.Total += n.Total
		v.Self += n.Self
	}
}

// pathHash returns the number of a path, from those of the path above it and of its function. The steps are those of FNV-1a
// with words instead of bytes, and a shift because multiplying moves bits only upwards.
func pathHash(above, function uint64) uint64 {
	const offset, prime = 0xcbf29ce484222325, 0x100000001b3
	h := (above ^ offset) * prime
	h = (h ^ h>>32 ^ function) * prime
	return h ^ h>>29
}

// Weights returns the sums of a value, for each node with all nodes below it. Values below 0 count as 0.
func Weights(nodes []Node, value func(*Node) float64) []float64 {
	w := make([]float64, len(nodes))
	for i := len(nodes) - 1; i >= 0; i-- { // children are behind their parents
		w[i] += max(value(&nodes[i]), 0)
		if parent := nodes[i].Parent; parent >= 0 {
			w[parent] += w[i]
		}
	}
	return w
}

// Depths returns for each node the number of nodes from the top to it, itself included.
func Depths(nodes []Node) []int32 {
	return calltree.Depths(nodes, func(n *Node) *int32 { return &n.Parent })
}
