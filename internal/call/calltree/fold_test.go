// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// script folds spans that are written as "name ID < parent took 5": a call of trace 1 that
// has the ID, a letter. The name can be "service/name", "name!" for an error and "name~"
// where the end was not seen. A parent can be of another trace, "2b", or, instead of "<", "remote".
func script(t *testing.T, s *Store, lines ...string) {
	t.Helper()
	for _, line := range lines {
		words := strings.Fields(line)
		service, name, ok := strings.Cut(words[0], "/")
		if !ok {
			service, name = "s", words[0]
		}
		span := Span{Function: strings.Trim(name, "!~"), Start: 1000, End: 1000}
		span.Error, span.Truncated = strings.Contains(name, "!"), strings.Contains(name, "~")
		span.Trace, span.ID = scriptID(words[1])
		for words = words[2:]; len(words) > 0; words = words[2:] {
			switch words[0] {
			case "remote":
				span.Remote = true
				fallthrough
			case "<":
				span.ParentTrace, span.Parent = scriptID(words[1])
			case "took":
				took, err := strconv.ParseUint(words[1], 10, 64)
				require.NoError(t, err)
				span.End += took
			}
		}
		s.Fold(Origin{Service: service}, []Span{span})
		check(t, s)
	}
}

// scriptID is "b", or "2b" of trace 2; "-" is none.
func scriptID(text string) (trace TraceID, id SpanID) {
	trace[0] = 1
	if text[0] >= '0' && text[0] <= '9' {
		trace[0], text = text[0]-'0', text[1:]
	}
	if text != "-" {
		id[0] = text[0]
	}
	return trace, id
}

// treeOf returns a tree as text.
func treeOf(t *testing.T, s *Store, service string) string {
	t.Helper()
	snapshot, ok := s.Snapshot(service, Calls)
	if !ok {
		return "none"
	}
	return strings.TrimSuffix(strings.ReplaceAll(lines(paths(t, snapshot.Nodes)), "\n", "; "), "; ")
}

// However often a path is called: callees that arrive together with their callers need no extra
// nodes, in any order.
func TestCalleesThatArriveWithTheirCallersNeedNoExtraNodes(t *testing.T) {
	const calls = 100
	ends := make([]Span, 0, 2*calls)
	for i := range calls {
		trace, caller := traceID(i), spanID(1)
		ends = append(ends,
			Span{Trace: trace, ID: spanID(2), ParentTrace: trace, Parent: caller, Function: "callee"},
			Span{Trace: trace, ID: caller, Function: "caller"})
	}
	starts := slices.Clone(ends)
	slices.Reverse(starts)
	for _, spans := range [][]Span{ends, starts} {
		s := NewStore(settings())
		s.Fold(Origin{Service: "s"}, spans)
		check(t, s)
		require.Equal(t, "caller: 100 calls, 0 errors, total 0, self 0; caller/callee: 100 calls, 0 errors, total 0, self 0", treeOf(t, s, "s"))
		require.Len(t, s.services.tree("s", Calls).nodes, 3, "the top, and one of each path")
	}
}

