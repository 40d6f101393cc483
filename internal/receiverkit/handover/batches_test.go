// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/componentkit/schema"
)

// The lines of the log.
const (
	lineRefused  = "The pipeline refuses call events: they wait"
	lineAgain    = "The pipeline accepts call events again"
	lineDropped  = "The receiver drops batches of call events"
	batchBytes   = 64
	someBatches  = 5
	manyRefusals = 5
)

// numbered returns a batch with the number n as its first and last sequence number.
func numbered(n, events int) callevent.Packed {
	return callevent.Packed{Stream: callevent.StreamID{1}, Data: make([]byte, batchBytes), Events: events, First: int64(n), Last: int64(n)}
}

// numbers returns the numbers from 0 to n-1 as texts.
func numbers(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(i)
	}
	return all
}

func (b *bed) batches(next *pipeline, hold *Hold) *Batches {
	return NewBatches(BatchesSettings{
		Settings: b.settings, Next: next, ScopeName: "scope", ScopeVersion: "v1", WhileRefused: "they wait", Hold: hold,
		Accepted: func() { b.add(1, accepted) },
		Dropped:  func(events int, reason string) { b.add(events, reason) },
		Retried:  func() { b.add(1, retried) },
	})
}

// memory is the memory of held batches.
type memory struct {
	limit, used atomic.Int64
}

func (m *memory) Reserve(bytes int) bool {
	if m.used.Add(int64(bytes)) > m.limit.Load() {
		m.used.Add(-int64(bytes))
		return false
	}
	runtime.Gosched() // another sender may find no memory before the batch is held
	return true
}

func (m *memory) Release(bytes int) { m.used.Add(-int64(bytes)) }

// holding returns a Hold with memory for a number of batches, and counters of its calls.
func holding(batches int) (hold *Hold, m *memory, refused, drained *atomic.Int64) {
	m, refused, drained = &memory{}, &atomic.Int64{}, &atomic.Int64{}
	m.limit.Store(int64(batches * batchBytes))
	return &Hold{AtOnce: true, Memory: m, Refused: func() { refused.Add(1) }, Drained: func() { drained.Add(1) }}, m, refused, drained
}

// background runs do in a goroutine, and returns a channel that is closed at its end.
func background(do func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	return done
}

func TestABatchIsASpanOfItsResourceAndScope(t *testing.T) {
	b, next := newBed(t), &pipeline{}
	resource := pcommon.NewResource()
	resource.Attributes().PutStr("service.name", "shop")
	b.batches(next, nil).Send(numbered(7, 3), resource)
	require.Len(t, next.traces, 1)
	got := next.traces[0].ResourceSpans().At(0)
	assert.Equal(t, map[string]any{"service.name": "shop"}, got.Resource().Attributes().AsRaw())
	scope := got.ScopeSpans().At(0)
	assert.Equal(t, "scope", scope.Scope().Name())
	assert.Equal(t, "v1", scope.Scope().Version())
	assert.Equal(t, [2]string{schema.URL, schema.URL}, [2]string{got.SchemaUrl(), scope.SchemaUrl()})
	assert.True(t, callevent.Carries(scope.Spans().At(0)))
	assert.Equal(t, 1, b.count(accepted))
}

func TestARefusedBatchIsSentAgainUnchanged(t *testing.T) {
	b, next := newBed(t), &pipeline{refuse: errRefused, spoils: true}
	batches := b.batches(next, nil)
	sent := background(func() { batches.Send(numbered(0, 3), pcommon.NewResource()) })
	b.await("tries", func() bool { return next.tried() >= manyRefusals })
	assert.Equal(t, 1, batches.Waiting())
	assert.False(t, isClosed(sent))
	next.refuseWith(nil)
	<-sent
	assert.Equal(t, numbers(1), next.flat())
	assert.Equal(t, next.tried()-1, b.count(retried))
	assert.Equal(t, 1, b.count(accepted))
	assert.Empty(t, b.dropped())
	assert.Zero(t, batches.Waiting())
	assert.Zero(t, batches.Calls())
	assert.Equal(t, 1, b.lines(lineRefused))
	assert.Equal(t, 1, b.lines(lineAgain))
	assert.EqualValues(t, 1, b.observed("accepted_spans"), "observed once")
	assert.Zero(t, b.observed("refused_spans"))
}

