// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"crypto/sha256"
	"encoding/binary"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
)

// The spans of a garbage collection. They are phases and no pauses: Ruby marks in steps and sweeps
// when it needs room, and the program runs in between.
const (
	spanGC    = "GC cycle"
	spanMark  = "mark phase"
	spanSweep = "sweep phase"

	spansOfCycle = 3
	// bytesOfCycle is the approximate memory of its spans, without the resource.
	bytesOfCycle = 1024
)

// cycleParcel is a garbage collection on its way to the pipeline.
type cycleParcel struct {
	cycle  process.Cycle
	origin *origin.Origin
}

// tracesOf returns the spans of garbage collections, each a trace of its own.
func tracesOf(kit *receiverkit.Kit, parcels []cycleParcel) ptrace.Traces {
	traces := ptrace.NewTraces()
	spans := map[*origin.Origin]ptrace.SpanSlice{}
	for i := range parcels {
		p := &parcels[i]
		to, ok := spans[p.origin]
		if !ok {
			to = kit.AppendSpans(traces, p.origin.Resource)
			spans[p.origin] = to
		}
		p.appendTo(to)
	}
	return traces
}

// appendTo appends the three spans. The server's clock shows milliseconds. A phase that begins
// and ends in the same millisecond lasts a nanosecond, so each span has a length, and children
// lie inside their parent.
func (p *cycleParcel) appendTo(spans ptrace.SpanSlice) {
	const nanos = 1e6
	start := p.cycle.Start * nanos
	marked := max(p.cycle.Marked*nanos, start+1)
	end := max(p.cycle.End*nanos, marked+1)
	ids := p.ids()
	for i, s := range [spansOfCycle]struct {
		name       string
		start, end int64
	}{{spanGC, start, end}, {spanMark, start, marked}, {spanSweep, marked, end}} {
		span := spans.AppendEmpty()
		span.SetTraceID(ids.trace)
		span.SetSpanID(ids.spans[i])
		if i > 0 {
			span.SetParentSpanID(ids.spans[0])
		}
		span.SetName(s.name)
		span.SetKind(ptrace.SpanKindInternal)
		span.SetStartTimestamp(pcommon.Timestamp(s.start))
		span.SetEndTimestamp(pcommon.Timestamp(s.end))
	}
}

// cycleIDs are the IDs of a garbage collection's spans.
type cycleIDs struct {
	trace pcommon.TraceID
	spans [spansOfCycle]pcommon.SpanID
}

// ids returns a hash of the garbage collection and of the life of the server, as the receiver has
// counted it.
func (p *cycleParcel) ids() (ids cycleIDs) {
	h := sha256.New()
	h.Write(p.origin.Seed[:])
	var n [16]byte
	binary.BigEndian.PutUint64(n[:], p.cycle.Number)
	binary.BigEndian.PutUint64(n[8:], uint64(p.cycle.Start))
	h.Write(n[:])
	sum := h.Sum(nil)
	copy(ids.trace[:], sum)
	for i := range ids.spans {
		// Apart from each other by a number, and never zero.
		id := binary.BigEndian.Uint64(sum[16:])&^3 + uint64(i) + 1
		binary.BigEndian.PutUint64(ids.spans[i][:], id)
	}
	return ids
}
