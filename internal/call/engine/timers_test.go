// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callsum"
	"github.com/callbraid/callbraid/internal/testkit"
)

// withGap hands over a stream: numbers 0 and 1 are paired, 2 is missing, 3 and 4 wait.
func withGap(b *bed) {
	b.handOver(call(1, "f", 0), call(1, "g", 3))
	require.Equal(b.t, []string{"s1/f 0"}, b.next.accepted())
	require.EqualValues(b.t, 2, b.sum("waiting_events"))
}

func TestAMissingNumberIsGivenUpAfterMaxWait(t *testing.T) {
	b := newBed(t)
	withGap(b)
	b.passAlive(5*time.Second - time.Millisecond)
	b.tick()
	require.Empty(t, b.next.accepted())
	b.pass(time.Millisecond)
	b.tick()
	assert.Equal(t, []string{"s1/g 3"}, b.next.accepted())
	assert.EqualValues(t, 1, b.sum("breaks", "gap"))
	assert.EqualValues(t, 1, b.sum("missing_numbers"))
	b.handOver(batch{stream: 1, first: 2, events: []string{"skip"}})
	assert.EqualValues(t, 1, b.sum("late_events"))
	b.finish()
}

// A missing event may be in a refused hand-over.
func TestNoNumberIsGivenUpWhileTheProcessorRefuses(t *testing.T) {
	b := newBed(t)
	withGap(b)
	b.passAlive(5 * time.Second)
	b.next.answerWith(refuses)
	b.handOver(call(2, "h", 0))
	b.tick()
	assert.Zero(t, b.sum("breaks"), "not even one whose time is over")
	b.pass(time.Hour)
	b.tick()
	b.refuse(batch{stream: 1, first: 2, events: []string{"skip"}})
	assert.Zero(t, b.sum("breaks"))
	assert.EqualValues(t, 1, b.sum("streams")-1, "nor is a stream idle")

	b.next.answerWith(nil)
	b.handOver(batch{stream: 1, first: 2, events: []string{"skip"}})
	assert.Equal(t, []string{"s2/h 0", "s1/g 3"}, b.next.accepted())
	assert.Zero(t, b.sum("breaks"))
	b.finish()
}

// A component in front of the processor, such as memory_limiter, may refuse all batches of a stream.
func TestNoNumberIsGivenUpWhileNoBatchOfItsStreamArrives(t *testing.T) {
	b := newBed(t)
	withGap(b)
	for n := range uint64(50) {
		b.pass(time.Second)
		b.tick()
		b.handOver(call(2, "other", 2*n))
	}
	b.next.accepted()
	// The component accepts again, and the missing batch is not the first that arrives.
	b.handOver(call(1, "h", 5))
	b.pass(2 * time.Second)
	b.tick()
	b.handOver(batch{stream: 1, first: 2, events: []string{"skip"}})
	assert.Equal(t, []string{"s1/g 3", "s1/h 5"}, b.next.accepted())
	b.finish()
	for _, lost := range []string{"breaks", "missing_numbers", "late_events", "truncated_frames"} {
		assert.Zero(t, b.sum(lost), lost)
	}
}

// givenUpAfter expects that the gap of withGap is given up after a time, and not earlier.
func givenUpAfter(b *bed, d time.Duration) {
	b.t.Helper()
	b.pass(d - 1)
	b.tick()
	require.Zero(b.t, b.sum("breaks"))
	b.pass(1)
	b.tick()
	assert.Equal(b.t, []string{"s1/g 3"}, b.next.accepted())
	assert.EqualValues(b.t, 1, b.sum("missing_numbers"))
	b.finish()
}

func TestAGapOfAProgramThatMakesNoCallsIsGivenUpAfterTheNextEmptyBatch(t *testing.T) {
	b := newBed(t)
	withGap(b)
	b.pass(10 * time.Second)
	b.handOver(batch{stream: 1})
	givenUpAfter(b, 2500*time.Millisecond)
}

// Such as one that moved to another collector.
func TestAGapOfAStreamWithoutBatchesIsGivenUpAfterAMinuteAndHalfOfMaxWait(t *testing.T) {
	b := newBed(t, func(c *Config) { c.IdleTimeout = time.Hour })
	withGap(b)
	givenUpAfter(b, time.Minute+2500*time.Millisecond)
}

func TestAGapOfAStreamThatHasEndedIsGivenUpAfterMaxWait(t *testing.T) {
	b := newBed(t)
	withGap(b)
	b.handOver(batch{stream: 1, barriers: []callevent.Barrier{callevent.End(5, callevent.CauseEnded)}})
	givenUpAfter(b, 5*time.Second)
}

