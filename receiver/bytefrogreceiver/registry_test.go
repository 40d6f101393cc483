// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"net"
	"testing"
	"time"

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

// fakeRun is a run of an agent at an address, opened so many seconds after the first.
func fakeRun(id runID, host string, seconds int) *run {
	ours := &addressed{remote: net.TCPAddr{IP: net.ParseIP(host), Port: int(id)}}
	r := &run{
		id: id, control: newControl(newReader(ours, 1)), leaving: make(chan struct{}),
		opened: time.Unix(int64(1000+seconds), 0),
	}
	r.data.init(1)
	return r
}

// addressed is a connection that only has an address.
type addressed struct {
	net.Conn
	remote net.TCPAddr
}

func (a *addressed) RemoteAddr() net.Addr { return &a.remote }

func TestTheRunThatProvedLeastIs(t *testing.T) {
	beats := func(r *run) { r.control.heartbeats.Add(1) }
	joins := func(r *run) { close(r.data.joined) }
	leaves := func(r *run) { close(r.leaving) }
	type agent struct {
		host    string
		seconds int
		does    func(*run)
	}
	for name, c := range map[string]struct {
		agents []agent
		want   runID // 0: none
	}{
		"the oldest":                           {[]agent{{"10.0.0.1", 2, nil}, {"10.0.0.1", 1, nil}}, 2},
		"never one with a heartbeat":           {[]agent{{"10.0.0.1", 1, beats}, {"10.0.0.1", 2, nil}}, 2},
		"never one with a data connection":     {[]agent{{"10.0.0.1", 1, joins}, {"10.0.0.1", 2, nil}}, 2},
		"never one that is being left":         {[]agent{{"10.0.0.1", 1, leaves}, {"10.0.0.1", 2, nil}}, 2},
		"never a young one":                    {[]agent{{"10.0.0.1", 61, nil}}, 0},
		"of the address that has most of them": {[]agent{{"10.0.0.1", 1, nil}, {"10.0.0.2", 3, nil}, {"10.0.0.2", 2, nil}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := &registry{max: maxRunID}
			for i, a := range c.agents {
				opened := fakeRun(runID(i+1), a.host, a.seconds)
				if a.does != nil {
					a.does(opened)
				}
				r.runs[opened.id] = opened
			}
			least := r.leastProven(time.Unix(1060, 0))
			if c.want == 0 {
				assert.Nil(t, least)
				return
			}
			require.NotNil(t, least)
			assert.Equal(t, c.want, least.id)
		})
	}
}
