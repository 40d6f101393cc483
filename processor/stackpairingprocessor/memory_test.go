// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// What is charged for is what the heap grows by, whatever spans and resources are made
// of: at most a third more than is charged, and not several times less.
func TestWhatIsChargedIsWhatTheHeapGrowsBy(t *testing.T) {
	span := func(build func(ptrace.Span)) func() ptrace.Traces {
		return func() ptrace.Traces {
			traces := ptrace.NewTraces()
			spans := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
			for range 1000 {
				build(spans.AppendEmpty())
			}
			return traces
		}
	}
	resource := func(build func(pcommon.Map)) func() ptrace.Traces {
		return func() ptrace.Traces {
			traces := ptrace.NewTraces()
			rs := traces.ResourceSpans().AppendEmpty()
			build(rs.Resource().Attributes())
			rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
			return traces
		}
	}
	for name, build := range map[string]func() ptrace.Traces{
		"spans": span(func(s ptrace.Span) {
			s.Attributes().EnsureCapacity(3)
			for i := range 3 {
				s.Attributes().PutStr(fmt.Sprint("key", i), fmt.Sprint("some text of it", i))
			}
		}),
		"exceptions": span(func(s ptrace.Span) {
			for i := range 20 {
				event := s.Events().AppendEmpty()
				event.Attributes().PutStr("exception.type", "E")
				event.Attributes().PutInt("code.line.number", int64(i))
			}
		}),
		"links": span(func(s ptrace.Span) { s.Links().AppendEmpty().Attributes().PutStr("kind", "continuation") }),
		"many attributes of a resource": resource(func(m pcommon.Map) {
			m.EnsureCapacity(5_000)
			for i := range 5_000 {
				m.PutBool(fmt.Sprint(i), true)
			}
		}),
		"a list": resource(func(m pcommon.Map) {
			list := m.PutEmptySlice("list")
			for i := range 50_000 {
				list.AppendEmpty().SetInt(int64(i))
			}
		}),
		"maps in maps": resource(func(m pcommon.Map) {
			for range 1_000 {
				m = m.PutEmptyMap("inner")
			}
		}),
		"bytes": resource(func(m pcommon.Map) { m.PutEmptyBytes("bytes").FromRaw(make([]byte, 1<<20)) }),
	} {
		t.Run(name, func(t *testing.T) {
			times := 20
			if testing.Short() {
				times = 4
			}
			kept, charged := make([]ptrace.Traces, 0, times), 0
			before := liveHeap()
			for range times {
				kept = append(kept, build())
				charged += memoryOf(kept[len(kept)-1])
			}
			grown := float64(liveHeap() - before)
			runtime.KeepAlive(kept)
			assert.Less(t, grown, 1.34*float64(charged))
			assert.Greater(t, grown, 0.4*float64(charged))
		})
	}
}

func liveHeap() uint64 {
	// What finalizers keep is gone after the second.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
