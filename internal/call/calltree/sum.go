// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "slices"

// Sum adds up trees of one service and kind, within a number of paths. One goroutine can use it.
type Sum struct {
	forest   forest
	counters Counters
	tree     *tree
	snapshot Snapshot
	most     int
}

// NewSum returns a sum of no trees. Beyond most paths, the smallest are folded.
func NewSum(most int) *Sum {
	s := &Sum{most: max(most, LeastNodes)}
	s.forest.counters = &s.counters
	s.tree = newTree(&s.forest.used)
	s.forest.trees, s.forest.owners = []*tree{s.tree}, []*service{nil}
	return s
}

// Add adds a tree.
func (s *Sum) Add(other Snapshot) {
	sum := &s.snapshot
	if sum.From.IsZero() {
		sum.Service, sum.Kind, sum.From, sum.To = other.Service, other.Kind, other.From, other.To
	}
	sum.From, sum.To = earliest(sum.From, other.From), latest(sum.To, other.To)
	if other.Missing.Classes > 0 {
		sum.Missing = other.Missing
	}
	for _, remark := range other.Remarks {
		if !slices.Contains(sum.Remarks, remark) {
			sum.Remarks = append(sum.Remarks, remark)
		}
	}
	s.tree.lost.add(other.Lost)
	s.tree.graft(other.Nodes, maxSumName, false)
	if s.tree.live > s.most {
		s.forest.foldSmallest(s.forest.trees, max(1, s.most/shrinkBy), 4*s.most, func() bool { return s.tree.live <= s.most-s.most/shrinkBy })
	}
}

// maxSumName bounds names in sums. Settings.MaxNameBytes cut them before.
const maxSumName = 1 << 20

// Snapshot returns the sum. It must not be used afterwards.
func (s *Sum) Snapshot() Snapshot {
	s.snapshot.Lost = s.tree.lost
	s.snapshot.Nodes = snapshotNodes(s.tree)
	return s.snapshot
}
