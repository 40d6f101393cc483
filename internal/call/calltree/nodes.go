// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"cmp"
	"slices"
)

// snapshotNodes returns the nodes of a tree for a snapshot. The tree is useless afterwards.
func snapshotNodes(t *tree) []Node {
	settleAll(t)
	order := preOrderBySize(t)
	// A node without values is shown only if something below it has some.
	show := make([]bool, len(t.nodes))
	count := 0
	for i := len(order) - 1; i > 0; i-- {
		if n := order[i].node; show[n] || t.nodes[n].values != (values{}) {
			show[n], show[t.nodes[n].parent] = true, true
			count++
		}
	}
	copier := nodeCopier{tree: t, nodes: make([]Node, 0, count), numbers: make([]int32, len(t.nodes))}
	for _, at := range order[1:] {
		if show[at.node] {
			copier.append(at)
		}
	}
	return copier.nodes
}

// settleAll places all waiting nodes without their callers, most of them below the node
// [MissingParent]. That node gets the sum of its children.
func settleAll(t *tree) {
	missing := t.child(top, labelMissing)
	for i := range t.nodes {
		if t.nodes[i].state == stateWaiting {
			t.merge(uint32(i), t.without(uint32(i)))
		}
	}
	at := &t.nodes[missing]
	at.total = at.self
	for c := at.first; c != 0; c = t.nodes[c].next {
		at.total = plus(at.total, t.nodes[c].total)
	}
}

// orderedNode is a node and its depth. The top is at 0.
type orderedNode struct {
	node  uint32
	depth int
}

// preOrderBySize is the top and all below it in pre-order. Of siblings the largest is first.
func preOrderBySize(t *tree) []orderedNode {
	order := make([]orderedNode, 0, len(t.nodes))
	stack := []orderedNode{{top, 0}}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		order = append(order, at)
		begin := len(stack)
		for c := t.nodes[at.node].first; c != 0; c = t.nodes[c].next {
			stack = append(stack, orderedNode{c, at.depth + 1})
		}
		if len(stack)-begin > 1 {
			// The last on the stack is visited first.
			slices.SortFunc(stack[begin:], func(a, b orderedNode) int { return compareChildren(t, b.node, a.node) })
		}
	}
	return order
}

// compareChildren orders children of one parent.
func compareChildren(t *tree, a, b uint32) int {
	x, y := &t.nodes[a], &t.nodes[b]
	if x.total != y.total {
		return cmp.Compare(y.total, x.total)
	}
	return cmp.Or(
		cmp.Compare(t.functions.all[x.label.function()].name, t.functions.all[y.label.function()].name),
		cmp.Compare(x.label.mark(), y.label.mark()),
	)
}

// nodeCopier copies nodes of a tree to those of a snapshot.
type nodeCopier struct {
	tree  *tree
	nodes []Node
	// numbers are the places of the tree's nodes in nodes. A node that is too deep has the
	// place of the node that stands for it.
	numbers []int32
}

func (t *nodeCopier) append(at orderedNode) {
	n := &t.tree.nodes[at.node]
	parent := int32(-1)
	if at.depth > 1 {
		parent = t.numbers[n.parent]
	}
	if at.depth < MaxDepth {
		t.numbers[at.node] = int32(len(t.nodes))
		t.nodes = append(t.nodes, t.node(n, parent))
		return
	}
	deep := parent
	if at.depth == MaxDepth {
		if deep = int32(len(t.nodes)) - 1; t.nodes[deep].Mark != Deep || t.nodes[deep].Parent != parent {
			deep++
			t.nodes = append(t.nodes, Node{Parent: parent, Function: Deep.String(), Mark: Deep})
		}
	}
	t.numbers[at.node] = deep
	sum := &t.nodes[deep]
	sum.Calls += n.calls
	sum.Errors += n.errors
	sum.Self = plus(sum.Self, n.self)
	if at.depth == MaxDepth {
		sum.Total = plus(sum.Total, n.total)
	}
}

func (t *nodeCopier) node(n *node, parent int32) Node {
	f := &t.tree.functions.all[n.label.function()]
	node := Node{
		Parent: parent, Function: f.name, File: f.file, Line: f.line, Mark: n.label.mark(),
		Calls: n.calls, Errors: n.errors, Total: n.total, Self: n.self,
	}
	if n.label.function() == 0 {
		node.Function = node.Mark.String()
	}
	return node
}

// showWindow replaces the values by those of a window.
func showWindow(t *tree, w map[uint32]values) {
	for i := range t.nodes {
		t.nodes[i].values = w[uint32(i)]
	}
}
