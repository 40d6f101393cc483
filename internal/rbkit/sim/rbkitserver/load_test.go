// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitserver

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/rbkit"
)

// generated are messages of a program, the last with a dump.
func generated(t *testing.T, dialect rbkit.Dialect, o LoadOptions) (messages [][]byte) {
	t.Helper()
	const count = 100
	program, events, at := NewLoad(dialect, o), rbkit.NewCollection(dialect), time.UnixMilli(1)
	for n := range uint64(count) {
		events.Reset()
		require.NoError(t, program.Message(at, events))
		if n == count-1 {
			require.NoError(t, program.Dump(at, 2500, events))
		}
		messages = append(messages, events.AppendTo(nil, 1, n))
	}
	return messages
}

func TestAProgramHasEveryEventOfItsDialect(t *testing.T) {
	for dialect, want := range map[rbkit.Dialect][]rbkit.Kind{
		rbkit.Released: {rbkit.ObjectCreated, rbkit.ObjectDestroyed, rbkit.GCStart, rbkit.GCEndMark, rbkit.GCEndSweep,
			rbkit.ObjectSpaceDump, rbkit.DumpedObject, rbkit.GCStats},
		rbkit.Documented: {rbkit.AllocationSnapshot, rbkit.GCStart, rbkit.GCEndMark, rbkit.GCEndSweep,
			rbkit.ObjectSpaceDump, rbkit.DumpedObject, rbkit.GCStats, rbkit.CPUSample},
	} {
		o := LoadOptions{Events: 20, Classes: 5, Seed: 7}
		messages := generated(t, dialect, o)
		assert.Equal(t, messages, generated(t, dialect, o), "the same by the same seed")
		kinds := map[rbkit.Kind]int{}
		for _, m := range messages {
			var r rbkit.Reader
			require.NoError(t, r.Open(dialect, m))
			for r.Next() {
				e := r.Event()
				kinds[e.Kind]++
				if e.Kind == rbkit.AllocationSnapshot {
					checkSnapshot(t, e.Snapshot)
				}
			}
			require.NoError(t, r.Err())
		}
		assert.Equal(t, want, slices.Sorted(maps.Keys(kinds)), dialect)
		assert.Equal(t, 2500, kinds[rbkit.DumpedObject])
		assert.Equal(t, 5, kinds[rbkit.GCStart])
	}
}

// checkSnapshot reports contradictions in a snapshot.
func checkSnapshot(t *testing.T, s rbkit.Snapshot) {
	t.Helper()
	stacks := map[uint64]bool{}
	for id := range s.AllStacks() {
		stacks[id] = true
	}
	var known, unknown int
	for a := range s.AllAllocations() {
		by := uint64(0)
		for id, count := range a.Stacks.All() {
			assert.True(t, stacks[id], id)
			by += count
		}
		if by > 0 {
			known++
			assert.Equal(t, a.Count, by)
		} else {
			unknown++
		}
	}
	assert.Equal(t, s.Files(), known)
	assert.Equal(t, known, unknown)
}
