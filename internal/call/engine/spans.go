// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/pairing"
)

// Attributes of spans. The semantic conventions define those without a name of this project.
const (
	attributeFunction      = "code.function.name"
	attributeFile          = "code.file.path"
	attributeLine          = "code.line.number"
	attributeThreadID      = "thread.id"
	attributeThreadName    = "thread.name"
	attributeErrorType     = "error.type"
	attributeException     = "exception.type"
	attributeSequence      = "callbraid.sequence"
	attributeTruncated     = "callbraid.truncated"
	attributeLink          = "callbraid.link"
	attributeLeftOutCalls  = "callbraid.left_out.calls"
	attributeLeftOutTime   = "callbraid.left_out.time"
	attributeLeftOutErrors = "callbraid.left_out.errors"
	attributeRepeatedCalls = "callbraid.repeated.calls"
	attributeRepeatedLeast = "callbraid.repeated.least"
	attributeRepeatedMost  = "callbraid.repeated.greatest"
	attributeRepeatedTotal = "callbraid.repeated.total"

	eventException = "exception"
)

// origin is the common part of a stream's spans. It does not change. If the resource or the
// scope changes, the stream gets a new one.
type origin struct {
	identity Identity
	// shown are the optional attributes of spans. textKey is the key of the function's text in the
	// batches, also if it is not shown.
	shown   SpanAttributesConfig
	textKey string
	Source
	// attributes are those of the resource and of the scope, for comparison.
	attributes [2]attributeList
	// bytes is about its memory.
	bytes  int
	states tracestates
	// sums are the sums of the calls of this origin, and of others that differ only in attributes of the scope.
	sums *originSums
}

// carrier is the span of a batch, with its resource and scope.
type carrier struct {
	resource ptrace.ResourceSpans
	scope    ptrace.ScopeSpans
	span     ptrace.Span
}

// newOrigin copies the resource and scope of a batch.
func newOrigin(c carrier, b *callevent.Batch, shown SpanAttributesConfig) *origin {
	o := &origin{
		shown:    shown,
		identity: newIdentity(b.Stream),
		textKey:  b.TextKey,
		Source: Source{
			Resource:          pcommon.NewResource(),
			ResourceSchemaURL: c.resource.SchemaUrl(),
			Scope:             pcommon.NewInstrumentationScope(),
			ScopeSchemaURL:    c.scope.SchemaUrl(),
		},
	}
	c.resource.Resource().CopyTo(o.Resource)
	c.scope.Scope().CopyTo(o.Scope)
	o.attributes = [2]attributeList{listOf(o.Resource.Attributes()), listOf(o.Scope.Attributes())}
	o.bytes = memoryOf(o.traces(nil, nil)) + (len(o.attributes[0])+len(o.attributes[1]))*keyValueBytes
	return o
}

// is reports whether newOrigin would return the same. It may report false for attributes in
// another order. The stream then gets another origin, which does no harm.
func (o *origin) is(c carrier, b *callevent.Batch) bool {
	return o.isExceptForScope(c, b) && o.attributes[1].are(c.scope.Scope().Attributes())
}

// isExceptForScope reports whether newOrigin would return the same, or one with other attributes of the
// scope. Receivers report on their agent in these, and such a report changes while the program runs.
func (o *origin) isExceptForScope(c carrier, b *callevent.Batch) bool {
	scope := c.scope.Scope()
	return o.textKey == b.TextKey &&
		o.ResourceSchemaURL == c.resource.SchemaUrl() &&
		o.attributes[0].are(c.resource.Resource().Attributes()) &&
		o.ScopeSchemaURL == c.scope.SchemaUrl() &&
		o.Scope.Name() == scope.Name() && o.Scope.Version() == scope.Version()
}

