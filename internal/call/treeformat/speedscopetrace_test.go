// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

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
