// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "slices"

// PreOrder returns a copy of the nodes in pre-order. Siblings follow each other in the order of their indices in order, which
// has the index of each node once. In nodes, parents are before their children. parent returns the place of a node's parent,
// which is an index, or -1 at the top.
//
//  1. The children of each node become a list, in the order of siblings.
//  2. A walk along these lists copies each node, and then the nodes below it.
func PreOrder[N any](nodes []N, order []int32, parent func(*N) *int32) []N {
	top := len(nodes)
	first := make([]int32, top+1) // child of each; the last is that of the top
	next := make([]int32, top)    // sibling of each
	for i := range first {
		first[i] = -1
	}
	for _, i := range slices.Backward(order) {
		above := int(*parent(&nodes[i]))
		if above < 0 {
			above = top
		}
		next[i], first[above] = first[above], i
	}
	out := make([]N, 0, top)
	places := make([]int32, top)
	for todo := []int32{first[top]}; len(todo) > 0; {
		i := todo[len(todo)-1]
		if i < 0 {
			todo = todo[:len(todo)-1]
			continue
		}
		places[i] = int32(len(out))
		out = append(out, nodes[i])
		if above := parent(&out[places[i]]); *above >= 0 {
			*above = places[*above]
		}
		todo[len(todo)-1] = next[i]
		todo = append(todo, first[i])
	}
	return out
}

// Depths returns for each node the number of nodes from the top to it, itself included. In nodes, parents are before their
// children.
func Depths[N any](nodes []N, parent func(*N) *int32) []int32 {
	depths := make([]int32, len(nodes))
	for i := range nodes {
		depths[i] = 1
		if above := *parent(&nodes[i]); above >= 0 {
			depths[i] += depths[above]
		}
	}
	return depths
}
