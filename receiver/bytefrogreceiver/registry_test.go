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

// A data connection of such an agent might still come.
func TestTheIDOfAnAgentThatLingersIsReusedLast(t *testing.T) {
	r := &registry{max: maxRunID}
	first := openRun(t, r)
	require.EqualValues(t, 1, first.id)
	r.linger(first.id)
	r.close(first)
	// However often all others are.
	for range 3 * maxRunID {
		opened := openRun(t, r)
		require.NotEqual(t, first.id, opened.id)
		r.close(opened)
	}
	// Where all others are in use, it is.
	for range maxRunID - 1 {
		require.NotEqual(t, first.id, openRun(t, r).id)
	}
	again := openRun(t, r)
	assert.Equal(t, first.id, again.id)
	r.close(again)
	assert.Equal(t, first.id, openRun(t, r).id)
}

func TestTheIDOfAnAgentThatIsGoneIsReusedAfterThoseThatAreFreeForLonger(t *testing.T) {
	r := &registry{max: maxRunID}
	var runs []*run
	for range maxRunID {
		runs = append(runs, openRun(t, r))
	}
	lingers, second, third := runs[6], runs[3], runs[8]
	r.linger(lingers.id)
	r.close(lingers)
	r.close(second)
	r.gone(lingers.id)
	r.close(third)
	assert.Equal(t, second.id, openRun(t, r).id)
	assert.Equal(t, lingers.id, openRun(t, r).id)
	assert.Equal(t, third.id, openRun(t, r).id)
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
