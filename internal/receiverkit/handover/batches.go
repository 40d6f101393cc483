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

// BatchesSettings are what Batches are made of. All fields but TryLate, Hold,
// GiveUp, Unpaired, Needs and Scope have to be set.
type BatchesSettings struct {
	Settings
	Next consumer.Traces
	// ScopeName and ScopeVersion are the instrumentation scope of batches.
	ScopeName, ScopeVersion string
	// WhileRefused says, for the log, what happens to batches while the pipeline
	// refuses them, such as: the agent is not read until it accepts them.
	WhileRefused string
	// TryLate says that a batch that comes when the time of the shutdown is over is
	// tried once. False: it is dropped, and no pipeline is asked that may take long,
	// because whoever hands on has much to read to its end yet. A batch without events,
	// such as the end of a call stream, is tried once in any case.
	TryLate bool
	// Hold is set where batches are held that the pipeline refuses. Nil: whoever hands
	// on a batch waits until it was accepted.
	Hold *Hold
	// GiveUp is closed when the agent has to leave because it holds too much memory: a
	// batch with events that the pipeline refuses is then not tried again, but dropped
	// for that reason. A call that the pipeline has not returned from goes on.
	GiveUp <-chan struct{}
	// Accepted counts a batch that the pipeline accepted, Dropped one that was dropped
	// with its events (DroppedPermanent, DroppedShutdown, DroppedMemory, or the reason of
	// a Late), and Retried one that is
	// tried again.
	Accepted func()
	Dropped  func(events int, reason string)
	Retried  func()
	// Unpaired, unless nil, is called after each batch that the pipeline accepted before
	// any reached stack_pairing: batches then go where nothing makes spans of them.
	Unpaired func()
	// Needs are what the receiver's settings ask of stack_pairing's. The first batch has
	// them, and each without events.
	Needs callevent.Needs
	// Scope, unless nil, adds attributes to the scope of a batch. stack_pairing gives them to
	// the spans' scope, so they should change seldom.
	Scope func(attributes pcommon.Map)
}

// Batches gives the batches of one agent to the pipeline, which may refuse them. It is
// for many goroutines.
//
// Without Hold whoever hands on a batch waits until it was accepted, so what it comes
// from is not read meanwhile, and the agent feels it. With Hold the sender waits
// for a limited time. Then Batches holds the batch, and a goroutine delivers held batches in
// order. Without memory for another batch the sender waits.
type Batches struct {
	settings BatchesSettings
	// pause is between tries.
	pause *pause
	// reached is set when a batch has reached stack_pairing.
	reached pairingmark.Mark

	// begun is set when the first batch was handed on.
	begun atomic.Bool
	// calls is how many calls the pipeline has not returned from.
	calls atomic.Int32
	// waiting is how many wait in Send.
	waiting atomic.Int32
	// dropping and refusing are bursts of it. They are logged seldom: a pipeline may
	// accept and refuse by turns.
	dropping, refusing logline.Burst

	mu   sync.Mutex
	held []parcel
	// freed is closed, and replaced, when something held was handed on; nil: nothing is held.
	freed    chan struct{}
	draining sync.WaitGroup
}

// parcel is one batch on its way into the pipeline. What the pipeline is given is made
// anew for each try: it may change what it refuses.
type parcel struct {
	batch    callevent.Packed
	resource pcommon.Resource
	// needs says that the batch has those of the settings.
	needs bool
	// calling gives what becomes of a call that the pipeline has not returned from; nil: there
	// is none.
	calling <-chan error
	// observed is the context of the observation that begins with the first try and
	// ends once, in Batches.delivered.
	observed context.Context
}

// NewBatches makes a hand-over of batches.
func NewBatches(settings BatchesSettings) *Batches {
	return &Batches{settings: settings, pause: newPause(settings.Retry)}
}

// Send hands on a batch, whose data is the caller's again when it returns: the batch was
// accepted, or is held, or was dropped and counted. The resource may not change any
// more.
func (b *Batches) Send(batch callevent.Packed, resource pcommon.Resource) {
	b.send(batch, resource, inGoroutine)
}

// SendFrom runs a loop that sends many batches, and returns when the loop has. The loop gets a
// send that does what Send does, and costs less with Hold.After: it starts no goroutine for a
// batch that is accepted in time. Only the loop's own goroutine may use it.
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

// send is Send, and makes calls that it may leave by call.
func (b *Batches) send(batch callevent.Packed, resource pcommon.Resource, call callUntil) {
	p := b.parcel(batch, resource)
	if err := b.settings.Context.Err(); err != nil && batch.Events > 0 && !b.settings.TryLate {
		b.delivered(p, err)
		return
	}
	if b.settings.Hold == nil {
		b.waiting.Add(1)
		defer b.waiting.Add(-1)
		b.deliver(&p, forEver)
		return
	}
	b.sendOrHold(p, call)
}

// Offer hands on a batch without events, which nothing is lost with: it reports whether
// the pipeline accepted it at once. While batches are held none is accepted.
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

// Waiting is how many wait in Send, until the pipeline accepts or for memory.
func (b *Batches) Waiting() int { return int(b.waiting.Load()) }

// Calls is how many calls the pipeline has not returned from.
func (b *Batches) Calls() int { return int(b.calls.Load()) }

// call gives a batch to the pipeline.
func (b *Batches) call(p parcel) error { return b.consume(p.observed, b.traces(p)) }

// begin gives a batch to the pipeline, and returns when that has returned, or soon after the
// deadline: the batch's data is the caller's again though the pipeline does not return.
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

// traces makes of a batch what the pipeline takes.
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

// limits say when a hand-over that is not over yet ends.
type limits struct {
	// atOnce says: when the pipeline has refused the batch.
	atOnce bool
	// deadline ends it at any moment. Zero: nothing does.
	deadline time.Time
	// call makes a call of the pipeline that can be left at the deadline.
	call callUntil
}

// over gets a value at the deadline.
func (l limits) over() <-chan time.Time {
	if l.deadline.IsZero() {
		return nil
	}
	return time.After(time.Until(l.deadline))
}

// forEver has no end but those of the batch.
var forEver limits

// deliver hands on a batch until it is accepted, refused for good, given up, or the time
// of the shutdown is over. It reports false where a limit came first.
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
		if until.atOnce && b.settings.Context.Err() == nil {
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

// try gives a batch to the pipeline, unless it has it still, and reports whether that has
// returned before the time was over.
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

// delivered ends the hand-over of a batch: accepted, or dropped with err.
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
	if since, say := b.dropping.Say(b.settings.Now()); say {
		b.settings.Logger.Error("A batch of call events is dropped, and so are others until the next is accepted",
			zap.String("reason", reason), zap.Int("events", p.batch.Events), zap.Int("batches_since_last_line", since), zap.Error(err))
	}
}

// dropReason is why a batch is dropped that was refused with err at last.
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
	if since, say := b.refusing.Say(b.settings.Now()); say {
		b.settings.Logger.Warn("The pipeline refuses call events: "+b.settings.WhileRefused,
			zap.Int("refusals_since_last_line", since), zap.Error(err))
	}
}

// stuck logs that the pipeline has not returned for so long.
func (b *Batches) stuck(after time.Duration) {
	if since, say := b.refusing.Say(b.settings.Now()); say {
		b.settings.Logger.Warn("The pipeline has neither accepted nor refused call events: "+b.settings.WhileRefused,
			zap.Duration("for", after), zap.Int("refusals_since_last_line", since))
	}
}
