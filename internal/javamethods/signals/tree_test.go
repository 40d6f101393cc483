// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/javamethods"
)

var receivedAt = time.Date(2026, 11, 20, 9, 12, 30, 0, time.UTC)

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func TestACallTreeEndsWhenItWasReceived(t *testing.T) {
	tree := &javamethods.Tree{Thread: javamethods.Thread{Name: "main", ID: 1}, Nodes: []javamethods.Node{
		{End: ms(11), Class: "demo.Shop", Method: "checkout"},
		{Depth: 1, End: ms(3), Class: "demo.Shop", Method: "price", Line: 10},
		{Depth: 1, Start: ms(3), End: ms(11), Class: "demo.Pay", Method: "charge", Line: 11},
		{Depth: 2, Start: ms(11), End: ms(11), Class: "demo.Bank", Method: "ask", Throws: "java.lang.IllegalStateException"},
		{Depth: 1, Start: ms(11), End: ms(11), Class: "java.lang.StringBuilder", Method: "<init>", Line: 12},
	}}
	p, left := treeSpans(&Origin{}, tree, receivedAt, 100)
	require.Zero(t, left)
	require.Len(t, p.spans, 5)
	began := p.spans[0].start
	var times [][2]int64
	var parents []int
	for _, s := range p.spans {
		times = append(times, [2]int64{s.start - began, s.end - began})
		parent := -1
		for i, other := range p.spans {
			if other.id == s.parent {
				parent = i
			}
		}
		parents = append(parents, parent)
	}
	const m = 1_000_000
	assert.Equal(t, [][2]int64{
		{0, 11*m + 5},
		{1, 3 * m},
		{3*m + 1, 11*m + 2},
		{11 * m, 11*m + 1},
		{11*m + 3, 11*m + 4},
	}, times)
	assert.Equal(t, []int{-1, 0, 0, 2, 0}, parents)
	assert.Equal(t, receivedAt.UnixNano(), p.spans[0].end)
	assert.True(t, p.spans[0].parent.IsEmpty())
	assert.False(t, p.trace.IsEmpty())
}

// For any tree, spans lie strictly inside their parents and follow each other. None is empty, and none is longer than
// the server reported, except for the steps of 1 ns in it.
func TestSpansOfAnyTreeAreNestedAndOrdered(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	times := []time.Duration{0, 0, ms(1), ms(2), ms(3), ms(100), maxCallTime, math.MaxInt64}
	for range 2000 {
		tree := &javamethods.Tree{Nodes: make([]javamethods.Node, 1+random.IntN(12))}
		for i := range tree.Nodes {
			start, end := times[random.IntN(len(times))], times[random.IntN(len(times))]
			n := &tree.Nodes[i]
			n.Start, n.End = min(start, end), max(start, end)
			if i > 0 {
				n.Depth = 1 + random.Int32N(tree.Nodes[i-1].Depth+1)
			} else {
				n.Start = 0
			}
		}
		p, _ := treeSpans(&Origin{}, tree, receivedAt, 100)
		byID := map[pcommon.SpanID]*span{}
		lastEnd := map[pcommon.SpanID]int64{}
		for i := range p.spans {
			s := &p.spans[i]
			require.Less(t, s.start, s.end, "%v", tree)
			require.Positive(t, s.start)
			require.LessOrEqual(t, s.end, receivedAt.UnixNano())
			byID[s.id] = s
			if i == 0 {
				continue
			}
			parent := byID[s.parent]
			require.NotNil(t, parent, "%v", tree)
			require.Less(t, parent.start, s.start)
			require.Less(t, s.end, parent.end)
			require.Less(t, lastEnd[s.parent], s.start, "after the one before")
			lastEnd[s.parent] = s.end
		}
		root := min(tree.Nodes[0].End, maxCallTime)
		require.LessOrEqual(t, p.spans[0].end-p.spans[0].start, root.Nanoseconds()+int64(2*len(p.spans)))
		require.Len(t, byID, len(p.spans), "IDs are unique")
	}
}