func TestAPermanentlyRefusedBatchIsDroppedAndCounted(t *testing.T) {
	b, next := newBed(t), &pipeline{refuse: consumererror.NewPermanent(errNever)}
	batches := b.batches(next, nil)
	for i := range someBatches {
		batches.Send(numbered(i, 3), pcommon.NewResource())
	}
	assert.Equal(t, someBatches, next.tried(), "once each")
	assert.Equal(t, map[string]int{DroppedPermanent: 3 * someBatches}, b.dropped())
	assert.Equal(t, 1, b.lines(lineDropped))
	assert.EqualValues(t, someBatches, b.observed("refused_spans")+b.observed("failed_spans"))
	// The next burst is logged again, after a pause.
	next.refuseWith(nil)
	batches.Send(numbered(0, 3), pcommon.NewResource())
	b.pass(logline.Pause)
	next.refuseWith(consumererror.NewPermanent(errNever))
	batches.Send(numbered(0, 3), pcommon.NewResource())
	assert.Equal(t, 2, b.lines(lineDropped))
}

func TestABatchThatIsNotAcceptedInTheTimeOfTheShutdownIsDroppedAndCounted(t *testing.T) {
	b, next := newBed(t), &pipeline{refuse: errRefused}
	b.settings.Retry = backoff.Config{InitialInterval: time.Hour, MaxInterval: time.Hour}
	batches := b.batches(next, nil)
	sent := background(func() { batches.Send(numbered(0, 3), pcommon.NewResource()) })
	b.await("the refusal", func() bool { return b.lines(lineRefused) == 1 })
	b.over()
	<-sent
	assert.Equal(t, map[string]int{DroppedShutdown: 3}, b.dropped())
	// From then on only a batch without events gets a call of the pipeline, which may be slow.
	batches.Send(numbered(1, 4), pcommon.NewResource())
	assert.Equal(t, 1, next.tried())
	assert.Equal(t, map[string]int{DroppedShutdown: 7}, b.dropped())
	next.refuseWith(nil)
	batches.Send(numbered(2, 0), pcommon.NewResource())
	assert.Equal(t, []string{"2"}, next.flat())
	batches.pause.accepted()
}

func TestWithTryLateALateBatchIsTriedOnce(t *testing.T) {
	b, next := newBed(t), &pipeline{}
	batches := NewBatches(BatchesSettings{
		Settings: b.settings, Next: next, TryLate: true,
		Accepted: func() { b.add(1, accepted) },
		Dropped:  func(events int, reason string) { b.add(events, reason) },
		Retried:  func() { b.add(1, retried) },
	})
	b.over()
	batches.Send(numbered(0, 1), pcommon.NewResource())
	assert.Equal(t, numbers(1), next.flat())
	next.refuseWith(errRefused)
	batches.Send(numbered(1, 2), pcommon.NewResource())
	assert.Equal(t, 2, next.tried())
	assert.Equal(t, map[string]int{DroppedShutdown: 2}, b.dropped())
	assert.Zero(t, b.count(retried))
	batches.pause.accepted()
}

func TestAPipelineThatRefusesAndAcceptsByTurnsHasFewLogLines(t *testing.T) {
	b := newBed(t)
	batches := b.batches(&pipeline{}, nil)
	p := parcel{observed: t.Context()}
	for range 100 {
		batches.refused(errRefused)
		batches.refused(errRefused)
		batches.delivered(p, nil)
		b.pass(10 * time.Millisecond)
	}
	assert.Equal(t, 1, b.lines(lineRefused))
	assert.Equal(t, 1, b.lines(lineAgain))

	// A refusal that continues has one line after each pause.
	batches.refused(errRefused)
	b.pass(logline.Pause)
	batches.refused(errRefused)
	b.pass(logline.Pause)
	batches.refused(errRefused)
	refusals := b.said.FilterMessageSnippet(lineRefused).All()
	require.Len(t, refusals, 2)
	assert.EqualValues(t, 2*100-1+2, refusals[1].ContextMap()["refusals_since_last_line"])
	batches.delivered(p, nil)
	assert.Equal(t, 2, b.lines(lineAgain))
}

