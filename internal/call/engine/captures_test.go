// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/testkit/reference"
)

const signatureKey = "bytefrog.method.signature"

// packing is a way to pack the events of a run into batches.
type packing struct {
	// packers is the number of connections, and deal the largest number of consecutive events of
	// one.
	packers, deal int
	// batch is the largest number of events of a batch; 0: as many as fit into bytes.
	batch, bytes int
	// displaced is the largest number of places that a batch arrives before its turn.
	displaced int
	// perCall is the number of batches in one call.
	perCall int
}

var packings = []packing{
	{packers: 1, deal: 1_000, bytes: callevent.MaxBatchBytes, perCall: 1},
	{packers: 2, deal: 500, bytes: callevent.MinBatchBytes, displaced: 3, perCall: 1},
	{packers: 3, deal: 700, batch: 5_000, bytes: 256 << 10, displaced: 40, perCall: 3},
	{packers: 4, deal: 1, batch: 2_000, bytes: 256 << 10, displaced: 1_000_000, perCall: 2},
	{packers: 5, deal: 10_000, batch: 300, bytes: 256 << 10, displaced: 1_000_000, perCall: 7},
}

// The numbers are from the description of the captures.
var captures = []struct {
	name                            string
	events, calls, orphans          int64
	suspended, open, breaks, errors int
	ways                            []packing
}{
	{name: "shop", events: 9_628, calls: 4_793, errors: 63, ways: packings},
	{name: "suspend", events: 47_870, calls: 23_844, orphans: 10, suspended: 10, breaks: 2, errors: 162, ways: packings},
	{name: "startsuspended", events: 29_310, calls: 14_605, errors: 100, ways: packings},
	{name: "maven", events: 887_366, calls: 442_769, open: 1, errors: 1_840, ways: packings[3:4]},
}

// A run of a real agent gives the same spans and IDs with any packing and any order of its batches:
// those that the slow reference makes of the same bytes.
func TestCapturesBecomeTheSpansOfTheReferenceInEveryPacking(t *testing.T) {
	for _, capture := range captures {
		if testing.Short() && capture.events > 10_000 {
			continue
		}
		run, err := reference.Open("../../../testdata/bytefrog/" + capture.name + ".zip")
		require.NoError(t, err)
		want := reference.Spans(run, reference.Rules{MaxSpansPerTrace: 20_000, End: "ended"})
		ways := capture.ways
		if testing.Short() {
			ways = ways[2:4] // several packers, and disorder within and beyond calls
		}
		for _, way := range ways {
			t.Run(fmt.Sprintf("%s by %d packers, %d events a batch", capture.name, way.packers, way.batch), func(t *testing.T) {
				check := newComparison(t, want)
				b := newBed(t)
				b.next.answerWith(func(_ context.Context, td ptrace.Traces) error { check.compare(td); return nil })
				for _, td := range way.pack(t, run) {
					require.NoError(t, b.ConsumeTraces(context.Background(), td))
				}
				check.complete()
				assert.Equal(t, capture.events, b.sum("events"))
				assert.Equal(t, capture.calls+int64(capture.suspended+capture.open), b.sum("spans"))
				assert.Equal(t, capture.orphans, b.sum("orphans"))
				assert.EqualValues(t, capture.suspended, b.sum("truncated_frames", "suspended"))
				assert.EqualValues(t, capture.open, b.sum("truncated_frames", "ended"))
				assert.EqualValues(t, capture.suspended+capture.open, b.sum("truncated_frames"))
				assert.EqualValues(t, capture.breaks, b.sum("breaks"))
				assert.Equal(t, capture.errors, check.errors)
				assert.Zero(t, b.sum("late_events")+b.sum("duplicate_events")+b.sum("missing_numbers"))
				b.finish()
			})
		}
	}
}

