// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

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
)

// dropReason says why spans were dropped. Its text is the metric's attribute.
type dropReason string

const (
	refusedForGood dropReason = "refused_for_good"
	atShutdown     dropReason = "shutdown"
	memoryBudget   dropReason = "memory_budget"
)

// delivery hands finished spans to the next component, and holds those that it
// refuses with an error that is not permanent, in order and bounded in bytes.
type delivery struct {
	next consumer.Traces
	// maxBytes bounds what is held.
	maxBytes int
	clock    *clock
	// dropped is told of spans that are lost, holding of the change in the
	// number held.
	dropped func(spans int, reason dropReason, err error)
	holding func(change int)
	// isFull reports whether the memory budget asks for memory: then no more is held.
	isFull func() bool
	// life ends when the time of the shutdown is over: nobody waits from then on.
	life context.Context

	// offering has room for one: whoever offers what is held, and so takes it out.
	offering chan struct{}

	// mu guards what is held.
	mu    sync.Mutex
	queue []held
	bytes int
	// why is the last error with which what is held was refused.
	why error
	// spans and heldBytes are what queue holds, to be read without mu.
	spans, heldBytes atomic.Int64
}

// held is one refused hand-over of the spans of one stream.
type held struct {
	traces       ptrace.Traces
	client       client.Info
	spans, bytes int
}

// deliver hands what build makes on, or holds or drops it. What is held already
// goes first. build is called again where the next component may have changed
// what it refuses.
func (d *delivery) deliver(ctx context.Context, build func() ptrace.Traces) {
	traces := build()
	if d.spans.Load() > 0 {
		d.hold(ctx, traces, d.whyHeld())
		return
	}
	spans := traces.SpanCount()
	err := d.next.ConsumeTraces(ctx, traces)
	if err == nil {
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

// holdInterval is how often what is held is offered by who waits for room.
const holdInterval = 50 * time.Millisecond

// hold keeps traces for later. Where there is no room, whoever finished these
// spans waits for it, which its sender feels. When the call that they came with
// is over they are held all the same: it was taken. Only the end of a shutdown
// drops them.
func (d *delivery) hold(ctx context.Context, traces ptrace.Traces, err error) {
	h := held{traces: traces, client: client.FromContext(ctx), spans: traces.SpanCount(), bytes: memoryOf(traces)}
	if h.spans == 0 {
		return
	}
	for !d.keep(h, err, ctx.Err() != nil) {
		select {
		case <-d.life.Done():
			d.dropped(h.spans, atShutdown, err)
			return
		case <-ctx.Done():
		case <-time.After(holdInterval):
			// Refused again or not: room may have been made either way.
			_ = d.offerHeld(ctx)
		}
	}
}

// keep puts h to what is held, if there is room, nothing else is held, or it
// has to be.
func (d *delivery) keep(h held, why error, must bool) bool {
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
	d.clock.refuse(true)
	return true
}

// whyHeld is why anything is held.
func (d *delivery) whyHeld() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.why
}

// offerHeld offers what is held, oldest first, and returns the error with which
// it was refused again. One offers at a time; the others wait, at most until ctx
// is done.
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
		err := d.next.ConsumeTraces(client.NewContext(ctx, first.client), d.offer(first.traces))
		if err = d.answer(first, err); err != nil {
			return err
		}
	}
}

// first is what was held longest. It stays in the queue until it is answered.
func (d *delivery) first() (first held, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 {
		return held{}, false
	}
	return d.queue[0], true
}

// answer takes out of the queue what of first was accepted, or refused for good.
// Whatever is refused otherwise is the error.
func (d *delivery) answer(first held, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	part, named := refusedPart(err)
	if err != nil && !consumererror.IsPermanent(err) {
		if named {
			d.keepOfFirst(part)
		}
		// That a call was broken off says less than why an earlier one was refused.
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
	d.keepOfFirst(ptrace.NewTraces())
	return nil
}

// offer is what the next component may do with as it likes.
func (d *delivery) offer(traces ptrace.Traces) ptrace.Traces {
	if !d.next.Capabilities().MutatesData {
		return traces
	}
	offered := ptrace.NewTraces()
	traces.CopyTo(offered)
	return offered
}

// keepOfFirst keeps just this part of what is first in the queue.
func (d *delivery) keepOfFirst(part ptrace.Traces) {
	first := &d.queue[0]
	spans, bytes := part.SpanCount(), memoryOf(part)
	if spans == 0 {
		bytes = 0
	}
	d.bytes += bytes - first.bytes
	d.heldBytes.Store(int64(d.bytes))
	d.count(spans - first.spans)
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

// dropHeld drops what is held.
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

func (d *delivery) count(change int) {
	d.spans.Add(int64(change))
	d.holding(change)
}

// refusedPart is the part that was not taken, if the error names one.
func refusedPart(err error) (part ptrace.Traces, ok bool) {
	var partial consumererror.Traces
	if !errors.As(err, &partial) {
		return part, false
	}
	return partial.Data(), true
}
