// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/testkit/handovers"
)

// FuzzConsume hands over a batch with any data, one that can be unpacked but whose events make no
// sense, and then an honest one, all of one stream. No batch causes a panic, every span is well
// formed, the bounds hold, and at the end no memory is held.
func FuzzConsume(f *testing.F) {
	for i, seed := range []batch{
		call(1, "f", 0),
		{stream: 1, first: 7, events: []string{"enter a", "enter b", "throw b E", "unwind b E", "exit a", "exit top", "skip"}},
		{
			stream: 1, first: 2, events: []string{"enter a", "enter b @2"}, next: 1 << 62,
			barriers: []callevent.Barrier{callevent.Point(3, callevent.CauseSuspended), callevent.Interval(5, 1<<60, callevent.CauseDropped)},
		},
		{stream: 1, events: []string{"enter c", "exit c"}, barriers: []callevent.Barrier{callevent.End(4, callevent.CauseEnded)}},
		{stream: 1, numbers: []uint64{1 << 40, 1<<40 + 1<<30}, events: []string{"enter a", "exit a"}},
		{stream: 2, events: []string{"enter b"}},
	} {
		// Enters, exits, throws and unwinds, in order and then far off.
		script := []byte{0x10, 1, 0x11, 1, 0x23, 1, 0x34, 1, 0x20, 1, 0x50, 1, 0x60, 1, 0x10, 200, 0x20, 100, 0x70, 3, 0x80, 9, 0x15, 255}
		f.Add(seed.pack(f).Data, script[:4*(i+1)], byte(i))
	}
	f.Fuzz(func(t *testing.T, first, script []byte, choices byte) {
		cfg := DefaultConfig()
		cfg.Reorder.MaxEvents, cfg.Reorder.MaxMiB = 1<<12, 1
		cfg.Limits = LimitsConfig{MaxStreams: 2, MaxLanes: 3, MaxFrames: 20, MaxNamesMiB: 1, MaxExceptionsPerSpan: 2, MaxAttributeDepth: 8, MaxHeldMiB: 1}
		cfg.MaxSpansPerTrace = 5
		if choices&1 > 0 {
			cfg.MaxDepth = 4
		}
		if choices&2 > 0 {
			cfg.MinDuration = time.Millisecond
		}
		if choices&4 > 0 {
			cfg.Truncated = truncatedDrop
		}
		cfg.ShutdownTimeout = time.Nanosecond
		calls := 0
		next, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
			calls++
			if choices&8 > 0 && calls%3 == 1 {
				return errFull
			}
			checkSpans(t, td)
			return nil
		})
		require.NoError(t, err)
		p, err := New(quietSettings(next), cfg)
		require.NoError(t, err)
		now := time.Duration(0)
		p.clock.elapsed = func() time.Duration { return now }

		for _, data := range [][]byte{first, scripted(t, script), call(1, "honest", 0).pack(t).Data} {
			td := traces(t, batch{stream: 1, adjust: func(span ptrace.Span) {
				v, _ := span.Attributes().Get(callevent.AttributeData)
				v.Bytes().FromRaw(data)
			}})
			for try := 0; try < 3; try++ {
				if err := p.ConsumeTraces(context.Background(), td); err == nil {
					break
				} else if consumererror.IsPermanent(err) {
					t.Fatalf("a hand-over was refused for good: %v", err)
				}
			}
			require.LessOrEqual(t, p.accounts.bytes.Load(), p.maxBytes)
			require.LessOrEqual(t, p.accounts.streams.Load(), int64(2))
			now += time.Duration(choices) * 300 * time.Millisecond
			p.expire(context.Background())
		}
		require.NoError(t, p.Shutdown(context.Background()))
		require.Zero(t, p.accounts.bytes.Load())
		require.Zero(t, p.accounts.streams.Load())
		require.Zero(t, p.accounts.waiting.Load())
		require.Zero(t, p.delivery.spans.Load())
	})
}

