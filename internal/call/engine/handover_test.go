// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callsum"
	"github.com/callbraid/callbraid/internal/call/pairing"
	"github.com/callbraid/callbraid/internal/testkit"
)

// (a) Held spans go first. If they are refused again, the call is refused and accepts nothing.
func TestHeldSpansGoFirst(t *testing.T) {
	b := newBed(t)
	b.next.answerWith(refuses)
	b.handOver(call(1, "first", 0))
	assert.EqualValues(t, 1, b.sum("held_spans"), "the call succeeds, and its span is held")

	err := b.refuse(call(1, "second", 2))
	require.ErrorContains(t, err, "held because the next component refuses them: the queue is full")
	assert.EqualValues(t, 1, b.sum("refused_calls"))
	assert.EqualValues(t, 1, b.sum("batches"), "a refused call accepts nothing")
	assert.EqualValues(t, 2, b.sum("events"))

	b.next.answerWith(nil)
	b.handOver(call(1, "second", 2))
	assert.Equal(t, []string{"s1/first 0", "s1/second 2"}, b.next.accepted())
	assert.Zero(t, b.sum("held_spans"))
	b.finish()
}

func TestOrdinarySpansWaitForHeldSpansToo(t *testing.T) {
	b := newBed(t)
	b.next.answerWith(refuses)
	b.handOver(call(1, "first", 0))
	td := ptrace.NewTraces()
	ordinary(td, "cart")
	require.Error(t, b.ConsumeTraces(context.Background(), td))
	b.next.answerWith(nil)
	require.NoError(t, b.ConsumeTraces(context.Background(), td))
	assert.Equal(t, []string{"s1/first 0", "web/cart"}, b.next.accepted())
	b.finish()
}

// Spans that finish while others are held wait behind them, and the call does not call the next
// component again.
func TestFinishedSpansWaitBehindHeldSpans(t *testing.T) {
	b := newBed(t)
	b.next.answerWith(func(context.Context, ptrace.Traces) error {
		b.next.answerWith(nil)
		return errFull
	})
	b.handOver(call(1, "f", 0), call(2, "g", 0))
	assert.Equal(t, 1, b.next.timesAsked())
	assert.EqualValues(t, 2, b.sum("held_spans"))
	b.tick()
	assert.Equal(t, []string{"s1/f 0", "s2/g 0"}, b.next.accepted())
	b.finish()
}

// The next component's error may name a part of the held spans. The caller's error does not.
func TestTheErrorOfHeldSpansNamesNoPartOfThem(t *testing.T) {
	b := newBed(t)
	b.next.answerWith(b.next.acceptsHalf)
	b.handOver(batch{stream: 1, events: many(4, "enter f", "exit f")})
	err := b.refuse(call(1, "g", 8))
	var part consumererror.Traces
	assert.NotErrorAs(t, err, &part)
	b.next.answerWith(nil)
	b.handOver(call(1, "g", 8))
	assert.Equal(t, []string{"s1/f 0", "s1/f 2", "s1/f 4", "s1/f 6", "s1/g 8"}, b.next.accepted())
	b.finish()
}

// large returns a batch that needs more than half of the room of a small processor.
func large(stream byte) batch {
	return batch{stream: stream, events: many(9_000, "enter f", "exit f")}
}

func small(c *Config) { c.Reorder.MaxMiB = 1 }

// noSums forgets all sums.
type noSums struct{}

func (noSums) Begin() SourceSums               { return noSums{} }
func (noSums) Bytes() int64                    { return 0 }
func (noSums) GiveWay()                        {}
func (noSums) Add(*callsum.Increment, *Source) {}
func (noSums) Kept(*pairing.Output, *Identity) {}
func (noSums) End()                            {}

// newBedWithSums has a processor with sums.
func newBedWithSums(t *testing.T) *bed {
	t.Helper()
	return newBedOf(t, Settings{Sums: noSums{}, SumSettings: &callsum.Settings{}}, &next{})
}

