// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"
	"unsafe"
)

// tree is a call tree that grows: a node for each path from the top. Beside them there are
// fragments: paths below a call that has not arrived. A fragment is below a waiting node, which
// gets its function and its place when the call arrives.
//
// Nodes are in one slice without pointers, by number, and are used again. Merging two nodes of
// one path leaves one. If something still refers to the other, it leads there.
type tree struct {
	// number is the tree's in its forest.
	number uint32
	used   *usage
	// nodes has the top as number 0, which is no child of any.
	nodes []node
	free  uint32 // a list by next; 0: none
	live  int    // nodes in use: neither free, nor merged, nor the top
	// released is the number of free nodes.
	released int
	// children finds nodes by parent and label. It has no waiting nodes.
	children  index
	functions functions
	windows   []*window
	// earlier are the values of earlier periods, and id identifies the tree among all that the forest had. A reset makes it another.
	earlier earlier
	id      uint64
	// epoch is that of the last reset, and lost counts since then.
	epoch uint32
	lost  Lost
	seed  uint64
	// pairs is memory for merge to use again.
	pairs []pair
	// measured is the memory of the tree when it was measured last, in bytes.
	measured int64
}

const top = 0

// node is a path.
type node struct {
	// parent is the node above, or the node that this one was merged into. Waiting nodes and
	// the top have none.
	parent uint32
	label  label
	// first is its first child; next and prev are its siblings. 0: none.
	first, next, prev uint32
	// refs is the number of spans and merged nodes that refer to it. Spans that are only kept
	// refer to the top.
	refs  uint32
	state state
	values
}

// label distinguishes the children of one parent: the number of a function, and a mark.
type label uint32

const (
	markBits = 3
	markMask = 1<<markBits - 1
)

func newLabel(function uint32, m Mark) label { return label(function<<markBits | uint32(m)) }
func (l label) function() uint32             { return uint32(l) >> markBits }
func (l label) mark() Mark                   { return Mark(l & markMask) }

// The labels of nodes that stand for something else than a function.
var (
	labelMissing = newLabel(0, MissingParent)
	labelFolded  = newLabel(0, Folded)
	labelDeep    = newLabel(0, Deep)
)

// labelAtTop is the label of a waiting node whose children are at the top until its call
// arrives. The children of other waiting nodes, with labelMissing, are below the node of that
// label.
const labelAtTop = label(0)

// state is the kind of a node.
type state uint32

const (
	stateFree state = iota
	// statePlaced: it has a parent.
	statePlaced
	// stateWaiting: it waits for its function and its parent.
	stateWaiting
	// stateMerged: it leads to its parent.
	stateMerged
)

type pair struct{ from, into uint32 }

func newTree(used *usage) *tree {
	return &tree{used: used, nodes: []node{{state: statePlaced}}, functions: newFunctions(used), seed: rand.Uint64()}
}

func (t *tree) hash(parent uint32, l label) uint32 {
	const odd = 0x9e3779b97f4a7c15
	high, low := bits.Mul64((uint64(parent)<<32|uint64(l))^t.seed, odd)
	return uint32(high ^ low)
}

func (t *tree) hashOf(n uint32) uint32 { return t.hash(t.nodes[n].parent, t.nodes[n].label) }

// find is the child of a node with a label, or 0.
func (t *tree) find(parent uint32, l label) uint32 {
	return t.findHash(t.hash(parent, l), parent, l)
}

func (t *tree) findHash(hash, parent uint32, l label) uint32 {
	n, at := t.children.next(hash, 0)
	for n != 0 && (t.nodes[n].parent != parent || t.nodes[n].label != l) {
		n, at = t.children.next(hash, at)
	}
	return n
}

// child is the child of a node with a label. It makes one if there is none.
func (t *tree) child(parent uint32, l label) uint32 {
	hash := t.hash(parent, l)
	if n := t.findHash(hash, parent, l); n != 0 {
		return n
	}
	n := t.newNode()
	t.functions.ref(l.function())
	t.place(n, parent, l, hash)
	return n
}

// wait is a new waiting node with labelMissing or labelAtTop.
func (t *tree) wait(l label) uint32 {
	n := t.newNode()
	t.nodes[n].state, t.nodes[n].label = stateWaiting, l
	return n
}

