// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/pairing"
	"github.com/callbraid/callbraid/internal/call/pairingmark"
	"github.com/callbraid/callbraid/internal/componentkit/nesting"
)

// maxSpansPerCall bounds the spans of one call to the next component.
const maxSpansPerCall = 2048

// maxBytesPerCall bounds the bytes of one call, approximately. gRPC and Kafka refuse more
// than a few MiB, and names can be long.
const maxBytesPerCall = 2 << 20

// Attributes that name the program in log lines.
const (
	attributeService  = "service.name"
	attributeInstance = "service.instance.id"
)

var errShutdown = errors.New("stack_pairing is shutting down and accepts no more call events")

var errNoRoom = errors.New("no room for these call events while others are accepted: try again")

// ConsumeTraces accepts a hand-over, or refuses all of it:
//
//	(a) It delivers held spans. If they are refused again, it refuses the call.
//	(b) It reserves room for all batches, or refuses the call.
//	(c) It passes on spans that are not batches. If they are refused, it refuses the call.
//	(d) It accepts all batches. It drops one that it cannot unpack.
//	(e) It delivers the finished spans. It holds those that are refused.
//
// Before all this it refuses a hand-over with an attribute that is nested too deep, with a
// permanent error. Copying and holding it would recurse over it.
//
// The mark in ctx shows the receiver that its batches reach stack_pairing, accepted or not.
func (p *pairer) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	pairingmark.Set(ctx)
	p.calls.RLock()
	defer p.calls.RUnlock()
	if p.closed {
		return errShutdown
	}
	if err := nesting.Traces(td, p.cfg.Limits.MaxAttributeDepth); err != nil {
		return p.refuseNested(ctx, err)
	}
	defer p.clock.handoverDone(p.clock.handoverBegun())
	batches, others := split(td)
	if err := p.delivery.offerHeld(ctx); err != nil {
		p.telemetry.ProcessorStackPairingRefusedCalls.Add(ctx, 1)
		// Not wrapped: the error may name a part of the held spans, and the caller would read
		// that as a part of td.
		return fmt.Errorf("finished spans are held because the next component refuses them: %v", err)
	}
	if len(batches) == 0 {
		return p.next.ConsumeTraces(ctx, td)
	}
	room, ok := p.reserve(batches)
	if !ok {
		p.telemetry.ProcessorStackPairingRefusedCalls.Add(ctx, 1)
		return errNoRoom
	}
	defer p.reserved.Add(-room)
	if others > 0 {
		if err := p.next.ConsumeTraces(ctx, without(td, callevent.Carries)); err != nil {
			return withBatches(err, td)
		}
	}
	for _, c := range batches {
		p.accept(ctx, c)
		// One batch of a call may be what another waits for.
		p.lighten(ctx, p.maxBytes+room)
	}
	p.lighten(ctx, p.maxBytes)
	return nil
}

// refuseNested counts and logs a hand-over that is nested too deep, and returns its error. It
// is permanent, because sending the same again does not help.
func (p *pairer) refuseNested(ctx context.Context, err error) error {
	p.telemetry.ProcessorStackPairingNestedCalls.Add(ctx, 1)
	p.burst.Warn("Refused a hand-over with an attribute that is nested too deep. If it is honest, raise limits.max_attribute_depth",
		peer(ctx), zap.Error(err))
	return consumererror.NewPermanent(fmt.Errorf("%w: flatten the attribute, or raise limits.max_attribute_depth of stack_pairing", err))
}

// peer is the address of the client that sent the data in ctx, as a field of a log line.
func peer(ctx context.Context) zap.Field {
	if addr := client.FromContext(ctx).Addr; addr != nil {
		return zap.String("peer", addr.String())
	}
	return zap.Skip()
}

// split finds the batches, and counts the other spans. It does not change td, because a
// refused call is repeated.
func split(td ptrace.Traces) (batches []carrier, others int) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				if callevent.Carries(span) {
					batches = append(batches, carrier{rs, ss, span})
				} else {
					others++
				}
			}
		}
	}
	return batches, others
}

// without copies td except the spans that match.
func without(td ptrace.Traces, match func(ptrace.Span) bool) ptrace.Traces {
	rest := ptrace.NewTraces()
	td.CopyTo(rest)
	rest.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool {
		rs.ScopeSpans().RemoveIf(func(ss ptrace.ScopeSpans) bool {
			ss.Spans().RemoveIf(match)
			return ss.Spans().Len() == 0
		})
		return rs.ScopeSpans().Len() == 0
	})
	return rest
}

// withBatches adds the batches of td to an error that refuses a part of the other spans. The
// caller sends only that part again, and no batch was accepted.
func withBatches(err error, td ptrace.Traces) error {
	part, ok := refusedPart(err)
	if !ok {
		return err
	}
	left := without(td, func(span ptrace.Span) bool { return !callevent.Carries(span) })
	for _, rs := range part.ResourceSpans().All() {
		rs.CopyTo(left.ResourceSpans().AppendEmpty())
	}
	return consumererror.NewTraces(err, left)
}

