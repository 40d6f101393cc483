// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// After many merges the way from a node to its current node is short again.
func TestTheWayToAMergedNodeBecomesShort(t *testing.T) {
	const merged = 1 << 12
	tree := newTree(&usage{})
	nodes := make([]uint32, merged+1)
	for i := range nodes {
		nodes[i] = tree.wait(labelMissing)
		tree.ref(nodes[i])
	}
	for i := range merged {
		tree.merge(nodes[i], nodes[i+1])
	}
	steps := func() (steps int) {
		for n := nodes[0]; tree.nodes[n].state == stateMerged; n = tree.nodes[n].parent {
			steps++
		}
		return steps
	}
	assert.Equal(t, merged, steps())
	for range 13 {
		assert.Equal(t, nodes[merged], tree.resolve(nodes[0]))
	}
	assert.Equal(t, 1, steps())
	// The nodes are freed after the last reference.
	for _, n := range nodes {
		tree.unref(n)
	}
	assert.Equal(t, 1, tree.live, "the last one waits")
	free := 0
	for _, n := range tree.nodes {
		if n.state == stateFree {
			free++
		}
	}
	assert.Equal(t, merged, free)
}