// without is the node above the children of a waiting node, until its call arrives.
func (t *tree) without(waiting uint32) uint32 {
	if t.nodes[waiting].label == labelAtTop {
		return top
	}
	return t.child(top, labelMissing)
}

func (t *tree) newNode() uint32 {
	t.live++
	t.used.nodes++
	if n := t.free; n != 0 {
		t.free = t.nodes[n].next
		t.released--
		t.nodes[n] = node{}
		return n
	}
	t.nodes = append(t.nodes, node{})
	return uint32(len(t.nodes) - 1)
}

// place makes a node a child of a parent that has no such child.
func (t *tree) place(n, parent uint32, l label, hash uint32) {
	at := &t.nodes[n]
	at.state, at.parent, at.label = statePlaced, parent, l
	at.prev, at.next = 0, t.nodes[parent].first
	if at.next != 0 {
		t.nodes[at.next].prev = n
	}
	t.nodes[parent].first = n
	t.children.add(hash, n, t)
}

// displace removes a node from its parent.
func (t *tree) displace(n uint32) {
	at := &t.nodes[n]
	t.children.remove(t.hashOf(n), n, t)
	if at.prev != 0 {
		t.nodes[at.prev].next = at.next
	} else {
		t.nodes[at.parent].first = at.next
	}
	if at.next != 0 {
		t.nodes[at.next].prev = at.prev
	}
	at.next, at.prev = 0, 0
}

// add adds values to a node.
func (t *tree) add(n uint32, v *values) {
	t.nodes[n].values.add(v)
	for _, w := range t.windows {
		w.count(n, v)
	}
}

// reduceOwn reduces the own time of a call that arrived in an epoch. Counts that began later do
// not include the call.
func (t *tree) reduceOwn(n uint32, own int64, epoch uint32) {
	less := values{self: -own}
	if epoch >= t.epoch {
		t.nodes[n].values.add(&less)
		if epoch < t.earlier.epoch {
			t.earlier.add(n, &less)
		}
	}
	for _, w := range t.windows {
		if epoch >= w.epoch {
			w.count(n, &less)
		}
	}
}

// hang gives a waiting node its function and its place. It returns the node of the path, which
// may be another one.
func (t *tree) hang(waiting, parent uint32, l label) uint32 {
	if t.nodes[parent].label.mark() == Folded {
		t.absorb(waiting, parent)
		return parent
	}
	hash := t.hash(parent, l)
	if n := t.findHash(hash, parent, l); n != 0 {
		t.merge(waiting, n)
		return n
	}
	t.functions.ref(l.function())
	t.place(waiting, parent, l, hash)
	return waiting
}

// merge adds a node without parent, and all below it, to another. It walks the paths that both
// have. Each step removes a node, except those that move a child.
func (t *tree) merge(from, into uint32) {
	t.pairs = append(t.pairs[:0], pair{from, into})
	for len(t.pairs) > 0 {
		p := t.pairs[len(t.pairs)-1]
		t.pairs = t.pairs[:len(t.pairs)-1]
		for c := t.nodes[p.from].first; c != 0; c = t.nodes[p.from].first {
			l := t.nodes[c].label
			t.displace(c)
			hash := t.hash(p.into, l)
			if same := t.findHash(hash, p.into, l); same != 0 {
				t.pairs = append(t.pairs, pair{c, same})
			} else {
				t.place(c, p.into, l, hash)
			}
		}
		t.moveValues(p.from, p.into)
		t.lead(p.from, p.into)
	}
}

// moveValues moves the values of a node to another.
func (t *tree) moveValues(from, into uint32) {
	t.nodes[into].values.add(&t.nodes[from].values)
	t.nodes[from].values = values{}
	t.earlier.moveValues(from, into)
	for _, w := range t.windows {
		w.moveValues(from, into)
	}
}

// nest clears the total of a node, which is part of another's.
func (t *tree) nest(n uint32) {
	t.nodes[n].total = 0
	t.earlier.nest(n)
	for _, w := range t.windows {
		w.nest(n)
	}
}

