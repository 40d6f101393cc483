// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/pairingmark"
)

// dropReason is the reason why spans were dropped. Its text is the metric's attribute.
type dropReason string

const (
	refusedForGood dropReason = "refused_for_good"
	atShutdown     dropReason = "shutdown"
	memoryBudget   dropReason = "memory_budget"
)

// delivery delivers finished spans to the next component. It holds spans that were refused with
// an error that is not permanent, in order and bounded in bytes.
type delivery struct {
	// next accepts the spans of a step, and again those that it has refused.
	next, again consumer.Traces
	// maxBytes bounds the held spans.
	maxBytes int
	clock    *clock
	// dropped receives each loss, and holding each change of the number of held spans.
	dropped func(spans int, reason dropReason, err error)
	holding func(change int)
	// isFull reports whether the memory budget demands memory. Then no more spans are held.
	isFull func() bool
	// goesOn: hand-overs are accepted while there is room for held spans, because their calls count in sums. A
	// goroutine offers the spans then.
	goesOn bool
	// life ends at the shutdown timeout. Nothing waits after that.
	life context.Context
	// offered is the number of spans in calls that have not returned. areLeft: a shutdown has dropped them.
	offered atomic.Int64
	areLeft atomic.Bool
	// isEnding: hand-overs under way no longer wait for room, because a shutdown waits for them.
	isEnding atomic.Bool

	// offering has room for one: the goroutine that offers held spans.
	offering chan struct{}

	// mu guards the queue.
	mu    sync.Mutex
	queue []held
	bytes int
	// why is the last error that refused held spans.
	why error
	// spans and heldBytes are the contents of queue, to be read without mu.
	spans, heldBytes atomic.Int64
}

// held is one refused call with spans of one stream.
type held struct {
	traces       ptrace.Traces
	client       client.Info
	spans, bytes int
}

// slowCall is the time of a call to the next component after which further spans are held, if hand-overs go on.
const slowCall = time.Second

var errSlow = errors.New("an earlier call to the next component has not returned")

// deliver delivers the spans that build returns, or holds or drops them. Held spans go first.
// It calls build again if the next component may have changed refused spans.
func (d *delivery) deliver(ctx context.Context, build func() ptrace.Traces) {
	traces := build()
	if d.spans.Load() > 0 {
		d.hold(ctx, traces, d.whyHeld())
		return
	}
	if d.goesOn && d.clock.hasCallSince(slowCall) {
		d.hold(ctx, traces, errSlow)
		return
	}
	spans := traces.SpanCount()
	d.offered.Add(int64(spans))
	err := d.next.ConsumeTraces(pairingmark.Paired(ctx), traces)
	d.offered.Add(-int64(spans))
	if err == nil || d.areLeft.Load() && !errors.Is(err, errDeaf) {
		return
	}
	part, named := refusedPart(err)
	switch {
	case named:
		traces, spans = part, part.SpanCount()
	case d.next.Capabilities().MutatesData:
		traces = build()
	}
	if consumererror.IsPermanent(err) {
		d.dropped(spans, refusedForGood, err)
		return
	}
	d.hold(ctx, traces, err)
}

// holdInterval is the interval at which a waiting caller offers the held spans.
const holdInterval = 50 * time.Millisecond

// hold holds traces for later. If there is no room the caller waits, and so does its sender. If
// the caller's context ends, or a shutdown no longer waits for it, the spans are held without room, because their
// batches were accepted. Only the end of a shutdown drops them.
func (d *delivery) hold(ctx context.Context, traces ptrace.Traces, err error) {
	h := held{traces: traces, client: client.FromContext(ctx), spans: traces.SpanCount(), bytes: memoryOf(traces)}
	if h.spans == 0 {
		return
	}
	for !d.enqueue(h, err, ctx.Err() != nil || d.isEnding.Load()) {
		select {
		case <-d.life.Done():
			d.dropped(h.spans, atShutdown, err)
			return
		case <-ctx.Done():
		case <-time.After(holdInterval):
			// There may be room now, even if some spans were refused again.
			_ = d.offerHeld(ctx)
		}
	}
}

// enqueue holds h if there is room, if the queue is empty, or if it must.
func (d *delivery) enqueue(h held, why error, must bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.life.Err() != nil {
		return false
	}
	if !must && len(d.queue) > 0 && (d.bytes+h.bytes > d.maxBytes || d.isFull()) {
		return false
	}
	d.queue, d.why = append(d.queue, h), why
	d.bytes += h.bytes
	d.heldBytes.Store(int64(d.bytes))
	d.count(h.spans)
	d.clock.refuse(!d.goesOn || d.bytes >= d.maxBytes)
	return true
}

