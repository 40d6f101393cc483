// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAppearedAndDisappearedAreTheDifferenceOfTwoLists(t *testing.T) {
	cases := []struct{ before, after, appeared, disappeared []string }{
		{nil, nil, nil, nil},
		{nil, []string{"b", "a"}, []string{"a", "b"}, nil},
		{[]string{"a", "b"}, []string{"b", "a"}, nil, nil},
		{[]string{"a", "b"}, nil, nil, []string{"a", "b"}},
		{[]string{"a", "c"}, []string{"b", "c", "d"}, []string{"b", "d"}, []string{"a"}},
		{[]string{"a"}, []string{"a", "a", ""}, []string{""}, nil},
	}
	for _, c := range cases {
		var i inventory
		i.replace(slices.Clone(c.before))
		appeared, disappeared := i.replace(slices.Clone(c.after))
		assert.Equal(t, c.appeared, appeared, "%q to %q", c.before, c.after)
		assert.Equal(t, c.disappeared, disappeared, "%q to %q", c.before, c.after)
	}
}

func TestAnInventoryFollowsAnyLists(t *testing.T) {
	var i inventory
	known, random := map[string]bool{}, rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		var list []string
		for range random.IntN(10) {
			list = append(list, strconv.Itoa(random.IntN(12)))
		}
		want := map[string]bool{}
		for _, name := range list {
			want[name] = true
		}
		appeared, disappeared := i.replace(list)
		for _, name := range appeared {
			require.False(t, known[name])
			known[name] = true
		}
		for _, name := range disappeared {
			require.True(t, known[name])
			delete(known, name)
		}
		require.Equal(t, want, known)
		require.Len(t, i.names, len(known))
	}
}

func TestPausesBetweenListsDoubleUntilAChange(t *testing.T) {
	now := time.Now()
	p := listPace{first: FirstPause, interval: 10 * FirstPause}
	require.True(t, p.isDue(now), "the first is due immediately")
	pauses := func(changed bool, n int) (all []time.Duration) {
		for range n {
			p.listed(now, changed)
			all = append(all, p.due.Sub(now)/FirstPause)
			changed = false
		}
		return all
	}
	assert.Equal(t, []time.Duration{1, 2, 4, 8, 10, 10}, pauses(false, 6))
	assert.Equal(t, []time.Duration{1, 2, 4}, pauses(true, 3))
	assert.False(t, p.isDue(now))
	p.changed()
	assert.True(t, p.isDue(now))
	assert.Equal(t, []time.Duration{1, 2}, pauses(false, 2))

	p = listPace{first: FirstPause, interval: FirstPause / 2}
	p.listed(now, true)
	assert.Equal(t, now.Add(FirstPause/2), p.due, "not longer than the interval")
}

func TestTheBudgetIsChargedAndFreed(t *testing.T) {
	b := newNameMemory(100, nil)
	closed := 0
	one, other := b.open(func() { closed++ }), b.open(func() { t.Error("the smaller agent is closed") })
	require.NoError(t, one.hold(60))
	require.NoError(t, other.hold(30))
	assert.EqualError(t, one.hold(50), "limits.max_inventory_bytes is reached (100): the agent holds most of it (110)")
	require.NoError(t, one.holdExactly(40))
	require.NoError(t, one.hold(20))
	require.NoError(t, other.hold(20), "the larger one is closed for it")
	assert.Equal(t, 1, closed)
	assert.EqualError(t, one.hold(1), "limits.max_inventory_bytes is reached (100): the agent holds most of it (60)")
	assert.EqualError(t, other.hold(5), "limits.max_inventory_bytes is reached (100), and the agent holds 55 of it",
		"beyond the overdraft, while the larger one returns nothing")
	one.close()
	require.NoError(t, other.hold(50))
	other.close()
	assert.Zero(t, b.used)
	assert.Empty(t, b.charges)
}
