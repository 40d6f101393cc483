// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// dropReason says why spans were dropped. Its text is the metric's attribute.
type dropReason string

const (
	refusedForGood dropReason = "refused_for_good"
	holdFull       dropReason = "hold_full"
	atShutdown     dropReason = "shutdown"
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

	sizer ptrace.ProtoMarshaler

	// mu guards what is held; whoever offers it has mu until the offer is answered.
	mu    sync.Mutex
	queue []held
	bytes int
	// spans is what queue holds, to be read without mu.
	spans atomic.Int64
}

// held is one refused hand-over of the spans of one stream.
type held struct {
	traces ptrace.Traces
	client client.Info
	bytes  int
}

// deliver hands traces on, or holds or drops them; they belong to the delivery.
// What is held already goes first.
func (d *delivery) deliver(ctx context.Context, traces ptrace.Traces) {
	if d.spans.Load() > 0 {
		d.hold(ctx, traces, errors.New("earlier spans are held"))
		return
	}
	err := d.next.ConsumeTraces(ctx, traces)
	switch {
	case err == nil:
	case consumererror.IsPermanent(err):
		d.dropped(traces.SpanCount(), refusedForGood, err)
	default:
		d.hold(ctx, refusedPart(err, traces), err)
	}
}

// hold keeps traces for later.
func (d *delivery) hold(ctx context.Context, traces ptrace.Traces, err error) {
	spans := traces.SpanCount()
	size := d.sizer.TracesSize(traces)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bytes+size > d.maxBytes {
		d.dropped(spans, holdFull, err)
		return
	}
	d.queue = append(d.queue, held{traces: traces, client: client.FromContext(ctx), bytes: size})
	d.bytes += size
	d.count(spans)
	d.clock.stand(true)
}

// offerHeld offers what is held, oldest first, and returns the error with which
// it was refused again.
func (d *delivery) offerHeld(ctx context.Context) error {
	if d.spans.Load() == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.queue) > 0 {
		first := &d.queue[0]
		spans := first.traces.SpanCount()
		err := d.next.ConsumeTraces(client.NewContext(ctx, first.client), first.traces)
		if err != nil && !consumererror.IsPermanent(err) {
			first.traces = refusedPart(err, first.traces)
			d.count(first.traces.SpanCount() - spans)
			return err
		}
		if err != nil {
			d.dropped(spans, refusedForGood, err)
		}
		d.bytes -= first.bytes
		d.count(-spans)
		d.queue[0] = held{}
		d.queue = d.queue[1:]
	}
	d.queue = nil
	d.clock.stand(false)
	return nil
}

// dropHeld drops what is held.
func (d *delivery) dropHeld(reason dropReason, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if spans := int(d.spans.Load()); spans > 0 {
		d.dropped(spans, reason, err)
		d.count(-spans)
	}
	d.queue, d.bytes = nil, 0
	d.clock.stand(false)
}

func (d *delivery) count(change int) {
	d.spans.Add(int64(change))
	d.holding(change)
}

// refusedPart is what of traces the error says was not taken: all, unless it
// names a part.
func refusedPart(err error, traces ptrace.Traces) ptrace.Traces {
	var partial consumererror.Traces
	if errors.As(err, &partial) {
		return partial.Data()
	}
	return traces
}
