// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

func TestAttributesOfASpanAreRead(t *testing.T) {
	trace, other := calltree.TraceID{1}, calltree.TraceID{2}
	id, parent := calltree.SpanID{3}, calltree.SpanID{4}
	for _, test := range []struct {
		name   string
		change func(ptrace.Span)
		want   func(*calltree.Span)
	}{
		{"its name", func(ptrace.Span) {}, func(*calltree.Span) {}},
		{"its parent", func(s ptrace.Span) { s.SetParentSpanID([8]byte(parent)) }, func(s *calltree.Span) { s.Parent = parent }},
		{"its status", func(s ptrace.Span) { s.Status().SetCode(ptrace.StatusCodeError) }, func(s *calltree.Span) { s.Error = true }},
		{"a status that is no error", func(s ptrace.Span) { s.Status().SetCode(ptrace.StatusCodeOk) }, func(*calltree.Span) {}},
		{"its function", func(s ptrace.Span) { s.Attributes().PutStr(attributeFunction, "p.C.f") }, func(s *calltree.Span) { s.Function = "p.C.f" }},
		{"an empty function", func(s ptrace.Span) { s.Attributes().PutStr(attributeFunction, "") }, func(*calltree.Span) {}},
		{"a function that is no text", func(s ptrace.Span) { s.Attributes().PutInt(attributeFunction, 1) }, func(*calltree.Span) {}},
		{"its place", func(s ptrace.Span) {
			s.Attributes().PutStr(attributeFile, "C.java")
			s.Attributes().PutInt(attributeLine, 7)
		}, func(s *calltree.Span) { s.File, s.Line = "C.java", 7 }},
		{"a place of other types", func(s ptrace.Span) {
			s.Attributes().PutInt(attributeFile, 7)
			s.Attributes().PutStr(attributeLine, "C.java")
		}, func(*calltree.Span) {}},
		{"its thread", func(s ptrace.Span) {
			s.Attributes().PutInt(attributeThreadID, 0)
			s.Attributes().PutStr(attributeThreadName, "main")
		}, func(s *calltree.Span) { s.HasThread, s.ThreadName = true, "main" }},
		{"a thread that is no number", func(s ptrace.Span) { s.Attributes().PutStr(attributeThreadID, "1") }, func(*calltree.Span) {}},
		{"that its end was not seen", func(s ptrace.Span) { s.Attributes().PutStr(attributeTruncated, "ended") }, func(s *calltree.Span) { s.Truncated = true }},
		{"repeated calls", func(s ptrace.Span) {
			s.Attributes().PutInt(attributeRepeatedCalls, 3)
			s.Attributes().PutInt(attributeRepeatedTotal, 4)
		}, func(s *calltree.Span) { s.Calls, s.CallsTime = 3, 4 }},
		{"a number of repeated calls that is none", func(s ptrace.Span) {
			s.Attributes().PutInt(attributeRepeatedCalls, -3)
			s.Attributes().PutStr(attributeRepeatedTotal, "4")
		}, func(*calltree.Span) {}},
		{"a call from another service, by its kind", func(s ptrace.Span) { s.SetKind(ptrace.SpanKindServer) }, func(s *calltree.Span) { s.Remote = true }},
		{"a message from another service, by its kind", func(s ptrace.Span) { s.SetKind(ptrace.SpanKindConsumer) }, func(s *calltree.Span) { s.Remote = true }},
		{"a call to another service", func(s ptrace.Span) { s.SetKind(ptrace.SpanKindClient) }, func(*calltree.Span) {}},
		{"a call from another service, by its flags", func(s ptrace.Span) { s.SetFlags(0x300) }, func(s *calltree.Span) { s.Remote = true }},
		{"a call from the same service, by its flags", func(s ptrace.Span) {
			s.SetKind(ptrace.SpanKindServer)
			s.SetFlags(0x100)
		}, func(*calltree.Span) {}},
		{"flags without information about the parent", func(s ptrace.Span) { s.SetFlags(0x201) }, func(*calltree.Span) {}},
		{"where its trace was cut", func(s ptrace.Span) { link(s, other, parent, "continuation") }, func(s *calltree.Span) { s.ParentTrace, s.Parent = other, parent }},
		{"where a trace begins inside another", func(s ptrace.Span) {
			link(s, other, id, "something else")
			link(s, other, parent, "trace_root")
		}, func(s *calltree.Span) { s.ParentTrace, s.Parent = other, parent }},
		{"other links", func(s ptrace.Span) { link(s, other, parent, "") }, func(*calltree.Span) {}},
		{"links of a span that has a parent", func(s ptrace.Span) {
			s.SetParentSpanID([8]byte(parent))
			link(s, other, id, "continuation")
		}, func(s *calltree.Span) { s.Parent = parent }},
	} {
		t.Run(test.name, func(t *testing.T) {
			span := ptrace.NewSpan()
			span.SetTraceID([16]byte(trace))
			span.SetSpanID([8]byte(id))
			span.SetName("f")
			span.SetStartTimestamp(10)
			span.SetEndTimestamp(15)
			test.change(span)
			want := calltree.Span{Trace: trace, ID: id, ParentTrace: trace, Function: "f", Start: 10, End: 15}
			test.want(&want)
			got := calltree.Span{Function: "of the span before", HasThread: true}
			newBed(t).read(span, &got, new(calltree.LeftOut))
			assert.Equal(t, want, got)
		})
	}
}