func TestSpansBecomeATree(t *testing.T) {
	for _, test := range []struct {
		name   string
		script []string
		want   string
	}{
		{"a call", []string{"f a took 5"}, "f: 1 calls, 0 errors, total 5, self 5"},
		{"a call that failed", []string{"f! a took 5"}, "f: 1 calls, 1 errors, total 5, self 5"},
		{"a call inside a call, which arrives first", []string{"g b < a took 2", "f a took 5"},
			"f: 1 calls, 0 errors, total 5, self 3; f/g: 1 calls, 0 errors, total 2, self 2"},
		{"a call inside a call, which arrives after it", []string{"f a took 5", "g b < a took 2"},
			"f: 1 calls, 0 errors, total 5, self 3; f/g: 1 calls, 0 errors, total 2, self 2"},
		{"calls that ran at the same time", []string{"g b < a took 4", "g c < a took 4", "f a took 5"},
			"f: 1 calls, 0 errors, total 5, self 0; f/g: 2 calls, 0 errors, total 8, self 8"},
		{"calls that ran at the same time and arrive later", []string{"f a took 5", "g b < a took 4", "g c < a took 4"},
			"f: 1 calls, 0 errors, total 5, self 0; f/g: 2 calls, 0 errors, total 8, self 8"},
		{"a call whose end was not seen is another path", []string{"f a took 1", "f~ b took 2"},
			"f: 1 calls, 0 errors, total 1, self 1; f truncated: 1 calls, 0 errors, total 2, self 2"},
		{"a caller that has not arrived", []string{"g b < a took 2"},
			"(parent not seen)/g: 1 calls, 0 errors, total 2, self 2"},
		{"the same call twice", []string{"f a took 5", "f a took 5"}, "f: 1 calls, 0 errors, total 5, self 5"},
		{"calls without ID", []string{"f - took 5", "f - took 5"}, "f: 2 calls, 0 errors, total 10, self 10"},
		{"calls without ID that have a caller", []string{"g - < a took 1", "f a took 5", "g - < a took 1"},
			"f: 1 calls, 0 errors, total 5, self 3; f/g: 2 calls, 0 errors, total 2, self 2"},
		{"a caller in another trace", []string{"g 2b < 1a took 2", "f 1a took 5"},
			"f: 1 calls, 0 errors, total 5, self 3; f/g: 1 calls, 0 errors, total 2, self 2"},
		{"a caller in another service, which arrives first", []string{"other/f a took 5", "g b < a took 2"},
			"g: 1 calls, 0 errors, total 2, self 2"},
		{"a caller in another service, which arrives after it", []string{"g b < a took 2", "other/f a took 5"},
			"g: 1 calls, 0 errors, total 2, self 2"},
		{"a caller that is marked as in another service", []string{"g b remote a took 2"},
			"g: 1 calls, 0 errors, total 2, self 2"},
		{"a span of one ID in two services, with the callee last", []string{"client/c a took 90", "f a took 80", "g b < a took 60"},
			"f: 1 calls, 0 errors, total 80, self 20; f/g: 1 calls, 0 errors, total 60, self 60"},
		{"a span of one ID in two services, with the callee between them", []string{"client/c a took 90", "g b < a took 60", "f a took 80"},
			"f: 1 calls, 0 errors, total 80, self 20; f/g: 1 calls, 0 errors, total 60, self 60"},
		{"a span of one ID in two services, with the callee first", []string{"g b < a took 60", "client/c a took 90", "f a took 80"},
			"f: 1 calls, 0 errors, total 80, self 20; f/g: 1 calls, 0 errors, total 60, self 60"},
		{"a service that calls itself with one ID, server first", []string{"server a remote p took 80", "client a took 100", "g b < a took 60"},
			"client: 1 calls, 0 errors, total 100, self 100; server: 1 calls, 0 errors, total 80, self 20; server/g: 1 calls, 0 errors, total 60, self 60"},
		{"a service that calls itself with one ID, client first", []string{"client a took 100", "server a remote p took 80", "g b < a took 60"},
			"client: 1 calls, 0 errors, total 100, self 100; server: 1 calls, 0 errors, total 80, self 20; server/g: 1 calls, 0 errors, total 60, self 60"},
		{"a service that calls itself with one ID, callees first", []string{"g b < a took 60", "server a remote p took 80", "client a took 100"},
			"client: 1 calls, 0 errors, total 100, self 100; server: 1 calls, 0 errors, total 80, self 20; server/g: 1 calls, 0 errors, total 60, self 60"},
		{"a service that calls itself with one ID, the server between two callees",
			[]string{"client a took 100", "g b < a took 50", "server a remote p took 80", "g c < a took 10"},
			"client: 1 calls, 0 errors, total 100, self 50; client/g: 1 calls, 0 errors, total 50, self 50; " +
				"server: 1 calls, 0 errors, total 80, self 70; server/g: 1 calls, 0 errors, total 10, self 10"},
		{"both sides of a call twice", []string{"client a took 100", "server a remote p took 80", "client a took 100", "server a remote p took 80"},
			"client: 1 calls, 0 errors, total 100, self 100; server: 1 calls, 0 errors, total 80, self 80"},
		{"calls of two services wait for one of a third", []string{"g b < a took 2", "other/g c < a took 2", "third/f a took 9"},
			"g: 1 calls, 0 errors, total 2, self 2"},
		{"a call that calls itself", []string{"f a < a took 5"}, "(parent not seen)/f: 1 calls, 0 errors, total 5, self 5"},
		{"calls that call each other", []string{"f a < b took 5", "g b < a took 4"},
			"(parent not seen)/g: 1 calls, 0 errors, total 4, self 0; (parent not seen)/g/f: 1 calls, 0 errors, total 5, self 5"},
		{"three calls that call each other", []string{"f a < b took 5", "h c < a took 1", "g b < c took 4"},
			"(parent not seen)/g: 1 calls, 0 errors, total 4, self 0; (parent not seen)/g/f: 1 calls, 0 errors, total 5, self 4; " +
				"(parent not seen)/g/f/h: 1 calls, 0 errors, total 1, self 1"},
		{"paths that meet", []string{"h c < b took 1", "g b < a took 2", "h e < d took 1", "g d < a took 2", "f a took 5"},
			"f: 1 calls, 0 errors, total 5, self 1; f/g: 2 calls, 0 errors, total 4, self 2; f/g/h: 2 calls, 0 errors, total 2, self 2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := NewStore(settings())
			script(t, s, test.script...)
			assert.Equal(t, test.want, treeOf(t, s, "s"))
		})
	}
}

