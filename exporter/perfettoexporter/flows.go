// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package perfettoexporter

import (
	"encoding/binary"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/exporter/perfettoexporter/internal/tracefile"
)

// A reader draws an arrow between the events of one flow. Spans that were written cannot get one more flow, so:
//
//   - The call of another service has the calling span's ID as its flow, on both sides, whichever arrives first.
//   - A link has a flow of its own. It waits for the linked span, if that arrives later. A linked span of kind
//     PRODUCER or CLIENT also has its own ID as flow, so it may arrive earlier.
//   - A link at which a trace was cut has no flow, because the call is drawn inside its caller.

// maxWaitingLinks is the number of links that wait for their span, and of those that are forgotten next.
const maxWaitingLinks = 10_000

// links are the flows that wait for a linked span: the latest ones, and those before.
type links struct {
	latest, earlier map[tracefile.Key][]uint64
	count           int
}

func (l *links) wait(span tracefile.Key, flow uint64) {
	if l.latest == nil || l.count >= maxWaitingLinks {
		l.latest, l.earlier, l.count = map[tracefile.Key][]uint64{}, l.latest, 0
	}
	l.latest[span] = append(l.latest[span], flow)
	l.count++
}

// of returns the flows that wait for a span, and forgets them.
func (l *links) of(span tracefile.Key) (flows []uint64) {
	if len(l.latest)+len(l.earlier) == 0 {
		return nil
	}
	for _, waiting := range []map[tracefile.Key][]uint64{l.latest, l.earlier} {
		if found, ok := waiting[span]; ok {
			flows = append(flows, found...)
			delete(waiting, span)
		}
	}
	return flows
}

// readFlows adds the flows of a span.
func (r *reader) readFlows(span ptrace.Span) {
	switch span.Kind() {
	case ptrace.SpanKindClient, ptrace.SpanKindProducer:
		r.writer.Flow(flowOf(span.SpanID()))
	case ptrace.SpanKindServer, ptrace.SpanKindConsumer:
		if parent := span.ParentSpanID(); !parent.IsEmpty() {
			r.writer.Flow(flowOf(parent))
		}
	}
	for n, link := range span.Links().All() {
		if isCut(link) {
			continue
		}
		if span.Kind() == ptrace.SpanKindConsumer {
			r.writer.Flow(flowOf(link.SpanID()))
		}
		flow := flowOf(span.SpanID()) + uint64(n) + 1
		r.writer.Flow(flow)
		r.links.wait(keyOf(link.TraceID(), link.SpanID()), flow)
	}
	for _, flow := range r.links.of(keyOf(span.TraceID(), span.SpanID())) {
		r.writer.Flow(flow)
	}
}

func flowOf(id pcommon.SpanID) uint64 { return binary.LittleEndian.Uint64(id[:]) }
