// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package perfettoexporter

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/exporter/perfettoexporter/internal/tracefile"
)

// Attributes that the exporter reads. The first ones are of the semantic conventions.
const (
	attributeService    = "service.name"
	attributeInstance   = "service.instance.id"
	attributeHost       = "host.name"
	attributePID        = "process.pid"
	attributeFunction   = "code.function.name"
	attributeFile       = "code.file.path"
	attributeLine       = "code.line.number"
	attributeThreadID   = "thread.id"
	attributeThreadName = "thread.name"
	attributeTruncated  = "callbraid.truncated"
	attributeLink       = "callbraid.link"
	// attributeDuplicate marks a second span of the same call.
	attributeDuplicate = "callbraid.duplicate"
)

// Annotations that are no attributes.
const (
	annotationTraceID = "trace_id"
	annotationMessage = "status.message"
)

// Categories.
const (
	categoryError     = "error"
	categoryTruncated = "truncated"
	// categoryInvalidEnd marks a span without an end, or with one before its start.
	categoryInvalidEnd = "invalid_end"
)

const (
	// unknownService is the service of spans without a service name.
	unknownService = "unknown_service"
	// maxAnnotations is the number of attributes of a span or event that are written.
	maxAnnotations = 128
	// maxDepth is the number of levels of lists and maps in an attribute that are written.
	maxDepth = 8
	// maxElements is the number of elements of a list or map that are written.
	maxElements = 128
	// maxDescribedBytes is the length of an attribute in the description of a resource.
	maxDescribedBytes = 16 << 10
	// keptSpans is the number of spans of a resource above which their memory is not kept for the next one.
	keptSpans = 1 << 14
)

// Flags of spans (opentelemetry-proto, enum SpanFlags).
const (
	flagHasIsRemote = 0x100
	flagIsRemote    = 0x200
)

// consumeTraces adds all spans to chunks. It never fails.
func (e *perfetto) consumeTraces(ctx context.Context, td ptrace.Traces) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := &e.reader
	for _, rs := range td.ResourceSpans().All() {
		r.begin(rs.Resource())
		r.sort(rs.ScopeSpans())
		for _, span := range r.spans {
			r.read(span)
			e.flushFull()
		}
	}
	r.forget()
	e.countUnwritten(ctx)
	return nil
}

// scopedSpan is a span with its scope.
type scopedSpan struct {
	ptrace.Span
	scope string
}

// reader reads spans, values and log records into chunks.
type reader struct {
	writer *tracefile.Writer
	links  links
	// Of the current resource. The process is nil at first, and again when a new file begins.
	resource pcommon.Resource
	id       tracefile.ProcessID
	process  *tracefile.Process
	spans    []scopedSpan
	// facts are those of the current span.
	facts facts
	// invalid counts items with times that readers do not accept, uncounted values of further counters, and endless spans whose
	// ends are missing or before their starts.
	invalid, uncounted, endless int
}

// begin begins a resource.
func (r *reader) begin(resource pcommon.Resource) {
	r.resource, r.process = resource, nil
	r.id = tracefile.ProcessID{Service: unknownService}
	for key, v := range r.resource.Attributes().All() {
		switch key {
		case attributeService:
			r.id.Service = scalar(v)
		case attributeInstance:
			r.id.Instance = scalar(v)
		case attributeHost:
			r.id.Host = scalar(v)
		case attributePID:
			r.id.PID = scalar(v)
		}
	}
}

// ownProcess returns the process of the resource.
func (r *reader) ownProcess() *tracefile.Process {
	if r.process == nil {
		r.process = r.writer.Process(r.id, r.describeResource)
	}
	return r.process
}

// isValid reports whether readers accept a time. It counts those that they don't.
func (r *reader) isValid(time pcommon.Timestamp) bool {
	if time == 0 || time > tracefile.LatestTime {
		r.invalid++
		return false
	}
	return true
}

// forget lets the memory of a message be freed.
func (r *reader) forget() {
	if clear(r.spans); cap(r.spans) > keptSpans {
		r.spans = nil
	}
	r.facts = facts{}
	r.resource, r.process = pcommon.Resource{}, nil
}