func TestTextsOfSpansCountAsMemory(t *testing.T) {
	parcel := func(of span) int { return (&spanParcel{spans: []span{of, {}}}).bytes() }
	empty := parcel(span{})
	assert.Positive(t, empty)
	long := strings.Repeat("x", 1000)
	for name, of := range map[string]span{
		"class": {class: long}, "method": {method: long},
		"message": {threw: exception{message: long}}, "stack": {threw: exception{stack: long}},
	} {
		assert.GreaterOrEqual(t, parcel(of), empty+1000, name)
	}
	assert.GreaterOrEqual(t, (&spanParcel{spans: make([]span, 100)}).bytes(), empty+98*bytesOfSpan)
}

func TestACallTreeWithAClockBeginsThen(t *testing.T) {
	begin := receivedAt.Add(-time.Hour)
	tree := &javamethods.Tree{Begin: begin, TraceID: [16]byte{15: 7}, Nodes: []javamethods.Node{{End: ms(11), Class: "demo.Shop", Method: "checkout"}}}
	p, _ := treeSpans(&Origin{}, tree, receivedAt, 100)
	assert.Equal(t, begin.UnixNano(), p.spans[0].start)
	assert.Equal(t, begin.Add(ms(11)).UnixNano(), p.spans[0].end)
	assert.Equal(t, pcommon.TraceID(tree.TraceID), p.trace)
	for _, wrong := range []time.Time{time.Unix(-1, 0), receivedAt.Add(maxCallTime + 1)} {
		tree.Begin = wrong
		p, _ := treeSpans(&Origin{}, tree, receivedAt, 100)
		assert.Equal(t, receivedAt.UnixNano(), p.spans[0].end)
	}
}

func TestASpanOfSeveralCallsHasTheirNumberAndTimes(t *testing.T) {
	tree := &javamethods.Tree{Nodes: []javamethods.Node{
		{End: ms(9), Class: "demo.Shop", Method: "checkout"},
		{
			Depth: 1, End: ms(6), Class: "demo.Pay", Method: "charge", Estimated: true, Throws: "demo.Declined", Message: "no funds",
			Repeated: &javamethods.Repeated{Calls: 3, Least: ms(1), Greatest: ms(3), Total: ms(6), HasTimes: true},
		},
	}}
	p, _ := treeSpans(&Origin{}, tree, receivedAt, 100)
	_, names := newNames("arthas")
	spans := ptrace.NewSpanSlice()
	for i := range p.spans {
		p.spans[i].fill(spans.AppendEmpty(), &p, &names)
	}
	assert.NotContains(t, spans.At(0).Attributes().AsRaw(), "arthas.time.estimated")
	assert.Equal(t, map[string]any{
		"code.function.name": "demo.Pay.charge", "error.type": "demo.Declined", "arthas.time.estimated": true,
		"callbraid.repeated.calls": int64(3), "callbraid.repeated.least": int64(1_000_000), "callbraid.repeated.greatest": int64(3_000_000), "callbraid.repeated.total": int64(6_000_000),
	}, spans.At(1).Attributes().AsRaw())
	assert.Equal(t, "no funds", spans.At(1).Status().Message())
}

func TestUnknownValuesOfACallTreeHaveNoAttributes(t *testing.T) {
	tree := &javamethods.Tree{ForeignTrace: "7f01", Nodes: []javamethods.Node{
		{End: ms(9), Class: "demo.Shop", Method: "checkout", Threw: true},
		{Depth: 1, End: ms(6), Class: "demo.Pay", Method: "charge", Repeated: &javamethods.Repeated{Calls: 3}},
	}}
	p, _ := treeSpans(&Origin{}, tree, receivedAt, 100)
	_, names := newNames("arthas")
	spans := ptrace.NewSpanSlice()
	for i := range p.spans {
		p.spans[i].fill(spans.AppendEmpty(), &p, &names)
	}
	assert.Equal(t, map[string]any{"code.function.name": "demo.Shop.checkout", "arthas.trace_id": "7f01"}, spans.At(0).Attributes().AsRaw())
	assert.Equal(t, ptrace.StatusCodeError, spans.At(0).Status().Code())
	assert.Zero(t, spans.At(0).Events().Len(), "an exception event needs a type or a message")
	assert.Equal(t, map[string]any{"code.function.name": "demo.Pay.charge", "callbraid.repeated.calls": int64(3)}, spans.At(1).Attributes().AsRaw())
}