func TestAnAcceptedBatchEndsThePauseOfTheOthers(t *testing.T) {
	b, next := newBed(t), &pipeline{refuse: errRefused}
	b.settings.Retry = backoff.Config{InitialInterval: time.Hour, MaxInterval: time.Hour}
	batches := b.batches(next, nil)
	first := background(func() { batches.Send(numbered(0, 1), pcommon.NewResource()) })
	second := background(func() { batches.Send(numbered(1, 1), pcommon.NewResource()) })
	b.await("both to be refused", func() bool { return next.tried() == 2 })
	next.refuseWith(nil)
	b.await("both to have tried", func() bool {
		// A batch that is refused after this Send sleeps again, so the test sends until both have returned.
		batches.Send(numbered(2, 1), pcommon.NewResource())
		return isClosed(first) && isClosed(second)
	})
	assert.Subset(t, next.flat(), numbers(3))
}

func TestAnOfferIsOneCall(t *testing.T) {
	b, next := newBed(t), &pipeline{refuse: errRefused}
	batches := b.batches(next, nil)
	assert.False(t, batches.Offer(numbered(0, 0), pcommon.NewResource()))
	assert.Equal(t, 1, next.tried())
	next.refuseWith(nil)
	assert.True(t, batches.Offer(numbered(1, 0), pcommon.NewResource()))
	assert.Equal(t, []string{"1"}, next.flat())
	assert.EqualValues(t, 1, b.observed("accepted_spans"))
	assert.Empty(t, b.dropped())
}

func TestCallsCountsACallThatHasNotReturned(t *testing.T) {
	b, next := newBed(t), &pipeline{hang: make(chan struct{})}
	batches := b.batches(next, nil)
	sent := background(func() { batches.Send(numbered(0, 1), pcommon.NewResource()) })
	b.await("the call", func() bool { return batches.Calls() == 1 })
	close(next.hang)
	<-sent
	assert.Zero(t, batches.Calls())
}

func TestNoOfferOvertakesHeldBatches(t *testing.T) {
	b, next := newBed(t), &pipeline{refuse: errRefused}
	b.settings.Retry = backoff.Config{InitialInterval: time.Hour, MaxInterval: time.Hour}
	hold, _, _, _ := holding(someBatches)
	batches := b.batches(next, hold)
	batches.Send(numbered(0, 1), pcommon.NewResource())
	b.await("the held batch to be refused again", func() bool { return next.tried() == 2 })
	next.refuseWith(nil)
	assert.False(t, batches.Offer(numbered(1, 0), pcommon.NewResource()))
	b.over()
	batches.Wait()
	assert.Empty(t, next.flat())
}

func TestHeldBatchesAreSentInOrder(t *testing.T) {
	b, next := newBed(t), &pipeline{refuse: errRefused}
	hold, m, refused, drained := holding(someBatches)
	batches := b.batches(next, hold)
	for i := range someBatches {
		batch := numbered(i, 1)
		batches.Send(batch, pcommon.NewResource())
		// The caller may change the data now.
		for j := range batch.Data {
			batch.Data[j] = 0xff
		}
	}
	assert.True(t, batches.Holds())
	assert.False(t, batches.Offer(numbered(99, 0), pcommon.NewResource()), "held batches go first")
	assert.EqualValues(t, someBatches*batchBytes, m.used.Load())
	assert.EqualValues(t, 1, refused.Load())
	assert.Zero(t, drained.Load())
	next.refuseWith(nil)
	batches.Wait()
	assert.Equal(t, numbers(someBatches), next.flat())
	for _, traces := range next.traces {
		data, err := callevent.Data(spanOf(traces))
		require.NoError(t, err)
		assert.Equal(t, make([]byte, batchBytes), data)
	}
	assert.False(t, batches.Holds())
	assert.Zero(t, m.used.Load())
	assert.EqualValues(t, 1, drained.Load())
	assert.Empty(t, b.dropped())
	// The next refusal has its own calls of Refused and Drained.
	next.refuseWith(errRefused)
	batches.Send(numbered(someBatches, 1), pcommon.NewResource())
	assert.EqualValues(t, 2, refused.Load())
	next.refuseWith(nil)
	batches.Wait()
	assert.EqualValues(t, 2, drained.Load())
}

