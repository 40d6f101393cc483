// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// (a) Held spans go first; refused again, the call is refused and nothing is taken.
func TestHeldSpansGoFirst(t *testing.T) {
	b := newBed(t)
	b.next.will(refuses)
	b.take(call(1, "first", 0))
	assert.EqualValues(t, 1, b.sum("held_spans"), "the call succeeds, and its span is held")

	err := b.refuse(call(1, "second", 2))
	require.ErrorContains(t, err, "held because the next component refuses them: the queue is full")
	assert.EqualValues(t, 1, b.sum("refused_calls"))
	assert.EqualValues(t, 1, b.sum("batches"), "nothing of a refused call is taken")
	assert.EqualValues(t, 2, b.sum("events"))

	b.next.will(nil)
	b.take(call(1, "second", 2))
	assert.Equal(t, []string{"s1/first 0", "s1/second 2"}, b.next.accepted())
	assert.Zero(t, b.sum("held_spans"))
	b.finish()
}

func TestOrdinarySpansWaitForHeldSpansToo(t *testing.T) {
	b := newBed(t)
	b.next.will(refuses)
	b.take(call(1, "first", 0))
	td := ptrace.NewTraces()
	ordinary(td, "cart")
	require.Error(t, b.ConsumeTraces(context.Background(), td))
	b.next.will(nil)
	require.NoError(t, b.ConsumeTraces(context.Background(), td))
	assert.Equal(t, []string{"s1/first 0", "web/cart"}, b.next.accepted())
	b.finish()
}

// What is finished while spans are held waits behind them: the next component is
// not asked again in the same call.
func TestWhatIsFinishedWaitsBehindWhatIsHeld(t *testing.T) {
	b := newBed(t)
	b.next.will(func(context.Context, ptrace.Traces) error {
		b.next.will(nil)
		return errFull
	})
	b.take(call(1, "f", 0), call(2, "g", 0))
	assert.Equal(t, 1, b.next.timesAsked())
	assert.EqualValues(t, 2, b.sum("held_spans"))
	b.tick()
	assert.Equal(t, []string{"s1/f 0", "s2/g 0"}, b.next.accepted())
	b.finish()
}

// The part of the held spans that the next component names is none of the caller's.
func TestTheErrorOfHeldSpansNamesNoPartOfThem(t *testing.T) {
	b := newBed(t)
	b.next.will(b.next.takesHalf)
	b.take(batch{stream: 1, events: many(4, "enter f", "exit f")})
	err := b.refuse(call(1, "g", 8))
	var part consumererror.Traces
	assert.NotErrorAs(t, err, &part)
	b.next.will(nil)
	b.take(call(1, "g", 8))
	assert.Equal(t, []string{"s1/f 0", "s1/f 2", "s1/f 4", "s1/f 6", "s1/g 8"}, b.next.accepted())
	b.finish()
}

// large is a batch that needs more than half of the room of a small processor.
func large(stream byte) batch {
	return batch{stream: stream, events: many(9_000, "enter f", "exit f")}
}

func small(c *Config) { c.Reorder.MaxMiB = 1 }

// (b) Room for all batches of a call is reserved, or the call is refused.
func TestACallForWhichThereIsNoRoomIsRefused(t *testing.T) {
	b := newBed(t, small)
	inside, goOn := make(chan struct{}), make(chan struct{})
	b.next.will(func(context.Context, ptrace.Traces) error {
		b.next.will(nil)
		close(inside)
		<-goOn
		return nil
	})
	done := make(chan error)
	first, second := traces(t, large(1)), traces(t, large(2))
	go func() { done <- b.ConsumeTraces(context.Background(), first) }()
	<-inside

	err := b.ConsumeTraces(context.Background(), second)
	require.ErrorIs(t, err, errNoRoom)
	assert.False(t, consumererror.IsPermanent(err))
	assert.EqualValues(t, 1, b.sum("refused_calls"))
	assert.EqualValues(t, 1, b.sum("batches"), "nothing of it is taken")

	close(goOn)
	require.NoError(t, <-done)
	require.NoError(t, b.ConsumeTraces(context.Background(), second), "now there is room")
	assert.Zero(t, b.reserved.Load())
	assert.Len(t, b.next.accepted(), 18_000)
	b.finish()
}