// With sums the next component may refuse spans, or block: all calls still count while held spans have room.
func TestHandOversGoOnWhileHeldSpansHaveRoom(t *testing.T) {
	b := newBedWithSums(t)
	b.next.answerWith(refuses)
	b.handOver(call(1, "f", 0))
	b.handOver(call(1, "f", 3))
	blocked, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	b.next.answerWith(func(context.Context, ptrace.Traces) error {
		close(blocked)
		<-goOn
		return errFull
	})
	go func() {
		defer close(done)
		assert.Equal(t, errFull, b.delivery.offerHeld(context.Background()))
	}()
	<-blocked
	b.passAlive(5 * time.Second)
	b.tick()
	assert.EqualValues(t, 1, b.sum("missing_numbers"), "the clock and the timers go on")
	assert.EqualValues(t, 2, b.sum("held_spans"))
	b.next.answerWith(refuses)
	close(goOn)
	<-done

	b.delivery.maxBytes = b.delivery.bytes
	require.ErrorContains(t, b.refuse(call(2, "g", 0)), errFull.Error())
	b.next.answerWith(nil)
	b.handOver(call(2, "g", 0))
	assert.Equal(t, []string{"s1/f 0", "s1/f 3", "s2/g 0"}, b.next.accepted())
	assert.EqualValues(t, 1, b.sum("refused_calls"))
	b.finish()
}

func TestHandOversGoOnWhileAnotherOneIsBlocked(t *testing.T) {
	b := newBedWithSums(t)
	require.NoError(t, b.Start(context.Background(), componenttest.NewNopHost()))
	blocked, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	b.next.answerWith(func(context.Context, ptrace.Traces) error {
		b.next.answerWith(nil)
		close(blocked)
		<-goOn
		return nil
	})
	first := traces(t, call(1, "f", 0))
	go func() {
		defer close(done)
		assert.NoError(t, b.ConsumeTraces(context.Background(), first))
	}()
	<-blocked
	b.pass(slowCall + 1)
	b.handOver(call(2, "g", 0))
	require.True(t, testkit.Happens(func() bool { return slices.Equal([]string{"s2/g 0"}, b.next.accepted()) }), "a goroutine offers held spans")
	close(goOn)
	<-done
	b.handOver(call(2, "g", 2))
	assert.Equal(t, []string{"s1/f 0", "s2/g 2"}, b.next.accepted())
	b.finish()
}

// (b) A call reserves room for all its batches, or is refused.
func TestACallWithoutRoomIsRefused(t *testing.T) {
	b := newBed(t, small)
	inside, goOn := make(chan struct{}), make(chan struct{})
	b.next.answerWith(func(context.Context, ptrace.Traces) error {
		b.next.answerWith(nil)
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
	assert.EqualValues(t, 1, b.sum("batches"), "it accepts nothing")

	close(goOn)
	require.NoError(t, <-done)
	require.NoError(t, b.ConsumeTraces(context.Background(), second), "now there is room")
	assert.Zero(t, b.reserved.Load())
	assert.Len(t, b.next.accepted(), 18_000)
	b.finish()
}

func TestACallThatIsAloneAlwaysHasRoom(t *testing.T) {
	b := newBed(t, small)
	b.handOver(large(1), large(2), large(3))
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
	b.next.answerWith(func(ctx context.Context, td ptrace.Traces) error {
		assert.Equal(t, []string{"acme"}, client.FromContext(ctx).Metadata.Get("tenant"))
		got = append(got, text(t, td))
		return nil
	})
	require.NoError(t, b.ConsumeTraces(tenant("acme"), td))
	require.Len(t, got, 3)
	assert.Equal(t, text(t, want), got[0])
	assert.Equal(t, before, text(t, td), "the hand-over is unchanged")
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
	b.next.answerWith(func(_ context.Context, got ptrace.Traces) error { same = got == td; return nil })
	require.NoError(t, b.ConsumeTraces(context.Background(), td))
	assert.True(t, same, "a span is no batch for its name alone")
	b.next.answerWith(refuses)
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
			b.next.answerWith(test.answer)
			err := b.ConsumeTraces(context.Background(), td)
			require.Error(t, err)
			assert.Equal(t, test.permanent, consumererror.IsPermanent(err))
			if !test.permanent {
				assert.Equal(t, errFull, err)
			}
			assert.Zero(t, b.sum("batches"), "it accepts nothing")
			assert.Zero(t, b.sum("held_spans"))
			assert.Zero(t, b.reserved.Load(), "no room is reserved")
			assert.Equal(t, before, text(t, td))

			b.next.answerWith(nil)
			require.NoError(t, b.ConsumeTraces(context.Background(), td), "handed over again")
			assert.Equal(t, []string{"web/cart", "s1/f 0"}, b.next.accepted())
			b.finish()
		})
	}
}