// batchKeys are the keys of the attributes that the processor reads.
var batchKeys = []string{
	callevent.AttributeVersion, callevent.AttributeEvents, callevent.AttributeData, attributeService, attributeInstance,
}

// carriedBatch makes a span carry a batch with a call of one of four streams. A part of the batch
// may be cut, missing, or of another type.
func carriedBatch(t *testing.T) func(span ptrace.Span, n byte) {
	return func(span ptrace.Span, n byte) {
		call(n>>6+1, "f", uint64(n>>3&7)*2).pack(t).To(span)
		data, _ := span.Attributes().Get(callevent.AttributeData)
		switch n & 7 {
		case 1:
			data.Bytes().FromRaw(data.Bytes().AsRaw()[:40])
		case 2:
			span.Attributes().Remove(callevent.AttributeData)
		case 3:
			span.Attributes().PutStr(callevent.AttributeVersion, "1")
		case 4:
			span.Attributes().PutInt(callevent.AttributeVersion, 99)
		case 5:
			data.SetEmptyMap()
		}
	}
}

// FuzzHandOver hands over any resources, scopes and spans, with batches among them, and then an
// honest call. A hand-over is refused permanently, and completely, exactly if it is nested too
// deep. Otherwise each span that is no batch passes once. At the end no memory is held.
func FuzzHandOver(f *testing.F) {
	const resource, scope, span, batch = handovers.StepResource, handovers.StepScope, handovers.StepSpan, handovers.StepBatch
	f.Add([]byte{resource, scope, batch, 0, span, 1, resource, batch, 0x48, batch, 1}, byte(0))
	f.Add([]byte{batch, 2, batch, 3, batch, 4, batch, 5, span, 1}, byte(8))
	for place := range byte(5) {
		for _, kind := range []byte{handovers.TypeLists, handovers.TypeMaps, handovers.TypeWide} {
			for _, levels := range []byte{7, 8, 9, 100} {
				f.Add(slices.Concat([]byte{span, 1, batch, 0}, handovers.Attribute(place, 5, kind, levels)), levels&8)
			}
		}
	}
	for key := range byte(len(batchKeys) + 2) {
		for kind := range byte(9) {
			f.Add(slices.Concat([]byte{batch, 0}, handovers.Attribute(handovers.InSpan, key, kind, 3), handovers.Attribute(handovers.InResource, key, kind, 3)), kind)
		}
	}
	f.Fuzz(func(t *testing.T, script []byte, choices byte) {
		cfg := DefaultConfig()
		cfg.Reorder.MaxEvents, cfg.Reorder.MaxMiB = 1<<12, 1
		cfg.Limits.MaxStreams, cfg.Limits.MaxHeldMiB, cfg.Limits.MaxAttributeDepth = 3, 1, 8
		cfg.ShutdownTimeout = time.Nanosecond
		ordinarySpans, finished, calls := 0, 0, 0
		next, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
			calls++
			if choices&8 > 0 && calls%3 == 1 {
				return errFull
			}
			ordinary := count(td, func(span ptrace.Span) bool { return span.Name() == handovers.SpanName })
			ordinarySpans, finished = ordinarySpans+ordinary, finished+td.SpanCount()-ordinary
			return nil
		})
		require.NoError(t, err)
		p, err := New(quietSettings(next), cfg)
		require.NoError(t, err)

		td := handovers.Traces(script, batchKeys, carriedBatch(t))
		tooDeep := handovers.Levels(td) > cfg.Limits.MaxAttributeDepth
		before := text(t, td)
		for range 3 {
			if err = p.ConsumeTraces(context.Background(), td); err == nil || consumererror.IsPermanent(err) {
				break
			}
		}
		require.Equal(t, before, text(t, td), "the hand-over is unchanged")
		require.Equal(t, tooDeep, err != nil, "%v", err)
		if tooDeep {
			require.True(t, consumererror.IsPermanent(err))
			require.Zero(t, calls)
			require.Zero(t, p.accounts.streams.Load())
		} else {
			// The script may have overwritten the version or data of a batch, so it is none.
			require.Equal(t, count(td, func(span ptrace.Span) bool { return span.Name() == handovers.SpanName }), ordinarySpans)
		}
		require.LessOrEqual(t, p.accounts.bytes.Load(), p.maxBytes)
		require.LessOrEqual(t, p.accounts.streams.Load(), int64(3))

		honest := finished
		for range 3 {
			if err = p.ConsumeTraces(context.Background(), traces(t, call(9, "honest", 0))); err == nil {
				break
			}
		}
		require.NoError(t, err, "an honest call is accepted after any data")
		require.NoError(t, p.Shutdown(context.Background()))
		if choices&8 == 0 {
			require.Greater(t, finished, honest)
		}
		require.Zero(t, p.accounts.bytes.Load())
		require.Zero(t, p.accounts.streams.Load())
		require.Zero(t, p.delivery.spans.Load())
	})
}