// traces makes pdata of finished calls.
func (o *origin) traces(spans []pairing.Call, out *pairing.Output) ptrace.Traces {
	traces := ptrace.NewTraces()
	rs := traces.ResourceSpans().AppendEmpty()
	o.Resource.CopyTo(rs.Resource())
	rs.SetSchemaUrl(o.ResourceSchemaURL)
	ss := rs.ScopeSpans().AppendEmpty()
	o.Scope.CopyTo(ss.Scope())
	ss.SetSchemaUrl(o.ScopeSchemaURL)
	ss.Spans().EnsureCapacity(len(spans))
	// Spans of one trace mostly come together.
	trace, id := pairing.NoParent, pcommon.TraceID{}
	for i := range spans {
		if s := &spans[i]; s.Trace != trace {
			trace, id = s.Trace, o.identity.TraceID(s.Trace)
		}
		span := ss.Spans().AppendEmpty()
		span.SetTraceID(id)
		o.span(&spans[i], out, span)
	}
	return traces
}

// attributeCount is the number of attributes of a span that returned normally. Room for more would
// be the largest part of a span's memory.
func (o *origin) attributeCount(s *pairing.Call) int {
	n := 1 + int(s.Attributes.To-s.Attributes.From)
	for _, has := range [...]bool{
		s.Lane&callevent.LaneKey == 0, s.LaneName != "", o.shown.Sequence, o.showsText(s), s.Function.File != "", s.Function.Line|s.Line != 0,
	} {
		if has {
			n++
		}
	}
	return n
}

// showsText reports whether the span has the function's text as an attribute.
func (o *origin) showsText(s *pairing.Call) bool {
	return o.shown.FunctionText && o.textKey != "" && s.Function.Text != ""
}

// span writes one finished call to a pdata span that already has its trace ID.
func (o *origin) span(s *pairing.Call, out *pairing.Output, span ptrace.Span) {
	span.SetName(s.Function.Display)
	span.SetKind(ptrace.SpanKindInternal)
	span.SetSpanID(o.identity.SpanID(s.Sequence))
	span.SetStartTimestamp(pcommon.Timestamp(s.Start))
	span.SetEndTimestamp(pcommon.Timestamp(s.End))
	if s.Kept != pairing.CriterionNone {
		span.TraceState().FromRaw(o.states.of(s.Kept))
	}

	attributes := span.Attributes()
	own := out.Attributes[s.Attributes.From:s.Attributes.To]
	attributes.EnsureCapacity(o.attributeCount(s))
	attributes.PutStr(attributeFunction, s.Function.Qualified)
	if thread, is := callevent.ThreadID(s.Lane); is {
		attributes.PutInt(attributeThreadID, thread)
	}
	if s.LaneName != "" {
		attributes.PutStr(attributeThreadName, s.LaneName)
	}
	if o.shown.Sequence {
		attributes.PutInt(attributeSequence, int64(s.Sequence))
	}
	if o.showsText(s) {
		attributes.PutStr(o.textKey, s.Function.Text)
	}
	putPlace(attributes, s)

	switch {
	case s.Link != pairing.LinkNone:
		o.link(s, span)
	case s.Parent != pairing.NoParent:
		span.SetParentSpanID(o.identity.SpanID(s.Parent))
	}
	if s.Unwound {
		span.Status().SetCode(ptrace.StatusCodeError)
		if s.ErrorType != "" {
			attributes.PutStr(attributeErrorType, s.ErrorType)
		}
	}
	if s.Truncated != 0 {
		attributes.PutStr(attributeTruncated, s.Truncated.String())
	}
	if s.LeftOut.Calls > 0 {
		attributes.PutInt(attributeLeftOutCalls, int64(s.LeftOut.Calls))
		attributes.PutInt(attributeLeftOutTime, s.LeftOut.Time)
		attributes.PutInt(attributeLeftOutErrors, int64(s.LeftOut.Errors))
	}
	if r := out.RepeatedOf(s); r != nil {
		attributes.PutInt(attributeRepeatedCalls, int64(r.Calls))
		attributes.PutInt(attributeRepeatedLeast, r.Least)
		attributes.PutInt(attributeRepeatedMost, r.Greatest)
		attributes.PutInt(attributeRepeatedTotal, r.Total)
	}
	putOwn(span, own)
	putThrows(span, s, out)
}

