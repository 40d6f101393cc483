// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"cmp"
	"slices"
)

// show replaces the values by those of a window.
func (t *tree) show(w map[uint32]values) {
	for i := range t.nodes {
		t.nodes[i].values = w[uint32(i)]
	}
}

// tell gives the nodes for a snapshot. The tree is of no use any more.
func (t *tree) tell() []Node {
	t.settleAll()
	order := t.preOrderBySize()
	// A node without values is shown only if something below it has some.
	show := make([]bool, len(t.nodes))
	count := 0
	for i := len(order) - 1; i > 0; i-- {
		if n := order[i].node; show[n] || t.nodes[n].values != (values{}) {
			show[n], show[t.nodes[n].parent] = true, true
			count++
		}
	}
	teller := teller{tree: t, nodes: make([]Node, 0, count), told: make([]int32, len(t.nodes))}
	for _, at := range order[1:] {
		if show[at.node] {
			teller.tell(at)
		}
	}
	return teller.nodes
}

// settleAll puts all that waits where it is without what it waits for: most of it below the
// node [MissingParent], which is as large as what it has together.
func (t *tree) settleAll() {
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

// orderedNode is a node, and how deep it is; the top is at 0.
type orderedNode struct {
	node  uint32
	depth int
}

// preOrderBySize is the top and all below it in pre-order; of one parent's the largest
// first.
func (t *tree) preOrderBySize() []orderedNode {
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
			// What is last on the stack comes first.
			slices.SortFunc(stack[begin:], func(a, b orderedNode) int { return t.compare(b.node, a.node) })
		}
	}
	return order
}

// compare orders children of one parent.
func (t *tree) compare(a, b uint32) int {
	x, y := &t.nodes[a], &t.nodes[b]
	if x.total != y.total {
		return cmp.Compare(y.total, x.total)
	}
	return cmp.Or(
		cmp.Compare(t.functions.all[x.label.function()].name, t.functions.all[y.label.function()].name),
		cmp.Compare(x.label.mark(), y.label.mark()),
	)
}

// teller makes nodes of a snapshot.
type teller struct {
	tree  *tree
	nodes []Node
	// told is where nodes of the tree are in nodes; those that are too deep are where the
	// node is that stands for them.
	told []int32
}

func (t *teller) tell(at orderedNode) {
	n := &t.tree.nodes[at.node]
	parent := int32(-1)
	if at.depth > 1 {
		parent = t.told[n.parent]
	}
	if at.depth < MaxDepth {
		t.told[at.node] = int32(len(t.nodes))
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
	t.told[at.node] = deep
	sum := &t.nodes[deep]
	sum.Calls += n.calls
	sum.Errors += n.errors
	sum.Self = plus(sum.Self, n.self)
	if at.depth == MaxDepth {
		sum.Total = plus(sum.Total, n.total)
	}
}

func (t *teller) node(n *node, parent int32) Node {
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
