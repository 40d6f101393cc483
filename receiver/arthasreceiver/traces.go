// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/text"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/session"
)

// Attributes of spans and log records, of the semantic conventions and of the receiver.
const (
	attributeFunction         = "code.function.name"
	attributeFile             = "code.file.path"
	attributeLine             = "code.line.number"
	attributeStacktrace       = "code.stacktrace"
	attributeThreadName       = "thread.name"
	attributeThreadID         = "thread.id"
	attributeErrorType        = "error.type"
	attributeExceptionType    = "exception.type"
	attributeExceptionMessage = "exception.message"

	// attributeEstimated marks a span whose place inside its parent is not known.
	attributeEstimated = "arthas.time.estimated"
	// attributeForeignTrace is the trace ID of another tracer that is no ID of W3C.
	attributeForeignTrace = "arthas.trace_id"
	// The attributes of a span that stands for several calls. flame_graph knows them.
	attributeRepeatedCalls = "callbraid.repeated.calls"
	attributeRepeatedTotal = "callbraid.repeated.total"
	attributeRepeatedLeast = "callbraid.repeated.least"
	attributeRepeatedMost  = "callbraid.repeated.greatest"

	eventException = "exception"
)

// spanParcel is a call tree in the queue.
type spanParcel struct {
	life   *life
	trace  pcommon.TraceID
	thread javamethods.Thread
	// foreign is the trace ID of another tracer that is no ID of W3C.
	foreign string
	spans   []span
}

// span is a call, or several of one method from one line.
type span struct {
	id, parent pcommon.SpanID
	// start and end are Unix nanoseconds.
	start, end    int64
	class, method string
	line          int32
	threw         bool
	// exception is the type of the exception, with its message; empty means unknown.
	exception, message string
	estimated          bool
	// calls is above 1 for merged calls, of which least and most are the shortest and the longest.
	calls             int64
	total             arthas.Cost
	least, most       arthas.Cost
	parentIndex, size int64
	callSite          bool
}

// The estimated memory of spans.
const (
	bytesOfParcel = 512
	bytesOfSpan   = 512
)

func (p *spanParcel) bytes() int {
	n := bytesOfParcel
	for i := range p.spans {
		s := &p.spans[i]
		n += bytesOfSpan + 2*len(s.class) + 2*len(s.method) + len(s.exception) + len(s.message)
	}
	return n
}

// spanOutput is the queue of spans.
type spanOutput struct {
	*handover.Spans[spanParcel]
	kit *receiverkit.Kit
}

// parcelsAtOnce is the maximum number of call trees or log records of a batch.
const parcelsAtOnce = 256

// newSpanOutput opens the queue. Without a pipeline it is nil.
func newSpanOutput(run *receiverkit.Run, limits *LimitsConfig, own *counters.Counters) *spanOutput {
	if run.Next.Traces == nil {
		return nil
	}
	o := &spanOutput{kit: run.Kit}
	o.Spans = receiverkit.NewSpans(run, limits.SpanLimits, handover.QueueSettings[spanParcel, ptrace.Traces]{
		MaxAtOnce: parcelsAtOnce,
		Size:      func(p *spanParcel) (spans, bytes int) { return len(p.spans), p.bytes() },
		Make:      o.batch,
		Dropped:   own.SpansDropped,
	})
	return o
}

// batch returns the batch for the pipeline.
func (o *spanOutput) batch(parcels []spanParcel) ptrace.Traces {
	traces := ptrace.NewTraces()
	of := map[*life]ptrace.SpanSlice{}
	for i := range parcels {
		p := &parcels[i]
		to, ok := of[p.life]
		if !ok {
			to = o.kit.AppendSpans(traces, p.life.resource)
			of[p.life] = to
		}
		for j := range p.spans {
			p.spans[j].fill(to.AppendEmpty(), p)
		}
	}
	return traces
}

func (s *span) fill(made ptrace.Span, p *spanParcel) {
	made.SetTraceID(p.trace)
	made.SetSpanID(s.id)
	made.SetParentSpanID(s.parent)
	made.SetName(text.Short(javamethods.SimpleName(s.class) + "." + s.method))
	made.SetKind(ptrace.SpanKindInternal)
	made.SetStartTimestamp(pcommon.Timestamp(s.start))
	made.SetEndTimestamp(pcommon.Timestamp(s.end))
	m := made.Attributes()
	m.PutStr(attributeFunction, text.Short(s.class+"."+s.method))
	if s.line > 0 {
		m.PutInt(attributeLine, int64(s.line))
	}
	putThread(m, &p.thread)
	if s.estimated {
		m.PutBool(attributeEstimated, true)
	}
	if s.parent.IsEmpty() {
		receiverkit.PutNew(m, attributeForeignTrace, text.Short(p.foreign))
	}
	if s.calls > 1 {
		m.PutInt(attributeRepeatedCalls, s.calls)
		putNanoseconds(m, attributeRepeatedTotal, s.total)
		putNanoseconds(m, attributeRepeatedLeast, s.least)
		putNanoseconds(m, attributeRepeatedMost, s.most)
	}
	s.fillException(made)
}

