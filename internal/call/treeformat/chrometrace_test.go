// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// checkout is a trace of two services. Its threads have an ID, only a name, or neither.
func checkout() (calltree.TraceID, []calltree.KeptSpan) {
	at := func(micros int64) int64 { return started.Add(time.Duration(micros) * time.Microsecond).UnixNano() }
	return calltree.TraceID{0xab, 15: 1}, []calltree.KeptSpan{
		// Spans arrive when they end: children first.
		{ID: calltree.SpanID{3}, Parent: calltree.SpanID{2}, Service: "shop", Function: "Price.of", Thread: 7, ThreadName: "worker", Start: at(20), End: at(30)},
		{ID: calltree.SpanID{2}, Parent: calltree.SpanID{1}, Service: "shop", Function: "Cart.add", File: "Cart.java", Line: 40, Thread: 7, ThreadName: "worker", Start: at(10), End: at(60), Error: true},
		{ID: calltree.SpanID{4}, Parent: calltree.SpanID{1}, Service: "shop", Function: "log", ThreadName: "logger", Start: at(15), End: at(15) + 7},
		{ID: calltree.SpanID{1}, Service: "shop", Function: "Main.main", Thread: 7, ThreadName: "main", Start: at(0), End: at(100), Truncated: true},
		{ID: calltree.SpanID{6}, Parent: calltree.SpanID{2}, Service: "stock", Function: "reserve", Start: at(30), End: at(50)},
		{ID: calltree.SpanID{7}, Parent: calltree.SpanID{2}, Service: "stock", Function: "reserve", Start: at(40), End: at(55)},
		{ID: calltree.SpanID{8}, Parent: calltree.SpanID{2}, Service: "stock", Function: "ended before it began", Thread: 9, Start: at(70), End: at(65)},
	}
}

// chromeEvent is an event for a reader of the format.
type chromeEvent struct {
	Ph, Name string
	Pid, Tid int64
	Ts, Dur  float64
	Args     map[string]any
}

func chromeEvents(t *testing.T, id calltree.TraceID, spans []calltree.KeptSpan) (document []byte, events []chromeEvent) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, WriteChromeTrace(&b, id, spans))
	var file struct{ TraceEvents []chromeEvent }
	require.NoError(t, json.Unmarshal(b.Bytes(), &file))
	return b.Bytes(), file.TraceEvents
}

func TestAChromeTrace(t *testing.T) {
	id, spans := checkout()
	document, _ := chromeEvents(t, id, spans)
	assertGolden(t, "checkout.trace.json", document)
}

func TestInstancesOfAServiceAreProcessesOfTheirOwn(t *testing.T) {
	span := calltree.KeptSpan{Service: "shop", Function: "f", Thread: 1, Start: 10, End: 20}
	first, second := span, span
	first.Instance, second.Instance = "pod-1", "pod-2"
	_, events := chromeEvents(t, calltree.TraceID{}, []calltree.KeptSpan{first, second})
	processes, threads := map[int64]any{}, map[int64]int64{}
	for _, e := range events {
		switch {
		case e.Name == "process_name":
			processes[e.Pid] = e.Args["name"]
		case e.Ph == "X":
			threads[e.Tid] = e.Pid
		}
	}
	assert.Equal(t, map[int64]any{1: "shop (pod-1)", 2: "shop (pod-2)"}, processes)
	assert.Equal(t, map[int64]int64{1: 1, 2: 2}, threads)
}

func TestAChromeTraceOfHostileNames(t *testing.T) {
	_, events := chromeEvents(t, calltree.TraceID{}, []calltree.KeptSpan{
		{Service: hostile, Function: hostile, File: hostile, Thread: 1, ThreadName: hostile},
	})
	require.Len(t, events, 3)
	assert.Equal(t, Printable(hostile), events[0].Args["name"])
	assert.Equal(t, Printable(hostile)+" (1)", events[1].Args["name"])
	assert.Equal(t, Printable(hostile), events[2].Name)
	assert.Equal(t, Printable(hostile), events[2].Args["file"])
}

func TestAChromeTraceOfNothing(t *testing.T) {
	_, events := chromeEvents(t, calltree.TraceID{}, nil)
	assert.Empty(t, events)
}

func TestTheLargestDifferenceOfTimesIsExact(t *testing.T) {
	_, events := chromeEvents(t, calltree.TraceID{}, []calltree.KeptSpan{
		{Start: math.MinInt64, End: math.MaxInt64}, {Start: math.MaxInt64, End: math.MinInt64},
	})
	last := events[len(events)-1]
	assert.InEpsilon(t, float64(math.MaxUint64)/1000, last.Ts, 1e-9)
	assert.Zero(t, last.Dur)
}

func TestSpansOfAThreadNestWhateverTheirTimes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		spans := make([]calltree.KeptSpan, r.IntN(60))
		for i := range spans {
			start := r.Int64N(100)
			spans[i] = calltree.KeptSpan{Thread: r.Int64N(3), Start: start, End: start + r.Int64N(50)}
		}
		_, events := chromeEvents(t, calltree.TraceID{}, spans)
		assertNested(t, events)
	}
}

// nanos is a time of a file, which is in microseconds.
func nanos(micros float64) int64 { return int64(math.Round(micros * 1000)) }

// assertNested fails if two events of a thread overlap and neither lies inside the other.
func assertNested(t *testing.T, events []chromeEvent) {
	t.Helper()
	for i, a := range events {
		for _, b := range events[:i] {
			if a.Ph != "X" || b.Ph != "X" || a.Tid != b.Tid {
				continue
			}
			a0, a1, b0, b1 := nanos(a.Ts), nanos(a.Ts)+nanos(a.Dur), nanos(b.Ts), nanos(b.Ts)+nanos(b.Dur)
			overlap := a0 < b1 && b0 < a1
			inside := (a0 >= b0 && a1 <= b1) || (b0 >= a0 && b1 <= a1)
			assert.True(t, !overlap || inside, "%v and %v", a, b)
		}
	}
}

func TestThreadsOfAFileAreBounded(t *testing.T) {
	spans := make([]calltree.KeptSpan, 3*mostLanes)
	for i := range spans { // none lies inside another
		spans[i] = calltree.KeptSpan{Start: int64(i), End: int64(1000 + i)}
	}
	_, events := chromeEvents(t, calltree.TraceID{}, spans)
	threads := map[int64]bool{}
	for _, e := range events {
		if e.Ph == "X" {
			threads[e.Tid] = true
		}
	}
	assert.Len(t, threads, mostLanes)
}
