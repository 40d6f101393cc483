// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/javamethods/text"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
)

// spanParcel is a trace in the queue: a call tree, or a recorded call.
type spanParcel struct {
	origin *Origin
	trace  pcommon.TraceID
	thread javamethods.Thread
	// foreign is the trace ID of another tracer in another format; empty means none.
	foreign string
	// record is the recorded call; nil means that the parcel is a call tree. traced means that a call tree has the same
	// call.
	record *javamethods.Record
	traced bool
	spans  []span
}

// span is a call.
type span struct {
	id, parent pcommon.SpanID
	// start and end are Unix nanoseconds.
	start, end    int64
	class, method string
	line          int32
	threw         exception
	// estimated means that the place of the call inside its caller is estimated.
	estimated bool
	// repeated describes the calls of the span, if it has several.
	repeated *javamethods.Repeated
}

// exception is the exception of a call. Unknown parts are empty.
type exception struct {
	happened             bool
	kind, message, stack string
}

// The estimated memory of spans and their values.
const (
	bytesOfParcel = 512
	bytesOfSpan   = 512
)

// bytes returns the estimated memory of the parcel.
func (p *spanParcel) bytes() int {
	n := bytesOfParcel
	for i := range p.spans {
		s := &p.spans[i]
		n += bytesOfSpan + 2*len(s.class) + 2*len(s.method) + len(s.threw.message) + len(s.threw.stack)
	}
	return n
}

// Spans is the queue of spans of all processes.
type Spans struct {
	*handover.Spans[spanParcel]
	kit   *receiverkit.Kit
	names attributeNames
}

// NewSpans opens the queue. Without a pipeline it is nil. tracer is the namespace of attributes.
func NewSpans(run *receiverkit.Run, tracer string, limits receiverkit.SpanLimits, dropped func(n int, reason string)) *Spans {
	if run.Next.Traces == nil {
		return nil
	}
	o := &Spans{kit: run.Kit}
	_, o.names = newNames(tracer)
	o.Spans = receiverkit.NewSpans(run, limits, handover.QueueSettings[spanParcel, ptrace.Traces]{
		MaxAtOnce: parcelsAtOnce,
		Size:      func(p *spanParcel) (spans, bytes int) { return len(p.spans), p.bytes() },
		Make:      o.batch,
		Dropped:   dropped,
	})
	return o
}

// Tree forwards a call tree: at most so many calls. It returns the number of dropped calls.
func (o *Spans) Tree(of *Origin, tree *javamethods.Tree, most int) (dropped int) {
	parcel, dropped := treeSpans(of, tree, o.kit.Now(), most)
	o.Enqueue(parcel)
	return dropped
}

// Call forwards a recorded call.
func (o *Spans) Call(of *Origin, call *session.Call) { o.Enqueue(callSpan(of, call)) }

// parcelsAtOnce is the maximum number of call trees, recorded calls, or log records of a batch.
const parcelsAtOnce = 256

// batch returns the batch for the pipeline.
func (o *Spans) batch(parcels []spanParcel) ptrace.Traces {
	traces := ptrace.NewTraces()
	spans := map[*Origin]ptrace.SpanSlice{}
	for i := range parcels {
		p := &parcels[i]
		to, ok := spans[p.origin]
		if !ok {
			to = o.kit.AppendSpans(traces, p.origin.Resource)
			spans[p.origin] = to
		}
		for j := range p.spans {
			p.spans[j].fill(to.AppendEmpty(), p, &o.names)
		}
	}
	return traces
}

func (s *span) fill(made ptrace.Span, p *spanParcel, names *attributeNames) {
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
		m.PutBool(names.estimated, true)
	}
	if s.parent.IsEmpty() {
		receiverkit.PutNew(m, names.foreignTrace, text.Short(p.foreign))
	}
	if r := s.repeated; r != nil {
		m.PutInt(attributeRepeatedCalls, r.Calls)
		if r.HasTimes {
			m.PutInt(attributeRepeatedLeast, r.Least.Nanoseconds())
			m.PutInt(attributeRepeatedMost, r.Greatest.Nanoseconds())
			m.PutInt(attributeRepeatedTotal, r.Total.Nanoseconds())
		}
	}
	if p.record != nil {
		names.putRecord(m, p.record)
		if p.traced {
			m.PutBool(attributeDuplicate, true)
		}
	}
	s.threw.fill(made)
}