func TestACallThatIsAloneAlwaysHasRoom(t *testing.T) {
	b := newBed(t, small)
	b.take(large(1), large(2), large(3))
	assert.Len(t, b.next.accepted(), 27_000)
	b.finish()
}

// (c) Ordinary spans pass unchanged, with the caller's context.
func TestOrdinarySpansInACallWithBatchesPassUnchanged(t *testing.T) {
	b := newBed(t)
	td := traces(t, call(1, "f", 0))
	ordinary(td, "cart")
	// A batch and an ordinary span in one scope.
	traces(t, call(2, "g", 0)).ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).
		CopyTo(td.ResourceSpans().At(1).ScopeSpans().At(0).Spans().AppendEmpty())
	td.MarkReadOnly()
	before := text(t, td)
	want := ptrace.NewTraces()
	ordinary(want, "cart")

	var got []string
	b.next.will(func(ctx context.Context, td ptrace.Traces) error {
		assert.Equal(t, []string{"acme"}, client.FromContext(ctx).Metadata.Get("tenant"))
		got = append(got, text(t, td))
		return nil
	})
	require.NoError(t, b.ConsumeTraces(tenant("acme"), td))
	require.Len(t, got, 3)
	assert.Equal(t, text(t, want), got[0])
	assert.Equal(t, before, text(t, td), "what was handed over stays as it is")
	assert.Equal(t, []string{"web/cart", "s1/f 0", "web/g 0"}, b.next.accepted())
	b.finish()
}

func TestACallWithoutBatchesPassesAsItIs(t *testing.T) {
	b := newBed(t)
	td := ptrace.NewTraces()
	ordinary(td, "cart")
	named := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().AppendEmpty()
	named.SetName(callevent.SpanName)
	same := false
	b.next.will(func(_ context.Context, got ptrace.Traces) error { same = got == td; return nil })
	require.NoError(t, b.ConsumeTraces(context.Background(), td))
	assert.True(t, same, "a span is no batch for its name alone")
	b.next.will(refuses)
	require.Equal(t, errFull, b.ConsumeTraces(context.Background(), td), "and the error is the next component's own")
	require.NoError(t, newBed(t).ConsumeTraces(context.Background(), ptrace.NewTraces()))
	b.finish()
}

func TestACallWhoseOrdinarySpansAreRefusedIsRefused(t *testing.T) {
	for _, test := range []struct {
		name      string
		answer    func(context.Context, ptrace.Traces) error
		permanent bool
	}{
		{"for now", refuses, false},
		{"for good", failsForGood, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t)
			td := traces(t, call(1, "f", 0))
			ordinary(td, "cart")
			before := text(t, td)
			b.next.will(test.answer)
			err := b.ConsumeTraces(context.Background(), td)
			require.Error(t, err)
			assert.Equal(t, test.permanent, consumererror.IsPermanent(err))
			if !test.permanent {
				assert.Equal(t, errFull, err)
			}
			assert.Zero(t, b.sum("batches"), "nothing is taken")
			assert.Zero(t, b.sum("held_spans"))
			assert.Zero(t, b.reserved.Load(), "no room is kept")
			assert.Equal(t, before, text(t, td))

			b.next.will(nil)
			require.NoError(t, b.ConsumeTraces(context.Background(), td), "handed over again")
			assert.Equal(t, []string{"web/cart", "s1/f 0"}, b.next.accepted())
			b.finish()
		})
	}
}

// Who hands over the named part alone still hands over the batches.
func TestWhereAPartOfTheOrdinarySpansIsTakenTheErrorNamesTheBatchesAndTheRest(t *testing.T) {
	b := newBed(t)
	td := traces(t, call(1, "f", 0))
	ordinary(td, "cart")
	ordinary(td, "pay")
	b.next.will(b.next.takesHalf)
	err := b.ConsumeTraces(context.Background(), td)
	var part consumererror.Traces
	require.ErrorAs(t, err, &part)
	require.ErrorIs(t, err, errFull)
	assert.Equal(t, []string{"web/cart"}, b.next.accepted())
	b.next.will(nil)
	require.NoError(t, b.ConsumeTraces(context.Background(), part.Data()))
	assert.Equal(t, []string{"web/pay", "s1/f 0"}, b.next.accepted())
	b.finish()
}

