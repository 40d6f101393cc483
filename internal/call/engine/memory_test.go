// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// The charged memory is about the growth of the heap for all kinds of spans and resources: the heap
// grows by at most a third more than is charged, and not by several times less.
func TestTheChargedMemoryOfSpansIsTheGrowthOfTheHeap(t *testing.T) {
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
	// The second collection frees the memory that finalizers keep.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// numbered returns a stream's ID. The IDs are spread over the shards.
func numbered(n int) (id callevent.StreamID) {
	binary.BigEndian.PutUint64(id[:], uint64(n)+1)
	binary.LittleEndian.PutUint64(id[8:], uint64(n))
	return id
}

// renumber moves the one batch of td to another stream, whose ID is the beginning of its data.
func renumber(td ptrace.Traces, n int) {
	data, _ := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().Get(callevent.AttributeData)
	for i, c := range numbered(n) {
		data.Bytes().SetAt(i, c)
	}
}

// The charged memory of streams is about the growth of the heap, also for small ones and for any
// contents.
func TestTheChargedMemoryOfStreamsIsTheGrowthOfTheHeap(t *testing.T) {
	named := func(n int) (events []string) {
		for i := range n {
			events = append(events, fmt.Sprintf("enter some.Class.withAName%d", i))
		}
		return events
	}
	for name, test := range map[string]struct {
		streams int
		batch   batch
	}{
		"of one call":        {4000, batch{events: []string{"enter f", "exit f"}}},
		"of one open call":   {4000, batch{events: []string{"enter f"}}},
		"that have ended":    {4000, batch{events: []string{"enter f"}, barriers: []callevent.Barrier{callevent.End(1, callevent.CauseEnded)}}},
		"of which one waits": {1000, batch{first: 1, events: []string{"enter f"}}},
		"of many names":      {100, batch{events: named(500)}},
		"of many open calls": {100, batch{events: many(2000, "enter f")}},
		"of many that wait":  {20, batch{first: 1, events: many(20_000, "enter f")}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.handOver(batch{stream: 1, events: []string{"enter f"}})
			td := traces(t, test.batch)
			before, charged := liveHeap(), b.accounts.bytes.Load()
			if testing.Short() {
				test.streams /= 4
			}
			for i := range test.streams {
				renumber(td, i)
				require.NoError(t, b.ConsumeTraces(t.Context(), td))
			}
			grown := float64(liveHeap() - before)
			ratio := grown / float64(b.accounts.bytes.Load()-charged)
			t.Logf("%.0f bytes for each, %.2f of the charged memory", grown/float64(test.streams), ratio)
			assert.InDelta(t, 1, ratio, 0.3)
			b.finish()
		})
	}
}
