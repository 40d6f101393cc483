// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/pairing"
)

func testOrigin() *origin {
	return &origin{shown: allAttributes, textKey: "tracer.signature", Source: Source{Resource: pcommon.NewResource(), Scope: pcommon.NewInstrumentationScope()}}
}

var shopPay = &callevent.Function{Qualified: "demo.Shop$Order.pay", Display: "Shop$Order.pay", Text: "demo/Shop$Order.pay;0;()V"}

// A span with only the common contents of all spans.
func plain() pairing.Call {
	return pairing.Call{
		Function: shopPay, Lane: 7, LaneName: "main", Start: 1_000, End: 2_000,
		Sequence: 5, Parent: 3, Trace: 1,
	}
}

func TestEachPropertyOfACallIsInTheSpan(t *testing.T) {
	base := []string{
		"name Shop$Order.pay", "kind Internal", "trace @1", "span @5", "parent @3", "time 1000 to 2000", "status Unset",
		"code.function.name = demo.Shop$Order.pay", "thread.id = 7", "thread.name = main", "callbraid.sequence = 5",
		"tracer.signature = demo/Shop$Order.pay;0;()V",
	}
	for _, test := range []struct {
		name       string
		change     func(*pairing.Call, *origin)
		throws     []pairing.Throw
		attributes []pairing.Attribute
		with       []string
		without    []string
	}{
		{name: "a call that returned"},
		{
			name:   "a root",
			change: func(s *pairing.Call, _ *origin) { s.Parent, s.Trace, s.Sequence = pairing.NoParent, 0, 0 },
			with:   []string{"trace @0", "span @0", "no parent", "callbraid.sequence = 0"}, without: []string{"trace @1", "span @5", "parent @3", "callbraid.sequence = 5"},
		},
		{
			name:   "a thread that a runtime numbers",
			change: func(s *pairing.Call, _ *origin) { s.Lane |= callevent.LaneManaged },
		},
		{
			name:    "a lane that is a key and no thread",
			change:  func(s *pairing.Call, _ *origin) { s.Lane |= callevent.LaneKey },
			without: []string{"thread.id = 7"},
		},
		{
			name:    "a lane without a name",
			change:  func(s *pairing.Call, _ *origin) { s.LaneName = "" },
			without: []string{"thread.name = main"},
		},
		{
			name:    "a function whose text was not sent",
			change:  func(s *pairing.Call, _ *origin) { s.Function = &callevent.Function{Qualified: "demo.f", Display: "f"} },
			with:    []string{"name f", "code.function.name = demo.f"},
			without: []string{"name Shop$Order.pay", "code.function.name = demo.Shop$Order.pay", "tracer.signature = demo/Shop$Order.pay;0;()V"},
		},
		{
			name:    "a tracer without a key for the text",
			change:  func(_ *pairing.Call, o *origin) { o.textKey = "" },
			without: []string{"tracer.signature = demo/Shop$Order.pay;0;()V"},
		},
		{
			name:    "no attributes that few read",
			change:  func(_ *pairing.Call, o *origin) { o.shown = SpanAttributesConfig{} },
			without: []string{"callbraid.sequence = 5", "tracer.signature = demo/Shop$Order.pay;0;()V"},
		},
		{
			name:    "the function's text alone",
			change:  func(_ *pairing.Call, o *origin) { o.shown.Sequence = false },
			without: []string{"callbraid.sequence = 5"},
		},
		{
			name:    "the number alone",
			change:  func(_ *pairing.Call, o *origin) { o.shown.FunctionText = false },
			without: []string{"tracer.signature = demo/Shop$Order.pay;0;()V"},
		},
		{
			name:   "the line that it returned from",
			change: func(s *pairing.Call, _ *origin) { s.Line = 42 },
			with:   []string{"code.line.number = 42"},
		},
		{
			name: "the line of its definition, not of the return",
			change: func(s *pairing.Call, _ *origin) {
				f := *shopPay
				f.File, f.Line = "Shop.java", 17
				s.Function, s.Line = &f, 42
			},
			with: []string{"code.file.path = Shop.java", "code.line.number = 17"},
		},
		{
			name:   "left by an exception",
			change: func(s *pairing.Call, _ *origin) { s.Unwound, s.ErrorType = true, "java.lang.IllegalStateException" },
			throws: []pairing.Throw{{Time: 2_000, Type: "java.lang.IllegalStateException"}},
			with: []string{
				"status Error", "error.type = java.lang.IllegalStateException",
				"event exception at 2000: exception.type = java.lang.IllegalStateException",
			},
			without: []string{"status Unset"},
		},
		{
			name:    "left by an exception whose type is not known",
			change:  func(s *pairing.Call, _ *origin) { s.Unwound = true },
			throws:  []pairing.Throw{{Time: 2_000}},
			with:    []string{"status Error", "event exception at 2000:"},
			without: []string{"status Unset"},
		},
		{
			name:   "exceptions that were thrown and caught, and one that is not shown",
			change: func(s *pairing.Call, _ *origin) { s.DroppedThrows = 1 },
			throws: []pairing.Throw{{Time: 1_100, Type: "E", Line: 12}, {Time: 1_200, Type: "F"}},
			with: []string{
				"event exception at 1100: exception.type = E, code.line.number = 12",
				"event exception at 1200: exception.type = F",
				"dropped events 1",
			},
		},
		{
			name:   "truncated",
			change: func(s *pairing.Call, _ *origin) { s.Truncated = callevent.CauseSuspended },
			with:   []string{"callbraid.truncated = suspended"},
		},
		{
			name: "calls below it were left out",
			change: func(s *pairing.Call, _ *origin) {
				s.LeftOut = pairing.LeftOut{Calls: 3, Errors: 1, Time: 250}
			},
			with: []string{"callbraid.left_out.calls = 3", "callbraid.left_out.time = 250", "callbraid.left_out.errors = 1"},
		},
		{
			name:   "repeated calls",
			change: func(s *pairing.Call, _ *origin) { s.Repeated = 2 },
			with: []string{
				"callbraid.repeated.calls = 3", "callbraid.repeated.least = 10", "callbraid.repeated.greatest = 50", "callbraid.repeated.total = 80",
			},
		},
		{
			name: "a root that continues a full trace",
			change: func(s *pairing.Call, _ *origin) {
				s.Trace, s.Link, s.LinkTrace = 5, pairing.LinkContinuation, 1
			},
			with: []string{"trace @5", "no parent", "link to @3 in @1: callbraid.link = continuation"}, without: []string{"trace @1", "parent @3"},
		},
		{
			name: "a root by trace_roots",
			change: func(s *pairing.Call, _ *origin) {
				s.Trace, s.Link, s.LinkTrace = 5, pairing.LinkTraceRoot, 1
			},
			with: []string{"trace @5", "no parent", "link to @3 in @1: callbraid.link = trace_root"}, without: []string{"trace @1", "parent @3"},
		},
		{
			name: "attributes of its events",
			attributes: []pairing.Attribute{
				{Key: "text", Value: callevent.StringValue("a")}, {Key: "int", Value: callevent.IntValue(-1)},
				{Key: "double", Value: callevent.DoubleValue(0.5)}, {Key: "bool", Value: callevent.BoolValue(true)},
				{Key: "text", Value: callevent.StringValue("the later one")},
			},
			with: []string{"text = the later one", "int = -1", "double = 0.5", "bool = true"},
		},
		{
			name: "attributes of its events do not replace known attributes",
			change: func(s *pairing.Call, _ *origin) {
				s.Unwound, s.ErrorType, s.Truncated, s.Line = true, "E", callevent.CauseGap, 42
				s.LeftOut = pairing.LeftOut{Calls: 3, Errors: 1, Time: 250}
			},
			attributes: []pairing.Attribute{
				{Key: "thread.id", Value: callevent.StringValue("lie")},
				{Key: "thread.name", Value: callevent.StringValue("lie")},
				{Key: "code.function.name", Value: callevent.StringValue("lie")},
				{Key: "code.line.number", Value: callevent.IntValue(0)},
				{Key: "tracer.signature", Value: callevent.StringValue("lie")},
				{Key: "error.type", Value: callevent.StringValue("lie")},
				{Key: "callbraid.sequence", Value: callevent.IntValue(0)},
				{Key: "callbraid.truncated", Value: callevent.StringValue("lie")},
				{Key: "callbraid.left_out.errors", Value: callevent.IntValue(0)},
				{Key: "code.file.path", Value: callevent.StringValue("is not known otherwise")},
			},
			with: []string{
				"status Error", "error.type = E", "callbraid.truncated = gap", "code.line.number = 42",
				"callbraid.left_out.calls = 3", "callbraid.left_out.time = 250", "callbraid.left_out.errors = 1",
				"code.file.path = is not known otherwise", "dropped attributes 9",
			},
			without: []string{"status Unset"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, s := testOrigin(), plain()
			if test.change != nil {
				test.change(&s, o)
			}
			// Throws of other calls are before and behind.
			out := &pairing.Output{
				Repeated:   []pairing.Repeated{{Calls: 2}, {Calls: 3, Least: 10, Greatest: 50, Total: 80}},
				Throws:     append(append([]pairing.Throw{{Type: "other"}}, test.throws...), pairing.Throw{Type: "other"}),
				Attributes: append(append([]pairing.Attribute{{Key: "other", Value: callevent.IntValue(0)}}, test.attributes...), pairing.Attribute{Key: "other", Value: callevent.IntValue(0)}),
			}
			s.Throws = pairing.Range{From: 1, To: int32(1 + len(test.throws))}
			s.Attributes = pairing.Range{From: 1, To: int32(1 + len(test.attributes))}
			td := o.traces([]pairing.Call{s}, out)
			require.Equal(t, 1, td.SpanCount())

			want := append([]string{}, test.with...)
			for _, line := range base {
				if !slices.Contains(test.without, line) {
					want = append(want, line)
				}
			}
			assert.ElementsMatch(t, want, describe(&o.identity, td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)))
		})
	}
}

