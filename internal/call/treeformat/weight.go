// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"math"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// weights are, for each node, the sum of a value of it and of all nodes below it. Formats of stacks
// and values show them. A node never weighs less than one below it. For times its weight is more
// than its Total if children ran at the same time.
func weights(nodes []calltree.Node, value func(*calltree.Node) int64) []int64 {
	w := make([]int64, len(nodes))
	for i := len(nodes) - 1; i >= 0; i-- { // children first
		w[i] = add(w[i], max(value(&nodes[i]), 0))
		if parent := nodes[i].Parent; parent >= 0 {
			w[parent] = add(w[parent], w[i])
		}
	}
	return w
}

// add adds numbers that are not negative. A sum beyond the range is the largest number.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// addSigned adds numbers. A sum beyond the range is the largest or smallest number.
func addSigned(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

// count converts a number of calls to a value.
func count(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

func selfOf(n *calltree.Node) int64   { return n.Self }
func callsOf(n *calltree.Node) int64  { return count(n.Calls) }
func errorsOf(n *calltree.Node) int64 { return count(n.Errors) }