func link(span ptrace.Span, trace calltree.TraceID, id calltree.SpanID, kind string) {
	l := span.Links().AppendEmpty()
	l.SetTraceID([16]byte(trace))
	l.SetSpanID([8]byte(id))
	if kind != "" {
		l.Attributes().PutStr(attributeLink, kind)
	}
}

func TestLinksAreOnlyFollowedIfConfigured(t *testing.T) {
	g := newBed(t, func(c *Config) { c.FollowLinks = false })
	span := ptrace.NewSpan()
	link(span, calltree.TraceID{1}, calltree.SpanID{1}, "continuation")
	var got calltree.Span
	g.read(span, &got, new(calltree.LeftOut))
	assert.Zero(t, got.Parent)
}

// A method has two spans for each call if Greys' trace and tt both report it.
func TestADuplicateSpanOfACallIsNotCounted(t *testing.T) {
	g := newBed(t)
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range 2 * chunk {
		span := spans.AppendEmpty()
		span.SetName("f")
		span.Attributes().PutBool(attributeDuplicate, i%2 == 0)
	}
	require.NoError(t, g.consumeTraces(t.Context(), td))
	assert.EqualValues(t, chunk, g.store.Services()[0].Calls)
	assert.EqualValues(t, chunk, g.duplicates.Load())
}

func TestOneCallHasSpansOfSeveralServices(t *testing.T) {
	g := newBed(t)
	td := ptrace.NewTraces()
	add := func(service string, spans int) {
		rs := td.ResourceSpans().AppendEmpty()
		if service != "" {
			rs.Resource().Attributes().PutStr(attributeService, service)
		}
		for scope := range 2 {
			ss := rs.ScopeSpans().AppendEmpty()
			for range spans {
				ss.Spans().AppendEmpty().SetName([]string{"f", "g"}[scope])
			}
		}
	}
	add("small", 1)
	add("large", 3*chunk)
	add("", 2)
	add("none", 0)
	add("small", chunk/2)
	require.NoError(t, g.consumeTraces(t.Context(), td))
	got := map[string]uint64{}
	for _, service := range g.store.Services() {
		got[service.Name] = service.Calls
	}
	assert.Equal(t, map[string]uint64{"small": chunk + 2, "large": 6 * chunk, unknownService: 4}, got)
	snapshot, _ := g.store.Snapshot("large", calltree.Calls)
	assert.Len(t, snapshot.Nodes, 2)
}

func TestAScopeHasTheNumberOfMissingClasses(t *testing.T) {
	g := newBed(t)
	take := func(put func(pcommon.Map)) calltree.Missing {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr(attributeService, "shop")
		ss := rs.ScopeSpans().AppendEmpty()
		put(ss.Scope().Attributes())
		ss.Spans().AppendEmpty().SetName("f")
		require.NoError(t, g.consumeTraces(t.Context(), td))
		snapshot, ok := g.store.Snapshot("shop", calltree.Calls)
		require.True(t, ok)
		window, err := g.store.Collect(t.Context(), "shop", calltree.Calls, time.Nanosecond, func(context.Context) error { return nil })
		require.NoError(t, err)
		assert.Equal(t, snapshot.Missing, window.Missing)
		return snapshot.Missing
	}
	assert.Zero(t, take(func(pcommon.Map) {}))
	assert.Zero(t, take(func(m pcommon.Map) { m.PutStr(attributeMissingClasses, "66"); m.PutInt(attributeMissingFirst, 1) }))
	want := calltree.Missing{Classes: 66, First: "demo.Main, demo.Shop"}
	assert.Equal(t, want, take(func(m pcommon.Map) {
		m.PutInt(attributeMissingClasses, 66)
		m.PutStr(attributeMissingFirst, want.First)
	}))
	assert.Equal(t, want, take(func(pcommon.Map) {}), "it holds")
	long := take(func(m pcommon.Map) {
		m.PutInt(attributeMissingClasses, 1)
		m.PutStr(attributeMissingFirst, strings.Repeat("x", 1<<20))
	})
	assert.Less(t, len(long.First), 2000)
}

