// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

func TestTheWidestNodesAreSelectedCallersFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		widths, depths := make([]int64, r.IntN(60)), make([]int32, 60)
		for i := range widths {
			widths[i], depths[i] = r.Int64N(5), 1+r.Int32N(4)
		}
		least, most := 1+r.Int64N(2), 1+r.IntN(20)
		// The slow model sorts all.
		var want []int
		for i, w := range widths {
			if w >= least {
				want = append(want, i)
			}
		}
		slices.SortStableFunc(want, func(a, b int) int {
			return cmp.Or(cmp.Compare(widths[b], widths[a]), cmp.Compare(depths[a], depths[b]))
		})
		want = want[:min(most, len(want))]
		slices.Sort(want)
		var got []int
		selected := NewWidest(widths, depths, least, most)
		for i, w := range widths {
			if selected.Selects(w, depths[i]) {
				got = append(got, i)
			}
		}
		require.Equal(t, want, got, "widths %v, depths %v, least %d, most %d", widths, depths, least, most)
	}
}

// Samples of a profile often have stacks that are all different and deep, and each was seen once.
func TestAFlameGraphOfDeepStacksSeenOnceShowsTheirCallers(t *testing.T) {
	const stacks, depth, frames = 150, 40, 3000
	var text strings.Builder
	text.WriteString("main\n")
	for s := range stacks {
		for d := range depth {
			self := ""
			if d == depth-1 {
				self = " 1"
			}
			fmt.Fprintf(&text, "%sf%d_%d%s\n", strings.Repeat("  ", d+1), s, d, self)
		}
	}
	nodes := tree(text.String())
	require.Len(t, nodes, 1+stacks*depth)
	f := flameOf(t, nodes, FlameOptions{Pixels: 1400, Frames: frames})
	levels, own := map[int]int{}, 0
	depths := make([]int, len(f.Frames))
	for i, frame := range f.Frames {
		if depths[i] = 1; frame.Caller >= 0 {
			depths[i] += depths[frame.Caller]
		}
		if frame.Paths == 0 {
			levels[depths[i]]++
			own++
		}
	}
	assert.Equal(t, frames, own)
	for level := 2; level <= frames/stacks; level++ {
		assert.Equal(t, stacks, levels[level], "all frames of level %d", level)
	}
	assert.Equal(t, len(nodes)-frames, f.Folded)
	assert.Equal(t, calltree.Plain, nodes[1].Mark)
}