// describeResource returns the attributes of the resource, for a person who looks at the file. The description may be needed for
// each of many files, so a large resource must not make it long.
func (r *reader) describeResource() string {
	var lines []string
	for key, v := range r.resource.Attributes().All() {
		if len(lines) >= maxAnnotations {
			break
		}
		if value := scalar(v); value != "" {
			line := key + ": " + value
			lines = append(lines, line[:min(len(line), maxDescribedBytes)])
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// scalar returns a value that is no list or map as text. Senders may nest these as deep as a message has bytes.
func scalar(v pcommon.Value) string {
	if v.Type() == pcommon.ValueTypeMap || v.Type() == pcommon.ValueTypeSlice {
		return ""
	}
	return v.AsString()
}

// sort sorts the spans of a resource: callees before callers. Most senders have this order already.
func (r *reader) sort(scopes ptrace.ScopeSpansSlice) {
	r.spans = r.spans[:0]
	byEnd, latest := true, pcommon.Timestamp(0)
	// The spans from here on end at the same time, and whether they are in order.
	from, inOrder := 0, true
	for _, ss := range scopes.All() {
		scope := ss.Scope().Name()
		for _, span := range ss.Spans().All() {
			next, end, n := scopedSpan{span, scope}, span.EndTimestamp(), len(r.spans)
			switch {
			case n == 0 || end > latest:
				if !inOrder {
					sortEqualEnds(r.spans[from:])
				}
				from, inOrder = n, true
			case end == latest:
				inOrder = inOrder && isInOrder(r.spans[n-1], next)
			default:
				byEnd = false
			}
			r.spans, latest = append(r.spans, next), end
		}
	}
	if !byEnd {
		slices.SortStableFunc(r.spans, func(a, b scopedSpan) int { return cmp.Compare(a.EndTimestamp(), b.EndTimestamp()) })
		from, inOrder = 0, false
	}
	if !inOrder {
		sortEqualEnds(r.spans[from:])
	}
}

// isInOrder reports whether two spans need not be exchanged.
func isInOrder(a, b scopedSpan) bool {
	order := compareTimes(a, b)
	return order < 0 || order == 0 && !calls(a, b)
}

// sortEqualEnds sorts the spans that end at the same time. All spans are in the order of their ends.
func sortEqualEnds(spans []scopedSpan) {
	for i := 0; i < len(spans); {
		n := 1
		for i+n < len(spans) && spans[i+n].EndTimestamp() == spans[i].EndTimestamp() {
			n++
		}
		if n > 1 {
			slices.SortStableFunc(spans[i:i+n], compareTimes)
			sortEqualTimes(spans[i : i+n])
		}
		i += n
	}
}

// compareTimes is the order of ends, and of inner spans before outer ones.
func compareTimes(a, b scopedSpan) int {
	return cmp.Or(cmp.Compare(a.EndTimestamp(), b.EndTimestamp()), cmp.Compare(b.StartTimestamp(), a.StartTimestamp()))
}

func calls(caller, callee scopedSpan) bool { return callee.ParentSpanID() == caller.SpanID() }

// maxEqualTimes is the number of spans with equal times that are sorted by their callers.
const maxEqualTimes = 64

// sortEqualTimes moves spans before their callers with the same times.
func sortEqualTimes(spans []scopedSpan) {
	for i := 0; i < len(spans); {
		n := 1
		for i+n < len(spans) && n < maxEqualTimes && compareTimes(spans[i], spans[i+n]) == 0 {
			n++
		}
		for same := spans[i : i+n]; len(same) > 1; same = same[1:] {
			innermost := max(0, slices.IndexFunc(same, func(s scopedSpan) bool {
				return !slices.ContainsFunc(same, func(other scopedSpan) bool { return calls(s, other) })
			}))
			span := same[innermost]
			copy(same[1:], same[:innermost])
			same[0] = span
		}
		i += n
	}
}

// facts are the attributes of a span that the exporter itself uses.
type facts struct {
	hasThread                        bool
	thread                           int64
	threadName                       string
	location                         tracefile.Location
	truncated, duplicate, hasFurther bool
}

// read reads the facts of a span.
func (f *facts) read(span ptrace.Span) {
	*f = facts{}
	for key, v := range span.Attributes().All() {
		switch key {
		case attributeThreadID:
			f.hasThread = v.Type() == pcommon.ValueTypeInt
			f.thread = v.Int()
		case attributeThreadName:
			f.threadName = v.Str()
		case attributeFunction:
			f.location.Function = v.Str()
		case attributeFile:
			f.location.File = v.Str()
		case attributeLine:
			f.location.Line = v.Int()
		case attributeDuplicate:
			f.duplicate = v.Bool()
		case attributeTruncated:
			f.truncated, f.hasFurther = true, true
		default:
			f.hasFurther = true
		}
	}
}

// read adds a span to the chunk.
func (r *reader) read(span scopedSpan) {
	f := &r.facts
	f.read(span.Span)
	if f.duplicate {
		return
	}
	start, end := uint64(span.StartTimestamp()), uint64(span.EndTimestamp())
	if start == 0 || start > tracefile.LatestTime || end > tracefile.LatestTime {
		r.invalid++
		return
	}
	w, process := r.writer, r.ownProcess()
	var thread *tracefile.Thread
	if f.hasThread {
		thread = w.Thread(process, f.thread, f.threadName)
	}
	trace := span.TraceID()
	parent, isRoot := parentOf(span.Span)
	w.Begin(process, thread, tracefile.Slice{
		Name: span.Name(), Start: start, End: end,
		Self: keyOf(trace, span.SpanID()), Parent: parent, Trace: binary.LittleEndian.Uint64(trace[8:]),
	})
	if span.scope != "" {
		w.Category(span.scope)
	}
	if f.truncated {
		w.Category(categoryTruncated)
	}
	if end < start {
		w.Category(categoryInvalidEnd)
		r.endless++
	}
	if f.location != (tracefile.Location{}) {
		w.Location(f.location)
	}
	if span.Status().Code() == ptrace.StatusCodeError {
		r.readError(span.Status())
	}
	r.readFlows(span.Span)
	if isRoot {
		w.Annotate(annotationTraceID, func(a *tracefile.Annotation) { a.String(trace.String()) })
	}
	if thread != nil && f.threadName != "" && f.threadName != thread.Name() {
		w.Annotate(attributeThreadName, func(a *tracefile.Annotation) { a.String(f.threadName) })
	}
	if f.hasFurther {
		r.readAttributes(span.Attributes(), isRead)
	}
	r.readEvents(span.Events())
}

// readError adds the status of a span that failed.
func (r *reader) readError(status ptrace.Status) {
	r.writer.Category(categoryError)
	if message := status.Message(); message != "" {
		r.writer.Annotate(annotationMessage, func(a *tracefile.Annotation) { a.String(message) })
	}
}

// readEvents adds the events of a span as instants.
func (r *reader) readEvents(events ptrace.SpanEventSlice) {
	for _, event := range events.All() {
		if !r.isValid(event.Timestamp()) {
			continue
		}
		if !r.writer.Instant(r.process, event.Name(), uint64(event.Timestamp())) {
			continue
		}
		r.readAttributes(event.Attributes(), func(string) bool { return false })
	}
}

// isRead reports whether a span's attribute needs no annotation: the thread is the track, and the function has a field
// of its own.
func isRead(key string) bool {
	switch key {
	case attributeThreadID, attributeThreadName, attributeFunction, attributeFile, attributeLine:
		return true
	}
	return false
}

// readAttributes adds attributes as annotations to the last slice or instant.
func (r *reader) readAttributes(attributes pcommon.Map, without func(key string) bool) {
	n := 0
	for key, v := range attributes.All() {
		if without(key) {
			continue
		}
		if n++; n > maxAnnotations {
			r.writer.Omit()
			continue
		}
		r.writer.Annotate(key, func(a *tracefile.Annotation) { appendValue(a, v, maxDepth) })
	}
}

// appendValue appends a value with so many levels of lists and maps.
func appendValue(a *tracefile.Annotation, v pcommon.Value, levels int) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		a.String(v.Str())
	case pcommon.ValueTypeBool:
		a.Bool(v.Bool())
	case pcommon.ValueTypeInt:
		a.Int(v.Int())
	case pcommon.ValueTypeDouble:
		a.Double(v.Double())
	case pcommon.ValueTypeBytes:
		a.String(base64.StdEncoding.EncodeToString(v.Bytes().AsRaw()))
	case pcommon.ValueTypeEmpty:
		a.String("")
	default:
		appendNested(a, v, levels)
	}
}

func appendNested(a *tracefile.Annotation, v pcommon.Value, levels int) {
	if levels == 0 {
		a.Omit(1)
		a.String("…")
		return
	}
	n := 0
	if v.Type() == pcommon.ValueTypeSlice {
		a.Omit(v.Slice().Len() - maxElements)
		for _, element := range v.Slice().All() {
			if n++; n > maxElements {
				return
			}
			a.Element(func(a *tracefile.Annotation) { appendValue(a, element, levels-1) })
		}
		return
	}
	a.Omit(v.Map().Len() - maxElements)
	for key, element := range v.Map().All() {
		if n++; n > maxElements {
			return
		}
		a.Entry(key, func(a *tracefile.Annotation) { appendValue(a, element, levels-1) })
	}
}

// keyOf identifies a span.
func keyOf(trace pcommon.TraceID, span pcommon.SpanID) tracefile.Key {
	key := binary.LittleEndian.Uint64(span[:])
	if key == 0 {
		return 0
	}
	return tracefile.Key(max(1, key^binary.LittleEndian.Uint64(trace[8:])))
}

// parentOf returns the span that called a span in the same process, and whether the span is the first of its trace in
// the process. A call at which a trace was cut has its caller in a link.
func parentOf(span ptrace.Span) (parent tracefile.Key, isRoot bool) {
	if id := span.ParentSpanID(); !id.IsEmpty() {
		if isCalledRemotely(span) {
			return 0, true
		}
		return keyOf(span.TraceID(), id), false
	}
	for _, link := range span.Links().All() {
		if isCut(link) {
			return keyOf(link.TraceID(), link.SpanID()), true
		}
	}
	return 0, true
}

// isCut reports whether a trace was cut at a link, which has the caller.
func isCut(link ptrace.SpanLink) bool {
	_, ok := link.Attributes().Get(attributeLink)
	return ok
}

// isCalledRemotely reports whether the parent is in another process. The flags have it, or the kind of spans from older
// senders.
func isCalledRemotely(span ptrace.Span) bool {
	if flags := span.Flags(); flags&flagHasIsRemote != 0 {
		return flags&flagIsRemote != 0
	}
	return span.Kind() == ptrace.SpanKindServer || span.Kind() == ptrace.SpanKindConsumer
}
