// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Attributes of the spans.
const (
	attributeFunction  = "code.function.name"
	attributeThread    = "thread.id"
	attributeTruncated = "callbraid.truncated"
	attributeInstance  = "service.instance.id"
)

// summary adds up arriving spans. Its memory depends on the number of methods, threads, traces and
// open calls, not on that of spans.
type summary struct {
	spans, errors uint64
	methods       map[string]*method // by name: overloaded ones are one method
	threads       map[thread]struct{}
	traces        map[pcommon.TraceID]struct{}
	truncated     map[string]uint64
	// children is the time in the children of spans that have not arrived.
	children map[pcommon.SpanID]time.Duration
}

type thread struct {
	instance string
	id       int64
}

// method has the sums of all calls of a method.
type method struct {
	name   string
	calls  uint64
	errors uint64
	// total is the time between entries and exits; calls of a method by itself count
	// twice.
	total time.Duration
	// self is total without the time in methods that it called.
	self time.Duration
}

func newSummary() *summary {
	return &summary{
		methods:   map[string]*method{},
		threads:   map[thread]struct{}{},
		traces:    map[pcommon.TraceID]struct{}{},
		truncated: map[string]uint64{},
		children:  map[pcommon.SpanID]time.Duration{},
	}
}

func (s *summary) add(traces ptrace.Traces) {
	for _, resource := range traces.ResourceSpans().All() {
		instance := text(resource.Resource().Attributes(), attributeInstance)
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				s.addSpan(instance, span)
			}
		}
	}
}

func (s *summary) addSpan(instance string, span ptrace.Span) {
	s.spans++
	s.traces[span.TraceID()] = struct{}{}
	name := text(span.Attributes(), attributeFunction)
	m := s.method(name)
	m.calls++
	if span.Status().Code() == ptrace.StatusCodeError {
		s.errors++
		m.errors++
	}
	if id, ok := span.Attributes().Get(attributeThread); ok {
		s.threads[thread{instance: instance, id: id.Int()}] = struct{}{}
	}
	if cause := text(span.Attributes(), attributeTruncated); cause != "" {
		s.truncated[cause]++
	}
	took := span.EndTimestamp().AsTime().Sub(span.StartTimestamp().AsTime())
	m.total += took
	m.self += took - s.children[span.SpanID()]
	delete(s.children, span.SpanID())
	if parent := caller(span); !parent.IsEmpty() {
		s.children[parent] += took
	}
}

// caller is the span of the calling method: the parent, or the span of the link to another trace.
// Spans arrive when calls end, so the caller's arrives later.
func caller(span ptrace.Span) pcommon.SpanID {
	if span.ParentSpanID().IsEmpty() && span.Links().Len() > 0 {
		return span.Links().At(0).SpanID()
	}
	return span.ParentSpanID()
}

func (s *summary) method(name string) *method {
	m, ok := s.methods[name]
	if !ok {
		m = &method{name: name}
		s.methods[name] = m
	}
	return m
}

// top returns the n methods with most self time.
func (s *summary) top(n int) []*method {
	all := make([]*method, 0, len(s.methods))
	for _, m := range s.methods {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *method) int {
		return cmp.Or(cmp.Compare(b.self, a.self), cmp.Compare(b.total, a.total), cmp.Compare(a.name, b.name))
	})
	return all[:min(n, len(all))]
}

// text returns a string attribute, or "".
func text(attributes pcommon.Map, key string) string {
	if v, ok := attributes.Get(key); ok && v.Type() == pcommon.ValueTypeStr {
		return v.Str()
	}
	return ""
}
