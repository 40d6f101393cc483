// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/componentkit/schema"
	"github.com/callbraid/callbraid/internal/greys"
)

// Attributes of spans and log records, by the semantic conventions and of the receiver's own.
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
	attributeExceptionStack   = "exception.stacktrace"

	attributeRecordIndex   = "greys.tt.index"
	attributeRecordProcess = "greys.tt.process_id"
	attributeRecordObject  = "greys.tt.object"
	attributeRecordSimple  = "greys.tt.class.is_simple"
	// attributeDuplicate says that a call tree has the call, too. flame_graph counts it once.
	attributeDuplicate = "callbraid.duplicate"

	eventException = "exception"
)

// spanParcel is a trace on its way to the pipeline: a call tree, or a recorded call.
type spanParcel struct {
	origin *origin
	trace  pcommon.TraceID
	thread greys.Thread
	// hasThread says that the thread is known.
	hasThread bool
	// record is the recorded call; nil: it is a call tree. traced says that a call tree is told of
	// the same call.
	record *greys.Record
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
}

// exception is what a call threw, as far as it is known.
type exception struct {
	happened             bool
	kind, message, stack string
}

// What spans and their values take in memory, about.
const (
	bytesOfParcel = 512
	bytesOfSpan   = 512
)

// bytes is what the parcel takes in memory, about.
func (p *spanParcel) bytes() int {
	n := bytesOfParcel
	for i := range p.spans {
		s := &p.spans[i]
		n += bytesOfSpan + 2*len(s.class) + 2*len(s.method) + len(s.threw.message) + len(s.threw.stack)
	}
	return n
}

// traces makes what the pipeline takes.
func (e *environment) traces(parcels []spanParcel) ptrace.Traces {
	traces := ptrace.NewTraces()
	spans := map[*origin]ptrace.SpanSlice{}
	for i := range parcels {
		p := &parcels[i]
		to, ok := spans[p.origin]
		if !ok {
			resource := traces.ResourceSpans().AppendEmpty()
			p.origin.resource.CopyTo(resource.Resource())
			scope := resource.ScopeSpans().AppendEmpty()
			e.setScope(scope.Scope())
			resource.SetSchemaUrl(schema.URL)
			scope.SetSchemaUrl(schema.URL)
			to = scope.Spans()
			spans[p.origin] = to
		}
		for j := range p.spans {
			p.spans[j].to(to.AppendEmpty(), p)
		}
	}
	return traces
}

func (s *span) to(made ptrace.Span, p *spanParcel) {
	made.SetTraceID(p.trace)
	made.SetSpanID(s.id)
	made.SetParentSpanID(s.parent)
	made.SetName(text(simpleName(s.class) + "." + s.method))
	made.SetKind(ptrace.SpanKindInternal)
	made.SetStartTimestamp(pcommon.Timestamp(s.start))
	made.SetEndTimestamp(pcommon.Timestamp(s.end))
	m := made.Attributes()
	m.PutStr(attributeFunction, text(s.class+"."+s.method))
	if s.line > 0 {
		m.PutInt(attributeLine, int64(s.line))
	}
	if p.hasThread {
		putThread(m, &p.thread)
	}
	if p.record != nil {
		putRecord(m, p.record)
		if p.traced {
			m.PutBool(attributeDuplicate, true)
		}
	}
	s.threw.to(made)
}

func putThread(m pcommon.Map, thread *greys.Thread) {
	m.PutStr(attributeThreadName, text(thread.Name))
	m.PutInt(attributeThreadID, thread.ID)
}

func putRecord(m pcommon.Map, record *greys.Record) {
	m.PutInt(attributeRecordIndex, record.Index)
	if record.Process != 0 {
		m.PutInt(attributeRecordProcess, record.Process)
	}
	putNew(m, attributeRecordObject, text(record.Object))
	if record.IsSimple {
		m.PutBool(attributeRecordSimple, true)
	}
}

// to says of a span that it threw.
func (x *exception) to(made ptrace.Span) {
	if !x.happened && x.kind == "" {
		return
	}
	made.Status().SetCode(ptrace.StatusCodeError)
	made.Status().SetMessage(text(x.message))
	putNew(made.Attributes(), attributeErrorType, text(x.kind))
	if x.kind == "" && x.message == "" {
		return // an exception has a type or a message
	}
	event := made.Events().AppendEmpty()
	event.SetName(eventException)
	event.SetTimestamp(made.EndTimestamp())
	m := event.Attributes()
	putNew(m, attributeExceptionType, text(x.kind))
	putNew(m, attributeExceptionMessage, text(x.message))
	putNew(m, attributeExceptionStack, longText(x.stack))
}

// recordSpan makes a span of a recorded call, with the detail of it; nil: that is not known.
// Its end is when it was recorded, which the server says in whole seconds.
func recordSpan(of *origin, waiting *waitingRecord, detail *greys.RecordDetail) spanParcel {
	record := waiting.Record
	p := spanParcel{origin: of, record: &record, traced: waiting.traced}
	p.spans = []span{{threw: exception{happened: record.Threw}}}
	s := &p.spans[0]
	if detail != nil {
		record.Class, record.IsSimple = detail.Class, detail.IsSimple
		if detail.HasStack {
			p.thread, p.hasThread = detail.Stack.Thread, true
		}
		if record.Threw {
			s.threw = newException(detail.Exception)
		}
	}
	s.class, s.method = record.Class, record.Method
	at := record.Time
	if at.Unix() <= 0 || at.After(waiting.received.Add(maxCallTime)) {
		at = waiting.received // it is none
	}
	s.end = at.UnixNano()
	s.start = s.end - max(min(record.Cost, maxCallTime).Nanoseconds(), 1)
	p.trace, s.id = recordIDs(of, &record, at)
	return p
}

// recordIDs are a hash of the process and of the recorded call, so that one that is read
// twice has the same.
func recordIDs(of *origin, record *greys.Record, at time.Time) (trace pcommon.TraceID, id pcommon.SpanID) {
	h := sha256.New()
	h.Write(of.seed[:])
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

// newException makes of the text of an exception what it says. Where it is Java's own, which
// a stack trace begins with, the type stands first.
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
func isQualified(text string) bool {
	parts := strings.Split(text, ".")
	for _, part := range parts {
		if part == "" || strings.ContainsAny(part, " \t\"'{}[]()<>:,;=") {
			return false
		}
	}
	return len(parts) > 1
}

// simpleName is the name of a class without its package.
func simpleName(class string) string {
	return class[strings.LastIndexByte(class, '.')+1:]
}