func TestTheFirstBatchAndThoseWithoutEventsHaveTheNeedsOfTheReceiver(t *testing.T) {
	b, next := newBed(t), &pipeline{}
	batches := b.batches(next, nil)
	batches.settings.Needs = callevent.Needs{{Of: "idle_timeout", Because: "keepalive_interval: 10s", MoreThan: 10}}
	for i, events := range []int{1, 1, 0} {
		batches.Send(numbered(i, events), pcommon.NewResource())
	}
	assert.True(t, batches.Offer(numbered(3, 0), pcommon.NewResource()))
	var have []bool
	for _, traces := range next.traces {
		have = append(have, len(callevent.NeedsOf(spanOf(traces), "idle_timeout", 10)) == 1)
		assert.Equal(t, have[len(have)-1], callevent.HasNeeds(spanOf(traces)))
		assert.Empty(t, callevent.NeedsOf(spanOf(traces), "idle_timeout", 11), "it is met")
	}
	assert.Equal(t, []bool{true, false, true, true}, have)
}

// limited returns a Hold for batches that the pipeline has not accepted after a time.
func limited(after time.Duration) (hold *Hold, m *memory, refused *atomic.Int64) {
	hold, m, refused, _ = holding(someBatches)
	hold.AtOnce, hold.After = false, after
	return hold, m, refused
}

// waysToSend are the ways to send batches.
var waysToSend = map[string]func(b *Batches, loop func(send func(callevent.Packed, pcommon.Resource))){
	"each by itself": func(b *Batches, loop func(func(callevent.Packed, pcommon.Resource))) { loop(b.Send) },
	"from a loop":    (*Batches).SendFrom,
}

func TestABatchThatIsRefusedUntilItsDeadlineIsHeld(t *testing.T) {
	for way, sendFrom := range waysToSend {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, next := newBed(t), &pipeline{refuse: errRefused}
				hold, m, refused := limited(50 * time.Millisecond)
				batches := b.batches(next, hold)
				began := time.Now()
				sendFrom(batches, func(send func(callevent.Packed, pcommon.Resource)) { send(numbered(0, 1), pcommon.NewResource()) })
				assert.Equal(t, hold.After, time.Since(began))
				assert.True(t, batches.Holds())
				assert.Greater(t, next.tried(), 1, "Send tried it again while it waited")
				assert.EqualValues(t, 1, refused.Load())
				next.refuseWith(nil)
				batches.Wait()
				assert.Equal(t, numbers(1), next.flat())
				assert.Zero(t, m.used.Load())
			})
		})
	}
}

func TestABatchInACallThatDoesNotReturnIsHeldAndSentOnce(t *testing.T) {
	for way, sendFrom := range waysToSend {
		t.Run(way, func(t *testing.T) {
			b, next := newBed(t), &pipeline{hang: make(chan struct{})}
			hold, m, refused := limited(10 * time.Millisecond)
			batches := b.batches(next, hold)
			looped := make(chan struct{})
			sent := background(func() {
				sendFrom(batches, func(send func(callevent.Packed, pcommon.Resource)) {
					defer close(looped)
					batch := numbered(0, 1)
					send(batch, pcommon.NewResource())
					for i := range batch.Data { // which the caller may change now
						batch.Data[i] = 0xff
					}
					send(numbered(1, 1), pcommon.NewResource())
				})
			})
			<-looped
			assert.True(t, batches.Holds())
			b.await("the call", func() bool { return batches.Calls() == 1 })
			assert.EqualValues(t, 1, refused.Load())
			assert.Equal(t, 1, b.lines("neither accepted nor refused"))
			close(next.hang)
			<-sent
			batches.Wait()
			assert.Equal(t, numbers(2), next.flat())
			data, err := callevent.Data(spanOf(next.traces[0]))
			require.NoError(t, err)
			assert.Equal(t, make([]byte, batchBytes), data)
			assert.Zero(t, m.used.Load())
			assert.Equal(t, 2, b.count(accepted))
		})
	}
}

