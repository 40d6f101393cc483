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

func speedscopeTrace(t *testing.T, id calltree.TraceID, spans []calltree.KeptSpan) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, WriteSpeedscopeTrace(&b, id, spans))
	return b.Bytes()
}

func TestASpeedscopeTrace(t *testing.T) {
	id, spans := checkout()
	assertGolden(t, "checkout.speedscope.json", indented(t, speedscopeTrace(t, id, spans)))
}

func TestASpeedscopeTraceHasAProfileForEachThread(t *testing.T) {
	id, spans := checkout()
	var names []string
	for _, p := range nested(t, speedscopeTrace(t, id, spans)) {
		names = append(names, p.Name)
		assert.EqualValues(t, 100_000, p.EndValue, "the time axis is that of the trace")
	}
	assert.Equal(t, []string{"shop: main (7)", "shop: logger", "stock: calls", "stock: calls", "stock: thread 9"}, names)
}

func TestInstancesOfAServiceHaveProfilesOfTheirOwn(t *testing.T) {
	span := calltree.KeptSpan{Service: "shop", Function: "f", Thread: 1, Start: 10, End: 20}
	first, second := span, span
	first.Instance, second.Instance = "pod-1", "pod-2"
	var names []string
	for _, p := range nested(t, speedscopeTrace(t, calltree.TraceID{}, []calltree.KeptSpan{first, second})) {
		names = append(names, p.Name)
	}
	assert.Equal(t, []string{"shop (pod-1): thread 1", "shop (pod-2): thread 1"}, names)
}

func TestASpeedscopeTraceOfHostileNames(t *testing.T) {
	document := speedscopeTrace(t, calltree.TraceID{}, []calltree.KeptSpan{
		{Service: hostile, Instance: hostile, Function: hostile, File: hostile, Thread: 1, ThreadName: hostile},
	})
	var file struct {
		Shared   struct{ Frames []struct{ Name, File string } }
		Profiles []struct{ Name string }
	}
	require.NoError(t, json.Unmarshal(document, &file))
	shown := Printable(hostile)
	assert.Equal(t, shown+" ("+shown+"): "+shown+" (1)", file.Profiles[0].Name)
	assert.Equal(t, shown, file.Shared.Frames[0].Name)
	assert.Equal(t, shown, file.Shared.Frames[0].File)
}

func TestASpeedscopeTraceOfNothing(t *testing.T) {
	assert.Empty(t, nested(t, speedscopeTrace(t, calltree.TraceID{}, nil)))
}

func TestASpeedscopeTraceIsNestedWhateverItsTimes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		spans := make([]calltree.KeptSpan, r.IntN(60))
		for i := range spans {
			start := r.Int64N(100)
			spans[i] = calltree.KeptSpan{Thread: r.Int64N(3), Start: start, End: start + r.Int64N(50) - 5}
		}
		opened := 0
		for _, p := range nested(t, speedscopeTrace(t, calltree.TraceID{}, spans)) {
			opened += len(p.Events) / 2
		}
		assert.Len(t, spans, opened)
	}
	nested(t, speedscopeTrace(t, calltree.TraceID{}, []calltree.KeptSpan{
		{Start: math.MinInt64, End: math.MaxInt64}, {Start: math.MaxInt64, End: math.MinInt64}, {Start: -1, End: math.MaxInt64},
	}))
}

func TestProfilesOfASpeedscopeTraceAreBounded(t *testing.T) {
	spans := make([]calltree.KeptSpan, 3*mostLanes)
	for i := range spans { // none lies inside another
		spans[i] = calltree.KeptSpan{Start: int64(i), End: int64(1000 + i)}
	}
	profiles := nested(t, speedscopeTrace(t, calltree.TraceID{}, spans))
	require.Len(t, profiles, mostLanes)
	assert.Len(t, profiles[mostLanes-1].Events, 2*(2*mostLanes+1))
}