// A caller that sends only the named part again also sends the batches.
func TestTheErrorOfPartlyAcceptedOrdinarySpansNamesTheBatchesAndTheRest(t *testing.T) {
	b := newBed(t)
	td := traces(t, call(1, "f", 0))
	ordinary(td, "cart")
	ordinary(td, "pay")
	b.next.answerWith(b.next.acceptsHalf)
	err := b.ConsumeTraces(context.Background(), td)
	var part consumererror.Traces
	require.ErrorAs(t, err, &part)
	require.ErrorIs(t, err, errFull)
	assert.Equal(t, []string{"web/cart"}, b.next.accepted())
	b.next.answerWith(nil)
	require.NoError(t, b.ConsumeTraces(context.Background(), part.Data()))
	assert.Equal(t, []string{"web/pay", "s1/f 0"}, b.next.accepted())
	b.finish()
}

// (d) A batch that cannot be unpacked is dropped and counted. It never blocks the others, nor its
// own stream.
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
			b.handOver(call(2, "g", 0), corrupt, call(1, "f", 0), corrupt)
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

// (e) The processor delivers finished spans before the call returns, and holds refused ones.
func TestFinishedSpansAreDeliveredBeforeTheCallReturns(t *testing.T) {
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
		{"half taken: the rest is held", func(n *next) func(context.Context, ptrace.Traces) error { return n.acceptsHalf }, lines[:2], lines[2:], 0},
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
			b.next.answerWith(test.answer(b.next))
			b.handOver(four)
			assert.Equal(t, test.at, b.next.accepted())
			assert.EqualValues(t, len(test.then), b.sum("held_spans"))
			assert.Equal(t, test.dropped, b.sum("dropped_spans", string(refusedForGood)))
			b.next.answerWith(nil)
			b.tick()
			assert.Equal(t, test.then, b.next.accepted(), "a timer delivers held spans")
			assert.Zero(t, b.sum("held_spans"))
			assert.Zero(t, b.delivery.bytes)
			assert.False(t, b.clock.still)
			b.finish()
			assert.Equal(t, test.dropped, b.sum("dropped_spans"))
		})
	}
}

// The next component accepts held spans in halves, and then refuses the rest permanently.
func TestHeldSpansShrinkWithEachAcceptedPart(t *testing.T) {
	b := newBed(t)
	b.next.answerWith(refuses)
	b.handOver(batch{stream: 1, events: many(8, "enter f", "exit f")})
	all := b.delivery.bytes
	b.next.answerWith(b.next.acceptsHalf)
	b.tick()
	assert.EqualValues(t, 4, b.sum("held_spans"))
	assert.Less(t, b.delivery.bytes, all*6/10, "the held bytes are counted again")
	b.tick()
	assert.EqualValues(t, 2, b.sum("held_spans"))
	assert.True(t, b.clock.still)
	b.next.answerWith(failsForGood)
	b.tick()
	assert.Zero(t, b.sum("held_spans"))
	assert.Zero(t, b.delivery.bytes)
	assert.False(t, b.clock.still)
	assert.EqualValues(t, 2, b.sum("dropped_spans", string(refusedForGood)))
	assert.Len(t, b.next.accepted(), 6)
	b.finish()
}

