// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/lttng/ctf/printed"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
	"github.com/callbraid/callbraid/test/kit"
)

// levelsOfJava maps the levels of java.util.logging to the severities of OpenTelemetry's instrumentation of it.
var levelsOfJava = map[string]plog.SeverityNumber{
	"1000": plog.SeverityNumberError, "900": plog.SeverityNumberWarn, "800": plog.SeverityNumberInfo, "700": plog.SeverityNumberDebug3,
	"500": plog.SeverityNumberDebug2, "400": plog.SeverityNumberDebug, "300": plog.SeverityNumberTrace,
}

// timeOfDay returns a time in babeltrace's format.
func timeOfDay(t pcommon.Timestamp) string { return t.AsTime().Format("15:04:05.000000000") }

func TestRecordsWithLevelsAndCallsOfAJavaProgramArrive(t *testing.T) {
	t.Parallel()
	endpoint := testkit.Address(t)
	relayDaemon(t, endpoint, lttngCapture("jul1"))
	c := kit.Start(t, viewer(endpoint, ""))
	c.AwaitMetric(t, 282, lttngEvents)
	c.Stop(t)

	events, err := printed.Events(lttngdata.CaptureText(t, "jul1", "babeltrace1-offline.txt"))
	require.NoError(t, err)
	var records, wantRecords []string
	levels := map[string]bool{}
	for _, e := range events {
		level := e.Field("int_loglevel")
		levels[level] = true
		wantRecords = append(wantRecords, fmt.Sprint(e.Time, " ", levelsOfJava[level], " ", e.Field("msg")))
	}
	require.Len(t, levels, len(levelsOfJava), "the capture has all levels")
	for _, r := range readLogs(t, c) {
		records = append(records, fmt.Sprint(timeOfDay(r.Timestamp()), " ", r.SeverityNumber(), " ", r.Body().Str()))
	}
	slices.Sort(records)
	assert.Equal(t, wantRecords, records)

	assert.Equal(t, javaCalls(t, events), callsOf(readSpans(t, c)))
}

// callsOf returns the calls in spans in the format of javaCalls: the times of each call, and its caller.
func callsOf(of []ptrace.Span) (calls []string) {
	spans := map[pcommon.SpanID]ptrace.Span{}
	for _, s := range of {
		spans[s.SpanID()] = s
	}
	for _, s := range spans {
		caller := "nobody"
		if parent, ok := spans[s.ParentSpanID()]; ok {
			caller = timeOfDay(parent.StartTimestamp())
		}
		name, _ := s.Attributes().Get("code.function.name")
		thread := s.Attributes().AsRaw()["thread.id"]
		calls = append(calls, fmt.Sprint(timeOfDay(s.StartTimestamp()), " to ", timeOfDay(s.EndTimestamp()), " ", name.Str(), ", called by ", caller,
			", on ", thread, ", failed: ", s.Status().Code() == ptrace.StatusCodeError))
	}
	slices.Sort(calls)
	return calls
}

// javaCalls returns the calls that the records of java.util.logging report, each with its begin and end, and the
// begin of the calling one.
func javaCalls(t *testing.T, events []printed.Event) (calls []string) {
	t.Helper()
	open := map[string][]printed.Event{}
	for _, e := range events {
		word, _, _ := strings.Cut(e.Field("msg"), " ")
		thread := e.Field("vtid")
		stack := open[thread]
		switch {
		case e.Field("int_loglevel") != "400":
		case word == "ENTRY":
			open[thread] = append(stack, e)
		case word == "RETURN" || word == "THROW":
			require.NotEmpty(t, stack, e.Text)
			called := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			open[thread] = stack
			require.Equal(t, called.Field("method_name"), e.Field("method_name"))
			caller := "nobody"
			if len(stack) > 0 {
				caller = stack[len(stack)-1].Time
			}
			calls = append(calls, fmt.Sprint(called.Time, " to ", e.Time, " ", called.Field("class_name"), ".", called.Field("method_name"),
				", called by ", caller, ", on ", e.Field("int_threadid"), ", failed: ", word == "THROW"))
		}
	}
	for _, stack := range open {
		require.Empty(t, stack)
	}
	slices.Sort(calls)
	return calls
}
