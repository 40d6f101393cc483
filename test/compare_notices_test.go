// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit/reference"
)

// failures is a testing.TB that notes failures, to test the checks themselves.
type failures struct {
	testing.TB
	texts []string
}

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}

// perfect is the reference as a collector would export it.
func perfect(want *reference.Result) *exported {
	spanID := func(n int64) (id pcommon.SpanID) {
		if n >= 0 {
			binary.BigEndian.PutUint64(id[:], uint64(n)+1)
		}
		return id
	}
	traceID := func(n int64) (id pcommon.TraceID) {
		binary.BigEndian.PutUint64(id[:], uint64(n)+1)
		return id
	}
	const epoch = 1_800_000_000_000_000_000
	e := &exported{}
	for _, w := range want.Spans {
		s := span{
			trace: traceID(w.Trace), id: spanID(w.Sequence), parent: spanID(w.Parent), start: epoch + w.Start, end: epoch + w.End,
			kind: ptrace.SpanKindInternal, name: reference.Display(w.Function), function: reference.Qualified(w.Function), text: w.Function,
			thread: int64(w.Thread), threadName: w.ThreadName, sequence: w.Sequence,
			errorType: w.ErrorType, hasError: w.Unwound, truncated: w.Truncated, isTruncated: w.Truncated != "",
		}
		if w.Unwound {
			s.status = ptrace.StatusCodeError
		}
		for _, x := range w.Exceptions {
			s.exceptions = append(s.exceptions, thrown{epoch + x.Time, x.Type})
		}
		if w.Linked {
			s.parent = pcommon.SpanID{}
			s.links = []link{{traceID(want.Spans[w.Parent].Trace), spanID(w.Parent), "continuation"}}
		}
		e.spans = append(e.spans, s)
	}
	slices.SortFunc(e.spans, func(a, b span) int { return int(a.sequence - b.sequence) })
	return e
}

// The check finds each kind of mistake in one span.
func TestAWrongSpanIsNoticed(t *testing.T) {
	want := reference.Spans(openCapture(t, "shop"), reference.Rules{End: "ended", MaxSpansPerTrace: 100})
	find := func(e *exported, is func(span) bool) *span {
		i := slices.IndexFunc(e.spans, is)
		require.GreaterOrEqual(t, i, 0)
		return &e.spans[i]
	}
	child := func(s span) bool { return !s.parent.IsEmpty() && s.sequence > 50 }
	renamed := func(s span) bool { return strings.HasSuffix(s.threadName, "-draining") }
	unwound := func(s span) bool { return s.hasError }
	linked := func(s span) bool { return len(s.links) == 1 }
	for _, test := range []struct {
		name   string
		change func(*exported)
		want   string
	}{
		{"nothing", func(*exported) {}, ""},
		{"a span less", func(e *exported) { e.spans = e.spans[1:] }, "is missing"},
		{"a span twice", func(e *exported) { e.spans = append(e.spans, e.spans[7]) }, "is there twice"},
		{"a span that was no call", func(e *exported) { find(e, child).sequence = 1 << 40 }, "no call begins there"},
		{"name", func(e *exported) { find(e, child).name = "x" }, "name: expected"},
		{"function", func(e *exported) { find(e, child).function = "x" }, "code.function.name: expected"},
		{"text", func(e *exported) { find(e, child).text = "x" }, "bytefrog.method.signature: expected"},
		{"thread", func(e *exported) { find(e, child).thread++ }, "thread.id: expected"},
		{"thread's name", func(e *exported) { find(e, child).threadName = "x" }, "thread.name: expected"},
		{"another of the thread's names", func(e *exported) { s := find(e, renamed); s.threadName = strings.TrimSuffix(s.threadName, "-draining") }, "thread.name: expected"},
		{"start", func(e *exported) { find(e, child).start++ }, "start: expected"},
		{"end", func(e *exported) { find(e, child).end-- }, "end: expected"},
		{"no length", func(e *exported) { s := find(e, child); s.end = s.start }, "which is not after its start"},
		{"outside the parent", func(e *exported) { find(e, child).end += 1e15 }, "is not inside its parent"},
		{"kind", func(e *exported) { find(e, child).kind = ptrace.SpanKindServer }, "has kind Server"},
		{"status", func(e *exported) { find(e, unwound).status = ptrace.StatusCodeUnset }, "status: expected Error, got Unset"},
		{"error type", func(e *exported) { find(e, unwound).errorType = "" }, "error.type: expected"},
		{"an exception less", func(e *exported) { find(e, unwound).exceptions = nil }, "number of exceptions: expected"},
		{"time of an exception", func(e *exported) { find(e, unwound).exceptions[0].time++ }, "exception: expected"},
		{"truncated", func(e *exported) { s := find(e, child); s.truncated, s.isTruncated = "gap", true }, "callbraid.truncated: expected , got gap"},
		{"no parent", func(e *exported) { find(e, child).parent = pcommon.SpanID{} }, "parent: expected"},
		{"a parent that doesn't exist", func(e *exported) { find(e, child).parent = pcommon.SpanID{1} }, "doesn't exist"},
		{"trace", func(e *exported) { find(e, child).trace = pcommon.TraceID{1} }, "is in another trace"},
		{"a link less", func(e *exported) { find(e, linked).links = nil }, "number of links: expected 1, got 0"},
		{"a link to nowhere", func(e *exported) { find(e, linked).links[0].id = pcommon.SpanID{1} }, "its link leads to 0100000000000000, which doesn't exist"},
		{"a link of another kind", func(e *exported) { find(e, linked).links[0].kind = "trace_root" }, "callbraid.link: expected continuation"},
		{"a parent and a link", func(e *exported) { s := find(e, linked); s.parent = s.links[0].id }, "has a parent: expected false"},
		{"one ID for all traces", func(e *exported) {
			for i := range e.spans {
				e.spans[i].trace = pcommon.TraceID{1}
			}
		}, "has the ID of the one that"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := perfect(want)
			test.change(e)
			var f failures
			checkEqual(&f, want, e)
			if test.want == "" {
				assert.Empty(t, f.texts)
				return
			}
			require.NotEmpty(t, f.texts)
			assert.Contains(t, fmt.Sprint(f.texts), test.want)
		})
	}
}
