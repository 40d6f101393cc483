// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver"
)

// narrow has little wait before the agent is suspended.
func narrow(g *Guard) { g.options.Queue, g.options.Memory = chunkBytes, 24*mib }

// A collector that takes nothing has the agent suspended, which runs on; when it takes
// again nothing was lost but what happened meanwhile, and the run is the same.
func TestACollectorThatIsStoppedLosesNothing(t *testing.T) {
	stalls := 3
	if testing.Short() {
		stalls = 1
	}
	// One connection: what is in the agent's sockets has to be checked, too.
	c := newCollector(t, testkit.Address(t), func(c *bytefrogreceiver.Config) { c.Agent.DataConnections, c.Agent.BufferMemory = 1, 256*kib })
	b := newBed(t, []string{c.address}, narrow, func(g *Guard) {
		g.options.Memory = 14 * mib
		// The agent goes on as soon as all was taken, however often it was suspended.
		g.options.Retry = backoff.Config{InitialInterval: time.Hour, MaxInterval: time.Hour}
	})
	p := &counting{}
	a, results := b.start(t.Context(), p)
	for i := range stalls {
		before := c.number()
		b.await("events", func() bool { return c.number() > before+1000 && b.guard.State().Stalled == 0 })
		assert.Equal(t, i > 0, b.guard.counts.Untraced.Load() > 0, "time in which it was not traced is counted")
		b.network.stick(true)
		b.await("a break", func() bool { return len(p.said()) > i && b.guard.State().Stalled == 1 })
		b.network.stick(false)
	}
	b.await("the agent to go on", func() bool { return b.guard.State().Stalled == 0 })
	a.Stop()
	result := ended(t, results)
	require.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
	c.awaitEnds(1)
	c.stop()
	require.Equal(t, []uint64{0}, p.checkRuns(t, c.runs()))
	assert.EqualValues(t, p.next, len(c.only().events), "every event that has a number")
	assert.Len(t, c.only().breaks, len(p.said()))
	assert.Zero(t, b.guard.counts.Losses.Load())
	assert.Zero(t, b.guard.counts.Dropped.Load())
	t.Logf("the program waited %v at most", p.longest)
}

// A collector that stands for a moment is not felt for longer than may be: what comes is
// read, and nobody is suspended.
func TestAMomentInWhichNothingIsTakenIsNotFelt(t *testing.T) {
	c := newCollector(t, testkit.Address(t))
	// As little as may be is read beyond the queue at once.
	b := newBed(t, []string{c.address}, func(g *Guard) { g.options.Queue, g.options.Memory = chunkBytes, 4*mib })
	p := &counting{slow: true}
	a, results := b.start(t.Context(), p)
	b.await("events", func() bool { return c.number() > 1000 })
	l := b.guard.sessions()[0].current()
	for range 3 {
		b.network.stick(true)
		b.await("the agent to be read on", func() bool { return l.waiting.Load() > 5*chunkBytes && highest(l) > 0 })
		b.network.stick(false)
		b.await("the collector to catch up", func() bool { return l.waiting.Load() == 0 && highest(l) < 2*chunkBytes })
	}
	a.Stop()
	result := ended(t, results)
	require.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
	c.awaitEnds(1)
	c.stop()
	assert.EqualValues(t, p.next, len(c.only().events), "every event that has a number")
	assert.Zero(t, b.guard.counts.Suspensions.Load())
}

func TestACollectorThatTakesNothingForTooLongIsLost(t *testing.T) {
	c := newCollector(t, testkit.Address(t))
	b := newBed(t, []string{c.address}, narrow, func(g *Guard) { g.options.Silence = 600 * time.Millisecond })
	p := &counting{}
	a, results := b.start(t.Context(), p)
	b.await("events", func() bool { return c.number() > 1000 })
	b.network.stick(true)
	b.await("the loss", func() bool { return b.guard.counts.Losses.Load() == 1 })
	b.await("what is lost to be counted", func() bool { return b.guard.counts.LostBytes.Load() > 0 })
	b.network.stick(false)
	b.await("another run", func() bool {
		return b.guard.counts.Runs.Load() > 1 && b.guard.State().Connected == 1 && b.guard.State().Stalled == 0
	})
	a.Stop()
	result := ended(t, results)
	require.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
	b.await("the session's end", func() bool { return b.guard.State().Agents == 0 })
	c.stop()
	p.checkRuns(t, c.runs())
}

// A collector that is stopped has a system that goes on taking heartbeats: they say nothing.
func TestHeartbeatsDontHideThatNothingIsTaken(t *testing.T) {
	c := newCollector(t, testkit.Address(t))
	b := newBed(t, []string{c.address}, narrow, func(g *Guard) { g.options.Silence = 600 * time.Millisecond })
	p := &counting{}
	a, results := b.start(t.Context(), p)
	b.await("events", func() bool { return c.number() > 1000 })
	b.network.stickData()
	b.await("a break", func() bool { return p.hasBroken() })
	b.await("the loss", func() bool { return b.guard.counts.Losses.Load() == 1 })
	b.network.stick(false)
	b.await("another run", func() bool { return b.guard.counts.Runs.Load() > 1 && b.guard.State().Stalled == 0 })
	a.Stop()
	result := ended(t, results)
	require.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
}

func TestMoreThanMayWaitIsALoss(t *testing.T) {
	const memory = mib
	c := play(t, starting(t, 1))
	b := newBed(t, []string{c.address}, narrow, func(g *Guard) { g.options.Memory, g.options.Silence = memory, time.Hour })
	a := b.byHand(t)
	data := a.data()
	b.network.stick(true)
	// It was told to suspend long before, and sends on.
	sent := everything(0, 1)
	_, err := data.Write(bytes.Repeat(sent, memory/2/len(sent)))
	require.NoError(t, err)
	require.Equal(t, bytefrog.TypeSuspend, a.hear().Type())
	b.await("half of it", func() bool { return b.guard.State().Waiting > memory/2-2*len(sent) })
	assert.Zero(t, b.guard.counts.Losses.Load())
	_, err = data.Write(bytes.Repeat(sent, memory/len(sent)))
	require.NoError(t, err)
	b.await("the loss", func() bool { return b.guard.counts.Losses.Load() == 1 })
	b.await("what is lost to be counted", func() bool { return b.guard.counts.LostBytes.Load() > memory })
}

// An agent that closes its connections while the collector takes nothing has gone for the
// collector when that has taken what waited.
func TestTheRestOfAnAgentThatHasGoneIsPassedOn(t *testing.T) {
	c := newCollector(t, testkit.Address(t))
	b := newBed(t, []string{c.address})
	p := &counting{until: 50_000}
	b.network.stick(true)
	_, results := b.start(t.Context(), p)
	result := func() bytefrogagent.Result {
		// It can't even say hello yet.
		b.network.stick(false)
		b.await("a run", func() bool { return b.guard.State().Connected == 1 || b.guard.counts.Runs.Load() == 1 })
		b.network.stick(true)
		return ended(t, results)
	}()
	assert.Equal(t, bytefrogagent.Completed, result.Outcome, result.Reason)
	b.network.stick(false)
	c.awaitEnds(1)
	c.stop()
	require.Equal(t, []uint64{0}, p.checkRuns(t, c.runs()))
	assert.Equal(t, 50_000, len(c.only().events))
	assert.True(t, c.only().ended)
}

// highest is how much may wait for a connection beyond the queue.
func highest(l *link) (level int64) {
	for _, o := range l.outlets() {
		o.mu.Lock()
		level = max(level, o.room.level)
		o.mu.Unlock()
	}
	return level
}