func TestSpansHaveTheCallsThatWereLeftOut(t *testing.T) {
	send := func(g *bed, calls int64) {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr(attributeService, "shop")
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		for range 2 {
			attributes := spans.AppendEmpty().Attributes()
			attributes.PutInt(attributeLeftOutCalls, calls)
			attributes.PutInt(attributeLeftOutErrors, 1)
			attributes.PutInt(attributeLeftOutTime, 1000)
		}
		require.NoError(t, g.consumeTraces(t.Context(), td))
	}
	leftOut := func(g *bed) calltree.LeftOut {
		snapshot, _ := g.store.Snapshot("shop", calltree.Calls)
		return snapshot.Lost.LeftOut
	}
	g := newBed(t)
	send(g, 5)
	assert.Equal(t, calltree.LeftOut{Calls: 10, Errors: 2, Time: 2000}, leftOut(g))
	window, err := g.store.Collect(t.Context(), "shop", calltree.Calls, time.Nanosecond, func(context.Context) error { return nil })
	require.NoError(t, err)
	assert.Zero(t, window.Lost.LeftOut, "a window has those that arrive meanwhile")
	send(g, math.MaxInt64)
	assert.EqualValues(t, 2000*2, leftOut(g).Time)
	assert.Greater(t, leftOut(g).Calls, uint64(math.MaxInt64), "the largest number of a span")
	g.store.Reset("shop")
	assert.Zero(t, leftOut(g))

	uncounted := newBed(t, func(c *Config) { c.CountSpans = false })
	send(uncounted, 5)
	assert.Zero(t, leftOut(uncounted), "profiles of call paths have these calls")
}

// Texts and numbers name a service. Lists and maps name none: a peer may nest them deep, and the
// exporter must not walk them.
func TestAServiceIsNamedByAScalar(t *testing.T) {
	for name, test := range map[string]struct {
		set  func(pcommon.Value)
		want string
	}{
		"a text":   {func(v pcommon.Value) { v.SetStr("shop") }, "shop"},
		"a number": {func(v pcommon.Value) { v.SetInt(7) }, "7"},
		"bytes":    {func(v pcommon.Value) { v.SetEmptyBytes().FromRaw([]byte{1}) }, "AQ=="},
		"a list":   {func(v pcommon.Value) { v.SetEmptySlice().AppendEmpty().SetStr("shop") }, unknownService},
		"a map":    {func(v pcommon.Value) { v.SetEmptyMap().PutStr("a", "shop") }, unknownService},
	} {
		t.Run(name, func(t *testing.T) {
			resource := pcommon.NewResource()
			test.set(resource.Attributes().PutEmpty(attributeService))
			test.set(resource.Attributes().PutEmpty(attributeInstance))
			from := originOf(resource, "")
			assert.Equal(t, test.want, from.Service)
			assert.Equal(t, strings.TrimPrefix(test.want, unknownService), from.Instance)
		})
	}
}

func TestVersionsOfAServiceHaveTreesOfTheirOwn(t *testing.T) {
	b := newBed(t, func(c *Config) { c.VersionAttribute = "service.version" })
	td := ptrace.NewTraces()
	w := newWritten("shop", "f", "cpu")
	w.kind(2, 0)
	w.sample(1, 1)
	for i, version := range []string{"1.2", "", "2.0"} {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr(attributeService, "shop")
		if version != "" {
			rs.Resource().Attributes().PutStr("service.version", version)
		}
		span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetSpanID([8]byte{byte(i + 1)})
		span.SetName("f")
	}
	w.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.version", "2.0")
	require.NoError(t, b.consumeTraces(t.Context(), td))
	require.NoError(t, b.consumeProfiles(t.Context(), w.Profiles))
	kinds := map[string]int{}
	for _, service := range b.store.Services() {
		kinds[service.Name] = len(service.Kinds)
	}
	assert.Equal(t, map[string]int{"shop": 1, "shop@1.2": 1, "shop@2.0": 2}, kinds)
}