// describe returns all contents of a span. Numbers below 10 replace the IDs that are made of them.
func describe(id *Identity, span ptrace.Span) []string {
	spans, traces := map[pcommon.SpanID]string{{}: "none"}, map[pcommon.TraceID]string{{}: "none"}
	for n := range uint64(10) {
		spans[id.SpanID(n)], traces[id.TraceID(n)] = fmt.Sprintf("@%d", n), fmt.Sprintf("@%d", n)
	}
	lines := []string{
		"name " + span.Name(), "kind " + span.Kind().String(),
		"trace " + traces[span.TraceID()], "span " + spans[span.SpanID()],
		fmt.Sprintf("time %d to %d", span.StartTimestamp(), span.EndTimestamp()),
		"status " + span.Status().Code().String() + span.Status().Message(),
	}
	if span.ParentSpanID().IsEmpty() {
		lines = append(lines, "no parent")
	} else {
		lines = append(lines, "parent "+spans[span.ParentSpanID()])
	}
	lines = append(lines, attributeLines(span.Attributes())...)
	for _, event := range span.Events().All() {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("event %s at %d: %s", event.Name(), event.Timestamp(), strings.Join(attributeLines(event.Attributes()), ", "))))
	}
	for _, link := range span.Links().All() {
		lines = append(lines, fmt.Sprintf("link to %s in %s: %s", spans[link.SpanID()], traces[link.TraceID()], strings.Join(attributeLines(link.Attributes()), ", ")))
	}
	if n := span.DroppedAttributesCount(); n > 0 {
		lines = append(lines, fmt.Sprintf("dropped attributes %d", n))
	}
	if n := span.DroppedEventsCount(); n > 0 {
		lines = append(lines, fmt.Sprintf("dropped events %d", n))
	}
	return lines
}

