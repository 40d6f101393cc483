// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/pairingmark"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/componentkit/schema"
)

// BatchesSettings are the settings of Batches. All fields except TryLate, Hold, GiveUp, Unpaired, Needs and Scope are
// required.
type BatchesSettings struct {
	Settings
	Next consumer.Traces
	// ScopeName and ScopeVersion are the instrumentation scope of batches.
	ScopeName, ScopeVersion string
	// WhileRefused is the end of the log line about a pipeline that refuses. It names the effect on batches, such as:
	// the agent is not read until it accepts them.
	WhileRefused string
	// TryLate: when the time of the shutdown is over, Send calls the pipeline once for a batch. False: Send drops it
	// without a call, because a slow pipeline would delay the reading of the remaining data. A batch without events,
	// such as the end of a call stream, gets one call in both cases.
	TryLate bool
	// Hold: Batches holds the batches that the pipeline refuses. Nil: Send waits until the pipeline accepts.
	Hold *Hold
	// GiveUp is closed when the receiver disconnects the agent because its memory is used up. Then Batches drops a
	// refused batch with events for that reason. A call that the pipeline has not returned from continues.
	GiveUp <-chan struct{}
	// Accepted counts an accepted batch, and Retried another try. Dropped counts a dropped batch with its events
	// (DroppedPermanent, DroppedShutdown, DroppedMemory, or the reason of a Late).
	Accepted func()
	Dropped  func(events int, reason string)
	Retried  func()
	// Unpaired, unless nil, is called after each accepted batch, until the first batch reaches stack_pairing. Without
	// stack_pairing no component makes spans of batches.
	Unpaired func()
	// Needs are the requirements of the receiver's settings on those of stack_pairing. The first batch and each batch
	// without events have them.
	Needs callevent.Needs
	// Scope, unless nil, adds attributes to the scope of a batch. stack_pairing copies them to the scope of spans, so
	// they should change seldom.
	Scope func(attributes pcommon.Map)
}

// Batches sends the batches of one agent to the pipeline, which may refuse them. The methods can be called from many
// goroutines.
//
// Without Hold, Send waits until the pipeline accepts. Its caller reads no more data meanwhile, so the agent slows down.
// With Hold, Send waits for a limited time. Then Batches holds the batch, and a goroutine delivers held batches in order.
// Without memory for another batch, Send waits.
type Batches struct {
	settings BatchesSettings
	// pause separates tries.
	pause *pause
	// reached is set when a batch has reached stack_pairing.
	reached pairingmark.Mark

	// begun is set with the first batch.
	begun atomic.Bool
	// calls counts the calls that the pipeline has not returned from.
	calls atomic.Int32
	// waiting counts the callers that wait in Send.
	waiting atomic.Int32
	// Bursts of drops and of refusals. Their log lines are rare, because a pipeline may accept and refuse by turns.
	dropping, refusing logline.Burst

	mu   sync.Mutex
	held []parcel
	// freed is closed, and replaced, when a held batch is delivered; nil: no batch is held.
	freed    chan struct{}
	draining sync.WaitGroup
}

// parcel is one batch on its way into the pipeline. Each try makes new traces of it, because the pipeline may change
// traces that it refuses.
type parcel struct {
	batch    callevent.Packed
	resource pcommon.Resource
	// needs: the batch has the Needs of the settings.
	needs bool
	// calling receives the result of a call that the pipeline has not returned from; nil: no such call.
	calling <-chan error
	// observed is the context of the observation, which begins before the first try and ends in Batches.delivered.
	observed context.Context
}

// NewBatches returns a hand-over of batches.
func NewBatches(settings BatchesSettings) *Batches {
	return &Batches{settings: settings, pause: newPause(settings.Retry)}
}

// Send sends a batch to the pipeline. It returns when the batch is accepted, held, or dropped and counted. Then the
// caller may change the batch's data, but not the resource.
func (b *Batches) Send(batch callevent.Packed, resource pcommon.Resource) {
	b.send(batch, resource, inGoroutine)
}