// lead makes a node without children, values and parent lead to another.
func (t *tree) lead(from, into uint32) {
	t.live--
	t.used.nodes--
	at := &t.nodes[from]
	t.functions.unref(at.label.function())
	if at.refs == 0 {
		t.release(from)
		return
	}
	at.state, at.parent = stateMerged, into
	t.nodes[into].refs++
}

func (t *tree) release(n uint32) {
	t.nodes[n] = node{next: t.free}
	t.earlier.drop(n)
	t.free = n
	t.released++
}

// resolve follows merge links to the current node. It halves the way, so that long ways are
// rare.
func (t *tree) resolve(n uint32) uint32 {
	for t.nodes[n].state == stateMerged {
		next := t.nodes[n].parent
		if t.nodes[next].state == stateMerged {
			skipped := next
			next = t.nodes[skipped].parent
			t.nodes[n].parent = next
			t.ref(next)
			t.unref(skipped)
		}
		n = next
	}
	return n
}

func (t *tree) ref(n uint32) { t.nodes[n].refs++ }

// unref removes a reference to the node.
func (t *tree) unref(n uint32) {
	for {
		at := &t.nodes[n]
		if at.refs--; at.refs > 0 {
			return
		}
		if at.state != stateMerged {
			t.prune(n)
			return
		}
		into := at.parent
		t.release(n)
		n = into
	}
}

// prune frees a node without references, children and values, and then the nodes above it for
// which the same is true.
func (t *tree) prune(n uint32) {
	for n != top {
		at := &t.nodes[n]
		if at.state != statePlaced || at.refs > 0 || at.first != 0 || at.values != (values{}) {
			return
		}
		parent := at.parent
		t.displace(n)
		t.functions.unref(at.label.function())
		t.live--
		t.used.nodes--
		t.release(n)
		n = parent
	}
}

// absorb adds a node without parent, and all below it, to a node of folded paths.
func (t *tree) absorb(from, folded uint32) {
	for n := from; ; {
		if c := t.nodes[n].first; c != 0 {
			n = c
			continue
		}
		parent := t.nodes[n].parent
		if n != from {
			t.displace(n)
			t.nest(n)
		}
		t.moveValues(n, folded)
		t.lead(n, folded)
		if n == from {
			return
		}
		n = parent
	}
}

// isBelow reports whether a node is below a waiting one. In turn it goes up from the one, and
// through the nodes below the other, until either ends. So it takes no more steps than the
// smaller of the two has nodes, and all joining together n·log(n).
func (t *tree) isBelow(n, waiting uint32) bool {
	for inside := waiting; ; {
		if n == waiting {
			return true
		}
		if n == top || t.nodes[n].state == stateWaiting {
			return false
		}
		n = t.nodes[n].parent
		if inside = t.following(inside, waiting); inside == 0 {
			return false
		}
	}
}

// following is the next node in pre-order below a root, or 0.
func (t *tree) following(n, root uint32) uint32 {
	if c := t.nodes[n].first; c != 0 {
		return c
	}
	for n != root {
		if next := t.nodes[n].next; next != 0 {
			return next
		}
		n = t.nodes[n].parent
	}
	return 0
}

// preOrder appends all nodes except merged and free ones, each before those below it.
func (t *tree) preOrder(order []uint32) []uint32 {
	for i := range t.nodes {
		if i == top || t.nodes[i].state == stateWaiting {
			for n := uint32(i); ; {
				order = append(order, n)
				if n = t.following(n, uint32(i)); n == 0 {
					break
				}
			}
		}
	}
	return order
}

// clear removes all values, and frees the nodes that nothing needs.
func (t *tree) clear(now time.Time, epoch uint32) {
	t.epoch, t.lost = epoch, Lost{}
	t.earlier.values, t.earlier.lost = nil, Lost{}
	for i := range t.nodes {
		t.nodes[i].values = values{}
	}
	for _, w := range t.windows {
		w.reset(now, epoch, t.lost)
	}
	for i := range t.nodes {
		t.prune(uint32(i))
	}
}

// isIdle reports whether nothing of the tree is needed.
func (t *tree) isIdle() bool {
	return t.live == 0 && t.nodes[top].refs == 0 && t.functions.byName.used == 0 && len(t.windows) == 0
}

