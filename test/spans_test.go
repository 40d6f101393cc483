// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/test/kit"
)

// span has the fields of a call's exported span that the tests compare.
type span struct {
	trace      pcommon.TraceID
	id, parent pcommon.SpanID
	start, end int64
	kind       ptrace.SpanKind
	status     ptrace.StatusCode

	name, function, text  string
	thread, sequence      int64
	threadName            string
	errorType, truncated  string
	hasError, isTruncated bool

	exceptions []thrown
	links      []link
}

type thrown struct {
	time int64
	kind string
}

type link struct {
	trace pcommon.TraceID
	id    pcommon.SpanID
	kind  string
}

// exported has the exported spans of one call stream: those of one resource.
type exported struct {
	resource map[string]any
	scopes   map[string]int
	spans    []span
}

// streams are the call streams that were exported, by service.instance.id.
type streams map[string]*exported

// add adds the spans of one export.
func (s streams) add(t testing.TB, traces ptrace.Traces) {
	t.Helper()
	for _, rs := range traces.ResourceSpans().All() {
		instance, ok := rs.Resource().Attributes().Get("service.instance.id")
		if !ok {
			t.Fatalf("expected a resource with service.instance.id, got %v", rs.Resource().Attributes().AsRaw())
		}
		e := s[instance.Str()]
		if e == nil {
			e = &exported{resource: rs.Resource().Attributes().AsRaw(), scopes: map[string]int{}}
			s[instance.Str()] = e
		}
		for _, ss := range rs.ScopeSpans().All() {
			e.scopes[ss.Scope().Name()] += ss.Spans().Len()
			for _, from := range ss.Spans().All() {
				e.spans = append(e.spans, flatten(from))
			}
		}
	}
}

// readStreams reads the file exporter's file of a stopped collector.
func readStreams(t testing.TB, c *kit.Collector, file string) streams {
	t.Helper()
	s := streams{}
	c.ReadTraces(t, file, func(traces ptrace.Traces) { s.add(t, traces) })
	return s
}

// only is the only call stream.
func (s streams) only(t testing.TB) *exported {
	t.Helper()
	if len(s) != 1 {
		t.Fatalf("expected the spans of 1 call stream, got %d call streams", len(s))
	}
	for _, e := range s {
		return e
	}
	return nil
}

func flatten(from ptrace.Span) span {
	s := span{
		trace: from.TraceID(), id: from.SpanID(), parent: from.ParentSpanID(), kind: from.Kind(), status: from.Status().Code(),
		start: int64(from.StartTimestamp()), end: int64(from.EndTimestamp()), name: from.Name(), sequence: -1, thread: -1,
	}
	for key, v := range from.Attributes().All() {
		switch key {
		case "code.function.name":
			s.function = v.Str()
		case "bytefrog.method.signature":
			s.text = v.Str()
		case "thread.id":
			s.thread = v.Int()
		case "thread.name":
			s.threadName = v.Str()
		case "callbraid.sequence":
			s.sequence = v.Int()
		case "callbraid.truncated":
			s.truncated, s.isTruncated = v.Str(), true
		case "error.type":
			s.errorType, s.hasError = v.Str(), true
		}
	}
	for _, e := range from.Events().All() {
		x := thrown{time: int64(e.Timestamp()), kind: e.Name()}
		if v, ok := e.Attributes().Get("exception.type"); ok && e.Name() == "exception" {
			x.kind = v.Str()
		}
		s.exceptions = append(s.exceptions, x)
	}
	for _, l := range from.Links().All() {
		kind, _ := l.Attributes().Get("callbraid.link")
		s.links = append(s.links, link{l.TraceID(), l.SpanID(), kind.AsString()})
	}
	return s
}