func TestValuesBeyondTheRangeAreItsLargest(t *testing.T) {
	for _, test := range []struct{ a, b, want int64 }{
		{1, 2, 3}, {math.MaxInt64, 1, math.MaxInt64}, {math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{math.MinInt64, -1, math.MinInt64}, {math.MinInt64, math.MinInt64, math.MinInt64},
		{math.MinInt64, math.MaxInt64, -1}, {math.MinInt64, 0, math.MinInt64}, {-1, -2, -3},
	} {
		assert.Equal(t, test.want, plus(test.a, test.b), "%d + %d", test.a, test.b)
	}
}

func TestImpossibleTimesAreZero(t *testing.T) {
	s := NewStore(settings())
	s.Fold(Origin{Service: "s"}, []Span{
		{Function: "backwards", Start: 10, End: 5},
		{Function: "no start", End: 5},
		{Function: "forever", Start: 1, End: 1<<64 - 1},
		{Function: "forever", Start: 1, End: 1<<64 - 1},
	})
	assert.Equal(t, "backwards: 1 calls, 0 errors, total 0, self 0; "+
		"forever: 2 calls, 0 errors, total 9223372036854775807, self 9223372036854775807; "+
		"no start: 1 calls, 0 errors, total 0, self 0", treeOf(t, s, "s"))
}

// clock is a clock that a test sets.
type clock struct{ now time.Time }

func newClock(s *Settings) *clock {
	c := &clock{now: time.Unix(1_700_000_000, 0)}
	s.Now = func() time.Time { return c.now }
	return c
}

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

func TestWaitingCallersAreGivenUpAfterPendingTimeout(t *testing.T) {
	set := settings()
	c := newClock(&set)
	s := NewStore(set)
	script(t, s, "g b < a took 2")
	c.pass(59 * time.Minute)
	script(t, s, "g c < a took 2") // its time of waiting starts again
	c.pass(59 * time.Minute)
	script(t, s, "x x took 1")
	assert.Equal(t, 1, s.Usage().Waiting)
	c.pass(2 * time.Minute)
	script(t, s, "y y took 1")
	assert.Zero(t, s.Usage().Waiting)
	assert.Equal(t, ParentsNotSeen{Timeout: 1}, s.Counters().ParentsNotSeen)
	// The caller arrives too late: its callees stay without it.
	script(t, s, "f a took 5")
	assert.Equal(t, "(parent not seen)/g: 2 calls, 0 errors, total 4, self 4; f: 1 calls, 0 errors, total 5, self 5; "+
		"x: 1 calls, 0 errors, total 1, self 1; y: 1 calls, 0 errors, total 1, self 1", treeOf(t, s, "s"))
	// A callee that arrives from now on is below it.
	script(t, s, "h d < a took 1")
	assert.Contains(t, treeOf(t, s, "s"), "f/h: 1 calls")
	c.pass(2 * time.Hour)
	s.Services()
	assert.Zero(t, s.Usage().Remembered)
}

// The callees of a call in another service are at the top, also after the call is forgotten, and
// count as no missing parent.
func TestACallInAnotherServiceIsNotMissed(t *testing.T) {
	forgotten := map[string]func(*Store, *clock){
		"because the time was over": func(s *Store, c *clock) { c.pass(2 * time.Hour); s.Services() },
		"because there was no room": func(s *Store, c *clock) {
			c.pass(time.Second)
			for i := range LeastPending {
				s.Fold(Origin{Service: "s"}, []Span{{Trace: traceID(7), ID: spanID(i), Function: "f", Start: 1, End: 2}})
			}
		},
	}
	for name, forget := range forgotten {
		set := settings()
		set.MaxPending = LeastPending
		c := newClock(&set)
		s := NewStore(set)
		script(t, s, "h e < a took 1", "other/c a took 5", "g b < a took 2")
		assert.Equal(t, 4, s.Usage().Remembered, name) // and the callers of g and h
		forget(s, c)
		check(t, s)
		text := treeOf(t, s, "s")
		assert.Contains(t, text, "g: 1 calls, 0 errors, total 2, self 2", name)
		assert.Contains(t, text, "h: 1 calls, 0 errors, total 1, self 1", name)
		assert.NotContains(t, text, MissingParent.String(), name)
		assert.Zero(t, s.Counters().ParentsNotSeen, name)
	}
}

func TestTheOldestCallsAreForgottenFirstAndThoseThatWaitLast(t *testing.T) {
	set := settings()
	set.MaxPending = 4
	s := NewStore(set)
	script(t, s, "main/g b < a took 1", "f c took 1", "f d took 1", "f e took 1", "f f took 1")
	assert.Equal(t, Usage{Services: 2, Nodes: 3, Waiting: 1, Remembered: 2, NameBytes: s.Usage().NameBytes, Kept: 5}, s.Usage())
	assert.EqualValues(t, 3, s.Counters().Forgotten)
	script(t, s, "main/main a took 5")
	assert.Equal(t, "main: 1 calls, 0 errors, total 5, self 4; main/g: 1 calls, 0 errors, total 1, self 1", treeOf(t, s, "main"))
}

func TestTheNumberOfServicesIsBounded(t *testing.T) {
	set := settings()
	set.MaxServices = 2
	s := NewStore(set)
	script(t, s, "one/f a took 1", "two/f b took 1", "three/f c took 1", "four/f d took 1", "two/f e took 1")
	var names []string
	for _, service := range s.Services() {
		names = append(names, service.Name)
	}
	assert.Equal(t, []string{OtherServices, "one", "two"}, names)
	assert.Equal(t, "f: 2 calls, 0 errors, total 2, self 2", treeOf(t, s, OtherServices))
	assert.EqualValues(t, 2, s.Counters().OtherServices)
	s.FoldSamples(Origin{Service: "five"}, Kind{"cpu", "ns"}, Sample{Count: 1, Value: 1})
	assert.EqualValues(t, 3, s.Counters().OtherServices)
}

func TestASilentServiceIsReplaced(t *testing.T) {
	set := settings()
	set.MaxServices = 2
	c := newClock(&set)
	s := NewStore(set)
	script(t, s, "old/f a took 1", "two/g b < x took 1")
	s.FoldSamples(Origin{Service: "old"}, Kind{"cpu", "ns"}, Sample{Frames: []Frame{{Function: "f"}}, Count: 1, Value: 1})
	names := func() (names []string) {
		for _, service := range s.Services() {
			names = append(names, service.Name)
		}
		return names
	}
	c.pass(40 * time.Minute)
	script(t, s, "two/g c < x took 1", "three/f d took 1")
	assert.Equal(t, []string{OtherServices, "old", "two"}, names(), "nothing is silent for long")
	c.pass(40 * time.Minute)
	script(t, s, "three/f e took 1")
	assert.Equal(t, []string{OtherServices, "two"}, names(), "one of two places is that of the others")
	c.pass(40 * time.Minute)
	script(t, s, "three/f f took 1")
	assert.Equal(t, []string{OtherServices, "three"}, names())
	assert.EqualValues(t, 2, s.Counters().SilentServices)
	assert.Equal(t, "f: 1 calls, 0 errors, total 1, self 1", treeOf(t, s, "three"))
}

func TestASpanThatIsRetriedForHoursIsCountedOnce(t *testing.T) {
	set := settings()
	c := newClock(&set)
	s := NewStore(set)
	for range 6 {
		script(t, s, "f a took 5")
		c.pass(50 * time.Minute)
	}
	assert.Equal(t, "f: 1 calls, 0 errors, total 5, self 5", treeOf(t, s, "s"))
	assert.EqualValues(t, 5, s.Counters().Duplicates)
}

func TestNamesAreCut(t *testing.T) {
	set := settings()
	set.MaxNameBytes = 16
	s := NewStore(set)
	s.Fold(Origin{Service: strings.Repeat("s", 100)}, []Span{
		{Function: strings.Repeat("f", 17), File: strings.Repeat("d", 17), Line: 3},
		{Function: strings.Repeat("é", 10)},
		{Function: strings.Repeat("\xff", 20)},
		{Function: "é" + strings.Repeat("x", 13) + "é"},
		{Function: strings.Repeat("\x80", 20)},
	})
	check(t, s)
	snapshot, ok := s.Snapshot(strings.Repeat("s", 16), Calls)
	require.True(t, ok)
	var names []string
	for _, n := range snapshot.Nodes {
		names = append(names, n.Function)
	}
	assert.ElementsMatch(t, []string{
		strings.Repeat("f", 16), strings.Repeat("é", 8), strings.Repeat("\xff", 16), "é" + strings.Repeat("x", 13), strings.Repeat("\x80", 16),
	}, names)
	assert.Contains(t, snapshot.Nodes, Node{
		Parent: -1, Function: strings.Repeat("f", 16), File: strings.Repeat("d", 16), Line: 3, Calls: 1,
	})
}

func TestThePlaceOfAFunctionIsThatOfItsFirstCall(t *testing.T) {
	s := NewStore(settings())
	s.Fold(Origin{Service: "s"}, []Span{{Function: "f"}, {Function: "f", Line: 7}, {Function: "f", File: "a.go", Line: 8}, {Function: "f", File: "b.go"}})
	snapshot, _ := s.Snapshot("s", Calls)
	assert.Equal(t, []Node{{Parent: -1, Function: "f", File: "a.go", Line: 7, Calls: 4}}, snapshot.Nodes)
}

func TestServicesDescribesAllServices(t *testing.T) {
	set := settings()
	c := newClock(&set)
	begin := c.now
	s := NewStore(set)
	c.pass(20 * time.Second)
	first := c.now
	for range 5 {
		c.pass(time.Second)
		s.Fold(Origin{Service: "s", Instance: "1"}, []Span{
			{Function: "f", HasThread: true, Thread: 1}, {Function: "f", HasThread: true, Thread: 2, Error: true}, {Function: "f"},
		})
		s.Fold(Origin{Service: "s", Instance: "2"}, []Span{{Function: "f", HasThread: true, Thread: 1}})
	}
	last := c.now
	s.FoldSamples(Origin{Service: "r"}, Kind{"samples", "count"}, Sample{Count: 1, Value: 1})
	s.FoldSamples(Origin{Service: "s"}, Kind{"samples", "count"}, Sample{Count: 1, Value: 1})
	s.FoldSamples(Origin{Service: "s"}, Kind{"alloc", "bytes"}, Sample{Count: 1, Value: 1})
	c.pass(time.Second)
	assert.Equal(t, []Service{
		{Name: "r", From: last, LastSeen: last, Kinds: []Kind{{"samples", "count"}}},
		{
			Name: "s", Threads: 3, Calls: 20, Errors: 5, From: first.Add(time.Second), LastSeen: last, Rate: 2,
			Kinds: []Kind{Calls, {"alloc", "bytes"}, {"samples", "count"}},
		},
	}, s.Services())
	// Spans of a second that is not over are not counted yet.
	s.Fold(Origin{Service: "s"}, make([]Span, 100))
	assert.EqualValues(t, 2, s.Services()[1].Rate)
	c.pass(time.Second)
	assert.EqualValues(t, 12, s.Services()[1].Rate)
	c.pass(time.Hour)
	assert.Zero(t, s.Services()[1].Rate)
	snapshot, _ := s.Snapshot("s", Calls)
	assert.Equal(t, first.Add(time.Second), snapshot.From)
	assert.Equal(t, c.now, snapshot.To)
	assert.NotEqual(t, begin, snapshot.From)
}

// A thread is identified by its instance and ID. It has its latest name.
func TestAThreadIsIdentifiedInItsInstance(t *testing.T) {
	s := NewStore(settings())
	trace := traceID(1)
	for i, span := range []struct {
		instance, name string
		thread         int64
	}{{"pod-1", "main", 1}, {"pod-1", "worker", 2}, {"pod-2", "other", 1}, {"pod-1", "", 1}, {"pod-1", "", 2}, {"pod-2", "", 1}} {
		s.Fold(Origin{Service: "s", Instance: span.instance}, []Span{
			{Trace: trace, ID: spanID(i), Function: "f", Start: uint64(i), HasThread: true, Thread: span.thread, ThreadName: span.name},
		})
	}
	var names []string
	spans, _ := s.Trace(trace)
	for _, span := range spans {
		names = append(names, span.ThreadName)
	}
	assert.Equal(t, []string{"main", "worker", "other", "main", "worker", "other"}, names)
	assert.Equal(t, 3, s.Services()[0].Threads)
	for range 2 {
		s.SeeThreads(Origin{Service: "s", Instance: "pod-2"}, Thread{ID: 2}, Thread{ID: 1})
		s.SeeThreads(Origin{Service: "s", Instance: "pod-3"}, Thread{ID: 1})
		s.SeeThreads(Origin{Service: "s", Instance: "pod-4"}, Thread{ID: 1})
	}
	assert.Equal(t, 6, s.Services()[0].Threads)
	assert.Len(t, s.services.byName["s"].threads.known, 7, "and one that is not known")
}

func TestTheNumberOfThreadsIsBounded(t *testing.T) {
	set := settings()
	set.MaxKeptSpans = 0
	s := NewStore(set)
	for i := range maxAllThreads/maxThreads + 1 {
		for n := range maxThreads + 1 {
			s.Fold(Origin{Service: fmt.Sprint(i)}, []Span{{Function: "f", HasThread: true, Thread: int64(n)}})
		}
	}
	services := s.Services()
	assert.Equal(t, maxThreads, services[0].Threads)
	assert.True(t, services[0].ThreadsMore)
	sum := 0
	for _, service := range services {
		sum += service.Threads
	}
	assert.Equal(t, maxAllThreads, sum)
	// Removed services leave room for threads of others.
	s.ResetAll()
	assert.Empty(t, s.Services())
	s.Fold(Origin{Service: "s"}, []Span{{Function: "f", HasThread: true}})
	assert.Equal(t, 1, s.Services()[0].Threads)
}

// Threads of instances that ended are forgotten, unless kept spans have their names.
func TestThreadsOfEndedInstancesAreForgotten(t *testing.T) {
	set := settings()
	set.MaxKeptSpans = 3
	c := newClock(&set)
	s := NewStore(set)
	id := 0
	fold := func(pod, thread int) {
		s.Fold(Origin{Service: "s", Instance: fmt.Sprint("pod-", pod)}, []Span{{
			Trace: traceID(1), ID: spanID(id), Function: "f", Start: uint64(id), HasThread: true, Thread: int64(thread), ThreadName: fmt.Sprint("worker ", pod),
		}})
		id++
		check(t, s)
	}
	for pod := range 4 {
		fold(pod, 1)
		c.pass(time.Second)
	}
	s.SeeThreads(Origin{Service: "s", Instance: "pod-0"}, Thread{ID: 7, Name: "sampled"})
	assert.Equal(t, 5, s.Services()[0].Threads)
	c.pass(2 * time.Hour)
	assert.Equal(t, 3, s.Services()[0].Threads, "those of which spans are kept")
	fold(4, 1) // uses a free number again
	spans, _ := s.Trace(traceID(1))
	var names []string
	for _, span := range spans {
		names = append(names, span.ThreadName)
	}
	assert.Equal(t, []string{"worker 2", "worker 3", "worker 4"}, names)
	c.pass(2 * time.Hour)
	assert.Equal(t, 3, s.Services()[0].Threads)
	assert.Len(t, s.services.byName["s"].threads.known, 6)
	for range 200 {
		s.SeeThreads(Origin{Service: "s", Instance: "pod-9"}, Thread{ID: 1})
		c.pass(time.Minute)
	}
	assert.Equal(t, 4, s.Services()[0].Threads, "one that is seen again and again stays")
}

// After threads were forgotten there is room for others.
func TestThreadsAreKnownWhenThereIsRoomAgain(t *testing.T) {
	set := settings()
	c := newClock(&set)
	s := NewStore(set)
	see := func(pod string, number int) {
		threads := make([]Thread, number)
		for i := range threads {
			threads[i].ID = int64(i)
		}
		s.SeeThreads(Origin{Service: "s", Instance: pod}, threads...)
	}
	see("pod-1", maxThreads)
	assert.False(t, s.Services()[0].ThreadsMore)
	c.pass(40 * time.Minute)
	see("pod-2", 10)
	assert.True(t, s.Services()[0].ThreadsMore)
	c.pass(40 * time.Minute)
	see("pod-2", 10)
	assert.Equal(t, Service{Name: "s", Threads: 10}, Service{Name: "s", Threads: s.Services()[0].Threads, ThreadsMore: s.Services()[0].ThreadsMore})
	assert.Equal(t, 10, s.services.threads)
}

func TestResetForgetsSpansWithoutWaitingCallees(t *testing.T) {
	set := settings()
	c := newClock(&set)
	s := NewStore(set)
	script(t, s, "main/g b < a took 2", "gone/f c took 2")
	c.pass(2 * time.Hour)
	script(t, s, "main/h d < a took 2")
	assert.False(t, s.Reset("nobody"))
	s.ResetAll()
	check(t, s)
	require.Len(t, s.Services(), 1)
	assert.Equal(t, c.now, s.Services()[0].From)
	assert.Empty(t, treeOf(t, s, "main"))
	script(t, s, "main/main a took 5")
	// Its own time does not include that of earlier callees.
	assert.Equal(t, "main: 1 calls, 0 errors, total 5, self 3", treeOf(t, s, "main"))
	// A node without references is freed, with those above it.
	c.pass(2 * time.Hour)
	s.ResetAll()
	s.Services()
	check(t, s)
	assert.Zero(t, s.Usage().Nodes)
	script(t, s, "new/f e took 1")
	assert.Equal(t, "f: 1 calls, 0 errors, total 1, self 1", treeOf(t, s, "new"))
}

// A service with an open window stays. It does not protect other services.
func TestASilentServiceWithAWindowStays(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	set := settings()
	set.MaxServices, set.Now = 3, func() time.Time { return now }
	s := NewStore(set)
	fold := func(service string, id int) {
		s.Fold(Origin{Service: service}, []Span{{Trace: traceID(id), ID: spanID(id), Function: "f", Start: 1, End: 2}})
		now = now.Add(2 * time.Second)
	}
	for i, service := range []string{"watched", "silent", "other"} {
		fold(service, i)
	}
	tree := s.services.tree("watched", Calls)
	tree.windows = append(tree.windows, newWindow(now, s.forest.epoch, tree.lost))
	now = now.Add(2 * set.PendingTimeout)
	fold("new", 3)
	names := []string{}
	for _, service := range s.Services() {
		names = append(names, service.Name)
		assert.EqualValues(t, 1, service.Calls, service.Name)
	}
	assert.Equal(t, []string{"new", "other", "watched"}, names)
	assert.EqualValues(t, 1, s.Counters().SilentServices)
}

// A service without remembered calls is silent if nothing arrived for PendingTimeout. The store
// searches silent services once a second, because it has to look at all services.
func TestSilentServicesAreSearchedOnceASecond(t *testing.T) {
	set := settings()
	set.MaxServices = 1
	c := newClock(&set)
	s := NewStore(set)
	begin := c.now
	for _, step := range []struct {
		at      time.Duration
		service string
		there   string
	}{
		{200 * time.Millisecond, "silent", "silent"},
		{time.Hour, "new", "silent"},
		{time.Hour + 500*time.Millisecond, "new", "silent"}, // the store searched in this second already
		{time.Hour + time.Second, "new", "new"},
		{2*time.Hour + time.Second, "other", "new"}, // not silent for longer than that
		{2*time.Hour + 2*time.Second, "other", "other"},
	} {
		c.now = begin.Add(step.at)
		s.Fold(Origin{Service: step.service}, []Span{{Function: "f", Start: 1, End: 2}})
		assert.Contains(t, s.services.byName, step.there, step.at)
		s.Reset(OtherServices) // otherwise it would have the place
	}
	assert.EqualValues(t, 2, s.Counters().SilentServices)
}

// Remembered calls of a service keep the service, and not others: a call whose caller arrived
// elsewhere is remembered as long as one of this second.
func TestASilentServiceWithRememberedCallsStays(t *testing.T) {
	set := settings()
	set.MaxServices = 3
	c := newClock(&set)
	s := NewStore(set)
	fold := func(service string, id, parent int) {
		span := Span{Trace: traceID(1), ID: spanID(id), Function: "f", Start: 1, End: 2}
		if parent != 0 {
			span.ParentTrace, span.Parent = traceID(1), spanID(parent)
		}
		s.Fold(Origin{Service: service}, []Span{span})
	}
	fold("silent", 2, 1)
	c.pass(59 * time.Minute)
	fold("a", 11, 0)
	fold("b", 12, 11)
	fold("a", 1, 0)
	c.pass(2 * time.Minute)
	fold("new", 30, 0)
	for _, service := range s.Services() {
		assert.Positive(t, service.Calls, service.Name)
	}
	assert.Zero(t, s.Counters().SilentServices)
	c.pass(70 * time.Minute)
	fold("new", 31, 0)
	assert.EqualValues(t, 2, s.Counters().SilentServices)
}
