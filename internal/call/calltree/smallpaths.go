// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "math"

// sizes counts paths by their size. Each step is a sixteenth to a thirty-second larger than the
// one below.
type sizes [math.MaxUint16 + 1]uint32

// size is the step of a part of a tree.
func size(part float64) uint16 { return uint16(math.Float64bits(part) >> 48) }

// add counts the paths of a tree.
func (s *sizes) add(t *tree) {
	all := totalOf(t)
	for i := range t.nodes {
		if canFold(t, uint32(i)) {
			s[size(part(t, uint32(i), all))]++
		}
	}
}

// smallest is the size up to which there are about so many paths, or all of them.
func (s *sizes) smallest(number int) uint16 {
	sum := 0
	for i, n := range s {
		if sum += int(n); sum >= number {
			return uint16(i)
		}
	}
	return math.MaxUint16
}

// totalOf is the total of all below the top, and of waiting nodes.
func totalOf(t *tree) float64 {
	all := 0.0
	for i := range t.nodes {
		n := &t.nodes[i]
		if parent := &t.nodes[n.parent]; n.state == statePlaced && n.label != labelMissing &&
			(n.parent == top || parent.label == labelMissing || parent.state == stateWaiting) {
			all += math.Abs(float64(n.total))
		}
	}
	return all
}

// part is the path's part of all.
func part(t *tree, n uint32, all float64) float64 {
	if all == 0 {
		return 0
	}
	return math.Abs(float64(t.nodes[n].total)) / all
}

// canFold reports whether a node is a path of a function, or stands for deeper ones.
func canFold(t *tree, n uint32) bool {
	at := &t.nodes[n]
	return n != top && at.state == statePlaced && (at.label.function() != 0 || at.label == labelDeep)
}

// foldUpTo folds the nodes, in pre-order, that are at most as large as the limit and have only
// folded ones below. It returns their number.
func foldUpTo(t *tree, limit uint16, order []uint32) (folded uint64) {
	all := totalOf(t)
	for i := len(order) - 1; i >= 0; i-- {
		n := order[i]
		if !canFold(t, n) || size(part(t, n, all)) > limit {
			continue
		}
		if below := t.nodes[n].first; below != 0 && (t.nodes[below].label != labelFolded || t.nodes[below].next != 0) {
			continue
		}
		parent := t.nodes[n].parent
		t.displace(n)
		t.absorb(n, t.child(parent, labelFolded))
		folded++
	}
	return folded
}