// (d) A batch that cannot be unpacked is dropped and counted; it never blocks
// the others, nor its own stream.
func TestABatchThatCannotBeUnpackedIsDropped(t *testing.T) {
	for _, test := range []struct {
		name   string
		adjust func(ptrace.Span)
	}{
		{"its data is cut", func(span ptrace.Span) {
			v, _ := span.Attributes().Get(callevent.AttributeData)
			v.Bytes().FromRaw(v.Bytes().AsRaw()[:100])
		}},
		{"it has no data", func(span ptrace.Span) { span.Attributes().Remove(callevent.AttributeData) }},
		{"its data is empty", func(span ptrace.Span) { span.Attributes().PutEmptyBytes(callevent.AttributeData) }},
		{"its data is no byte string", func(span ptrace.Span) { span.Attributes().PutStr(callevent.AttributeData, "events") }},
		{"its data is nothing", func(span ptrace.Span) { span.Attributes().PutEmpty(callevent.AttributeData) }},
		{"its version is unknown", func(span ptrace.Span) { span.Attributes().PutInt(callevent.AttributeVersion, callevent.Version+1) }},
		{"its version is no number", func(span ptrace.Span) { span.Attributes().PutStr(callevent.AttributeVersion, "1") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t)
			corrupt := call(1, "f", 0)
			corrupt.adjust = test.adjust
			b.take(call(2, "g", 0), corrupt, call(1, "f", 0), corrupt)
			assert.Equal(t, []string{"s2/g 0", "s1/f 0"}, b.next.accepted())
			assert.EqualValues(t, 2, b.sum("corrupt_batches"))
			assert.EqualValues(t, 2, b.sum("batches"))
			logs := b.logs.All()
			require.Len(t, logs, 1, "one line for each burst")
			assert.Contains(t, logs[0].ContextMap()["error"], "call event batch")
			b.finish()
		})
	}
}

// (e) Finished spans are handed on before the call returns, and what is refused
// is held.
func TestFinishedSpansAreHandedOnBeforeTheCallReturns(t *testing.T) {
	four := batch{stream: 1, events: many(4, "enter f", "exit f")}
	lines := []string{"s1/f 0", "s1/f 2", "s1/f 4", "s1/f 6"}
	for _, test := range []struct {
		name     string
		answer   func(*next) func(context.Context, ptrace.Traces) error
		at, then []string
		dropped  int64
	}{
		{"accepted", func(*next) func(context.Context, ptrace.Traces) error { return nil }, lines, nil, 0},
		{"refused: all are held", func(*next) func(context.Context, ptrace.Traces) error { return refuses }, nil, lines, 0},
		{"half taken: the rest is held", func(n *next) func(context.Context, ptrace.Traces) error { return n.takesHalf }, lines[:2], lines[2:], 0},
		{"refused for good: dropped and counted", func(*next) func(context.Context, ptrace.Traces) error { return failsForGood }, nil, nil, 4},
		{"refused, but no part of it: nothing is held", func(n *next) func(context.Context, ptrace.Traces) error {
			return func(ctx context.Context, td ptrace.Traces) error {
				n.accept(ctx, td)
				return consumererror.NewTraces(errFull, ptrace.NewTraces())
			}
		}, lines, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t)
			b.next.will(test.answer(b.next))
			b.take(four)
			assert.Equal(t, test.at, b.next.accepted())
			assert.EqualValues(t, len(test.then), b.sum("held_spans"))
			assert.Equal(t, test.dropped, b.sum("dropped_spans", string(refusedForGood)))
			b.next.will(nil)
			b.tick()
			assert.Equal(t, test.then, b.next.accepted(), "a timer hands on what is held")
			assert.Zero(t, b.sum("held_spans"))
			assert.Zero(t, b.delivery.bytes)
			assert.False(t, b.clock.standing)
			b.finish()
			assert.Equal(t, test.dropped, b.sum("dropped_spans"))
		})
	}
}