// nodeOfCall is the node of a call below its caller's: step 3 of folding. Callees that wait
// for the call are hung there; waiting is their node, or 0.
func (t *tree) nodeOfCall(waiting, parent, function uint32, m Mark) uint32 {
	switch l := newLabel(function, m); {
	case waiting != 0:
		return t.hang(waiting, parent, l)
	case t.nodes[parent].label.mark() == Folded:
		return parent
	default:
		return t.child(parent, l)
	}
}

// countCalls counts the calls of a span at their node: step 4 of folding. callees is the time of callees
// that arrived before, which counts below 0.
func (t *tree) countCalls(n uint32, calls uint64, took, callees int64, errors uint64) {
	v := values{calls: calls, errors: errors, total: took, self: took}
	if callees != 0 {
		v.self = max(0, plus(took, callees))
	}
	if t.nodes[n].label.mark() == Folded {
		v.total = 0 // it is in that of the path that was folded
	}
	t.add(n, &v)
}

// foldSample adds a sample to each path that leads to it, and reports whether its stack was
// cut or empty. Names have at most so many bytes.
func (t *tree) foldSample(sample *Sample, maxNameBytes int) (isCut bool) {
	frames, isCut := sample.Frames, sample.IsCut
	if len(frames) > maxFrames {
		frames, isCut = frames[len(frames)-maxFrames:], true
	}
	isCut = isCut || len(frames) == 0
	n := uint32(top)
	if isCut {
		n = t.child(top, labelMissing)
	}
	for _, f := range frames {
		function := t.functions.number(f.Function, maxNameBytes)
		t.functions.place(function, f.File, f.Line, maxNameBytes)
		n = t.child(n, newLabel(function, Plain))
		t.add(n, &values{total: sample.Value})
	}
	t.add(n, &values{calls: sample.Count, self: sample.Value})
	return isCut
}

// copy is the part of the tree that a snapshot needs.
func (t *tree) copy() *tree {
	return &tree{
		nodes: slices.Clone(t.nodes), free: t.free, seed: t.seed, used: &usage{}, lost: t.lost,
		children:  index{buckets: slices.Clone(t.children.buckets), used: t.children.used},
		functions: functions{all: slices.Clone(t.functions.all), used: &usage{}},
	}
}

// compact keeps only nodes and functions in use. It returns their new numbers.
func (t *tree) compact() (nodes, functions []uint32) {
	functions = t.functions.compact()
	nodes = make([]uint32, len(t.nodes))
	used := make([]node, 0, withSpareRoom(len(t.nodes)-t.released))
	for i := range t.nodes {
		if at := &t.nodes[i]; i == top || at.state != stateFree {
			nodes[i] = uint32(len(used))
			used = append(used, *at)
		}
	}
	t.nodes, t.free, t.released, t.children, t.pairs = used, 0, 0, index{}, nil
	t.earlier.renumber(nodes, len(used))
	for i := range used {
		at := &used[i]
		at.parent, at.first, at.next, at.prev = nodes[at.parent], nodes[at.first], nodes[at.next], nodes[at.prev]
		at.label = newLabel(functions[at.label.function()], at.label.mark())
		if i != top && at.state == statePlaced {
			t.children.add(t.hashOf(uint32(i)), uint32(i), t)
		}
	}
	for _, w := range t.windows {
		values := make(map[uint32]values, len(w.values))
		for n, v := range w.values {
			values[nodes[n]] = v
		}
		w.values = values
	}
	return nodes, functions
}

const (
	nodeBytes         = int64(unsafe.Sizeof(node{}))
	pairBytes         = int64(unsafe.Sizeof(pair{}))
	emptyTreeBytes    = 400
	windowValuesBytes = 80 // measured, with free places of the map
)

// bytes is the memory of the tree.
func (t *tree) bytes() int64 {
	bytes := emptyTreeBytes + int64(cap(t.nodes))*nodeBytes + t.children.bytes() + int64(cap(t.pairs))*pairBytes + t.functions.memory() + t.earlier.bytes()
	for _, w := range t.windows {
		bytes += int64(len(w.values)) * windowValuesBytes
	}
	return bytes
}