func putNanoseconds(m pcommon.Map, key string, cost arthas.Cost) {
	if cost.Known {
		m.PutInt(key, cost.Nanoseconds())
	}
}

func putThread(m pcommon.Map, thread *javamethods.Thread) {
	receiverkit.PutNew(m, attributeThreadName, text.Short(thread.Name))
	if thread.ID != 0 {
		m.PutInt(attributeThreadID, thread.ID)
	}
}

func (s *span) fillException(made ptrace.Span) {
	if !s.threw {
		return
	}
	made.Status().SetCode(ptrace.StatusCodeError)
	made.Status().SetMessage(text.Short(s.message))
	receiverkit.PutNew(made.Attributes(), attributeErrorType, text.Short(s.exception))
	if s.exception == "" {
		return // an exception event needs a type
	}
	event := made.Events().AppendEmpty()
	event.SetName(eventException)
	event.SetTimestamp(made.EndTimestamp())
	receiverkit.PutNew(event.Attributes(), attributeExceptionType, text.Short(s.exception))
	receiverkit.PutNew(event.Attributes(), attributeExceptionMessage, text.Short(s.message))
}

// traceSpans returns the spans of a call tree, at most so many, and the number of dropped calls. It is not ok if the
// duration of the root is not known. These are its steps:
//
//  1. A node becomes a span. A thrown exception belongs to the span of its caller. The body of a method below its own call
//     site is the same call, and has no span of its own.
//  2. From the last span to the first, the size of a span is its duration, but at least that of its children together.
//  3. From the first to the last, a child begins 1 ns after the one before it ended, or after its parent began. So no two
//     spans begin at the same time. Only the root has a time from the server, so the others are marked as estimated.
func traceSpans(of *life, trace *arthas.Trace, received session.Received, most int) (p spanParcel, ok bool, dropped int) {
	p = spanParcel{life: of, thread: trace.Thread}
	p.trace, p.foreign = traceID(trace.TraceID)
	if dropped = p.nodes(trace.Nodes, most); len(p.spans) == 0 || !p.spans[0].total.Known {
		return p, false, dropped
	}
	for i := len(p.spans) - 1; i >= 0; i-- {
		s := &p.spans[i]
		// The children need 1 ns each between them, and 1 ns at the end.
		s.size = max(s.size+1, int64(s.total.Duration))
		if s.parentIndex >= 0 {
			p.spans[s.parentIndex].size += 1 + s.size
		}
	}
	// next has the end of the last child of each span.
	next := make([]int64, len(p.spans))
	top := at(trace.Time, received).UnixNano()
	for i := range p.spans {
		s := &p.spans[i]
		place := &top
		if s.parentIndex >= 0 {
			place = &next[s.parentIndex]
			s.parent = p.spans[s.parentIndex].id
		}
		s.estimated = i > 0
		s.start, s.end = *place, *place+s.size
		*place, next[i] = s.end+1, s.start+1
	}
	return p, true, dropped
}

// nodes appends the spans of nodes, at most so many.
func (p *spanParcel) nodes(nodes []arthas.TraceNode, most int) (dropped int) {
	// open has the index of the span at each depth; -1 means that its call was dropped.
	var open []int64
	for i := range nodes {
		node := &nodes[i]
		depth := min(int(node.Depth), len(open))
		open = open[:depth]
		parent := int64(-1)
		if depth > 0 {
			parent = open[depth-1]
		}
		var caller *span
		if parent >= 0 {
			caller = &p.spans[parent]
		}
		switch {
		case node.Exception != "":
			if caller == nil && depth == 0 && len(p.spans) > 0 {
				caller = &p.spans[0]
			}
			if caller != nil {
				caller.threw, caller.exception, caller.message = true, node.Exception, node.Message
			}
			continue
		case caller != nil && !node.CallSite && caller.callSite && caller.class == node.Class && caller.method == node.Method:
			caller.threw = caller.threw || node.Throws
			open = append(open, parent)
			continue
		case len(p.spans) >= most || depth > 0 && parent < 0:
			dropped++
			open = append(open, -1)
			continue
		}
		s := span{
			parentIndex: parent, class: node.Class, method: node.Method, line: node.Line, threw: node.Throws, callSite: node.CallSite,
			calls: node.Calls, total: node.Total, least: node.Min, most: node.Max,
		}
		if node.Calls <= 1 && !s.total.Known {
			s.total = node.Last
		}
		binary.BigEndian.PutUint64(s.id[:], max(rand.Uint64(), 1))
		open = append(open, int64(len(p.spans)))
		p.spans = append(p.spans, s)
	}
	return dropped
}

// traceID returns the ID of another tracer if it is an ID of W3C. Otherwise it returns a random one, and the foreign text.
func traceID(of string) (id pcommon.TraceID, foreign string) {
	if n, err := hex.Decode(id[:], []byte(of[:min(len(of), 2*len(id))])); err == nil && n == len(id) && len(of) == 2*len(id) && !id.IsEmpty() {
		return id, ""
	}
	binary.BigEndian.PutUint64(id[:8], rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], max(rand.Uint64(), 1))
	return id, of
}