// What is held is taken in halves, and then refused for good.
func TestHeldSpansShrinkAsTheyAreTaken(t *testing.T) {
	b := newBed(t)
	b.next.will(refuses)
	b.take(batch{stream: 1, events: many(8, "enter f", "exit f")})
	all := b.delivery.bytes
	b.next.will(b.next.takesHalf)
	b.tick()
	assert.EqualValues(t, 4, b.sum("held_spans"))
	assert.Less(t, b.delivery.bytes, all*6/10, "the bytes that are held are counted again")
	b.tick()
	assert.EqualValues(t, 2, b.sum("held_spans"))
	assert.True(t, b.clock.standing)
	b.next.will(failsForGood)
	b.tick()
	assert.Zero(t, b.sum("held_spans"))
	assert.Zero(t, b.delivery.bytes)
	assert.False(t, b.clock.standing)
	assert.EqualValues(t, 2, b.sum("dropped_spans", string(refusedForGood)))
	assert.Len(t, b.next.accepted(), 6)
	b.finish()
}

func TestHeldSpansOfWhichNoPartIsLeftAreGone(t *testing.T) {
	b := newBed(t)
	b.next.will(refuses)
	b.take(call(1, "f", 0))
	b.next.will(func(ctx context.Context, td ptrace.Traces) error {
		b.next.accept(ctx, td)
		return consumererror.NewTraces(errFull, ptrace.NewTraces())
	})
	b.tick()
	assert.Equal(t, []string{"s1/f 0"}, b.next.accepted())
	assert.Zero(t, b.sum("held_spans"))
	assert.Zero(t, b.delivery.bytes)
	assert.False(t, b.clock.standing, "nothing is held, so the clock goes on")
	b.finish()
}

func TestSpansThatATimerFinishedGoTheSameWay(t *testing.T) {
	for _, test := range []struct {
		name          string
		answer        func(*next) func(context.Context, ptrace.Traces) error
		held, dropped int64
	}{
		{"refused", func(*next) func(context.Context, ptrace.Traces) error { return refuses }, 4, 0},
		{"half taken", func(n *next) func(context.Context, ptrace.Traces) error { return n.takesHalf }, 2, 0},
		{"refused for good", func(*next) func(context.Context, ptrace.Traces) error { return failsForGood }, 0, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t)
			b.take(batch{stream: 1, first: 1, events: many(4, "enter f", "exit f")})
			require.Empty(t, b.next.accepted(), "number 0 is missing")
			b.passAlive(5 * time.Second)
			b.next.will(test.answer(b.next))
			b.tick()
			assert.Equal(t, test.held, b.sum("held_spans"))
			assert.Equal(t, test.dropped, b.sum("dropped_spans"))
			b.next.will(nil)
			b.tick()
			assert.Zero(t, b.sum("held_spans"))
			assert.Len(t, b.next.accepted(), 4-int(test.dropped))
			b.finish()
		})
	}
}

// Whoever finishes more than can be held waits until there is room again.
func TestWhatIsHeldIsBoundedInBytes(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxHeldMiB = 1 })
	full := make(chan struct{})
	var refused sync.Once
	b.next.will(func(context.Context, ptrace.Traces) error {
		// Once to be held, and again by who waits for room.
		if b.delivery.spans.Load() > 0 {
			refused.Do(func() { close(full) })
		}
		return errFull
	})
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		// 8,000 spans of some 500 bytes each: the first parts are held.
		b.take(batch{stream: 1, events: many(16_000, "enter f", "exit f")})
	}()
	select {
	case <-full:
	case <-taken:
		require.FailNow(t, "expected the call to wait for room, but all was held")
	}
	held := b.sum("held_spans")
	assert.Positive(t, held)
	assert.Less(t, held, int64(16_000))
	select {
	case <-taken:
		t.Error("expected the call to wait for room")
	default:
	}
	b.next.will(nil)
	<-taken
	b.tick()
	assert.Zero(t, b.sum("dropped_spans"))
	assert.Len(t, b.next.accepted(), 16_000)
	b.finish()
}