// count counts spans that match.
func count(td ptrace.Traces, match func(ptrace.Span) bool) (n int) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				if match(span) {
					n++
				}
			}
		}
	}
	return n
}

// scripted packs the events and barriers of a script. Each has two bytes. The first selects the
// kind, the lane and the function, and the second the distance of its number from the last.
func scripted(t *testing.T, script []byte) []byte {
	packer, err := callevent.NewPacker(callevent.Stream{ID: streamID(1), Epoch: testEpoch, Resolution: 1e6}, callevent.MaxBatchBytes)
	require.NoError(t, err)
	functions := []*callevent.Function{{Qualified: "a"}, {Qualified: "b"}, {Qualified: "c"}, {Qualified: "d"}}
	var barriers []callevent.Barrier
	sequence := uint64(1_000)
	for ; len(script) >= 2 && packer.Len() < 10_000; script = script[2:] {
		what, where := script[0]>>4, script[0]&3
		if step := int64(int8(script[1])); script[0]&8 > 0 {
			sequence += uint64(step * 50)
		} else {
			sequence += uint64(step)
		}
		sequence = min(sequence, 1<<20)
		e := callevent.Event{Sequence: sequence, Time: int64(sequence), Kind: callevent.Kind(what)}
		switch {
		case what >= 1 && what <= 6:
			e.Function, _ = packer.Function(functions[where])
			e.Lane, _ = packer.Lane(callevent.Lane{ID: uint64(script[0] >> 2 & 1)})
			require.True(t, packer.Add(&e))
		case len(barriers) == callevent.MaxBarriers:
		case what < 12:
			barriers = append(barriers, callevent.Interval(sequence, sequence+uint64(what), callevent.CauseSuspended))
		default:
			barriers = append(barriers, callevent.End(sequence, callevent.CauseEnded))
		}
	}
	packed, err := packer.Close(barriers, 0, testEpoch+int64(time.Hour))
	require.NoError(t, err)
	return packed.Data
}

// checkSpans checks the properties that every span has.
func checkSpans(t *testing.T, td ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				if span.EndTimestamp() <= span.StartTimestamp() {
					t.Fatalf("span %q ends at %d, at or before its start at %d", span.Name(), span.EndTimestamp(), span.StartTimestamp())
				}
				if span.SpanID().IsEmpty() || span.TraceID().IsEmpty() || span.SpanID() == span.ParentSpanID() {
					t.Fatalf("span %q has IDs %v and %v, and the parent %v", span.Name(), span.TraceID(), span.SpanID(), span.ParentSpanID())
				}
				for _, event := range span.Events().All() {
					if event.Timestamp() < span.StartTimestamp() || event.Timestamp() > span.EndTimestamp() {
						t.Fatalf("span %q has an event at %d, outside of it", span.Name(), event.Timestamp())
					}
				}
			}
		}
	}
}