func attributeLines(attributes pcommon.Map) (lines []string) {
	for key, value := range attributes.All() {
		lines = append(lines, key+" = "+value.AsString())
	}
	return lines
}

// Every cause has a word: the value of the attribute, and of the metric's attribute.
func TestEveryCauseIsNamedInTheSpan(t *testing.T) {
	for cause := callevent.CauseSuspended; cause < callevent.CauseCount; cause++ {
		s := plain()
		s.Truncated = cause
		span := testOrigin().traces([]pairing.Call{s}, &pairing.Output{}).ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		v, ok := span.Attributes().Get(attributeTruncated)
		require.True(t, ok)
		assert.Equal(t, cause.String(), v.Str())
		assert.NotContains(t, []string{"none", "unknown"}, v.Str())
	}
}

// Spans have the resource, scope and schema URLs of their batch. A change applies to spans that
// finish afterwards.
func TestResourceAndScopeAreThoseOfTheBatch(t *testing.T) {
	b := newBed(t)
	var got []ptrace.Traces
	b.next.answerWith(func(_ context.Context, td ptrace.Traces) error { got = append(got, td); return nil })
	hand := func(first uint64, change func(ptrace.ResourceSpans)) {
		td := traces(t, call(1, "f", first))
		rs := td.ResourceSpans().At(0)
		rs.SetSchemaUrl("https://opentelemetry.io/schemas/1.40.0")
		rs.Resource().Attributes().PutStr("service.name", "shop")
		rs.Resource().Attributes().PutInt("process.pid", 17)
		ss := rs.ScopeSpans().At(0)
		ss.SetSchemaUrl("https://opentelemetry.io/schemas/1.41.0")
		ss.Scope().SetName("bytefrog.receiver")
		ss.Scope().SetVersion("1.2.3")
		ss.Scope().Attributes().PutStr("tracer", "bytefrog")
		if change != nil {
			change(rs)
		}
		want := ptrace.NewTraces()
		rs.CopyTo(want.ResourceSpans().AppendEmpty())
		require.NoError(t, b.ConsumeTraces(context.Background(), td))
		last := got[len(got)-1]
		require.Equal(t, 1, last.SpanCount())
		// Except for the spans, all is the same.
		result := ptrace.NewTraces()
		last.CopyTo(result)
		for _, td := range []ptrace.Traces{want, result} {
			td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().RemoveIf(func(ptrace.Span) bool { return true })
		}
		assert.Equal(t, text(t, want), text(t, result))
	}
	originOf := func() *origin { return b.shardOf(streamID(1)).streams[streamID(1)].origin }

	hand(0, nil)
	first := originOf()
	hand(2, nil)
	assert.Same(t, first, originOf(), "it is copied once")
	for i, change := range []func(ptrace.ResourceSpans){
		func(rs ptrace.ResourceSpans) { rs.Resource().Attributes().PutStr("service.name", "bank") },
		func(rs ptrace.ResourceSpans) { rs.SetSchemaUrl("") },
		func(rs ptrace.ResourceSpans) { rs.ScopeSpans().At(0).SetSchemaUrl("") },
		func(rs ptrace.ResourceSpans) { rs.ScopeSpans().At(0).Scope().SetName("other") },
		func(rs ptrace.ResourceSpans) { rs.ScopeSpans().At(0).Scope().SetVersion("2") },
		func(rs ptrace.ResourceSpans) { rs.ScopeSpans().At(0).Scope().Attributes().PutStr("more", "so") },
	} {
		hand(uint64(4+4*i), change)
		hand(uint64(6+4*i), nil)
	}
	b.finish()
}

// The same batches give the same spans, byte for byte, in every collector.
func TestTheSameBatchesBecomeTheSameSpans(t *testing.T) {
	var all []string
	for range 2 {
		b := newBed(t)
		b.next.answerWith(func(_ context.Context, td ptrace.Traces) error { all = append(all, text(t, td)); return nil })
		b.handOver(batch{stream: 1, events: []string{"enter a", "enter b", "throw b E", "unwind b E", "exit a"}})
		b.finish()
	}
	require.Len(t, all, 2)
	assert.Equal(t, all[0], all[1])
}