// SendFrom runs a loop that sends many batches, and returns when the loop returns. The loop's send does the same as
// Send, and costs less with Hold.After: it starts no goroutine for a batch that is accepted in time. Only the loop's own
// goroutine may call it.
func (b *Batches) SendFrom(loop func(send func(callevent.Packed, pcommon.Resource))) {
	if b.settings.Hold == nil || b.settings.Hold.After == 0 {
		loop(b.Send)
		return
	}
	withCalls(func(call callUntil) {
		loop(func(batch callevent.Packed, resource pcommon.Resource) { b.send(batch, resource, call) })
	})
}

// inGoroutine makes a call in a goroutine of its own.
func inGoroutine(call func(), _ time.Time) { go call() }

// send does the work of Send. It makes calls that have a deadline through call.
func (b *Batches) send(batch callevent.Packed, resource pcommon.Resource, call callUntil) {
	p := b.parcel(batch, resource)
	if err := b.settings.Context.Err(); err != nil && batch.Events > 0 && !b.settings.TryLate {
		b.delivered(p, err)
		return
	}
	if b.settings.Hold == nil {
		b.waiting.Add(1)
		defer b.waiting.Add(-1)
		b.deliver(&p, unlimited)
		return
	}
	b.sendOrHold(p, call)
}

// Offer calls the pipeline once for a batch without events, and reports whether the pipeline accepted it. A refused
// offer loses no events. While batches are held, Offer returns false without a call.
func (b *Batches) Offer(batch callevent.Packed, resource pcommon.Resource) bool {
	if b.Holds() {
		return false
	}
	p := b.parcel(batch, resource)
	err := b.call(p)
	b.settings.Observer.EndTracesOp(p.observed, b.settings.Format, 1, err)
	return err == nil
}

// parcel begins the hand-over of a batch.
func (b *Batches) parcel(batch callevent.Packed, resource pcommon.Resource) parcel {
	return parcel{
		batch: batch, resource: resource, needs: batch.Events == 0 || !b.begun.Load() && !b.begun.Swap(true),
		observed: b.settings.Observer.StartTracesOp(b.settings.Context),
	}
}

// Waiting returns the number of callers in Send that wait for the pipeline or for memory.
func (b *Batches) Waiting() int { return int(b.waiting.Load()) }

// Calls returns the number of calls that the pipeline has not returned from.
func (b *Batches) Calls() int { return int(b.calls.Load()) }

// call sends a batch to the pipeline, and returns its result.
func (b *Batches) call(p parcel) error { return b.consume(p.observed, b.traces(p)) }

// begin sends a batch to the pipeline. It returns when the pipeline returns, or soon after the deadline. Then the caller
// may change the batch's data, even if the call continues.
func (b *Batches) begin(p parcel, until limits) <-chan error {
	traces, result := b.traces(p), make(chan error, 1)
	b.draining.Add(1)
	until.call(func() {
		defer b.draining.Done()
		result <- b.consume(p.observed, traces)
	}, until.deadline)
	return result
}

func (b *Batches) consume(ctx context.Context, traces ptrace.Traces) error {
	b.calls.Add(1)
	defer b.calls.Add(-1)
	err := b.settings.Next.ConsumeTraces(pairingmark.With(ctx, &b.reached), traces)
	if err == nil && b.settings.Unpaired != nil && !b.reached.IsSet() {
		b.settings.Unpaired()
	}
	return err
}

// traces returns a batch as one span.
func (b *Batches) traces(p parcel) ptrace.Traces {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	p.resource.CopyTo(resource.Resource())
	scope := resource.ScopeSpans().AppendEmpty()
	scope.Scope().SetName(b.settings.ScopeName)
	scope.Scope().SetVersion(b.settings.ScopeVersion)
	resource.SetSchemaUrl(schema.URL)
	scope.SetSchemaUrl(schema.URL)
	if b.settings.Scope != nil {
		b.settings.Scope(scope.Scope().Attributes())
	}
	span := scope.Spans().AppendEmpty()
	p.batch.To(span)
	if p.needs {
		b.settings.Needs.To(span)
	}
	return traces
}

