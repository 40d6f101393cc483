// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// tickInterval is the interval between two runs of the timers of all streams.
const tickInterval = 100 * time.Millisecond

// clock is the monotonic time by which events and streams wait. The times of events are on the clock
// of package pairing. This one stands still
//
//   - while the engine refuses, or a call to the next component takes long: the missing
//     events may be in a refused hand-over, or wait behind the call;
//   - while the timers are late: a machine that delays them delays missing events too.
//
// It also knows the hand-overs under way: an event that arrived is not missing, however long
// accepting it takes.
type clock struct {
	// elapsed is the time since the engine was made.
	elapsed func() time.Duration
	// patience bounds a call to the next component, and beatPatience the delay of the timers,
	// before the clock stands still.
	patience, beatPatience time.Duration

	mu sync.Mutex
	// refusing: the engine refuses. calls are the begin times of the calls to the next
	// component that are under way.
	refusing bool
	calls    underWay
	// beating: the timers run. beat is the time of their last run.
	beating bool
	beat    time.Duration
	// arrivals are the times of the hand-overs under way, as the clock showed them.
	arrivals underWay
	// stopped is the sum of all times in which the clock stood still. still: it stands
	// still now, since since.
	stopped, since time.Duration
	still          bool
}

// underWay are begin times, earliest first.
type underWay []time.Duration

// end removes one begin time.
func (u *underWay) end(began time.Duration) {
	i := slices.Index(*u, began)
	*u = slices.Delete(*u, i, i+1)
}

func newClock(patience time.Duration) *clock {
	start := time.Now()
	return &clock{patience: patience, beatPatience: 2 * tickInterval, elapsed: func() time.Duration { return time.Since(start) }}
}

func (c *clock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shows()
}

// shows is now for a caller that holds mu.
func (c *clock) shows() time.Duration {
	now := c.elapsed()
	c.settle(now)
	if c.still {
		now = c.since
	}
	return now - c.stopped
}

// handoverBegun notes that a hand-over arrived. The result is for handoverDone.
func (c *clock) handoverBegun() (came time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	came = c.shows()
	c.arrivals = append(c.arrivals, came)
	return came
}

// handoverDone notes that a hand-over was accepted or refused.
func (c *clock) handoverDone(came time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arrivals.end(came)
}

// settledUntil is the time until which all arrived hand-overs are done: now, or the arrival
// of the first one under way.
func (c *clock) settledUntil() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.arrivals) > 0 {
		return c.arrivals[0]
	}
	return c.shows()
}

// tick notes a run of the timers. again: another one follows.
func (c *clock) tick(again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.elapsed()
	c.settle(now)
	c.beating, c.beat = again, now
	c.settle(now)
}

// refuse notes whether the engine refuses.
func (c *clock) refuse(refusing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.elapsed()
	c.settle(now)
	c.refusing = refusing
	c.settle(now)
}

// begin notes that a call to the next component begins. The result is for end.
func (c *clock) begin() (began time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	began = c.elapsed()
	c.calls = append(c.calls, began)
	return began
}

func (c *clock) end(began time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.elapsed()
	c.settle(now)
	c.calls.end(began)
	c.settle(now)
}

// hasCallSince reports whether a call to the next component has been under way for longer than a time.
func (c *clock) hasCallSince(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls) > 0 && c.elapsed()-c.calls[0] > d
}

// settle stops or restarts the clock at the time now, if there is a reason. A slow call or a
// late timer is noticed afterwards, so settle stops the clock in the past. The clock has not
// shown a later time meanwhile.
func (c *clock) settle(now time.Duration) {
	since, still := now, c.refusing
	if len(c.calls) > 0 && now-c.calls[0] > c.patience {
		since, still = c.calls[0]+c.patience, true
	}
	if c.beating && now-c.beat > c.beatPatience {
		since, still = min(since, c.beat+c.beatPatience), true
	}
	switch {
	case still && !c.still:
		c.since = since
	case !still && c.still:
		c.stopped += now - c.since
	}
	c.still = still
}

// gapClock is the time by which the missing numbers of one call stream wait. It goes with the
// processor's clock, but stands still while no batch of the stream arrives: a component in front of
// the engine, such as memory_limiter, may refuse all of them. An agent that is alive sends empty
// batches, so a gap is given up while batches of its stream arrive. If none arrives for maxSilence,
// the stream has moved to another collector, or its agent is dead.
type gapClock struct {
	// lastBatch is when the last batch arrived, and atLastBatch is what the gap clock showed then.
	lastBatch, atLastBatch time.Duration
	// ending: the end of the stream is known. No batch has to follow, so the clock does not stop.
	ending bool
}

const (
	// silenceShare is the part of reorder.max_wait, one of so many, after which the clock of a
	// silent stream stands still. The other part remains for missing batches that are sent again
	// when the component accepts.
	silenceShare = 2
	// maxSilence is the silence after which the clock goes on.
	maxSilence = time.Minute
)

// noteBatch notes that a batch arrived at the time now of the engine's clock.
func (c *gapClock) noteBatch(b *callevent.Batch, now, maxWait time.Duration) {
	c.atLastBatch, c.lastBatch = c.at(now, maxWait), now
	for _, barrier := range b.Barriers {
		c.ending = c.ending || barrier.Kind == callevent.BarrierEnd
	}
}

// at is what the gap clock shows at the time now of the engine's clock.
func (c *gapClock) at(now, maxWait time.Duration) time.Duration {
	silence := now - c.lastBatch
	if !c.ending {
		silence -= max(0, min(silence, maxSilence)-maxWait/silenceShare)
	}
	return c.atLastBatch + silence
}
