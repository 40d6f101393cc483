// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/ctf/printed"
	"github.com/callbraid/callbraid/test/reference"
	"github.com/callbraid/callbraid/test/testbed/jaeger"
)

// jaegerSpans are all spans that a Jaeger has.
type jaegerSpans struct {
	// byTracer are spans by the name of the scope, which is that of the tracer's receiver.
	byTracer map[string][]ptrace.Span
	// streams are those of receivers of call events, by service.instance.id.
	streams streams
}

// receiverOf is the name of the scope of what a receiver gives.
func receiverOf(name string) string { return "github.com/callbraid/callbraid/receiver/" + name }

// allOf asks a Jaeger for all that it has: what its pages are given, in which no trace and
// no span may have a warning, and each trace as OTLP, which has to have as many spans.
func allOf(t *testing.T, j *jaeger.Server) *jaegerSpans {
	t.Helper()
	s := &jaegerSpans{byTracer: map[string][]ptrace.Span{}, streams: streams{}}
	var wrong differences
	for _, service := range j.Services(t) {
		for _, trace := range j.Search(t, service, jaeger.MaxTraces) {
			for _, warning := range trace.AllWarnings() {
				wrong.add("trace %s of %s: %s", trace.ID, service, warning)
			}
			if of := s.add(t, j.Trace(t, trace.ID)); of != len(trace.Spans) {
				wrong.add("trace %s of %s: %d spans, and %d as OTLP", trace.ID, service, len(trace.Spans), of)
			}
		}
	}
	wrong.report(t, "Jaeger warns")
	return s
}

// add takes a trace, and gives the number of its spans.
func (s *jaegerSpans) add(t *testing.T, trace ptrace.Traces) int {
	t.Helper()
	for _, resource := range trace.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			name := scope.Scope().Name()
			s.byTracer[name] = slices.AppendSeq(s.byTracer[name], func(yield func(ptrace.Span) bool) {
				for _, span := range scope.Spans().All() {
					if !yield(span) {
						return
					}
				}
			})
		}
	}
	s.streams.add(t, trace)
	return trace.SpanCount()
}

// check compares what each tracer's spans are with what they have to be.
func (s *jaegerSpans) check(t *testing.T, lives []greysLife) {
	require.Len(t, s.byTracer, 4, "tracers that give spans")
	t.Run("bytefrog", s.checkRuns)
	t.Run("lttng", s.checkSessions)
	t.Run("rbkit", s.checkCollections)
	t.Run("greys", func(t *testing.T) { s.checkTrees(t, lives) })
}

// checkRuns compares the runs of Bytefrog with the reference: names, times, attributes,
// errors, exceptions, parents, links, and which trace each span is in.
func (s *jaegerSpans) checkRuns(t *testing.T) {
	bySize := map[int]*exported{}
	for _, e := range s.streams {
		if e.scopes[receiverOf("bytefrogreceiver")] > 0 {
			bySize[len(e.spans)] = e
		}
	}
	require.Len(t, bySize, len(playedRuns))
	for name := range playedRuns {
		want := reference.Spans(openCapture(t, name), defaultRules)
		got := bySize[len(want.Spans)]
		require.NotNil(t, got, "%s has %d spans", name, len(want.Spans))
		assert.Equal(t, "unknown_service:java", got.resource["service.name"])
		checkEqual(t, want, got)
		checkTraces(t, got, defaultRules.MaxSpansPerTrace)
	}
}

// checkSessions compares the calls of LTTng's sessions with what the reference reader prints.
func (s *jaegerSpans) checkSessions(t *testing.T) {
	var java, c []ptrace.Span
	for _, span := range s.byTracer[receiverOf("lttnglivereceiver")] {
		function, _ := span.Attributes().Get("code.function.name")
		if strings.HasPrefix(function.Str(), "com.example.") {
			java = append(java, span)
		} else {
			c = append(c, span)
		}
	}
	events, err := printed.Events(fromCapture(t, "jul1", "babeltrace1-offline.txt"))
	require.NoError(t, err)
	assert.Equal(t, javaCalls(t, events), callsOfJava(java))
	assert.Len(t, c, 109)
	for _, e := range s.streams {
		if e.scopes[receiverOf("lttnglivereceiver")] > 0 {
			checkShape(t, e)
		}
	}
}

// checkCollections compares garbage collections, and how long each took and marked, with what
// the capture says of them.
func (s *jaegerSpans) checkCollections(t *testing.T) {
	milliseconds := map[string][]float64{}
	spans := s.byTracer[receiverOf("rbkitreceiver")]
	slices.SortFunc(spans, byStart)
	for _, span := range spans {
		took := time.Duration(span.EndTimestamp() - span.StartTimestamp())
		milliseconds[span.Name()] = append(milliseconds[span.Name()], float64(took.Milliseconds()))
	}
	assert.Len(t, milliseconds["sweep"], len(playedCollections))
	delete(milliseconds, "sweep")
	assert.Equal(t, map[string][]float64{"GC": playedCollections, "mark": playedMarks}, milliseconds)
}

// checkTrees compares call trees with how many the server has told.
func (s *jaegerSpans) checkTrees(t *testing.T, lives []greysLife) {
	require.Len(t, lives, 1)
	spans := s.byTracer[receiverOf("greysreceiver")]
	slices.SortFunc(spans, byStart)
	assert.EqualValues(t, lives[0].Trees, checkGreysSpans(t, spans))
	failed := 0
	for _, span := range spans {
		name, _ := span.Attributes().Get("code.function.name")
		assert.Contains(t, lives[0].Told, name.Str())
		if span.Status().Code() == ptrace.StatusCodeError {
			failed++
		}
	}
	assert.Positive(t, failed)
}

func byStart(a, b ptrace.Span) int { return cmp.Compare(a.StartTimestamp(), b.StartTimestamp()) }

// fetchSmall fetches a trace of a run, which has to have exactly the calls that the reference
// says, and no more than a viewer can show.
func fetchSmall(t *testing.T, j *jaeger.Server, id string, run *reference.Result) *exported {
	t.Helper()
	got := streams{}
	got.add(t, j.Trace(t, id))
	e := got.only(t)
	assert.LessOrEqual(t, len(e.spans), defaultRules.MaxSpansPerTrace, "trace %s", id)
	first := run.Spans[e.spans[0].sequence]
	require.NotNil(t, first)
	var wrong differences
	missing := map[int64]bool{}
	for sequence, s := range run.Spans {
		if s.Trace == first.Trace {
			missing[sequence] = true
		}
	}
	for _, s := range e.spans {
		if !missing[s.sequence] {
			wrong.add("span %d, %s, belongs to another trace, or is there twice", s.sequence, s.function)
			continue
		}
		delete(missing, s.sequence)
		if links := run.Spans[s.sequence].Linked; links != (len(s.links) == 1) {
			wrong.add("span %d, %s: has a link: expected %t, got %v", s.sequence, s.function, links, s.links)
		}
	}
	if len(missing) > 0 {
		wrong.add("%d spans are missing", len(missing))
	}
	wrong.report(t, "trace "+id)
	return e
}

// linked is a span that has a link to another trace; nil: none has.
func linked(e *exported) *span {
	i := slices.IndexFunc(e.spans, func(s span) bool { return len(s.links) > 0 })
	if i < 0 {
		return nil
	}
	return &e.spans[i]
}