func TestAShutdownDropsWhatCannotBeHeld(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxHeldMiB, c.ShutdownTimeout = 1, time.Millisecond })
	b.take(batch{stream: 1, events: many(16_000, "enter f")})
	b.next.will(refuses)
	b.finish()
	assert.EqualValues(t, 16_000, b.sum("dropped_spans", string(atShutdown)))
	assert.Zero(t, b.sum("held_spans"))
	assert.Len(t, b.logs.All(), 1, "one line for each burst")
}

// What the next component accepts again in time is not dropped, however much
// more the end of all streams finishes.
func TestAShutdownHandsOnWhatIsAcceptedAgain(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxHeldMiB, c.ShutdownTimeout = 1, time.Minute })
	b.take(batch{stream: 1, events: many(16_000, "enter f")})
	var asked atomic.Int32
	b.next.will(func(context.Context, ptrace.Traces) error {
		if asked.Add(1) <= 8 {
			return errFull
		}
		return nil
	})
	b.finish()
	assert.Len(t, b.next.accepted(), 16_000)
	assert.Zero(t, b.sum("dropped_spans"))
}

// A call that is over is answered, even where nothing is accepted and nothing
// more can be held; what it finished is held all the same.
func TestACallThatIsOverDoesNotWaitForRoom(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxHeldMiB = 1 })
	ctx, cancel := context.WithCancel(context.Background())
	b.next.will(func(ctx context.Context, _ ptrace.Traces) error {
		if b.delivery.spans.Load() == 0 {
			return errFull
		}
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	require.NoError(t, b.ConsumeTraces(ctx, traces(t, batch{stream: 1, events: many(16_000, "enter f", "exit f")})))
	assert.EqualValues(t, 16_000, b.sum("held_spans"))
	b.next.will(nil)
	b.tick()
	assert.Len(t, b.next.accepted(), 16_000)
	b.finish()
}

func TestAfterTheShutdownNothingIsTaken(t *testing.T) {
	b := newBed(t)
	b.finish()
	require.ErrorIs(t, b.ConsumeTraces(context.Background(), traces(t, batch{stream: 1, events: many(2, "enter f", "exit f")})), errShutdown)
	assert.Empty(t, b.next.accepted())
}

// Names can make spans long: a call to the next component is bounded in bytes.
func TestACallToTheNextComponentIsBoundedInBytes(t *testing.T) {
	b := newBed(t)
	long := strings.Repeat("x", 16_000)
	var sizer ptrace.ProtoMarshaler
	b.next.will(func(_ context.Context, td ptrace.Traces) error {
		assert.LessOrEqual(t, sizer.TracesSize(td), 3<<20)
		return nil
	})
	b.take(batch{stream: 1, events: many(1000, "enter "+long, "exit "+long)})
	assert.Equal(t, 1000, len(b.next.accepted()), "spans")
	b.finish()
}

// A component that changes what it gets, and then refuses it, gets the original
// again, or it changes it twice.
func TestAComponentThatChangesSpansGetsTheOriginalAgain(t *testing.T) {
	b := newBedWith(t, &next{mutates: true})
	mangle := func(td ptrace.Traces) {
		for _, rs := range td.ResourceSpans().All() {
			service, _ := rs.Resource().Attributes().Get("service.name")
			service.SetStr(service.Str() + "!")
		}
	}
	b.next.will(func(_ context.Context, td ptrace.Traces) error { mangle(td); return errFull })
	b.take(call(1, "f", 0))
	b.tick()
	b.tick()
	b.next.will(func(_ context.Context, td ptrace.Traces) error { mangle(td); return nil })
	b.take(call(1, "f", 2))
	assert.Equal(t, []string{"s1!/f 0", "s1!/f 2"}, b.next.accepted())
	b.finish()
}

// Client metadata of different streams never share a call, whosever call it is
// in which they are handed on.
func TestClientsNeverShareACall(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxStreams = 3 })
	hand := func(who string, batches ...batch) {
		require.NoError(t, b.ConsumeTraces(tenant(who), traces(t, batches...)))
	}
	b.next.will(refuses)
	hand("acme", call(1, "f", 0), call(2, "g", 0))
	b.next.will(nil)
	hand("umbrella", call(3, "h", 0), batch{stream: 3, first: 2, events: []string{"enter k"}})
	assert.Equal(t, [][]string{{"s1/f 0"}, {"s2/g 0"}, {"s3/h 0"}}, b.next.calls)
	assert.Equal(t, []string{"acme", "acme", "umbrella"}, b.next.clients)
	b.next.accepted()

	// A stream of acme's has to make room for umbrella's: it ends in acme's name.
	hand("acme", batch{stream: 1, first: 2, events: []string{"enter f"}})
	b.pass(time.Second)
	hand("umbrella", batch{stream: 3, first: 3, events: []string{"enter l"}}, call(2, "g", 2))
	b.next.accepted()
	hand("umbrella", call(4, "i", 0))
	assert.Equal(t, [][]string{{"s4/i 0"}, {"s1/f 2 truncated:limit"}}, b.next.calls)
	assert.Equal(t, []string{"umbrella", "acme"}, b.next.clients)
	b.next.accepted()

	// A timer.
	b.pass(2 * time.Minute)
	b.tick()
	assert.Equal(t, [][]string{{"s3/l 3 truncated:idle", "s3/k 2 truncated:idle"}}, b.next.calls)
	assert.Equal(t, []string{"umbrella"}, b.next.clients)
	b.finish()
}

