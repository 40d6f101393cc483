// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// The clock is patient for 10 s with calls, and with timers. Each step has a second, an action, and
// the time that the clock shows after it.
func TestTheClockStopsWhileNoEventCanArrive(t *testing.T) {
	type step struct {
		at    int
		what  string
		shows int
	}
	for _, test := range []struct {
		name  string
		steps []step
	}{
		{"it runs", []step{{0, "", 0}, {7, "", 7}}},
		{"it stops while the processor refuses", []step{
			{5, "refuse", 5}, {9, "", 5}, {20, "accept", 5}, {21, "", 6},
		}},
		{"a repeated refuse or accept changes nothing", []step{
			{5, "refuse", 5}, {9, "refuse", 5}, {20, "accept", 5}, {22, "accept", 7}, {23, "", 8},
		}},
		{"a short call does not stop it", []step{
			{5, "begin", 5}, {15, "end 5", 15}, {16, "", 16},
		}},
		{"a long call stops it when patience ends", []step{
			{5, "begin", 5}, {14, "", 14}, {16, "", 15}, {40, "", 15}, {50, "end 5", 15}, {51, "", 16},
		}},
		{"a long call stops it also without a look at it", []step{
			{5, "begin", 5}, {50, "end 5", 15}, {51, "", 16},
		}},
		{"of calls that overlap, the earliest counts", []step{
			{0, "begin", 0}, {5, "begin", 5}, {30, "end 5", 10}, {40, "", 10}, {50, "end 0", 10}, {51, "", 11},
		}},
		{"it stays stopped for a later call that is late too", []step{
			{0, "begin", 0}, {5, "begin", 5}, {30, "end 0", 10}, {40, "end 5", 10}, {41, "", 11},
		}},
		{"it runs for a later call that is not late yet", []step{
			{0, "begin", 0}, {25, "begin", 10}, {30, "end 0", 10}, {34, "", 14}, {36, "", 15}, {50, "end 25", 15}, {60, "", 25},
		}},
		{"refusing begins in a long call", []step{
			{0, "begin", 0}, {20, "refuse", 10}, {30, "end 0", 10}, {40, "accept", 10}, {41, "", 11},
		}},
		{"timers in time do not stop it", []step{
			{5, "tick", 5}, {15, "tick", 15}, {25, "tick", 25}, {30, "", 30},
		}},
		{"timers that are late stop it when patience ends", []step{
			{5, "tick", 5}, {16, "", 15}, {40, "", 15}, {50, "tick", 15}, {51, "", 16},
		}},
		{"late timers stop it also without a look at it", []step{
			{5, "tick", 5}, {50, "tick", 15}, {51, "", 16},
		}},
		{"ended timers do not stop it", []step{
			{5, "tick", 5}, {6, "no ticks", 6}, {60, "", 60},
		}},
		{"timers are late in a long call", []step{
			{0, "tick", 0}, {5, "begin", 5}, {30, "", 10}, {40, "end 5", 10}, {50, "tick", 10}, {51, "", 11},
		}},
		{"timers run during a long call", []step{
			{0, "begin", 0}, {5, "tick", 5}, {30, "tick", 10}, {35, "end 0", 10}, {36, "", 11},
		}},
		{"refusing ends in a long call", []step{
			{0, "refuse", 0}, {5, "begin", 0}, {20, "accept", 0}, {30, "end 5", 0}, {31, "", 1},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := time.Duration(0)
			c := newClock(10 * time.Second)
			c.elapsed, c.beatPatience = func() time.Duration { return now }, 10*time.Second
			for _, s := range test.steps {
				now = time.Duration(s.at) * time.Second
				switch s.what {
				case "refuse":
					c.refuse(true)
				case "accept":
					c.refuse(false)
				case "begin":
					c.begin()
				case "tick":
					c.tick(true)
				case "no ticks":
					c.tick(false)
				case "end 0":
					c.end(0)
				case "end 5":
					c.end(5 * time.Second)
				case "end 25":
					c.end(25 * time.Second)
				}
				assert.Equal(t, time.Duration(s.shows)*time.Second, c.now(), "at second %d", s.at)
			}
			assert.Empty(t, c.calls)
		})
	}
}

// A call that panics ends for the clock, too.
func TestACallEndsForTheClockAfterAnyAnswer(t *testing.T) {
	n := &next{}
	c := newClock(time.Second)
	timed := nextComponent{n, c, t.Context(), t.Context(), &farewell{}}
	for _, answer := range []func(context.Context, ptrace.Traces) error{
		func(context.Context, ptrace.Traces) error { return nil },
		refuses,
		func(context.Context, ptrace.Traces) error { panic("hostile") },
	} {
		under := 0
		n.answerWith(func(ctx context.Context, td ptrace.Traces) error { under = len(c.calls); return answer(ctx, td) })
		func() {
			defer func() { _ = recover() }()
			_ = timed.ConsumeTraces(context.Background(), ptrace.NewTraces())
		}()
		assert.Equal(t, 1, under)
		assert.Empty(t, c.calls)
	}
	assert.GreaterOrEqual(t, c.now(), time.Duration(0))
}

// All arrived hand-overs are done until the arrival of the first one under way.
func TestTheClockKnowsTheArrivalOfTheFirstRunningHandOver(t *testing.T) {
	now := time.Duration(0)
	c := newClock(time.Second)
	c.elapsed = func() time.Duration { return now }
	at := func(seconds int) { now = time.Duration(seconds) * time.Second }
	assert.Equal(t, now, c.settledUntil())
	at(1)
	first := c.handoverBegun()
	at(2)
	second, third := c.handoverBegun(), c.handoverBegun()
	at(3)
	assert.Equal(t, time.Second, c.settledUntil())
	assert.Equal(t, 3*time.Second, c.now(), "the clock continues")
	c.handoverDone(second)
	assert.Equal(t, time.Second, c.settledUntil())
	c.handoverDone(first)
	assert.Equal(t, 2*time.Second, c.settledUntil())
	c.handoverDone(third)
	assert.Equal(t, 3*time.Second, c.settledUntil())
}