// A missing event may also wait behind a call to the next component, such as a blocking queue.
func TestNoNumberIsGivenUpAndNoStreamIsIdleWhileTheNextComponentBlocks(t *testing.T) {
	b := newBed(t)
	withGap(b)
	b.handOver(batch{stream: 1, first: 5, events: []string{"enter main"}})
	inside, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error)
	b.next.answerWith(func(context.Context, ptrace.Traces) error {
		close(inside)
		<-goOn
		return nil
	})
	blocked := traces(t, call(2, "h", 0))
	go func() { done <- b.ConsumeTraces(context.Background(), blocked) }()
	<-inside
	b.pass(time.Hour)
	b.tick()
	assert.Zero(t, b.sum("breaks"))
	assert.EqualValues(t, 2, b.sum("streams"))
	b.next.answerWith(nil)
	close(goOn)
	require.NoError(t, <-done)
	b.tick()
	b.handOver(batch{stream: 1, first: 2, events: []string{"skip"}}, batch{stream: 1, first: 6, events: []string{"exit main"}})
	assert.Equal(t, []string{"s2/h 0", "s1/g 3", "s1/main 5"}, b.next.accepted())
	b.finish()
	assert.Zero(t, b.sum("truncated_frames"))
}

// An event that arrives in time is not late, however long its hand-over takes.
func TestNoNumberIsGivenUpThatMayBeInAHandOverUnderWay(t *testing.T) {
	b := newBed(t)
	withGap(b)
	b.passAlive(5*time.Second - time.Millisecond)
	came := b.clock.handoverBegun()
	b.pass(time.Hour)
	b.tick()
	assert.EqualValues(t, 1, b.sum("streams"), "nor is a stream idle")
	b.clock.handoverDone(came)
	b.next.answerWith(func(context.Context, ptrace.Traces) error {
		assert.Len(t, b.clock.arrivals, 1)
		return nil
	})
	b.handOver(batch{stream: 1, first: 2, events: []string{"skip"}})
	assert.Empty(t, b.clock.arrivals)
	assert.Equal(t, []string{"s1/g 3"}, b.next.accepted())
	assert.Zero(t, b.sum("late_events"))

	// An event that does not arrive in time is late.
	b.handOver(call(1, "h", 6))
	b.passAlive(5 * time.Second)
	defer b.clock.handoverDone(b.clock.handoverBegun())
	b.tick()
	assert.Equal(t, []string{"s1/h 6"}, b.next.accepted())
	assert.EqualValues(t, 1, b.sum("breaks", "gap"))
	b.finish()
}

func TestAStreamIsEndedAndForgottenAfterIdleTimeout(t *testing.T) {
	b := newBed(t)
	b.handOver(batch{stream: 1, events: []string{"enter main", "enter f"}}, call(2, "g", 0))
	for range 10 {
		// An empty batch shows that the agent is alive.
		b.pass(10 * time.Second)
		b.handOver(batch{stream: 1, next: 2})
		b.tick()
	}
	assert.EqualValues(t, 1, b.sum("streams"), "the other stream was silent")
	b.pass(time.Minute)
	b.tick()
	assert.EqualValues(t, 1, b.sum("streams"), "not yet")
	b.pass(time.Millisecond)
	b.tick()
	assert.Equal(t, []string{"s2/g 0", "s1/f 1 truncated:idle", "s1/main 0 truncated:idle"}, b.next.accepted())
	assert.EqualValues(t, 2, b.sum("truncated_frames", "idle"))
	for _, name := range []string{"streams", "open_frames", "memory", "waiting_events"} {
		assert.Zero(t, b.sum(name), name)
	}
	assert.Zero(t, b.accounts.bytes.Load())

	// A later batch begins a call stream from the middle.
	b.handOver(batch{stream: 1, first: 2, events: []string{"exit f", "enter h", "exit h"}})
	b.passAlive(5 * time.Second)
	b.tick()
	assert.Equal(t, []string{"s1/h 3"}, b.next.accepted())
	assert.EqualValues(t, 1, b.sum("breaks", "joined"))
	assert.EqualValues(t, 1, b.sum("orphans"))
	b.finish()
}

// A stream that is idle with a gap gives the gap up before it ends.
func TestWaitingEventsOfAnIdleStreamArePaired(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Reorder.MaxWait, c.IdleTimeout = 59*time.Second, time.Minute })
	withGap(b)
	b.pass(time.Minute + time.Second)
	b.tick()
	assert.Equal(t, []string{"s1/g 3"}, b.next.accepted())
	assert.Zero(t, b.sum("streams"))
	b.finish()
}

