// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit/reference"
)

// differences collects mistakes, up to a readable number.
type differences struct {
	lines []string
	more  int
}

func (d *differences) add(format string, args ...any) {
	const most = 12
	if len(d.lines) == most {
		d.more++
		return
	}
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *differences) report(t testing.TB, what string) {
	t.Helper()
	if d.more > 0 {
		d.lines = append(d.lines, fmt.Sprintf("and %d more", d.more))
	}
	if len(d.lines) > 0 {
		t.Errorf("%s:\n  %s", what, strings.Join(d.lines, "\n  "))
	}
}

// checkShape checks the rules of every call stream: IDs exist and are unique. A span that is no
// root has its parent in its trace, and lies inside it. No span ends at or before its start. A link
// leads to an existing span in another trace.
func checkShape(t testing.TB, e *exported) {
	t.Helper()
	var wrong differences
	byID := make(map[pcommon.SpanID]*span, len(e.spans))
	for i := range e.spans {
		s := &e.spans[i]
		if s.id.IsEmpty() || s.trace.IsEmpty() {
			wrong.add("span %d has no ID", s.sequence)
		}
		if other := byID[s.id]; other != nil {
			wrong.add("spans %d and %d have one ID", s.sequence, other.sequence)
		}
		byID[s.id] = s
	}
	for i := range e.spans {
		s := &e.spans[i]
		if s.end <= s.start {
			wrong.add("span %d ends at %d, which is not after its start at %d", s.sequence, s.end, s.start)
		}
		if s.kind != ptrace.SpanKindInternal {
			wrong.add("span %d has kind %v", s.sequence, s.kind)
		}
		if !s.parent.IsEmpty() {
			switch parent := byID[s.parent]; {
			case parent == nil:
				wrong.add("span %d: its parent %v doesn't exist", s.sequence, s.parent)
			case parent.trace != s.trace:
				wrong.add("span %d: its parent %d is in another trace", s.sequence, parent.sequence)
			case s.start < parent.start || s.end > parent.end:
				wrong.add("span %d, %d to %d, is not inside its parent %d, %d to %d",
					s.sequence, s.start, s.end, parent.sequence, parent.start, parent.end)
			}
		}
		for _, l := range s.links {
			switch to := byID[l.id]; {
			case to == nil:
				wrong.add("span %d: its link leads to %v, which doesn't exist", s.sequence, l.id)
			case to.trace != l.trace:
				wrong.add("span %d: its link leads to %d, which is in another trace than it says", s.sequence, to.sequence)
			case to.trace == s.trace:
				wrong.add("span %d: its link leads to %d, which is in its own trace", s.sequence, to.sequence)
			}
		}
	}
	wrong.report(t, "the spans don't fit together")
}

// checkEqual checks that the spans are exactly those of the reference.
func checkEqual(t testing.TB, want *reference.Result, e *exported) {
	t.Helper()
	checkShape(t, e)
	c := newComparison(e)
	for i := range e.spans {
		got := &e.spans[i]
		s := want.Spans[got.sequence]
		if s == nil {
			c.wrong.add("span %d, %s: no call begins there", got.sequence, got.function)
			continue
		}
		c.compare(s, got)
	}
	if len(e.spans) != len(want.Spans) {
		c.wrong.add("expected %d spans, got %d", len(want.Spans), len(e.spans))
	}
	for sequence, s := range want.Spans {
		if c.bySequence[sequence] == nil {
			c.wrong.add("span %d, %s: is missing", sequence, s.Function)
		}
	}
	c.wrong.report(t, "the spans are not those of the reference")
}

// comparison compares spans one by one. The first span decides the values that the reference cannot
// know: the start of the agent, and the ID of a trace.
type comparison struct {
	bySequence map[int64]*span
	byID       map[pcommon.SpanID]*span
	epoch      int64
	traces     map[int64]pcommon.TraceID
	roots      map[pcommon.TraceID]int64
	wrong      differences
}

func newComparison(e *exported) *comparison {
	c := &comparison{
		bySequence: make(map[int64]*span, len(e.spans)), byID: make(map[pcommon.SpanID]*span, len(e.spans)),
		traces: map[int64]pcommon.TraceID{}, roots: map[pcommon.TraceID]int64{},
	}
	for i := range e.spans {
		s := &e.spans[i]
		if other := c.bySequence[s.sequence]; other != nil {
			c.wrong.add("span %d is there twice", s.sequence)
		}
		c.bySequence[s.sequence], c.byID[s.id] = s, s
	}
	return c
}

func (c *comparison) compare(want *reference.Span, got *span) {
	if c.epoch == 0 {
		c.epoch = got.start - want.Start
	}
	equal := func(what string, want, is any) {
		if want != is {
			c.wrong.add("span %d, %s: %s: expected %v, got %v", got.sequence, got.function, what, want, is)
		}
	}
	equal("name", reference.Display(want.Function), got.name)
	equal("code.function.name", reference.Qualified(want.Function), got.function)
	equal("bytefrog.method.signature", want.Function, got.text)
	equal("thread.id", int64(want.Thread), got.thread)
	equal("thread.name", want.ThreadName, got.threadName)
	equal("start", want.Start, got.start-c.epoch)
	equal("end", want.End, got.end-c.epoch)
	equal("callbraid.truncated", want.Truncated, got.truncated)
	equal("is truncated", want.Truncated != "", got.isTruncated)
	equal("error.type", want.ErrorType, got.errorType)
	equal("has error.type", want.Unwound, got.hasError)
	status := ptrace.StatusCodeUnset
	if want.Unwound {
		status = ptrace.StatusCodeError
	}
	equal("status", status, got.status)
	equal("number of exceptions", len(want.Exceptions), len(got.exceptions))
	for i := range min(len(want.Exceptions), len(got.exceptions)) {
		x := got.exceptions[i]
		equal("exception", want.Exceptions[i], reference.Exception{Time: x.time - c.epoch, Type: x.kind})
	}
	c.compareParent(want, got, equal)
	c.compareTrace(want, got)
}

// compareParent finds the parent where it has to be: the parent span ID in the
// same trace, and a link to another.
func (c *comparison) compareParent(want *reference.Span, got *span, equal func(string, any, any)) {
	parent := func(id pcommon.SpanID) int64 {
		if s := c.byID[id]; s != nil {
			return s.sequence
		}
		return -1
	}
	if !want.Linked {
		equal("parent", want.Parent, parent(got.parent))
		equal("number of links", 0, len(got.links))
		return
	}
	equal("has a parent", false, !got.parent.IsEmpty())
	equal("number of links", 1, len(got.links))
	if len(got.links) == 1 {
		equal("linked parent", want.Parent, parent(got.links[0].id))
		equal("callbraid.link", "continuation", got.links[0].kind)
	}
}

// compareTrace checks that all spans of a trace have one trace ID, which no other trace has.
func (c *comparison) compareTrace(want *reference.Span, got *span) {
	if id, ok := c.traces[want.Trace]; ok && id != got.trace {
		c.wrong.add("span %d, %s: is not in trace %v with the others that %d began", got.sequence, got.function, id, want.Trace)
	}
	if root, ok := c.roots[got.trace]; ok && root != want.Trace {
		c.wrong.add("span %d, %s: the trace that %d began has the ID of the one that %d began", got.sequence, got.function, want.Trace, root)
	}
	c.traces[want.Trace], c.roots[got.trace] = got.trace, want.Trace
}
