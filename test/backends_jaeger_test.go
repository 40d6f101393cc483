// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/lttng/ctf/printed"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit/jaeger"
)

// jaegerSpans are all spans that a Jaeger has.
type jaegerSpans struct {
	// byTracer are spans by the name of the scope, which is that of the tracer's receiver.
	byTracer map[string][]ptrace.Span
	// resources are their resources, as attributesOf writes them.
	resources map[string]map[string]bool
	// streams are those of receivers of call events, by service.instance.id.
	streams streams
}

// receiverOf is the name of a receiver's scope.
func receiverOf(name string) string { return "github.com/callbraid/callbraid/receiver/" + name }

// allOf fetches all traces of a Jaeger: as its pages get them, where no trace and no span may have
// a warning, and as OTLP, which must have as many spans. Jaeger 1 accepts spans some time before it shows them:
// allOf waits until it has so many.
func allOf(t *testing.T, j *jaeger.Server, sent float64) (s *jaegerSpans) {
	t.Helper()
	var wrong differences
	testkit.Eventually(t, fmt.Sprintf("Jaeger has %v spans", sent), func() (bool, string) {
		s = &jaegerSpans{byTracer: map[string][]ptrace.Span{}, resources: map[string]map[string]bool{}, streams: streams{}}
		wrong = differences{}
		all := 0
		for _, service := range j.Services(t) {
			for _, trace := range j.Search(t, service, jaeger.MaxTraces) {
				for _, warning := range trace.AllWarnings() {
					wrong.add("trace %s of %s: %s", trace.ID, service, warning)
				}
				of := s.add(t, j.Trace(t, trace.ID))
				if of != len(trace.Spans) {
					wrong.add("trace %s of %s: %d spans, and %d as OTLP", trace.ID, service, len(trace.Spans), of)
				}
				all += of
			}
		}
		return float64(all) >= sent, fmt.Sprint(all)
	})
	wrong.report(t, "Jaeger warns")
	return s
}

// add adds a trace, and returns the number of its spans.
func (s *jaegerSpans) add(t *testing.T, trace ptrace.Traces) int {
	t.Helper()
	for _, resource := range trace.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			name := scope.Scope().Name()
			if s.resources[name] == nil {
				s.resources[name] = map[string]bool{}
			}
			s.resources[name][attributesOf(resource.Resource().Attributes())] = true
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

// check compares each tracer's spans with the expected ones.
func (s *jaegerSpans) check(t *testing.T, lives playedMethodsOf) {
	require.Len(t, s.byTracer, 5, "tracers with spans")
	t.Run("attributes", func(t *testing.T) { s.checkLooks(t, lives) })
	t.Run("bytefrog", s.checkRuns)
	t.Run("lttng", s.checkSessions)
	t.Run("rbkit", s.checkCollections)
	t.Run("greys", func(t *testing.T) { s.checkTrees(t, "greys", lives.greys) })
	t.Run("arthas", func(t *testing.T) { s.checkTrees(t, "arthas", lives.arthas) })
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
	s.checkLines(t)
}

// checkLines checks that the line of each call is one on which its method ended in a capture.
func (s *jaegerSpans) checkLines(t *testing.T) {
	left := map[string]map[int64]bool{}
	for name := range playedRuns {
		for _, e := range openCapture(t, name).Events {
			if bytefrog.MessageType(e.Type) != bytefrog.TypeMethodExit {
				continue
			}
			if left[e.Method] == nil {
				left[e.Method] = map[int64]bool{}
			}
			left[e.Method][int64(e.Line)] = true
		}
	}
	var wrong differences
	for _, span := range s.byTracer[receiverOf("bytefrogreceiver")] {
		attributes := span.Attributes().AsRaw()
		method, _ := attributes["bytefrog.method.signature"].(string)
		if line, ok := attributes["code.line.number"].(int64); ok && !left[method][line] {
			wrong.add("%s was never left on line %d", method, line)
		}
	}
	wrong.report(t, "lines")
}

// checkSessions compares the calls of LTTng's sessions with the text of the reference reader.
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
	events, err := printed.Events(lttngdata.CaptureText(t, "jul1", "babeltrace1-offline.txt"))
	require.NoError(t, err)
	assert.Equal(t, javaCalls(t, events), callsOf(java))
	events, err = printed.Events(lttngdata.CaptureText(t, "cygok", "babeltrace1-offline.txt"))
	require.NoError(t, err)
	assert.Equal(t, cCalls(t, events), callsOf(c))
	for _, e := range s.streams {
		if e.scopes[receiverOf("lttnglivereceiver")] > 0 {
			checkShape(t, e)
		}
	}
}

