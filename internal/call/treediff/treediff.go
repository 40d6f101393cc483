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
//  1. Each function gets a number, and each pair of a parent and a function a node.
//  2. The values of each tree are added to the nodes.
//  3. The nodes are sorted by their weights, and brought into pre-order with their siblings in that order.
func Merge(before, after []calltree.Node) []Node {
	m := merger{
		numbers: map[function]uint32{},
		nodes:   make([]Node, 0, max(len(before), len(after))),
	}
	m.add(before, func(n *Node) *Values { return &n.Before })
	m.add(after, func(n *Node) *Values { return &n.After })
	return heaviestFirst(m.nodes)
}

type function struct {
	name string
	mark calltree.Mark
}

type merger struct {
	numbers map[function]uint32
	hashes  []uint64 // by number of the function
	// children are the places of nodes, plus 1, by the place of the parent and the number of the function.
	children keytable.Table
	nodes    []Node
}

func (m *merger) add(tree []calltree.Node, of func(*Node) *Values) {
	places := make([]int32, len(tree))
	for i := range tree {
		n := &tree[i]
		parent := int32(-1)
		if n.Parent >= 0 {
			parent = places[n.Parent]
		}
		places[i] = m.place(n, parent)
		v := of(&m.nodes[places[i]])
		v.Calls += n.Calls
		v.Errors += n.Errors
		v.Total += n.Total
		v.Self += n.Self
	}
}

// place returns the node for a node of a tree, below the parent.
func (m *merger) place(n *calltree.Node, parent int32) int32 {
	number, ok := m.numbers[function{n.Function, n.Mark}]
	if !ok {
		number = uint32(len(m.hashes))
		m.numbers[function{n.Function, n.Mark}] = number
		h := fnv.New64a()
		_, _ = h.Write([]byte{byte(n.Mark)})
		_, _ = h.Write([]byte(n.Function))
		m.hashes = append(m.hashes, h.Sum64())
	}
	key := uint64(uint32(parent))<<32 | uint64(number)
	if found := m.children.Find(key); found > 0 {
		return int32(found - 1)
	}
	var above uint64
	if parent >= 0 {
		above = m.nodes[parent].Path
	}
	m.nodes = append(m.nodes, Node{Parent: parent, Function: n.Function, Mark: n.Mark, Path: below(above, m.hashes[number])})
	m.children.Put(key, uint32(len(m.nodes)))
	return int32(len(m.nodes) - 1)
}

// below returns the number of a path, from those of the path above it and of its function. The steps are those of FNV-1a
// with words instead of bytes, and a shift because multiplying moves bits only upwards.
func below(above, function uint64) uint64 {
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

// heaviestFirst sorts nodes, whose parents are before their children, into pre-order. Of siblings the heaviest is first.
func heaviestFirst(nodes []Node) []Node {
	w := Weights(nodes, func(n *Node) float64 { return float64(n.Before.Self) + float64(n.After.Self) })
	order := make([]int32, len(nodes))
	for i := range order {
		order[i] = int32(i)
	}
	// No weight is NaN, so comparisons of floats are enough..
	slices.SortFunc(order, func(a, b int32) int {
		switch x, y := w[a], w[b]; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return int(a - b)
	})
	return calltree.PreOrder(nodes, order, func(n *Node) *int32 { return &n.Parent })
}