// tracestates are those of kept traces. A kept trace stands for as many as its threshold says
// (OpenTelemetry, TraceState: Probability Sampling). One that another criterion than the ratio kept stands
// for itself. Behind a limiter the probability is unknown, so there is no threshold.
type tracestates struct{ ofRatio, ofOthers string }

func tracestatesOf(keep *pairing.Keep) tracestates {
	if keep == nil || keep.Limiter != nil {
		return tracestates{}
	}
	return tracestates{ofRatio: sampledAbove(keep.Threshold), ofOthers: alwaysSampled}
}

func (t *tracestates) of(by pairing.Criterion) string {
	if by == pairing.CriterionRatio {
		return t.ofRatio
	}
	return t.ofOthers
}

const alwaysSampled = "ot=th:0"

// sampledAbove is the tracestate of traces that were kept because of their random numbers.
func sampledAbove(threshold uint64) string {
	if threshold == 0 {
		return alwaysSampled
	}
	return "ot=th:" + strings.TrimRight(fmt.Sprintf("%014x", threshold), "0")
}

// putPlace adds the place of the function: its definition, or else the line that it returned from,
// which is inside it.
func putPlace(attributes pcommon.Map, s *pairing.Call) {
	if s.Function.File != "" {
		attributes.PutStr(attributeFile, s.Function.File)
	}
	if line := s.Function.Line; line != 0 {
		attributes.PutInt(attributeLine, int64(line))
	} else if s.Line != 0 {
		attributes.PutInt(attributeLine, int64(s.Line))
	}
}

// link adds a link to the calling span, which is in another trace.
func (o *origin) link(s *pairing.Call, span ptrace.Span) {
	link := span.Links().AppendEmpty()
	link.SetTraceID(o.identity.TraceID(s.LinkTrace))
	link.SetSpanID(o.identity.SpanID(s.Parent))
	kind := "continuation"
	if s.Link == pairing.LinkTraceRoot {
		kind = "trace_root"
	}
	link.Attributes().PutStr(attributeLink, kind)
}

func putThrows(span ptrace.Span, s *pairing.Call, out *pairing.Output) {
	for _, t := range out.Throws[s.Throws.From:s.Throws.To] {
		event := span.Events().AppendEmpty()
		event.SetName(eventException)
		event.SetTimestamp(pcommon.Timestamp(t.Time))
		if t.Type != "" {
			event.Attributes().PutStr(attributeException, t.Type)
		}
		if t.Line != 0 {
			event.Attributes().PutInt(attributeLine, int64(t.Line))
		}
	}
	span.SetDroppedEventsCount(s.DroppedThrows)
}

// putOwn adds the attributes of a call's events. A later one replaces an earlier one with its key.
// One with the key of a known attribute of the call is dropped and counted.
func putOwn(span ptrace.Span, own []pairing.Attribute) {
	attributes := span.Attributes()
	known, dropped := attributes.Len(), uint32(0)
	for _, a := range own {
		if isAmong(attributes, known, a.Key) {
			dropped++
		} else {
			putValue(attributes, a)
		}
	}
	span.SetDroppedAttributesCount(dropped)
}

// isAmong reports whether one of the first n attributes has the key.
func isAmong(attributes pcommon.Map, n int, key string) bool {
	for k := range attributes.All() {
		if n == 0 {
			return false
		}
		if k == key {
			return true
		}
		n--
	}
	return false
}

func putValue(attributes pcommon.Map, a pairing.Attribute) {
	switch a.Value.Type() {
	case callevent.ValueString:
		attributes.PutStr(a.Key, a.Value.Str())
	case callevent.ValueInt:
		attributes.PutInt(a.Key, a.Value.Int())
	case callevent.ValueDouble:
		attributes.PutDouble(a.Key, a.Value.Double())
	case callevent.ValueBool:
		attributes.PutBool(a.Key, a.Value.Bool())
	}
}