// pack returns the calls that hand over the run.
func (way packing) pack(t testing.TB, run *reference.Run) (calls []ptrace.Traces) {
	random := rand.New(rand.NewPCG(uint64(way.packers), uint64(way.batch)))
	batches := newRunPacker(t, run, way).pack(random)
	// Each batch moves forward by at most displaced places.
	for i := range batches {
		j := i + random.IntN(min(way.displaced+1, len(batches)-i))
		batches[i], batches[j] = batches[j], batches[i]
	}
	for len(batches) > 0 {
		n := min(way.perCall, len(batches))
		td := ptrace.NewTraces()
		for _, b := range batches[:n] {
			rs := td.ResourceSpans().AppendEmpty()
			rs.Resource().Attributes().PutStr("service.name", "captured")
			b.MoveTo(rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty())
		}
		calls = append(calls, td)
		batches = batches[n:]
	}
	return calls
}

// runPacker packs a run.
type runPacker struct {
	t         testing.TB
	run       *reference.Run
	way       packing
	packers   []*callevent.Packer
	functions map[string]*callevent.Function
	barriers  []callevent.Barrier
	// named is the number of packed names of each thread.
	named   map[uint16]int
	next    uint64
	batches []ptrace.Span
}

func newRunPacker(t testing.TB, run *reference.Run, way packing) *runPacker {
	p := &runPacker{t: t, run: run, way: way, functions: map[string]*callevent.Function{}, named: map[uint16]int{}}
	for _, at := range run.Breaks {
		p.barriers = append(p.barriers, callevent.Point(uint64(at), callevent.CauseSuspended))
	}
	stream := callevent.Stream{ID: streamID(1), Epoch: testEpoch, Resolution: 1e6, TextKey: signatureKey}
	for range way.packers {
		packer, err := callevent.NewPacker(stream, way.bytes)
		require.NoError(t, err)
		p.packers = append(p.packers, packer)
	}
	return p
}

func (p *runPacker) pack(random *rand.Rand) []ptrace.Span {
	for rest := p.run.Events; len(rest) > 0; {
		packer := p.packers[random.IntN(len(p.packers))]
		n := min(1+random.IntN(p.way.deal), len(rest))
		for _, e := range rest[:n] {
			p.rename(packer, e)
			if packer.Len() > 0 && packer.Len() == p.way.batch || !p.add(packer, e) {
				p.flush(packer)
				require.True(p.t, p.add(packer, e))
			}
			p.next = max(p.next, uint64(e.Sequence)+1)
		}
		rest = rest[n:]
	}
	// The first closed packer reports the end of the run.
	p.barriers = append(p.barriers, callevent.End(p.next, callevent.CauseEnded))
	for _, packer := range p.packers {
		p.flush(packer)
	}
	return p.batches
}

var kindOf = map[byte]callevent.Kind{
	byte(bytefrog.TypeMethodEntry):     callevent.KindEnter,
	byte(bytefrog.TypeMethodExit):      callevent.KindExit,
	byte(bytefrog.TypeException):       callevent.KindThrow,
	byte(bytefrog.TypeExceptionBubble): callevent.KindUnwind,
}

func (p *runPacker) add(packer *callevent.Packer, e reference.Event) bool {
	f := p.functions[e.Method]
	if f == nil {
		name := bytefrog.ParseMethodSignature(e.Method)
		f = &callevent.Function{Qualified: name.Qualified, Display: name.Display, Text: e.Method}
		p.functions[e.Method] = f
	}
	packed := callevent.Event{Sequence: uint64(e.Sequence), Time: int64(e.Time), Line: uint32(e.Line), Kind: kindOf[e.Type]}
	var hasFunction, hasLane bool
	hasException := true
	packed.Function, hasFunction = packer.Function(f)
	packed.Lane, hasLane = packer.Lane(callevent.Lane{ID: uint64(e.Thread), Name: "a name without a rename"})
	if e.Exception != "" {
		packed.Exception, hasException = packer.Exception(e.Exception)
	}
	return hasFunction && hasLane && hasException && packer.Add(&packed)
}

// rename packs the names of a thread up to the time of the event.
func (p *runPacker) rename(packer *callevent.Packer, e reference.Event) {
	for _, name := range p.run.Threads[e.Thread][p.named[e.Thread]:] {
		isFirst := p.named[e.Thread] == 0
		if !isFirst && e.Time < name.Time {
			break
		}
		require.True(p.t, packer.Rename(callevent.Rename{Lane: uint64(e.Thread), Time: int64(name.Time), First: isFirst, Name: name.Name}))
		p.named[e.Thread]++
	}
}

