// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"math"
	"slices"
	"sort"
)

// Widest selects the widest nodes of a tree for a picture. Of equally wide nodes, those with fewer callers come first, and then
// those that stand first. So the callers of a selected node are selected, too, if no node is wider than its caller.
type Widest[W int64 | float64] struct {
	// least is the width of the narrowest selected nodes. Of these, it selects all of the levels above level, and so many more of
	// level itself as there is room for.
	least W
	level int32
	room  int
}

// NewWidest selects at most so many nodes, of which none is narrower than least. Depths are the numbers of the nodes' frames,
// themselves included.
func NewWidest[W int64 | float64](widths []W, depths []int32, least W, most int) *Widest[W] {
	var wide []W
	for _, w := range widths {
		if w >= least {
			wide = append(wide, w)
		}
	}
	if len(wide) <= most {
		return &Widest[W]{least: least, level: math.MaxInt32}
	}
	slices.Sort(wide)
	s := &Widest[W]{least: wide[len(wide)-most], room: most}
	s.room -= len(wide) - sort.Search(len(wide), func(i int) bool { return wide[i] > s.least })
	var levels []int // how many nodes of the least width each level has
	for i, w := range widths {
		if w == s.least {
			levels = append(levels, make([]int, max(0, int(depths[i])+1-len(levels)))...)
			levels[depths[i]]++
		}
	}
	for int(s.level) < len(levels) && s.room >= levels[s.level] {
		s.room -= levels[s.level]
		s.level++
	}
	return s
}

// Selects reports whether a node is selected. The caller asks once for each node, in their order.
func (s *Widest[W]) Selects(width W, depth int32) bool {
	switch {
	case width != s.least:
		return width > s.least
	case depth != s.level:
		return depth < s.level
	}
	s.room--
	return s.room >= 0
}
