// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/web"
	"github.com/callbraid/callbraid/internal/call/calltree"
)

// Attributes that the exporter reads. The first ones are of the semantic conventions.
const (
	attributeService    = "service.name"
	attributeInstance   = "service.instance.id"
	attributeFunction   = "code.function.name"
	attributeFile       = "code.file.path"
	attributeLine       = "code.line.number"
	attributeThreadID   = "thread.id"
	attributeThreadName = "thread.name"
	attributeTruncated  = "callbraid.truncated"
	attributeLink       = "callbraid.link"
	// Repeated calls in one span.
	attributeRepeatedCalls = "callbraid.repeated.calls"
	attributeRepeatedTotal = "callbraid.repeated.total"
	// Calls without spans, which the caller's span has.
	attributeLeftOutCalls  = "callbraid.left_out.calls"
	attributeLeftOutTime   = "callbraid.left_out.time"
	attributeLeftOutErrors = "callbraid.left_out.errors"
	// attributeDuplicate marks a second span of the same call.
	attributeDuplicate = "callbraid.duplicate"

	// Of scopes.
	attributeMissingClasses = "callbraid.missing.classes"
	attributeMissingFirst   = "callbraid.missing.first"
)

// unknownService is the service of spans without a service name.
const unknownService = "unknown_service"

// Flags of spans (opentelemetry-proto, enum SpanFlags).
const (
	flagHasIsRemote = 0x100
	flagIsRemote    = 0x200
)

// chunk is the number of spans that are folded together: enough to make the start cheap, and
// few enough that others do not wait long for the store.
const chunk = 512

// consumeTraces folds all spans. It never fails.
func (g *flameGraph) consumeTraces(_ context.Context, td ptrace.Traces) error {
	spans := g.spans.Get().(*[chunk]calltree.Span)
	defer g.spans.Put(spans)
	for _, rs := range td.ResourceSpans().All() {
		from := originOf(rs.Resource(), g.config.VersionAttribute)
		n := 0
		var leftOut calltree.LeftOut
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				if n == chunk {
					g.store.Fold(from, spans[:])
					n = 0
				}
				if g.read(span, &spans[n], &leftOut) {
					n++
				} else {
					g.duplicates.Add(1)
				}
			}
		}
		if n > 0 {
			g.store.Fold(from, spans[:n])
		}
		if leftOut.Calls > 0 && g.config.CountSpans {
			g.store.SeeLeftOut(from.Service, leftOut)
		}
		g.seeMissing(from.Service, rs)
	}
	// The spans must not hold the memory of the message.
	clear(spans[:])
	g.logBounds()
	return nil
}

// seeMissing stores the missing classes that scopes declare.
func (g *flameGraph) seeMissing(service string, rs ptrace.ResourceSpans) {
	for _, ss := range rs.ScopeSpans().All() {
		classes, ok := ss.Scope().Attributes().Get(attributeMissingClasses)
		if !ok || classes.Type() != pcommon.ValueTypeInt || classes.Int() <= 0 {
			continue
		}
		m := calltree.Missing{Classes: classes.Int()}
		if first, ok := ss.Scope().Attributes().Get(attributeMissingFirst); ok && first.Type() == pcommon.ValueTypeStr {
			m.First = first.Str()
		}
		g.store.SeeMissing(service, m)
	}
}

// originOf reads a resource. With an attribute for versions, each version of a service is a service of its own.
func originOf(resource pcommon.Resource, versions string) calltree.Origin {
	from := calltree.Origin{Service: unknownService}
	if v, ok := resource.Attributes().Get(attributeService); ok && isScalar(v) {
		from.Service = v.AsString()
	}
	if versions != "" {
		if v, ok := resource.Attributes().Get(versions); ok && isScalar(v) {
			from.Service += web.VersionMark + v.AsString()
		}
	}
	if v, ok := resource.Attributes().Get(attributeInstance); ok && isScalar(v) {
		from.Instance = v.AsString()
	}
	return from
}

// isScalar reports whether a value is no list or map. Senders may nest these as deep as a
// message has bytes, so nothing in this package reads them.
func isScalar(v pcommon.Value) bool {
	return v.Type() != pcommon.ValueTypeMap && v.Type() != pcommon.ValueTypeSlice
}

// read reads a span for the call tree, and adds the calls that its sender left out. It reports false if another span is of
// the same call.
func (g *flameGraph) read(span ptrace.Span, to *calltree.Span, leftOut *calltree.LeftOut) (counts bool) {
	counts = true
	// A literal would be built elsewhere and copied, which takes as long as everything else.
	*to = calltree.Span{}
	to.Trace, to.ID = calltree.TraceID(span.TraceID()), calltree.SpanID(span.SpanID())
	to.ParentTrace, to.Parent = to.Trace, calltree.SpanID(span.ParentSpanID())
	to.Remote = isCalledRemotely(span)
	to.Function = span.Name()
	to.Start, to.End = uint64(span.StartTimestamp()), uint64(span.EndTimestamp())
	to.Error = span.Status().Code() == ptrace.StatusCodeError
	if to.Parent == (calltree.SpanID{}) && g.config.FollowLinks {
		follow(span.Links(), to)
	}
	for key, v := range span.Attributes().All() {
		switch key {
		case attributeFunction:
			if v.Type() == pcommon.ValueTypeStr && v.Str() != "" {
				to.Function = v.Str()
			}
		case attributeFile:
			to.File = v.Str()
		case attributeLine:
			to.Line = v.Int()
		case attributeThreadID:
			to.HasThread = v.Type() == pcommon.ValueTypeInt
			to.Thread = v.Int()
		case attributeThreadName:
			to.ThreadName = v.Str()
		case attributeTruncated:
			to.Truncated = true
		case attributeRepeatedCalls:
			to.Calls = uint64(max(0, v.Int()))
		case attributeRepeatedTotal:
			to.CallsTime = v.Int()
		case attributeLeftOutCalls:
			leftOut.Add(calltree.LeftOut{Calls: uint64(max(0, v.Int()))})
		case attributeLeftOutTime:
			leftOut.Add(calltree.LeftOut{Time: max(0, v.Int())})
		case attributeLeftOutErrors:
			leftOut.Add(calltree.LeftOut{Errors: uint64(max(0, v.Int()))})
		case attributeDuplicate:
			counts = !v.Bool()
		}
	}
	return counts
}

// isCalledRemotely reports whether the parent is in another service. The flags have it, or the kind
// of spans from older senders.
func isCalledRemotely(span ptrace.Span) bool {
	if flags := span.Flags(); flags&flagHasIsRemote != 0 {
		return flags&flagIsRemote != 0
	}
	return span.Kind() == ptrace.SpanKindServer || span.Kind() == ptrace.SpanKindConsumer
}

// follow follows the link at which a trace was cut to the caller.
func follow(links ptrace.SpanLinkSlice, to *calltree.Span) {
	for _, link := range links.All() {
		v, ok := link.Attributes().Get(attributeLink)
		if ok && (v.Str() == "continuation" || v.Str() == "trace_root") {
			to.ParentTrace, to.Parent = calltree.TraceID(link.TraceID()), calltree.SpanID(link.SpanID())
			return
		}
	}
}