func TestABatchThatIsRefusedAfterItWasHeldIsSentAgain(t *testing.T) {
	b, next := newBed(t), &pipeline{hang: make(chan struct{}), refuse: errRefused}
	hold, _, _ := limited(10 * time.Millisecond)
	batches := b.batches(next, hold)
	batch := numbered(0, 1)
	batches.Send(batch, pcommon.NewResource())
	for i := range batch.Data {
		batch.Data[i] = 0xff
	}
	close(next.hang)
	b.await("a refusal", func() bool { return next.tried() > 0 })
	next.refuseWith(nil)
	batches.Wait()
	assert.Equal(t, numbers(1), next.flat())
	data, err := callevent.Data(spanOf(next.traces[0]))
	require.NoError(t, err)
	assert.Equal(t, make([]byte, batchBytes), data)
}

func TestABatchThatIsAcceptedInTimeIsNotHeld(t *testing.T) {
	b, next := newBed(t), &pipeline{refusesEveryOther: true}
	hold, _, refused := limited(time.Hour)
	batches := b.batches(next, hold)
	batches.Send(numbered(0, 1), pcommon.NewResource())
	assert.False(t, batches.Holds())
	assert.Zero(t, refused.Load())
	assert.Equal(t, numbers(1), next.flat())
}

func TestSendWaitsForMemoryToHoldABatch(t *testing.T) {
	b, next := newBed(t), &pipeline{refuse: errRefused}
	hold, m, _, _ := holding(2)
	batches := b.batches(next, hold)
	batches.Send(numbered(0, 1), pcommon.NewResource())
	batches.Send(numbered(1, 1), pcommon.NewResource())
	sent := background(func() { batches.Send(numbered(2, 1), pcommon.NewResource()) })
	b.await("Send to wait", func() bool { return batches.Waiting() == 1 })
	assert.EqualValues(t, 2*batchBytes, m.used.Load())
	next.refuseWith(nil)
	<-sent
	batches.Wait()
	assert.Equal(t, numbers(3), next.flat())
	assert.Zero(t, m.used.Load())
}

func TestTheResultOfALateCallDecidesWhetherItsBatchIsAccepted(t *testing.T) {
	errFull := consumererror.NewPermanent(errors.New("unreadable"))
	for name, tt := range map[string]struct {
		returns error
		dropped map[string]int
	}{
		"the pipeline accepts":                        {nil, map[string]int{}},
		"the pipeline refuses":                        {errRefused, map[string]int{DroppedShutdown: 4}},
		"the pipeline refuses with a permanent error": {errFull, map[string]int{DroppedPermanent: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			b, next := newBed(t), &pipeline{hang: make(chan struct{}), refuse: tt.returns}
			hold, m, _ := limited(10 * time.Millisecond)
			m.limit.Store(batchBytes)
			batches := b.batches(next, hold)
			sent := [...]<-chan struct{}{
				background(func() { batches.Send(numbered(0, 2), pcommon.NewResource()) }),
				background(func() { batches.Send(numbered(1, 2), pcommon.NewResource()) }),
			}
			b.await("both calls", func() bool { return batches.Calls() == 2 })
			b.await("one to be held, and the other to wait for memory", func() bool { return batches.Holds() && batches.Waiting() == 1 })
			b.over()
			<-sent[0]
			<-sent[1]
			assert.Empty(t, b.dropped(), "the pipeline may still accept it")
			close(next.hang)
			batches.Wait()
			assert.Equal(t, tt.dropped, b.dropped())
			assert.Len(t, next.flat(), b.count(accepted))
		})
	}
}

