// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package perfettoexporter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// threadsOfCalls is the number of threads of callsOfThreads.
const threadsOfCalls = 8

// depthOf is the number of callers of a call, which ends its name.
func depthOf(name string) int {
	_, digits, _ := strings.Cut(name, "_")
	n, _ := strconv.Atoi(digits) // callsOfThreads wrote it
	return n
}

// callsOfThreads is a message of calls in the order of their ends, which moves on in time. They have about 100 names.
type callsOfThreads struct {
	traces ptrace.Traces
	length pcommon.Timestamp
}

// newCallsOfThreads makes at least so many calls.
func newCallsOfThreads(least int) *callsOfThreads {
	c := &callsOfThreads{traces: ptrace.NewTraces()}
	rs := c.traces.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "many")
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	random := rand.New(rand.NewPCG(1, 2))
	const epoch, deepest, namesOfDepth = pcommon.Timestamp(1_800_000_000_000_000_000), 7, 12
	now := [threadsOfCalls]pcommon.Timestamp{}
	for i := range now {
		now[i] = epoch
	}
	id := uint64(0)
	var call func(thread, depth int, parent pcommon.SpanID)
	call = func(thread, depth int, parent pcommon.SpanID) {
		id++
		self := pcommon.SpanID([]byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24), 1, 0, 0, 0})
		begin := now[thread]
		now[thread] += 50 + pcommon.Timestamp(random.IntN(2000))
		for depth < deepest && random.IntN(3) > 0 {
			call(thread, depth+1, self)
		}
		now[thread] += 50 + pcommon.Timestamp(random.IntN(2000))
		name := fmt.Sprintf("function%d_%d", random.IntN(namesOfDepth), depth)
		s := spans.AppendEmpty()
		s.SetName(name)
		s.SetTraceID(pcommon.TraceID{byte(thread), 1})
		s.SetSpanID(self)
		s.SetParentSpanID(parent)
		s.SetStartTimestamp(begin)
		s.SetEndTimestamp(now[thread])
		s.Attributes().PutStr("code.function.name", "com.example."+name)
		s.Attributes().PutInt("thread.id", int64(thread+1))
		s.Attributes().PutStr("thread.name", fmt.Sprint("worker-", thread))
		now[thread]++
	}
	for spans.Len() < least {
		call(random.IntN(threadsOfCalls), 0, pcommon.SpanID{})
	}
	spans.Sort(func(a, b ptrace.Span) bool { return a.EndTimestamp() < b.EndTimestamp() })
	c.length = slices.Max(now[:]) - epoch + 1000
	return c
}

// messages copies the calls to messages of so many.
func (c *callsOfThreads) messages(most int) (all []ptrace.Traces) {
	from := c.traces.ResourceSpans().At(0)
	var spans ptrace.SpanSlice
	for i, s := range from.ScopeSpans().At(0).Spans().All() {
		if i%most == 0 {
			all = append(all, ptrace.NewTraces())
			rs := all[len(all)-1].ResourceSpans().AppendEmpty()
			from.Resource().CopyTo(rs.Resource())
			spans = rs.ScopeSpans().AppendEmpty().Spans()
			spans.EnsureCapacity(most)
		}
		s.CopyTo(spans.AppendEmpty())
	}
	return all
}

// moveOn moves all calls to the time behind them.
func (c *callsOfThreads) moveOn() {
	for _, s := range c.traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		s.SetStartTimestamp(s.StartTimestamp() + c.length)
		s.SetEndTimestamp(s.EndTimestamp() + c.length)
	}
}
