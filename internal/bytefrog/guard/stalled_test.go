// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"sync"
	"sync/atomic"
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

// narrow suspends the agent when little data waits.
func narrow(g *Guard) { g.options.Queue, g.options.Memory = chunkBytes, 24*mib }

// While the collector reads nothing, the agent is suspended and its program runs on. When the collector reads again,
// only the calls in between are missing, in the same run.
func TestACollectorThatIsStoppedLosesNothing(t *testing.T) {
	stalls := 3
	if testing.Short() {
		stalls = 1
	}
	// There is one connection, because the data in the agent's sockets is checked too.
	c := newCollector(t, testkit.Address(t), func(c *bytefrogreceiver.Config) { c.Agent.DataConnections, c.Agent.BufferMemory = 1, 256*kib })
	b := newBed(t, []string{c.address}, narrow, func(g *Guard) {
		g.options.Memory = 14 * mib
		// The agent resumes as soon as the collector has read all data, however often it was suspended.
		g.options.Retry = backoff.Config{InitialInterval: time.Hour, MaxInterval: time.Hour}
	})
	p := &counting{}
	a, results := b.start(t.Context(), p)
	for i := range stalls {
		before := c.number()
		b.await("events", func() bool { return c.number() > before+1000 && b.guard.State().Stalled == 0 })
		assert.Equal(t, i > 0, b.guard.counts.Untraced.Load() > 0, "time in which it was not traced is counted")
		b.network.stick(true)
		b.await("a break", func() bool { return len(p.sentBreaks()) > i && b.guard.State().Stalled == 1 })
		b.network.stick(false)
	}
	b.await("the agent to go on", func() bool { return b.guard.State().Stalled == 0 })
	a.Stop()
	result := ended(t, results)
	require.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
	c.awaitEnds(1)
	c.stop()
	runs := c.runs()
	require.Equal(t, []uint64{0}, p.checkRuns(t, runs))
	only := onlyRun(t, runs)
	assert.EqualValues(t, p.next, len(only.events), "every event that has a number")
	assert.Len(t, only.breaks, len(p.sentBreaks()))
	assert.Zero(t, b.guard.counts.Losses.Load())
	assert.Zero(t, b.guard.counts.Dropped.Load())
	t.Logf("the program waited %v at most", p.longest)
}

// A short stop of the collector slows the program only for the allowed time. The guard reads on and does not suspend
// the agent.
func TestAShortStopOfTheCollectorSuspendsNoAgent(t *testing.T) {
	c := newCollector(t, testkit.Address(t))
	// The guard reads the smallest amount beyond the queue.
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

func TestACollectorThatReadsNothingForTooLongIsLost(t *testing.T) {
	c := newCollector(t, testkit.Address(t))
	b := newBed(t, []string{c.address}, narrow, func(g *Guard) { g.options.Silence = 600 * time.Millisecond })
	p := &counting{}
	a, results := b.start(t.Context(), p)
	b.await("events", func() bool { return c.number() > 1000 })
	b.network.stick(true)
	b.await("the loss", func() bool { return b.guard.counts.Losses.Load() == 1 })
	b.await("the count of lost bytes", func() bool { return b.guard.counts.LostBytes.Load() > 0 })
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

// The system of a stopped collector still accepts heartbeats, so they do not count as progress.
func TestHeartbeatsDoNotHideAStoppedCollector(t *testing.T) {
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

// An agent on a busy machine answers suspend late, and its program is traced meanwhile. The guard does not read it
// faster than before, so its data does not fill the memory.
func TestAnAgentThatObeysLateKeepsItsCollector(t *testing.T) {
	const memory = 16 * mib
	c := play(t, starting(t, 1))
	b := newBed(t, []string{c.address}, narrow, func(g *Guard) { g.options.Memory, g.options.Silence = memory, time.Hour })
	a := b.byHand(t)
	data := a.data()
	b.network.stickData()
	sent := bytes.Repeat(everything(0, 1), 100)
	var writes atomic.Int64
	var obeys atomic.Bool
	var tracing sync.WaitGroup
	tracing.Go(func() {
		for !obeys.Load() {
			if _, err := data.Write(sent); err != nil {
				return
			}
			writes.Add(1)
		}
	})
	require.Equal(t, bytefrog.TypeSuspend, a.hear().Type())
	before, same := int64(0), 0
	b.await("the program to wait", func() bool {
		if n := writes.Load(); n != before {
			before, same = n, 0
		}
		same++
		return same > 10 || b.guard.counts.Losses.Load() > 0
	})
	obeys.Store(true)
	a.say(bytefrog.DataBreak{})
	tracing.Wait()
	b.await("the rest", func() bool {
		return b.guard.counts.Losses.Load() > 0 || b.guard.State().Waiting == int(writes.Load())*len(sent)
	})
	assert.Zero(t, b.guard.counts.Losses.Load())
}

func TestTooMuchWaitingDataLosesTheLink(t *testing.T) {
	const memory = mib
	c := play(t, starting(t, 1))
	b := newBed(t, []string{c.address}, narrow, func(g *Guard) { g.options.Memory, g.options.Silence = memory, time.Hour })
	a := b.byHand(t)
	data := a.data()
	b.network.stick(true)
	// It got suspend long before, and continues to send.
	sent := everything(0, 1)
	_, err := data.Write(bytes.Repeat(sent, memory/2/len(sent)))
	require.NoError(t, err)
	require.Equal(t, bytefrog.TypeSuspend, a.hear().Type())
	b.await("half of it", func() bool { return b.guard.State().Waiting > memory/2-2*len(sent) })
	assert.Zero(t, b.guard.counts.Losses.Load())
	_, err = data.Write(bytes.Repeat(sent, memory/len(sent)))
	require.NoError(t, err)
	b.await("the loss", func() bool { return b.guard.counts.Losses.Load() == 1 })
	b.await("the count of lost bytes", func() bool { return b.guard.counts.LostBytes.Load() > memory })
}

// If an agent closes its connections while the collector reads nothing, the collector sees the end after the waiting
// data.
func TestTheWaitingDataOfAClosedAgentIsForwarded(t *testing.T) {
	c := newCollector(t, testkit.Address(t))
	b := newBed(t, []string{c.address}, func(g *Guard) { g.options.Silence = time.Hour })
	p := &counting{until: 50_000}
	b.network.stick(true)
	_, results := b.start(t.Context(), p)
	result := func() bytefrogagent.Result {
		// It cannot send hello yet.
		b.network.stick(false)
		b.await("a run", func() bool { return b.guard.State().Connected == 1 || b.guard.counts.Runs.Load() == 1 })
		b.network.stick(true)
		return ended(t, results)
	}()
	assert.Equal(t, bytefrogagent.Completed, result.Outcome, result.Reason)
	b.network.stick(false)
	c.awaitEnds(1)
	c.stop()
	runs := c.runs()
	require.Equal(t, []uint64{0}, p.checkRuns(t, runs))
	only := onlyRun(t, runs)
	assert.Equal(t, 50_000, len(only.events))
	assert.True(t, only.ended)
}

// highest returns the room for a connection beyond the queue.
func highest(l *link) (level int64) {
	for _, o := range l.outlets() {
		o.mu.Lock()
		level = max(level, o.room.level)
		o.mu.Unlock()
	}
	return level
}