// putThread sets the known attributes of a thread.
func putThread(m pcommon.Map, thread *javamethods.Thread) {
	receiverkit.PutNew(m, attributeThreadName, text.Short(thread.Name))
	if thread.ID != 0 {
		m.PutInt(attributeThreadID, thread.ID)
	}
}

func (n *attributeNames) putRecord(m pcommon.Map, record *javamethods.Record) {
	m.PutInt(n.recordIndex, record.Index)
	if record.Process != 0 {
		m.PutInt(n.recordProcess, record.Process)
	}
	receiverkit.PutNew(m, n.recordObject, text.Short(record.Object))
	if record.IsSimple {
		m.PutBool(n.recordSimple, true)
	}
}

// fill adds the exception to a span.
func (x *exception) fill(made ptrace.Span) {
	if !x.happened && x.kind == "" {
		return
	}
	made.Status().SetCode(ptrace.StatusCodeError)
	made.Status().SetMessage(text.Short(x.message))
	receiverkit.PutNew(made.Attributes(), attributeErrorType, text.Short(x.kind))
	if x.kind == "" && x.message == "" {
		return // an exception event needs a type or a message
	}
	event := made.Events().AppendEmpty()
	event.SetName(eventException)
	event.SetTimestamp(made.EndTimestamp())
	m := event.Attributes()
	receiverkit.PutNew(m, attributeExceptionType, text.Short(x.kind))
	receiverkit.PutNew(m, attributeExceptionMessage, text.Short(x.message))
	receiverkit.PutNew(m, attributeExceptionStack, text.Long(x.stack))
}

// callSpan returns the span of a recorded call, with the values of its detail. The span ends when the call was
// recorded. The server reports that time in whole seconds.
func callSpan(of *Origin, call *session.Call) spanParcel {
	record := call.Record
	p := spanParcel{origin: of, record: &record, traced: call.Traced}
	p.spans = []span{{threw: exception{happened: record.Threw}}}
	s := &p.spans[0]
	if detail := call.Detail; detail != nil {
		record.Class, record.IsSimple = detail.Class, detail.IsSimple
		if detail.HasStack {
			p.thread = detail.Stack.Thread
		}
		if record.Threw {
			s.threw = newException(detail.Exception)
		}
	}
	s.class, s.method = record.Class, record.Method
	at := record.Time
	if !isValid(at, call.Received) {
		at = call.Received
	}
	s.end = at.UnixNano()
	s.start = s.end - max(min(record.Cost, maxCallTime).Nanoseconds(), 1)
	p.trace, s.id = callIDs(of, &record, at)
	return p
}

// isValid reports whether a time of the server can be that of a call which was just received.
func isValid(at, received time.Time) bool {
	return at.Unix() > 0 && !at.After(received.Add(maxCallTime))
}

// callIDs returns a hash of the process and the recorded call. A call that is read twice has the same IDs.
func callIDs(of *Origin, record *javamethods.Record, at time.Time) (trace pcommon.TraceID, id pcommon.SpanID) {
	h := sha256.New()
	h.Write(of.Seed[:])
	var n [24]byte
	binary.BigEndian.PutUint64(n[:], uint64(record.Index))
	binary.BigEndian.PutUint64(n[8:], uint64(at.UnixNano()))
	binary.BigEndian.PutUint64(n[16:], uint64(record.Cost))
	h.Write(n[:])
	h.Write([]byte(record.Method))
	sum := h.Sum(nil)
	copy(trace[:], sum)
	binary.BigEndian.PutUint64(id[:], binary.BigEndian.Uint64(sum[16:])|1<<63) // never zero
	return trace, id
}