func TestHeldSpansWithoutARefusedPartAreDelivered(t *testing.T) {
	b := newBed(t)
	b.next.answerWith(refuses)
	b.handOver(call(1, "f", 0))
	b.next.answerWith(func(ctx context.Context, td ptrace.Traces) error {
		b.next.accept(ctx, td)
		return consumererror.NewTraces(errFull, ptrace.NewTraces())
	})
	b.tick()
	assert.Equal(t, []string{"s1/f 0"}, b.next.accepted())
	assert.Zero(t, b.sum("held_spans"))
	assert.Zero(t, b.delivery.bytes)
	assert.False(t, b.clock.still, "no span is held, so the clock continues")
	b.finish()
}

func TestSpansThatATimerFinishesAreHeldAndDroppedLikeOthers(t *testing.T) {
	for _, test := range []struct {
		name          string
		answer        func(*next) func(context.Context, ptrace.Traces) error
		held, dropped int64
	}{
		{"refused", func(*next) func(context.Context, ptrace.Traces) error { return refuses }, 4, 0},
		{"half accepted", func(n *next) func(context.Context, ptrace.Traces) error { return n.acceptsHalf }, 2, 0},
		{"refused permanently", func(*next) func(context.Context, ptrace.Traces) error { return failsForGood }, 0, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t)
			b.handOver(batch{stream: 1, first: 1, events: many(4, "enter f", "exit f")})
			require.Empty(t, b.next.accepted(), "number 0 is missing")
			b.passAlive(5 * time.Second)
			b.next.answerWith(test.answer(b.next))
			b.tick()
			assert.Equal(t, test.held, b.sum("held_spans"))
			assert.Equal(t, test.dropped, b.sum("dropped_spans"))
			b.next.answerWith(nil)
			b.tick()
			assert.Zero(t, b.sum("held_spans"))
			assert.Len(t, b.next.accepted(), 4-int(test.dropped))
			b.finish()
		})
	}
}

// A caller that finishes more spans than can be held waits until there is room.
func TestHeldSpansAreBoundedInBytes(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxHeldMiB = 1 })
	full := make(chan struct{})
	var refused sync.Once
	b.next.answerWith(func(context.Context, ptrace.Traces) error {
		// The first refusal holds the spans, and later ones are offers by a caller that waits for
		// room.
		if b.delivery.spans.Load() > 0 {
			refused.Do(func() { close(full) })
		}
		return errFull
	})
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		// 8,000 spans of about 500 bytes each: the first parts are held.
		b.handOver(batch{stream: 1, events: many(16_000, "enter f", "exit f")})
	}()
	select {
	case <-full:
	case <-taken:
		require.FailNow(t, "expected the call to wait for room, got all spans held")
	}
	held := b.sum("held_spans")
	assert.Positive(t, held)
	assert.Less(t, held, int64(16_000))
	select {
	case <-taken:
		t.Error("expected the call to wait for room")
	default:
	}
	b.next.answerWith(nil)
	<-taken
	b.tick()
	assert.Zero(t, b.sum("dropped_spans"))
	assert.Len(t, b.next.accepted(), 16_000)
	b.finish()
}

func TestAShutdownDropsSpansWithoutRoom(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxHeldMiB, c.ShutdownTimeout = 1, time.Millisecond })
	b.handOver(batch{stream: 1, events: many(16_000, "enter f")})
	b.next.answerWith(refuses)
	b.finish()
	assert.EqualValues(t, 16_000, b.sum("dropped_spans", string(atShutdown)))
	assert.Zero(t, b.sum("held_spans"))
	assert.Len(t, b.logs.All(), 1, "one line for each burst")
}