// limits end a hand-over before its batch is accepted or dropped.
type limits struct {
	// oneTry: the first refusal ends it.
	oneTry bool
	// deadline ends it. Zero: none.
	deadline time.Time
	// call makes a call of the pipeline that can continue after the deadline.
	call callUntil
}

// over returns a channel that receives a value at the deadline.
func (l limits) over() <-chan time.Time {
	if l.deadline.IsZero() {
		return nil
	}
	return time.After(time.Until(l.deadline))
}

// unlimited has no limit.
var unlimited limits

// deliver tries a batch until it is accepted or dropped: after a permanent error, after GiveUp, or when the time of the
// shutdown is over. It returns false if a limit ended it earlier.
func (b *Batches) deliver(p *parcel, until limits) bool {
	giveUp := b.settings.GiveUp
	if p.batch.Events == 0 {
		giveUp = nil
	}
	for {
		err, returned := b.try(p, until)
		if !returned {
			return false
		}
		if err == nil || consumererror.IsPermanent(err) {
			b.pause.accepted()
			b.delivered(*p, err)
			return true
		}
		if until.oneTry && b.settings.Context.Err() == nil {
			b.refused(err)
			return false
		}
		b.refused(err)
		select {
		case <-b.pause.refused():
		case <-giveUp:
			b.delivered(*p, err)
			return true
		case <-b.settings.Context.Done():
		case <-until.over():
			return false
		}
		if b.settings.Context.Err() != nil {
			b.delivered(*p, err)
			return true
		}
		b.settings.Retried()
	}
}

// try calls the pipeline, unless an earlier call has not returned. It reports whether the call returned before the
// deadline.
func (b *Batches) try(p *parcel, until limits) (err error, returned bool) {
	if p.calling == nil {
		if until.deadline.IsZero() {
			return b.call(*p), true
		}
		p.calling = b.begin(*p, until)
	}
	select {
	case err = <-p.calling:
		p.calling = nil
		return err, true
	case <-until.over():
		return nil, false
	}
}

// delivered ends the hand-over of a batch. Nil: it was accepted; else it is dropped because of err.
func (b *Batches) delivered(p parcel, err error) {
	b.settings.Observer.EndTracesOp(p.observed, b.settings.Format, 1, err)
	if err == nil {
		b.settings.Accepted()
		b.dropping.Over()
		if b.refusing.Over() {
			b.settings.Logger.Info("The pipeline accepts call events again")
		}
		return
	}
	reason := b.dropReason(err)
	b.settings.Dropped(p.batch.Events, reason)
	if since, due := b.dropping.Count(b.settings.Now()); due {
		b.settings.Logger.Error("The receiver drops batches of call events until the pipeline accepts one",
			zap.String("reason", reason), zap.Int("events", p.batch.Events), zap.Int("batches_since_last_line", since), zap.Error(err))
	}
}

// dropReason returns the reason of a drop, from the error of the last try.
func (b *Batches) dropReason(err error) string {
	switch {
	case consumererror.IsPermanent(err):
		return DroppedPermanent
	case b.settings.Context.Err() != nil:
		return lateReason(b.settings.Context)
	default:
		return DroppedMemory
	}
}

func (b *Batches) refused(err error) {
	if since, due := b.refusing.Count(b.settings.Now()); due {
		b.settings.Logger.Warn("The pipeline refuses call events: "+b.settings.WhileRefused,
			zap.Int("refusals_since_last_line", since), zap.Error(err))
	}
}

// stuck logs that the pipeline has not returned from a call for the time after.
func (b *Batches) stuck(after time.Duration) {
	if since, due := b.refusing.Count(b.settings.Now()); due {
		b.settings.Logger.Warn("The pipeline has neither accepted nor refused call events: "+b.settings.WhileRefused,
			zap.Duration("for", after), zap.Int("refusals_since_last_line", since))
	}
}