// newException parses the text of an exception. In Java's own format, the first line of a stack trace, the type is
// first.
func newException(of string) exception {
	first, rest, _ := strings.Cut(of, "\n")
	kind, message, _ := strings.Cut(strings.TrimSuffix(first, "\r"), ": ")
	if !isQualified(kind) {
		return exception{happened: true, message: of}
	}
	x := exception{happened: true, kind: kind, message: message}
	if rest != "" {
		x.stack = of
	}
	return x
}

// isQualified reports whether a text is the qualified name of a class.
func isQualified(name string) bool {
	parts := strings.Split(name, ".")
	for _, part := range parts {
		if part == "" || strings.ContainsAny(part, " \t\"'{}[]()<>:,;=") {
			return false
		}
	}
	return len(parts) > 1
}

// maxCallTime is the maximum duration of a call. Longer calls are shortened, so that times do not overflow.
const maxCallTime = 365 * 24 * time.Hour

// treeSpans returns the spans of a call tree, at most so many, and the number of dropped calls. The server sends times
// since the start of the tree. If it sends no clock, the tree ends at the time of receipt. Each begin or end of a call
// has its own time, but at least 1 ns after the previous event. So calls lie inside their callers, one after another,
// and none is empty.
func treeSpans(of *Origin, tree *javamethods.Tree, received time.Time, most int) (p spanParcel, dropped int) {
	nodes := tree.Nodes
	if len(nodes) > most {
		nodes, dropped = nodes[:most], len(nodes)-most
	}
	p = spanParcel{origin: of, thread: tree.Thread, foreign: tree.ForeignTrace, spans: make([]span, len(nodes))}
	if p.trace = tree.TraceID; p.trace.IsEmpty() {
		binary.BigEndian.PutUint64(p.trace[:8], rand.Uint64())
		binary.BigEndian.PutUint64(p.trace[8:], nonZero())
	}
	t := treeTime{nodes: nodes, spans: p.spans, last: -1}
	for i := range nodes {
		t.leave(nodes[i].Depth)
		t.enter(i)
	}
	t.leave(0)
	began := received.UnixNano() - t.last
	if isValid(tree.Begin, received) {
		began = tree.Begin.UnixNano()
	}
	for i := range p.spans {
		p.spans[i].start += began
		p.spans[i].end += began
	}
	return p, dropped
}

// treeTime walks through the calls of a tree, in order.
type treeTime struct {
	nodes []javamethods.Node
	spans []span
	// open are the calls that have begun and not ended.
	open []openCall
	// last is the time of the last event, in nanoseconds since the start of the tree.
	last int64
}

// openCall is a call by its index, with its end. Calls inside it end by then.
type openCall struct {
	index int
	end   time.Duration
}

// at returns the time of an event from its offset to the start of the tree.
func (t *treeTime) at(own time.Duration) int64 {
	t.last = max(own.Nanoseconds(), t.last+1)
	return t.last
}

// leave ends the open calls down to a depth.
func (t *treeTime) leave(depth int32) {
	for n := len(t.open); n > 0; n = len(t.open) {
		call := t.open[n-1]
		if t.nodes[call.index].Depth < depth {
			return
		}
		t.spans[call.index].end = t.at(call.end)
		t.open = t.open[:n-1]
	}
}

// enter begins a call.
func (t *treeTime) enter(i int) {
	node := &t.nodes[i]
	latest, parent := maxCallTime, pcommon.SpanID{}
	if n := len(t.open); n > 0 {
		latest, parent = t.open[n-1].end, t.spans[t.open[n-1].index].id
	}
	s := &t.spans[i]
	*s = span{
		parent: parent, start: t.at(min(node.Start, latest)),
		class: node.Class, method: node.Method, line: node.Line, threw: exception{happened: node.Threw, kind: node.Throws, message: node.Message},
		estimated: node.Estimated, repeated: node.Repeated,
	}
	binary.BigEndian.PutUint64(s.id[:], nonZero())
	t.open = append(t.open, openCall{i, min(node.End, latest)})
}

// nonZero is a random number that is not zero.
func nonZero() uint64 { return max(rand.Uint64(), 1) }