func TestSendWaitsForThePipelineWhenOtherAgentsHaveAllMemory(t *testing.T) {
	b, next := newBed(t), &pipeline{refuse: errRefused}
	hold, _, refused, drained := holding(0)
	batches := b.batches(next, hold)
	sent := background(func() { batches.Send(numbered(0, 1), pcommon.NewResource()) })
	b.await("tries", func() bool { return next.tried() >= manyRefusals })
	assert.False(t, batches.Holds())
	assert.Equal(t, 1, batches.Waiting())
	assert.EqualValues(t, 1, refused.Load(), "Refused is called while the batch waits")
	assert.Zero(t, drained.Load())
	next.refuseWith(nil)
	<-sent
	assert.Equal(t, numbers(1), next.flat())
	assert.EqualValues(t, 1, refused.Load())
	assert.EqualValues(t, 1, drained.Load())
}

func TestBatchesThatAreHeldAtTheEndOfTheTimeAreDroppedAndCounted(t *testing.T) {
	b, next := newBed(t), &pipeline{refuse: errRefused}
	hold, m, _, drained := holding(2)
	batches := b.batches(next, hold)
	batches.Send(numbered(0, 1), pcommon.NewResource())
	batches.Send(numbered(1, 2), pcommon.NewResource())
	sent := background(func() { batches.Send(numbered(2, 4), pcommon.NewResource()) })
	b.await("Send to wait", func() bool { return batches.Waiting() == 1 })
	b.over()
	<-sent
	batches.Wait()
	assert.Equal(t, map[string]int{DroppedShutdown: 7}, b.dropped())
	assert.Equal(t, 1, b.lines(lineDropped))
	assert.Zero(t, m.used.Load())
	assert.Positive(t, drained.Load())
}

func TestBatchesOfManyGoroutinesAllArrive(t *testing.T) {
	for way, sendFrom := range waysToSend {
		for name, hold := range map[string]func() *Hold{
			"waiting":                func() *Hold { return nil },
			"holding":                func() *Hold { h, _, _, _ := holding(3); return h },
			"holding after a moment": func() *Hold { h, _, _ := limited(50 * time.Microsecond); return h },
		} {
			t.Run(way+", "+name, func(t *testing.T) {
				b, next := newBed(t), &pipeline{refusesEveryOther: true}
				batches := b.batches(next, hold())
				var senders sync.WaitGroup
				const each = 200
				for sender := range 4 {
					senders.Go(func() {
						sendFrom(batches, func(send func(callevent.Packed, pcommon.Resource)) {
							for i := range each {
								send(numbered(sender*each+i, 1), pcommon.NewResource())
							}
						})
					})
				}
				senders.Wait()
				batches.Wait()
				assert.ElementsMatch(t, numbers(4*each), next.flat())
				assert.Equal(t, 4*each, b.count(accepted))
				assert.Empty(t, b.dropped())
			})
		}
	}
}

func spanOf(traces ptrace.Traces) ptrace.Span {
	return traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
}

func TestFinishWaitsForTheTimeOfTheShutdown(t *testing.T) {
	ended, never := make(chan struct{}), make(chan struct{})
	close(ended)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	cases := map[string]struct {
		ctx               context.Context
		end               chan struct{}
		endsWhenDropped   bool
		timeout, overtime time.Duration
		want              bool
	}{
		"all data was sent": {ctx: context.Background(), end: ended, timeout: time.Hour, overtime: time.Hour, want: true},
		"the time is over, and the rest is dropped": {
			ctx: context.Background(), end: make(chan struct{}), endsWhenDropped: true, timeout: time.Millisecond, overtime: time.Hour, want: true},
		"the caller's context ends first": {
			ctx: over, end: make(chan struct{}), endsWhenDropped: true, timeout: time.Hour, overtime: time.Hour, want: true},
		"a pipeline does not return":                   {ctx: context.Background(), end: never, timeout: time.Millisecond, overtime: time.Millisecond},
		"the overtime does not depend on the time-out": {ctx: over, end: never, timeout: time.Hour, overtime: time.Millisecond},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			drops := 0
			got := Finish(c.ctx, c.end, c.timeout, c.overtime, func() {
				drops++
				if c.endsWhenDropped && drops == 1 {
					close(c.end)
				}
			})
			assert.Equal(t, c.want, got)
			assert.Positive(t, drops, "Finish cancels the context in any case")
		})
	}
}