// reserve reserves memory for the events of the batches. A single call always has room.
func (p *pairer) reserve(batches []carrier) (room int64, ok bool) {
	for _, c := range batches {
		data, found := c.span.Attributes().Get(callevent.AttributeData)
		if found && data.Type() == pcommon.ValueTypeBytes {
			room += 2 * int64(data.Bytes().Len())
		}
	}
	if sum := p.reserved.Add(room); sum > room && (sum > p.maxBytes || p.memory.excess(p) > 0) {
		p.reserved.Add(-room)
		p.memory.excess(p) // the refused call needs no memory of others
		return 0, false
	}
	return room, true
}

// accept passes one batch to its stream and delivers the finished calls.
func (p *pairer) accept(ctx context.Context, c carrier) {
	batch := p.batches.Get().(*callevent.Batch)
	defer p.batches.Put(batch)
	data, err := callevent.Data(c.span)
	if err == nil {
		err = batch.Unpack(data)
	}
	if err != nil {
		p.telemetry.ProcessorStackPairingCorruptBatches.Add(ctx, 1)
		if line := p.burst.Check(zap.WarnLevel, "Dropped a batch of call events that cannot be read"); line != nil {
			resource := c.resource.Resource().Attributes()
			line.Write(peer(ctx), shortText(resource, attributeService), shortText(resource, attributeInstance), zap.Error(err))
		}
		return
	}
	p.telemetry.ProcessorStackPairingBatches.Add(ctx, 1)
	if callevent.HasNeeds(c.span) {
		p.checkNeeds(c.span)
	}
	f := p.fresh(ctx)
	p.shardOf(batch.Stream).accept(batch, c, client.FromContext(ctx), p.clock.now(), f)
	p.handOn(ctx, f)
	p.boundStreams(ctx, batch.Stream)
}

// shortText is a text among attributes from outside as a field of a log line, cut where it is
// long. A resource may have any number of attributes, so no line shows all of them.
func shortText(attributes pcommon.Map, key string) zap.Field {
	if v, found := attributes.Get(key); found && v.Type() == pcommon.ValueTypeStr {
		return zap.String(key, nesting.Cut(v.Str()))
	}
	return zap.Skip()
}

// handOn delivers the finished calls of one stream for the client that sent it, and reuses f.
func (p *pairer) handOn(ctx context.Context, f *finished) {
	if f.Counters.BelowResolution {
		p.warnBelowResolution()
	}
	if f.Counters.Missing+f.Counters.Late > 0 {
		p.burst.Warn("Call events did not arrive in time, so calls around them are truncated. If this repeats, raise reorder.max_wait and reorder.max_events, or find where batches are delayed or lost",
			zap.Uint64("missing", f.Counters.Missing), zap.Uint64("late", f.Counters.Late))
	}
	p.deliver(ctx, f)
	p.reuse(f)
}

// deliver delivers the calls in f, at most maxSpansPerCall in one call. If one step finishes
// more, deliver runs during that step, which bounds the memory. Other streams of the shard
// wait meanwhile.
func (p *pairer) deliver(ctx context.Context, f *finished) {
	if len(f.Calls) == 0 {
		return
	}
	delay := time.Since(time.Unix(0, f.Calls[0].End))
	p.telemetry.ProcessorStackPairingDelay.Record(ctx, max(delay.Seconds(), 0))
	if f.unheld && p.delivery.spans.Load() > 0 {
		p.dropped(len(f.Calls), memoryBudget, p.delivery.whyHeld())
		f.ClearCalls()
		return
	}
	ctx = client.NewContext(ctx, f.client)
	for spans := f.Calls; len(spans) > 0; {
		part := spans[:f.fitting(spans)]
		p.delivery.deliver(ctx, func() ptrace.Traces { return f.origin.traces(part, &f.Output) })
		spans = spans[len(part):]
	}
	f.ClearCalls()
}

// fitting is the number of spans for one call to the next component, at least one.
func (f *finished) fitting(spans []pairing.Call) int {
	const spanBytes, throwBytes, attributeBytes = 256, 64, 16
	size := 0
	for i := range spans {
		s := &spans[i]
		size += spanBytes + len(s.Function.Qualified) + len(s.Function.Display) + len(s.Function.Text) +
			len(s.Function.File) + len(s.LaneName) + len(s.ErrorType)
		for _, t := range f.Throws[s.Throws.From:s.Throws.To] {
			size += throwBytes + len(t.Type)
		}
		for _, a := range f.Attributes[s.Attributes.From:s.Attributes.To] {
			size += attributeBytes + len(a.Key) + len(a.Value.Str())
		}
		if size > maxBytesPerCall && i > 0 {
			return i
		}
	}
	return len(spans)
}

func (p *pairer) handOnAll(ctx context.Context, all []*finished) {
	for _, f := range all {
		p.handOn(ctx, f)
	}
}