// The processor remembers an ended stream until it is idle, so late and repeated events do not
// begin it again.
func TestBatchesAfterTheEndOfTheirStreamAreCounted(t *testing.T) {
	b := newBed(t)
	end := []callevent.Barrier{callevent.End(3, callevent.CauseEnded)}
	b.handOver(batch{stream: 1, events: []string{"enter f", "exit f", "enter main"}, barriers: end})
	assert.Equal(t, []string{"s1/f 0", "s1/main 2 truncated:ended"}, b.next.accepted())
	b.handOver(batch{stream: 1, events: []string{"enter f", "exit f"}, barriers: end},
		batch{stream: 1, first: 3, events: []string{"enter g", "exit g", "skip"}})
	assert.Empty(t, b.next.accepted())
	assert.EqualValues(t, 2, b.sum("duplicate_events"))
	assert.EqualValues(t, 3, b.sum("late_events"))
	assert.EqualValues(t, 1, b.sum("streams"))
	assert.EqualValues(t, 1, b.sum("truncated_frames", "ended"))
	b.pass(time.Minute + time.Second)
	b.tick()
	assert.Zero(t, b.sum("streams"))
	b.finish()
	assert.EqualValues(t, 1, b.sum("truncated_frames"))
}

// Start begins the timers.
func TestStartStartsTheTimers(t *testing.T) {
	b := newBed(t)
	// Time jumps here, and the timers do not count as late.
	b.clock.beatPatience = time.Hour
	require.NoError(t, b.Start(context.Background(), componenttest.NewNopHost()))
	withGap(b)
	b.passAlive(5 * time.Second)
	var lines []string
	require.True(t, testkit.Happens(func() bool { lines = append(lines, b.next.accepted()...); return len(lines) > 0 }))
	assert.Equal(t, []string{"s1/g 3"}, lines)
	b.finish()
}

// From Start to Shutdown the clock stops if the timers are late.
func TestEachRunOfTheTimersReachesTheClock(t *testing.T) {
	b := newBed(t)
	beat := func() (beating bool, at time.Duration) {
		b.clock.mu.Lock()
		defer b.clock.mu.Unlock()
		return b.clock.beating, b.clock.beat
	}
	beating, _ := beat()
	assert.False(t, beating)
	require.NoError(t, b.Start(context.Background(), componenttest.NewNopHost()))
	for n := range time.Duration(3) {
		b.pass(time.Second)
		require.True(t, testkit.Happens(func() bool { beating, at := beat(); return beating && at == (n+1)*time.Second }))
	}
	b.finish()
	beating, _ = beat()
	assert.False(t, beating)
}

func TestShutdownEndsAllStreams(t *testing.T) {
	b := newBed(t)
	b.handOver(batch{stream: 1, events: []string{"enter main", "enter f"}},
		batch{stream: 1, first: 3, events: []string{"enter g", "exit g"}},
		batch{stream: 2, events: []string{"enter h"}})
	b.finish()
	assert.ElementsMatch(t, []string{
		"s1/g 3", "s1/f 1 truncated:gap", "s1/main 0 truncated:gap", "s2/h 0 truncated:shutdown",
	}, b.next.accepted())
	for _, name := range []string{"streams", "open_frames", "memory", "waiting_events", "held_spans"} {
		assert.Zero(t, b.sum(name), name)
	}
}

func TestShutdownTwiceAndWithoutStart(t *testing.T) {
	b := newBed(t)
	b.handOver(batch{stream: 1, events: []string{"enter main"}})
	b.finish()
	b.finish()
	assert.Equal(t, []string{"s1/main 0 truncated:shutdown"}, b.next.accepted())

	b = newBed(t)
	require.NoError(t, b.Start(context.Background(), componenttest.NewNopHost()))
	b.finish()
	b.finish()
}

// A shutdown offers held spans until shutdown_timeout. Then it drops and counts them.
func TestShutdownOffersHeldSpansUntilItsTimeOut(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(c *Config) { c.ShutdownTimeout = time.Second })
	b.next.answerWith(refuses)
	b.handOver(call(1, "f", 0), batch{stream: 2, events: []string{"enter main"}})
	before := b.next.timesAsked()
	began := time.Now()
	b.finish()
	assert.GreaterOrEqual(t, time.Since(began), time.Second)
	assert.Greater(t, b.next.timesAsked(), before+1, "it was offered repeatedly")
	assert.EqualValues(t, 2, b.sum("dropped_spans", string(atShutdown)))
	assert.Zero(t, b.sum("held_spans"))
	assert.Empty(t, b.next.accepted())
	logs := b.logs.All()
	require.Len(t, logs, 1)
	assert.Equal(t, "the queue is full", logs[0].ContextMap()["error"])
}