func (p *runPacker) flush(packer *callevent.Packer) {
	packed, err := packer.Close(p.barriers, p.next, testEpoch+1e15)
	require.NoError(p.t, err)
	span := ptrace.NewSpan()
	packed.To(span)
	p.batches = append(p.batches, span)
	packer.Reset()
}

// comparison compares arriving spans with those of the reference.
type comparison struct {
	t    *testing.T
	want *reference.Result
	id   Identity
	// seen are the numbers of arrived spans. wrong counts unexpected spans, of which the first five
	// are printed.
	seen   map[int64]bool
	wrong  int
	errors int
}

func newComparison(t *testing.T, want *reference.Result) *comparison {
	return &comparison{t: t, want: want, id: newIdentity(streamID(1)), seen: map[int64]bool{}}
}

func (c *comparison) compare(td ptrace.Traces) {
	for _, span := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		v, ok := span.Attributes().Get(attributeSequence)
		require.True(c.t, ok)
		got, want := renderSpan(span, v.Int()), "no span begins there"
		if w := c.want.Spans[v.Int()]; w != nil {
			want = c.render(w)
		}
		if c.seen[v.Int()] {
			want = "the span arrived before"
		}
		c.seen[v.Int()] = true
		if got != want {
			if c.wrong++; c.wrong <= 5 {
				c.t.Errorf("expected %s\ngot      %s", want, got)
			}
		}
		if span.Status().Code() == ptrace.StatusCodeError {
			c.errors++
		}
	}
}

func (c *comparison) complete() {
	assert.Zero(c.t, c.wrong, "unexpected spans")
	assert.Len(c.t, c.seen, len(c.want.Spans))
}

// render returns the line that renderSpan must return for the span.
func (c *comparison) render(s *reference.Span) string {
	line := fmt.Sprintf("%d %s %s %d %s %d..%d in %v as %v", s.Sequence, reference.Display(s.Function), reference.Qualified(s.Function),
		s.Thread, s.ThreadName, testEpoch+s.Start, testEpoch+s.End, c.id.TraceID(uint64(s.Trace)), c.id.SpanID(uint64(s.Sequence)))
	switch {
	case s.Linked:
		line += fmt.Sprintf(" linked to %v in %v", c.id.SpanID(uint64(s.Parent)), c.id.TraceID(uint64(c.want.Spans[s.Parent].Trace)))
	case s.Parent >= 0:
		line += fmt.Sprintf(" below %v", c.id.SpanID(uint64(s.Parent)))
	}
	if s.Unwound {
		line += " Error " + s.ErrorType
	}
	for _, x := range s.Exceptions {
		line += fmt.Sprintf(" threw %s at %d", x.Type, testEpoch+x.Time)
	}
	if s.Truncated != "" {
		line += " truncated " + s.Truncated
	}
	return line + " sent as " + s.Function
}

func renderSpan(span ptrace.Span, sequence int64) string {
	attributes := span.Attributes()
	line := fmt.Sprintf("%d %s %s %s %s %d..%d in %v as %v", sequence, span.Name(), str(attributes, attributeFunction),
		str(attributes, attributeThreadID), str(attributes, attributeThreadName),
		span.StartTimestamp(), span.EndTimestamp(), span.TraceID(), span.SpanID())
	for _, link := range span.Links().All() {
		line += fmt.Sprintf(" linked to %v in %v", link.SpanID(), link.TraceID())
	}
	if !span.ParentSpanID().IsEmpty() {
		line += fmt.Sprintf(" below %v", span.ParentSpanID())
	}
	if span.Status().Code() != ptrace.StatusCodeUnset {
		line += " " + span.Status().Code().String() + " " + str(attributes, attributeErrorType)
	}
	for _, event := range span.Events().All() {
		line += fmt.Sprintf(" threw %s at %d", str(event.Attributes(), attributeException), event.Timestamp())
	}
	if truncated := str(attributes, attributeTruncated); truncated != "" {
		line += " truncated " + truncated
	}
	return line + " sent as " + str(attributes, signatureKey)
}

func str(attributes pcommon.Map, key string) string {
	v, ok := attributes.Get(key)
	if !ok {
		return ""
	}
	return v.AsString()
}