// refuses reports whether hand-overs are refused. It offers the held spans first, unless a goroutine does.
func (d *delivery) refuses(ctx context.Context) bool {
	if d.goesOn {
		return d.spans.Load() > 0 && !d.canGoOn()
	}
	return d.offerHeld(ctx) != nil
}

// ready returns nil if a hand-over can be accepted. Otherwise it has offered the held spans, and returns the
// error that refused them.
func (d *delivery) ready(ctx context.Context) error {
	if d.spans.Load() == 0 || d.canGoOn() {
		return nil
	}
	return d.offerHeld(ctx)
}

// canGoOn reports whether hand-overs are accepted while spans are held.
func (d *delivery) canGoOn() bool {
	return d.goesOn && d.heldBytes.Load() < int64(d.maxBytes) && !d.isFull()
}

// whyHeld is the reason why spans are held.
func (d *delivery) whyHeld() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.why
}

// offerHeld offers the held spans, oldest first, and returns the error that refuses them again.
// One goroutine offers. The others wait, at most until ctx is done.
func (d *delivery) offerHeld(ctx context.Context) error {
	if d.spans.Load() == 0 {
		return nil
	}
	select {
	case d.offering <- struct{}{}:
		defer func() { <-d.offering }()
	case <-ctx.Done():
		return ctx.Err()
	case <-d.life.Done():
		return d.life.Err()
	}
	for {
		first, ok := d.first()
		if !ok {
			return nil
		}
		err := d.again.ConsumeTraces(pairingmark.Paired(client.NewContext(ctx, first.client)), d.offer(first.traces))
		if err = d.answer(first, err); err != nil {
			return err
		}
	}
}

// first is the oldest entry of the queue. It stays there until its answer.
func (d *delivery) first() (first held, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 {
		return held{}, false
	}
	return d.queue[0], true
}

// answer removes the accepted and the permanently refused part of first from the queue. It
// returns the error that refuses the rest.
func (d *delivery) answer(first held, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	part, named := refusedPart(err)
	if err != nil && !consumererror.IsPermanent(err) {
		if named {
			d.replaceFirst(part)
		}
		// The error of a cancelled call says less than that of an earlier one.
		if d.why == nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			d.why = err
		}
		return err
	}
	if err != nil {
		lost := first.spans
		if named {
			lost = part.SpanCount()
		}
		d.dropped(lost, refusedForGood, err)
	}
	d.replaceFirst(ptrace.NewTraces())
	return nil
}

// offer returns traces that the next component may change.
func (d *delivery) offer(traces ptrace.Traces) ptrace.Traces {
	if !d.next.Capabilities().MutatesData {
		return traces
	}
	offered := ptrace.NewTraces()
	traces.CopyTo(offered)
	return offered
}

// replaceFirst replaces the first entry of the queue by a part of it.
func (d *delivery) replaceFirst(part ptrace.Traces) {
	first := &d.queue[0]
	spans, bytes := part.SpanCount(), memoryOf(part)
	if spans == 0 {
		bytes = 0
	}
	d.bytes += bytes - first.bytes
	d.heldBytes.Store(int64(d.bytes))
	d.count(spans - first.spans)
	if d.goesOn {
		d.clock.refuse(d.bytes >= d.maxBytes)
	}
	if spans > 0 {
		first.traces, first.spans, first.bytes = part, spans, bytes
		return
	}
	*first = held{}
	d.queue = d.queue[1:]
	if len(d.queue) == 0 {
		d.queue = nil
		d.clock.refuse(false)
	}
}

// dropHeld drops all held spans.
func (d *delivery) dropHeld(reason dropReason) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if spans := int(d.spans.Load()); spans > 0 {
		d.dropped(spans, reason, d.why)
		d.count(-spans)
	}
	d.queue, d.bytes = nil, 0
	d.heldBytes.Store(0)
	d.clock.refuse(false)
}

// leave drops the spans of calls that do not return. The next component may accept them later.
func (d *delivery) leave() {
	d.areLeft.Store(true)
	if spans := int(d.offered.Load()); spans > 0 {
		d.dropped(spans, atShutdown, errDeaf)
	}
}

func (d *delivery) count(change int) {
	d.spans.Add(int64(change))
	d.holding(change)
}

// refusedPart is the refused part, if the error names one.
func refusedPart(err error) (part ptrace.Traces, ok bool) {
	var partial consumererror.Traces
	if !errors.As(err, &partial) {
		return part, false
	}
	return partial.Data(), true
}