// A shutdown delivers held spans that the next component accepts again in time, and all spans that
// finish at the end.
func TestAShutdownDeliversSpansThatAreAcceptedAgain(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxHeldMiB, c.ShutdownTimeout = 1, time.Minute })
	b.handOver(batch{stream: 1, events: many(16_000, "enter f")})
	var asked atomic.Int32
	b.next.answerWith(func(context.Context, ptrace.Traces) error {
		if asked.Add(1) <= 8 {
			return errFull
		}
		return nil
	})
	b.finish()
	assert.Len(t, b.next.accepted(), 16_000)
	assert.Zero(t, b.sum("dropped_spans"))
}

// A component that ignores its context must not stop the shutdown of the whole collector. All of its spans count.
func TestAShutdownEndsInTimeAlsoIfTheNextComponentDoesNotReturn(t *testing.T) {
	t.Parallel()
	handOver := func(b *bed, batches ...batch) func() {
		td, done := traces(b.t, batches...), make(chan struct{})
		go func() {
			defer close(done)
			assert.NoError(b.t, b.ConsumeTraces(context.Background(), td))
		}()
		return func() { <-done }
	}
	const many = 2*maxSpansPerCall + 3
	for name, test := range map[string]struct {
		begin func(b *bed, deafen func()) (wait func())
		// dropped are the spans of the shutdown, and later those of the step that goes on afterwards.
		dropped, later int64
		streams        string
	}{
		"from the call of a step": {func(b *bed, deafen func()) func() {
			b.handOver(batch{stream: 2, events: []string{"enter g"}})
			deafen()
			return handOver(b, call(1, "f", 0))
		}, 2, 0, "0 call streams"},
		"from a call that has the lock": {func(b *bed, deafen func()) func() {
			b.handOver(batch{stream: 2, events: []string{"enter g"}})
			deafen()
			return handOver(b, batch{stream: 1, events: slices.Repeat([]string{"enter f", "exit f"}, many)})
		}, maxSpansPerCall + 1, many - maxSpansPerCall, "1 call streams"},
		"from the call of a timer": {func(b *bed, deafen func()) func() {
			b.next.answerWith(refuses)
			b.handOver(call(1, "f", 0))
			deafen()
			require.NoError(b.t, b.Start(context.Background(), componenttest.NewNopHost()))
			return func() {}
		}, 1, 0, "0 call streams"},
		"from the last call": {func(b *bed, deafen func()) func() {
			b.handOver(batch{stream: 1, events: []string{"enter f"}}, batch{stream: 2, events: []string{"enter g"}})
			deafen()
			return func() {}
		}, 2, 0, "0 call streams"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, func(c *Config) { c.ShutdownTimeout = 100 * time.Millisecond })
			blocked, release := make(chan struct{}, 1), make(chan struct{})
			wait := test.begin(b, func() {
				b.next.answerWith(func(context.Context, ptrace.Traces) error {
					blocked <- struct{}{}
					<-release
					return errFull
				})
			})
			if name != "from the last call" {
				<-blocked
			}
			asked, began := b.next.timesAsked(), time.Now()
			err := b.Shutdown(context.Background())
			assert.Less(t, time.Since(began), 10*Overtime)
			require.ErrorContains(t, err, test.streams)
			assert.Equal(t, test.dropped, b.sum("dropped_spans", "shutdown"))
			assert.Equal(t, 1, b.logs.FilterMessage(messageDropped).Len())
			assert.Zero(t, b.sum("held_spans"))
			if name == "from the last call" {
				asked++
			}
			close(release)
			wait()
			assert.Equal(t, test.dropped+test.later, b.sum("dropped_spans", "shutdown"))
			assert.Equal(t, asked, b.next.timesAsked(), "it is not called again")
		})
	}
}

