// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func openRun(t *testing.T, r *registry) *run {
	t.Helper()
	opened, err := r.open(func(id runID) (*run, error) { return &run{id: id}, nil })
	require.NoError(t, err)
	return opened
}

func TestRunIDsAreOneToTwoHundredFiftyFive(t *testing.T) {
	r := &registry{max: maxRunID}
	seen := map[runID]bool{}
	for range maxRunID {
		seen[openRun(t, r).id] = true
	}
	assert.Len(t, seen, maxRunID)
	assert.NotContains(t, seen, runID(0))
	_, err := r.open(func(runID) (*run, error) { panic("no ID is free") })
	assert.EqualError(t, err, "limits.max_runs is reached (255)")
}

func TestARunIDIsReusedAsLateAsCanBe(t *testing.T) {
	r := &registry{max: maxRunID}
	for want := 1; want <= maxRunID; want++ {
		opened := openRun(t, r)
		require.EqualValues(t, want, opened.id)
		r.close(opened)
	}
	// All were used: now the one that has been free for longest.
	first := openRun(t, r)
	assert.EqualValues(t, 1, first.id)
	second := openRun(t, r)
	assert.EqualValues(t, 2, second.id)
	r.close(second)
	r.close(first)
	assert.EqualValues(t, 3, openRun(t, r).id)
}

func TestClosingARunTwiceDoesNotTakeItsIDFromAnother(t *testing.T) {
	r := &registry{max: 1}
	old := openRun(t, r)
	r.close(old)
	r.close(old)
	next := openRun(t, r)
	r.close(old)
	assert.Same(t, next, r.lookup(next.id))
	assert.Equal(t, []*run{next}, r.list())
}

func TestAfterTheShutdownNoRunIsOpened(t *testing.T) {
	r := &registry{max: 2}
	opened := openRun(t, r)
	assert.Equal(t, []*run{opened}, r.shut())
	_, err := r.open(func(runID) (*run, error) { panic("shut") })
	assert.ErrorIs(t, err, errClosed)
}