func TestShutdownDeliversWhenTheNextComponentAcceptsAgain(t *testing.T) {
	b := newBed(t)
	b.next.answerWith(refuses)
	b.handOver(call(1, "f", 0))
	asked := 0
	b.next.answerWith(func(context.Context, ptrace.Traces) error {
		if asked++; asked < 3 {
			return errFull
		}
		return nil
	})
	b.finish()
	assert.Equal(t, []string{"s1/f 0"}, b.next.accepted())
	assert.Zero(t, b.sum("dropped_spans"))
}

// A next component that blocks until its context ends does not prolong a shutdown, with any number
// of open calls.
func TestShutdownEndsAtItsTimeoutWhileTheNextComponentBlocks(t *testing.T) {
	b := newBed(t, func(c *Config) { c.ShutdownTimeout = 50 * time.Millisecond })
	const open = 2*maxSpansPerCall + 1
	b.handOver(batch{stream: 1, events: many(open, "enter f")})
	b.next.answerWith(func(ctx context.Context, _ ptrace.Traces) error {
		<-ctx.Done()
		return ctx.Err()
	})
	b.finish()
	assert.EqualValues(t, open, b.sum("truncated_frames", "shutdown"))
	assert.EqualValues(t, open, b.sum("dropped_spans", string(atShutdown)))
}

// A timer inside the next component does not prolong it either.
func TestShutdownInterruptsATimer(t *testing.T) {
	b := newBed(t, func(c *Config) { c.ShutdownTimeout = 50 * time.Millisecond })
	withGap(b)
	inside := make(chan struct{}, 100)
	b.next.answerWith(func(ctx context.Context, _ ptrace.Traces) error {
		inside <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	b.passAlive(5 * time.Second)
	require.NoError(t, b.Start(context.Background(), componenttest.NewNopHost()))
	<-inside
	b.finish()
	assert.EqualValues(t, 1, b.sum("dropped_spans", string(atShutdown)))
}

// The next component may have stored the spans of a cancelled delivery. They would be offered to it again.
func TestAShutdownDoesNotCancelADeliveryThatHasBegun(t *testing.T) {
	for name, b := range map[string]*bed{"of a timer": newBed(t), "of held spans": newBedWithSums(t)} {
		t.Run(name, func(t *testing.T) {
			if b.delivery.goesOn {
				b.next.answerWith(refuses)
				b.handOver(call(1, "f", 0))
			} else {
				withGap(b)
				b.passAlive(5 * time.Second)
			}
			before := b.next.timesAsked()
			inside := make(chan struct{}, 100)
			b.next.answerWith(func(ctx context.Context, _ ptrace.Traces) error {
				inside <- struct{}{}
				<-b.memory.done // the shutdown has begun
				return ctx.Err()
			})
			require.NoError(t, b.Start(context.Background(), componenttest.NewNopHost()))
			<-inside
			b.finish()
			assert.Len(t, b.next.accepted(), 1)
			assert.Equal(t, before+1, b.next.timesAsked(), "the spans arrive once")
			assert.Zero(t, b.sum("dropped_spans"))
		})
	}
}

// begins runs a hand-over whose delivery lasts until the shutdown cancels it. It returns the answer to the hand-over.
func (b *bed) begins(td ptrace.Traces, later func(context.Context, ptrace.Traces) error) (answer chan error) {
	inside, answer := make(chan struct{}), make(chan error, 1)
	b.next.answerWith(func(ctx context.Context, _ ptrace.Traces) error {
		b.next.answerWith(later)
		close(inside)
		<-ctx.Done()
		return ctx.Err()
	})
	go func() { answer <- b.ConsumeTraces(context.Background(), td) }()
	<-inside
	return answer
}

// The spans of a hand-over that waits in the next component are delivered in the rest of the time.
func TestAShutdownDeliversTheSpansOfAHandOverThatHangs(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]Settings{"without sums": {}, "with sums": {Sums: noSums{}, SumSettings: &callsum.Settings{}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBedOf(t, set, &next{}, func(c *Config) { c.ShutdownTimeout = 8 * time.Second })
			require.NoError(t, b.Start(context.Background(), componenttest.NewNopHost()))
			b.handOver(batch{stream: 2, events: []string{"enter main"}})
			answer := b.begins(traces(t, call(1, "f", 0)), nil)
			b.finish()
			require.NoError(t, <-answer)
			assert.Equal(t, []string{"s1/f 0", "s2/main 0 truncated:shutdown"}, b.next.accepted())
			assert.Zero(t, b.sum("dropped_spans"))
		})
	}
}

