// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// check checks everything that must be true of a store between two calls of its methods.
func check(t testing.TB, s *Store) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	refs := make([]map[uint32]uint32, len(s.forest.trees))
	for i := range refs {
		refs[i] = map[uint32]uint32{}
	}
	checkSeen(t, s, refs)
	live, names, measured := 0, 0, int64(0)
	for number, tree := range s.forest.trees {
		if tree == nil {
			require.Empty(t, refs[number], "tree %d is not there", number)
			continue
		}
		checkTree(t, s, tree, refs[number])
		live += tree.live
		measured += tree.measured
		bytes := 0
		for _, f := range tree.functions.all[1:] {
			if f.refs > 0 {
				bytes += bytesOfFunction + len(f.name) + len(f.file)
			}
		}
		require.Equal(t, bytes, tree.functions.bytes)
		names += bytes
	}
	require.Equal(t, live, s.forest.used.nodes)
	require.Equal(t, measured, s.forest.bytes)
	require.Equal(t, names, s.forest.used.names)
	kept := 0
	for id, trace := range s.kept.traces {
		require.Equal(t, id, trace.id)
		require.Positive(t, trace.kept)
		kept += trace.kept
	}
	require.Len(t, s.kept.spans, kept)
	checkThreads(t, s)
}

// checkThreads counts the references to threads.
func checkThreads(t testing.TB, s *Store) {
	t.Helper()
	type place struct {
		service string
		number  uint32
	}
	kept, all := map[place]uint32{}, 0
	for i := range s.kept.spans {
		span := &s.kept.spans[i]
		kept[place{s.forest.owners[span.tree].name, span.threadNumber}]++
	}
	for name, sv := range s.services.byName {
		all += sv.threads.count()
		require.Len(t, sv.threads.known, 1+sv.threads.count()+len(sv.threads.free))
		for n, thread := range sv.threads.known {
			require.Equal(t, kept[place{name, uint32(n)}], thread.kept, "references to thread %d", n)
		}
		for _, n := range sv.threads.free {
			require.Zero(t, sv.threads.known[n].kept)
		}
	}
	require.Equal(t, all, s.services.threads)
}

// checkSeen counts the references to nodes.
func checkSeen(t testing.TB, s *Store, refs []map[uint32]uint32) {
	t.Helper()
	total := 0
	for state, l := range s.seen.lists {
		count, last := 0, uint32(0)
		for n := l.first; n != 0; n = s.seen.spans[n].next {
			span := &s.seen.spans[n]
			require.Equal(t, seenState(state), span.state)
			require.Equal(t, last, span.prev)
			last = n
			count++
			total++
			refs[span.tree][span.node]++
			found, _ := s.seen.findOwn(s.seen.hash(span.spanKey), span.spanKey, span.tree, span.remote)
			require.Equal(t, n, found)
			node := &s.forest.trees[span.tree].nodes[span.node]
			require.Equal(t, seenState(state) != seenFolded, node.state == stateWaiting, "node of state %d", node.state)
			if node.state == stateWaiting {
				require.Equal(t, map[seenState]label{seenWaiting: labelMissing, seenElsewhere: labelAtTop}[span.state], node.label)
			}
		}
		require.Equal(t, last, l.last)
		require.Equal(t, l.count, count)
	}
	require.Equal(t, total, s.seen.index.used)
	for n := s.seen.free; n != 0; n = s.seen.spans[n].next {
		require.Equal(t, seenSpan{next: s.seen.spans[n].next}, s.seen.spans[n])
		total++
	}
	require.Len(t, s.seen.spans, total+1, "all that is free can be used")
	require.LessOrEqual(t, s.seen.total(), s.settings.MaxPending)
}

func checkTree(t testing.TB, s *Store, tree *tree, refs map[uint32]uint32) {
	t.Helper()
	functions := map[uint32]uint32{}
	live, placed, free := 0, 0, 0
	for i, n := range tree.nodes {
		switch n.state {
		case stateFree:
			free++
			require.Zero(t, n.refs)
			continue
		case stateMerged:
			refs[n.parent]++
			require.Positive(t, n.refs)
			require.Zero(t, n.first)
			require.Zero(t, n.values)
			continue
		case statePlaced:
			if i == top {
				continue
			}
			placed++
			require.Equal(t, uint32(i), tree.find(n.parent, n.label))
			functions[n.label.function()]++
			if n.label == labelFolded || n.label == labelDeep {
				require.Zero(t, n.first, "nothing is below a node that stands for several")
			}
		case stateWaiting:
			require.Zero(t, n.values)
		}
		live++
	}
	require.Equal(t, live, tree.live)
	require.Equal(t, placed, tree.children.used)
	released := free
	for n := tree.free; n != 0; n = tree.nodes[n].next {
		require.Equal(t, stateFree, tree.nodes[n].state)
		free--
	}
	require.Zero(t, free, "all that is free can be used")
	require.Equal(t, released, tree.released)
	require.Len(t, tree.preOrder(nil), live+1, "each live node is below the top or a waiting node")
	for i, n := range tree.nodes {
		require.Equal(t, refs[uint32(i)], n.refs, "references to node %d", i)
	}
	for i := range s.kept.spans {
		if span := &s.kept.spans[i]; span.tree == tree.number {
			functions[span.function]++
			functions[span.instance]++
		}
	}
	if tree == s.forest.owners[tree.number].calls {
		functions[s.forest.owners[tree.number].instance]++
	}
	for n, f := range tree.functions.all[1:] {
		require.Equal(t, functions[uint32(n)+1], f.refs, "references to %q", f.name)
		if f.refs > 0 {
			require.Equal(t, uint32(n)+1, tree.functions.find(f.hash, f.name))
		}
	}
	for _, w := range tree.windows {
		for n := range w.values {
			require.Equal(t, statePlaced, tree.nodes[n].state)
		}
	}
}