// A call whose context ends returns, even if nothing is accepted and no room is left. Its finished
// spans are held.
func TestACallWhoseContextEndsDoesNotWaitForRoom(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxHeldMiB = 1 })
	ctx, cancel := context.WithCancel(context.Background())
	b.next.answerWith(func(ctx context.Context, _ ptrace.Traces) error {
		if b.delivery.spans.Load() == 0 {
			return errFull
		}
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	require.NoError(t, b.ConsumeTraces(ctx, traces(t, batch{stream: 1, events: many(16_000, "enter f", "exit f")})))
	assert.EqualValues(t, 16_000, b.sum("held_spans"))
	b.next.answerWith(nil)
	b.tick()
	assert.Len(t, b.next.accepted(), 16_000)
	b.finish()
}

func TestHandOversAfterTheShutdownAreRefused(t *testing.T) {
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
	b.next.answerWith(func(_ context.Context, td ptrace.Traces) error {
		assert.LessOrEqual(t, sizer.TracesSize(td), 3<<20)
		return nil
	})
	b.handOver(batch{stream: 1, events: many(1000, "enter "+long, "exit "+long)})
	assert.Equal(t, 1000, len(b.next.accepted()), "spans")
	b.finish()
}

// A component that changes spans and then refuses them receives the original the next time.
func TestAComponentThatChangesSpansGetsTheOriginalAgain(t *testing.T) {
	b := newBedWith(t, &next{mutates: true})
	mangle := func(td ptrace.Traces) {
		for _, rs := range td.ResourceSpans().All() {
			service, _ := rs.Resource().Attributes().Get("service.name")
			service.SetStr(service.Str() + "!")
		}
	}
	b.next.answerWith(func(_ context.Context, td ptrace.Traces) error { mangle(td); return errFull })
	b.handOver(call(1, "f", 0))
	b.tick()
	b.tick()
	b.next.answerWith(func(_ context.Context, td ptrace.Traces) error { mangle(td); return nil })
	b.handOver(call(1, "f", 2))
	assert.Equal(t, []string{"s1!/f 0", "s1!/f 2"}, b.next.accepted())
	b.finish()
}

// Client metadata of different streams never share a call, in the hand-over of any client.
func TestClientsNeverShareACall(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxStreams = 3 })
	hand := func(who string, batches ...batch) {
		require.NoError(t, b.ConsumeTraces(tenant(who), traces(t, batches...)))
	}
	b.next.answerWith(refuses)
	hand("acme", call(1, "f", 0), call(2, "g", 0))
	b.next.answerWith(nil)
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

// The processor delivers many spans in parts while it pairs the stream, all with the client's
// metadata.
func TestManySpansAreDeliveredInParts(t *testing.T) {
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

// No goroutine starts for a hand-over. The caller does the work, and feels the next component's
// back-pressure.
func TestTheCallerDoesTheWork(t *testing.T) {
	b := newBed(t)
	td := traces(t, call(1, "f", 0))
	ordinary(td, "cart")
	before, inside := runtime.NumGoroutine(), []int(nil)
	b.next.answerWith(func(context.Context, ptrace.Traces) error {
		inside = append(inside, runtime.NumGoroutine())
		return nil
	})
	require.NoError(t, b.ConsumeTraces(context.Background(), td))
	assert.Equal(t, []int{before, before}, inside)
	assert.False(t, b.Capabilities().MutatesData)
	b.finish()
}

// A call whose context has ended counts as refused, and its finished spans are held.
func TestTheCallersContextReachesTheNextComponent(t *testing.T) {
	b := newBed(t)
	b.next.answerWith(func(ctx context.Context, _ ptrace.Traces) error { return ctx.Err() })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, b.ConsumeTraces(ctx, traces(t, call(1, "f", 0))))
	assert.EqualValues(t, 1, b.sum("held_spans"))
	require.ErrorContains(t, b.ConsumeTraces(ctx, traces(t, call(1, "f", 2))), context.Canceled.Error())
	b.handOver(call(1, "f", 2))
	assert.Equal(t, []string{"s1/f 0", "s1/f 2"}, b.next.accepted())
	b.finish()
}
