// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// call appends a span of a call: end and start are milliseconds.
func call(spans ptrace.SpanSlice, id, parent byte, function string, start, end int64) ptrace.Span {
	span := spans.AppendEmpty()
	span.SetTraceID(pcommon.TraceID{1})
	span.SetSpanID(pcommon.SpanID{id})
	if parent != 0 {
		span.SetParentSpanID(pcommon.SpanID{parent})
	}
	span.SetStartTimestamp(pcommon.Timestamp(start * int64(time.Millisecond)))
	span.SetEndTimestamp(pcommon.Timestamp(end * int64(time.Millisecond)))
	span.Attributes().PutStr("code.function.name", function)
	span.Attributes().PutInt("thread.id", 7)
	return span
}

func TestTheSummaryAddsUp(t *testing.T) {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.instance.id", "a")
	spans := resource.ScopeSpans().AppendEmpty().Spans()
	// main 0-100 calls work 10-40, which calls leaf 20-25, and work 50-90, whose callee
	// rest 60-80 is in another trace.
	call(spans, 3, 2, "leaf", 20, 25).Status().SetCode(ptrace.StatusCodeError)
	call(spans, 2, 1, "work", 10, 40)
	rest := call(spans, 5, 0, "rest", 60, 80)
	rest.SetTraceID(pcommon.TraceID{2})
	rest.Links().AppendEmpty().SetSpanID(pcommon.SpanID{4})
	call(spans, 4, 1, "work", 50, 90)
	call(spans, 1, 0, "main", 0, 100).Attributes().PutStr("callbraid.truncated", "ended")

	s := newSummary()
	s.add(traces)
	assert.EqualValues(t, 5, s.spans)
	assert.EqualValues(t, 1, s.errors)
	assert.Len(t, s.traces, 2)
	assert.Len(t, s.threads, 1)
	assert.Empty(t, s.children)
	top := s.top(3)
	assert.Equal(t, method{name: "work", calls: 2, total: 70 * time.Millisecond, self: 45 * time.Millisecond}, *top[0])
	assert.Equal(t, method{name: "main", calls: 1, total: 100 * time.Millisecond, self: 30 * time.Millisecond}, *top[1])
	assert.Equal(t, method{name: "rest", calls: 1, total: 20 * time.Millisecond, self: 20 * time.Millisecond}, *top[2])

	var out strings.Builder
	require.NoError(t, s.print(&out))
	assert.Equal(t, `      spans  5
     traces  2
    methods  4
    threads  1
     errors  1  left by an exception
  truncated  1  ended: 1

The 10 methods with most self time (without the methods they call):

   self   total  calls  errors  method
  45 ms   70 ms      2       0  work
  30 ms  100 ms      1       0  main
  20 ms   20 ms      1       0  rest
   5 ms    5 ms      1       1  leaf
`, out.String())
}

func TestAFollowerReadsNewLines(t *testing.T) {
	name := filepath.Join(t.TempDir(), "spans.json")
	write := func(text string) {
		t.Helper()
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		require.NoError(t, err)
		_, err = f.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	next := func(f *follower) string {
		t.Helper()
		line, err := f.next()
		require.NoError(t, err)
		return string(line)
	}
	f, err := newFollower(name)
	require.NoError(t, err)
	defer f.close()
	assert.Equal(t, "", next(f), "no file")
	write("one\ntwo\nthr")
	assert.Equal(t, "one", next(f))
	assert.Equal(t, "two", next(f))
	assert.Equal(t, "", next(f), "half a line")
	write("ee\n")
	assert.Equal(t, "three", next(f))
	long := strings.Repeat("x", 3<<20)
	write(long + "\nend\n")
	assert.Equal(t, long, next(f))

	// Another file gets the name.
	require.NoError(t, os.Rename(name, name+".old"))
	write("new\n")
	assert.Equal(t, "end", next(f))
	assert.Equal(t, "new", next(f))

	// A follower does not read lines from before its start.
	late, err := newFollower(name)
	require.NoError(t, err)
	defer late.close()
	write("newer\n")
	assert.Equal(t, "newer", next(late))
	assert.Equal(t, "", next(late))
}

func TestAPortInUseIsAClearError(t *testing.T) {
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	assert.ErrorContains(t, checkFree(address), address+" is in use: end the program that listens there")
	require.NoError(t, listener.Close())
	assert.NoError(t, checkFree(address))
}

func TestAFailureShowsTheLinesThatAreNoProgress(t *testing.T) {
	log := filepath.Join(t.TempDir(), "collector.log")
	text := "2026\tinfo\tStarting\n2026\terror\tFailed\t" + strings.Repeat("x", 1000) +
		"\n2026\tinfo\tStopping\nError: listen tcp 127.0.0.1:8889: bind: address already in use\n"
	require.NoError(t, os.WriteFile(log, []byte(text), 0o644))
	err := (&collector{log: log}).failure("the collector did not start")
	assert.ErrorContains(t, err, "the collector did not start: a port is in use by another process; its log is "+log)
	assert.ErrorContains(t, err, "\n    Error: listen tcp 127.0.0.1:8889: bind: address already in use")
	assert.ErrorContains(t, err, "xxx…\n")
	assert.NotContains(t, err.Error(), "Starting")
}