// More spans than go on in one call are handed on in parts, all in the name of
// the client, while the stream is being paired.
func TestManySpansAreHandedOnInParts(t *testing.T) {
	b := newBed(t)
	const spans = 5*maxSpansPerCall + 3
	late := batch{stream: 1, first: 1, events: append([]string{"exit main"}, many(spans-1, "enter f", "exit f")...)}
	require.NoError(t, b.ConsumeTraces(tenant("acme"), traces(t, late)))
	require.Empty(t, b.next.calls)
	require.NoError(t, b.ConsumeTraces(tenant("acme"), traces(t, batch{stream: 1, events: []string{"enter main"}})))
	require.Len(t, b.next.calls, 6)
	for i, client := range b.next.clients {
		assert.Equal(t, "acme", client)
		assert.LessOrEqual(t, len(b.next.calls[i]), maxSpansPerCall)
	}
	lines := b.next.accepted()
	assert.Len(t, lines, spans)
	b.finish()
}

// No goroutine is started for a hand-over: the caller does the work, and feels
// the next component's back-pressure.
func TestTheCallerDoesTheWork(t *testing.T) {
	b := newBed(t)
	td := traces(t, call(1, "f", 0))
	ordinary(td, "cart")
	before, inside := runtime.NumGoroutine(), []int(nil)
	b.next.will(func(context.Context, ptrace.Traces) error {
		inside = append(inside, runtime.NumGoroutine())
		return nil
	})
	require.NoError(t, b.ConsumeTraces(context.Background(), td))
	assert.Equal(t, []int{before, before}, inside)
	assert.False(t, b.Capabilities().MutatesData)
	b.finish()
}

// A call whose context is done is refused like any other, and what it finished is held.
func TestTheCallersContextReachesTheNextComponent(t *testing.T) {
	b := newBed(t)
	b.next.will(func(ctx context.Context, _ ptrace.Traces) error { return ctx.Err() })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, b.ConsumeTraces(ctx, traces(t, call(1, "f", 0))))
	assert.EqualValues(t, 1, b.sum("held_spans"))
	require.ErrorContains(t, b.ConsumeTraces(ctx, traces(t, call(1, "f", 2))), context.Canceled.Error())
	b.take(call(1, "f", 2))
	assert.Equal(t, []string{"s1/f 0", "s1/f 2"}, b.next.accepted())
	b.finish()
}