// cCalls are the calls of functions of a C program, in the format of callsOf: each thread's exits
// belong to its last entry. Without the program, functions have the names of their places in it.
func cCalls(t *testing.T, events []printed.Event) (calls []string) {
	t.Helper()
	number := func(text string) uint64 {
		n, err := strconv.ParseUint(text, 0, 64)
		require.NoError(t, err)
		return n
	}
	var base uint64
	open := map[string][]printed.Event{}
	for _, e := range events {
		thread := e.Field("vtid")
		switch _, what, _ := strings.Cut(e.Name, ":"); {
		case what == "bin_info" && strings.HasSuffix(e.Field("path"), "/cyg"):
			base = number(e.Field("baddr"))
		case what == "func_entry":
			open[thread] = append(open[thread], e)
		case what == "func_exit":
			stack := open[thread]
			called, caller := stack[len(stack)-1], "nobody"
			if stack = stack[:len(stack)-1]; len(stack) > 0 {
				caller = stack[len(stack)-1].Time
			}
			open[thread] = stack
			calls = append(calls, fmt.Sprintf("%s to %s cyg+%#x, called by %s, on %s, failed: false", called.Time, e.Time, number(called.Field("addr"))-base, caller, thread))
		}
	}
	slices.Sort(calls)
	return calls
}

// checkCollections compares garbage collections with the capture: the time of each, that of its
// marking, and their nesting.
func (s *jaegerSpans) checkCollections(t *testing.T) {
	milliseconds := map[string][]float64{}
	spans := s.byTracer[receiverOf("rbkitreceiver")]
	slices.SortFunc(spans, byStart)
	collections, parts := map[pcommon.TraceID]ptrace.Span{}, map[pcommon.TraceID][]string{}
	for _, span := range spans {
		if span.Name() == "GC cycle" {
			assert.True(t, span.ParentSpanID().IsEmpty())
			collections[span.TraceID()] = span
		}
	}
	require.Len(t, collections, len(playedCollections), "each is a trace")
	for _, span := range spans {
		gc, ok := collections[span.TraceID()]
		require.True(t, ok, "%s is in the trace of a collection", span.Name())
		if span != gc {
			assert.Equal(t, gc.SpanID(), span.ParentSpanID())
			assert.GreaterOrEqual(t, span.StartTimestamp(), gc.StartTimestamp())
			assert.LessOrEqual(t, span.EndTimestamp(), gc.EndTimestamp())
			parts[span.TraceID()] = append(parts[span.TraceID()], span.Name())
		}
		took := time.Duration(span.EndTimestamp() - span.StartTimestamp())
		milliseconds[span.Name()] = append(milliseconds[span.Name()], float64(took.Milliseconds()))
	}
	for _, of := range parts {
		assert.ElementsMatch(t, []string{"mark phase", "sweep phase"}, of)
	}
	assert.Len(t, milliseconds["sweep phase"], len(playedCollections))
	delete(milliseconds, "sweep phase")
	assert.Equal(t, map[string][]float64{"GC cycle": playedCollections, "mark phase": playedMarks}, milliseconds)
}

// limitOfTrees is how many call trees config/jaeger-prometheus.yaml asks for.
const limitOfTrees = 100

// checkTrees compares call trees with the limit of them, and with the calls of the server. Some
// more may be on their way when the limit is reached, because each method has a command.
func (s *jaegerSpans) checkTrees(t *testing.T, tracer string, lives []greysLife) {
	require.Len(t, lives, 1)
	spans := s.byTracer[receiverOf(tracer+"receiver")]
	slices.SortFunc(spans, byStart)
	assert.EqualValues(t, limitOfTrees, checkGreysSpans(t, spans))
	assert.GreaterOrEqual(t, lives[0].Trees, int64(limitOfTrees))
	failed := 0
	for _, span := range spans {
		name, _ := span.Attributes().Get("code.function.name")
		assert.Contains(t, lives[0].Made, name.Str())
		if span.Status().Code() == ptrace.StatusCodeError {
			failed++
		}
	}
	assert.Positive(t, failed)
}

func byStart(a, b ptrace.Span) int { return cmp.Compare(a.StartTimestamp(), b.StartTimestamp()) }

// fetchSmall fetches a trace of a run, which must have exactly the calls of the reference, and no
// more than a viewer can show.
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
