// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
)

// openRun opens a run, and returns its ID.
func openRun(t *testing.T, r *registry) (id uint8) {
	t.Helper()
	_, err := r.open(func(free uint8) (*session.Session, error) {
		id = free
		return new(session.Session), nil
	})
	require.NoError(t, err)
	return id
}

func TestRunIDsAreOneToTwoHundredFiftyFive(t *testing.T) {
	r := &registry{max: maxRunID}
	seen := map[uint8]bool{}
	for range maxRunID {
		seen[openRun(t, r)] = true
	}
	assert.Len(t, seen, maxRunID)
	assert.NotContains(t, seen, 0)
	_, err := r.open(func(uint8) (*session.Session, error) { panic("no ID is free") })
	assert.EqualError(t, err, "limits.max_runs is reached (255)")
}

func TestARunIDIsReusedAsLateAsCanBe(t *testing.T) {
	r := &registry{max: maxRunID}
	for want := 1; want <= maxRunID; want++ {
		opened := openRun(t, r)
		require.EqualValues(t, want, opened)
		r.close(opened)
	}
	// All were used: now the one that has been free for longest.
	first := openRun(t, r)
	assert.EqualValues(t, 1, first)
	second := openRun(t, r)
	assert.EqualValues(t, 2, second)
	r.close(second)
	r.close(first)
	assert.EqualValues(t, 3, openRun(t, r))
}

// A data connection of such an agent might still come.
func TestTheIDOfAnAgentThatLingersIsReusedLast(t *testing.T) {
	r := &registry{max: maxRunID}
	first := openRun(t, r)
	require.EqualValues(t, 1, first)
	r.linger(first)
	r.close(first)
	// However often all others are.
	for range 3 * maxRunID {
		opened := openRun(t, r)
		require.NotEqual(t, first, opened)
		r.close(opened)
	}
	// Where all others are in use, it is.
	for range maxRunID - 1 {
		require.NotEqual(t, first, openRun(t, r))
	}
	again := openRun(t, r)
	assert.Equal(t, first, again)
	r.close(again)
	assert.Equal(t, first, openRun(t, r))
}

func TestRunIDsAreReusedInTheOrderInWhichTheyBecameFree(t *testing.T) {
	r := &registry{max: maxRunID}
	var runs []uint8
	for range maxRunID {
		runs = append(runs, openRun(t, r))
	}
	lingers, second, third := runs[6], runs[3], runs[8]
	r.linger(lingers)
	r.close(lingers)
	r.close(second)
	r.gone(lingers)
	r.close(third)
	assert.Equal(t, second, openRun(t, r))
	assert.Equal(t, lingers, openRun(t, r))
	assert.Equal(t, third, openRun(t, r))
}

func TestAfterTheShutdownNoRunIsOpened(t *testing.T) {
	r := &registry{max: 2}
	opened := openRun(t, r)
	assert.Equal(t, []*session.Session{r.lookup(opened)}, r.shut())
	_, err := r.open(func(uint8) (*session.Session, error) { panic("shut") })
	assert.ErrorIs(t, err, errClosed)
}

func TestTheOldestUnprovenRunIsReplaced(t *testing.T) {
	run := func(host string, seconds int64) session.State {
		return session.State{Host: host, Opened: time.Unix(1000+seconds, 0)}
	}
	proven, leaving := run("10.0.0.1", 1), run("10.0.0.1", 1)
	proven.Proven, leaving.Leaving = true, true
	for name, c := range map[string]struct {
		states []session.State
		want   int // -1: none
	}{
		"the oldest one":                   {[]session.State{run("10.0.0.1", 2), run("10.0.0.1", 1)}, 1},
		"never one that is proven":         {[]session.State{proven, run("10.0.0.1", 2)}, 1},
		"never one that ends":              {[]session.State{leaving, run("10.0.0.1", 2)}, 1},
		"never a young one":                {[]session.State{run("10.0.0.1", 61)}, -1},
		"one of the address that has most": {[]session.State{run("10.0.0.1", 1), run("10.0.0.2", 3), run("10.0.0.2", 2)}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, indexOfLeastProven(c.states, time.Unix(1060, 0)))
		})
	}
}