// If the next component hangs until the end of the time, a line has the number of lost spans, although a line of
// the same text was written just before.
func TestAShutdownCountsAndLogsTheSpansOfAHandOverThatHangsUntilItsTimeout(t *testing.T) {
	b := newBed(t, func(c *Config) { c.ShutdownTimeout = 100 * time.Millisecond })
	b.next.answerWith(func(context.Context, ptrace.Traces) error { return consumererror.NewPermanent(errFull) })
	b.handOver(call(2, "g", 0))
	answer := b.begins(traces(t, call(1, "f", 0)), func(ctx context.Context, _ ptrace.Traces) error {
		<-ctx.Done()
		return ctx.Err()
	})
	b.finish()
	require.NoError(t, <-answer)
	assert.EqualValues(t, 1, b.sum("dropped_spans", string(atShutdown)))
	lines := b.logs.FilterMessage("Dropped finished spans").FilterField(zap.String("reason", string(atShutdown))).All()
	require.Len(t, lines, 1)
	assert.EqualValues(t, 1, lines[0].ContextMap()["spans"])
}

// A hand-over that waits for room leaves time for the spans of other streams.
func TestAShutdownEndsTheWaitForRoom(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxHeldMiB, c.ShutdownTimeout = 1, 8*time.Second })
	b.handOver(batch{stream: 2, events: []string{"enter main"}})
	waits, answer := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	b.next.answerWith(func(context.Context, ptrace.Traces) error {
		if b.Engine.next.(nextComponent).begun.Err() != nil && !b.delivery.isEnding.Load() {
			return nil // no hand-over waits any more
		}
		if b.delivery.spans.Load() > 0 { // an offer by the hand-over that waits
			once.Do(func() { close(waits) })
		}
		return errFull
	})
	td := traces(t, batch{stream: 1, events: many(5_000, "enter f", "exit f")})
	go func() { answer <- b.ConsumeTraces(context.Background(), td) }()
	<-waits
	b.finish()
	require.NoError(t, <-answer)
	assert.Equal(t, 5_001, len(b.next.accepted()))
	assert.Zero(t, b.sum("dropped_spans"))
}

// A hand-over that arrives in a shutdown does not wait for those under way.
func TestAShutdownRefusesHandOversBeforeItWaits(t *testing.T) {
	b := newBed(t, func(c *Config) { c.ShutdownTimeout = time.Minute })
	require.NoError(t, b.Start(context.Background(), componenttest.NewNopHost()))
	inside, answer := make(chan struct{}), make(chan error, 1)
	b.next.answerWith(func(context.Context, ptrace.Traces) error {
		b.next.answerWith(nil)
		close(inside)
		<-b.memory.done // the shutdown has begun
		again := traces(t, call(2, "g", 0))
		assert.ErrorIs(t, b.ConsumeTraces(context.Background(), again), errShutdown)
		assert.True(t, testkit.Happens(func() bool { // it waits
			free := b.calls.TryRLock()
			if free {
				b.calls.RUnlock()
			}
			return !free
		}))
		assert.ErrorIs(t, b.ConsumeTraces(context.Background(), again), errShutdown)
		return nil
	})
	go func() { answer <- b.ConsumeTraces(context.Background(), traces(t, call(1, "f", 0))) }()
	<-inside
	b.finish()
	require.NoError(t, <-answer)
	assert.Equal(t, []string{"s1/f 0"}, b.next.accepted())
}

// A delivery that does not end is cancelled in time, and its spans are offered again.
func TestAShutdownHasTimeForSpansAfterADeliveryThatHangs(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(c *Config) { c.ShutdownTimeout = 8 * time.Second })
	withGap(b)
	inside := make(chan struct{}, 100)
	b.next.answerWith(func(ctx context.Context, _ ptrace.Traces) error {
		b.next.answerWith(nil)
		inside <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	b.passAlive(5 * time.Second)
	require.NoError(t, b.Start(context.Background(), componenttest.NewNopHost()))
	<-inside
	b.finish()
	assert.Len(t, b.next.accepted(), 1)
	assert.Zero(t, b.sum("dropped_spans"))
}
