// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callsum"
)

const (
	// receivedGrain is the precision of receive times: a stream remembers those of waiting events to 2^22 ns.
	receivedGrain = int64(1) << 22
	testEpoch     = int64(1_700_000_000_000_000_000) &^ (receivedGrain - 1)
	testJump      = int64(time.Second)
	testWait      = 64 * time.Second
)

// wide are settings whose bounds no test reaches.
func wide() Settings {
	return Settings{
		MaxEvents: 1 << 20, MaxWait: testWait, MaxClockJump: testJump,
		MaxFrames: 1 << 20, MaxLanes: 1 << 20, MaxNameBytes: 1 << 30, MaxThrows: 1 << 20,
	}
}

// finished is a Call with its throws and attributes, to compare and to print.
type finished struct {
	Function      callevent.Function
	Lane          uint64
	LaneName      string
	Start, End    int64
	Sequence      uint64
	Parent        uint64
	Trace         uint64
	Link          Link
	LinkTrace     uint64
	Truncated     callevent.Cause
	Unwound       bool
	ErrorType     string
	Line          uint32
	LeftOut       LeftOut
	DroppedThrows uint32
	Throws        []Throw
	Attributes    []Attribute
	Kept          Criterion
	// Repeated is the zero value for one call.
	Repeated Repeated
}

func (f finished) String() string {
	var b strings.Builder
	parent := "-"
	if f.Parent != NoParent {
		parent = fmt.Sprint(f.Parent)
	}
	fmt.Fprintf(&b, "%d %s lane %d %q parent %s time %d..%d trace %d", f.Sequence, f.Function.Qualified, f.Lane, f.LaneName,
		parent, f.Start-testEpoch, f.End-testEpoch, f.Trace)
	if f.Link != LinkNone {
		fmt.Fprintf(&b, " link %d to trace %d", f.Link, f.LinkTrace)
	}
	if f.Truncated != 0 {
		fmt.Fprintf(&b, " truncated %s", f.Truncated)
	}
	if f.Unwound {
		fmt.Fprintf(&b, " unwound %q", f.ErrorType)
	}
	if f.Line != 0 {
		fmt.Fprintf(&b, " line %d", f.Line)
	}
	if f.LeftOut != (LeftOut{}) {
		fmt.Fprintf(&b, " left out %+v", f.LeftOut)
	}
	for _, t := range f.Throws {
		fmt.Fprintf(&b, " throw(%d %q line %d)", t.Time-testEpoch, t.Type, t.Line)
	}
	if f.DroppedThrows > 0 {
		fmt.Fprintf(&b, " dropped throws %d", f.DroppedThrows)
	}
	for _, a := range f.Attributes {
		fmt.Fprintf(&b, " %s=%s", a.Key, valueText(a.Value))
	}
	if f.Repeated != (Repeated{}) {
		fmt.Fprintf(&b, " repeated %+v", f.Repeated)
	}
	return b.String()
}

func valueText(v callevent.Value) string {
	switch v.Type() {
	case callevent.ValueString:
		return fmt.Sprintf("%q", v.Str())
	case callevent.ValueInt:
		return fmt.Sprint(v.Int())
	case callevent.ValueDouble:
		return fmt.Sprint(v.Double())
	case callevent.ValueBool:
		return fmt.Sprint(v.Bool())
	}
	return "invalid"
}

// lines are the spans in the order of their sequence numbers, one in a line.
func lines(spans []finished) string {
	slices.SortFunc(spans, func(a, b finished) int { return cmp.Compare(a.Sequence, b.Sequence) })
	var b strings.Builder
	for _, s := range spans {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

// countersText names the counters that are not 0.
func countersText(c Counters) string {
	var b strings.Builder
	for _, n := range []struct {
		name string
		n    uint64
	}{
		{"events", c.Events}, {"spans", c.Finished}, {"left out", c.LeftOut}, {"orphans", c.Orphans}, {"late", c.Late},
		{"duplicates", c.Duplicates}, {"in break", c.InBreak}, {"missing", c.Missing}, {"dropped throws", c.DroppedThrows},
		{"dropped attributes", c.DroppedAttributes}, {"dropped renames", c.DroppedRenames},
	} {
		if n.n != 0 {
			fmt.Fprintf(&b, "%s %d\n", n.name, n.n)
		}
	}
	for cause := range callevent.CauseCount {
		if n := c.Truncated[cause]; n != 0 {
			fmt.Fprintf(&b, "truncated %s %d\n", cause, n)
		}
	}
	for cause := range callevent.CauseCount {
		if n := c.Breaks[cause]; n != 0 {
			fmt.Fprintf(&b, "breaks %s %d\n", cause, n)
		}
	}
	for by := range CriterionCount {
		if n := c.Keep.Traces[by]; n != 0 {
			fmt.Fprintf(&b, "kept %s: %d traces, %d calls\n", by, n, c.Keep.Calls[by])
		}
	}
	for by, n := range c.Keep.LimitedTraces {
		if n != 0 {
			fmt.Fprintf(&b, "limited %s: %d traces, %d calls\n", Criterion(by), n, c.Keep.LimitedCalls[by])
		}
	}
	if k := c.Keep; k.RepeatedCalls != 0 {
		fmt.Fprintf(&b, "repeated %d calls\n", k.RepeatedCalls)
	}
	for by := range EarlyCount {
		if n := c.Keep.decidedEarly(by); n != 0 {
			fmt.Fprintf(&b, "early at %s: %d\n", by, n)
		}
	}
	if c.BelowResolution {
		fmt.Fprintln(&b, "below resolution")
	}
	return b.String()
}

// rig is a Stream with its output. It receives packed and unpacked batches. Every step checks the state of the
// stream.
type rig struct {
	stream     *Stream
	resolution int64
	batch      callevent.Batch
	out        Output
	spans      []finished
	sums       []callsum.Increment
	counters   Counters
	now        time.Duration
	// fault is the first fault.
	fault string
}

// testRandom is the random number of a trace: uniform below 2^56.
func testRandom(root uint64) uint64 {
	root = (root + 1) * 0x9e3779b97f4a7c15
	return (root ^ root>>29) * 0xbf58476d1ce4e5b9 >> 8
}

func newRig(settings *Settings, resolution int64) *rig {
	return &rig{stream: NewStream(settings, testRandom), resolution: resolution}
}

var testStreamID = callevent.StreamID{1, 2, 3}

// pack packs the delivery into as many batches as it needs.
func pack(d delivery, resolution int64) ([][]byte, error) {
	p, err := callevent.NewPacker(callevent.Stream{ID: testStreamID, Epoch: testEpoch, Resolution: resolution}, callevent.MaxBatchBytes)
	if err != nil {
		return nil, err
	}
	var packed [][]byte
	shut := func() error {
		b, err := p.Close(d.barriers, d.next, d.received)
		packed = append(packed, slices.Clone(b.Data))
		p.Reset()
		return err
	}
	for _, r := range d.renames {
		r.Time = (r.Time - testEpoch) / resolution
		if !p.Rename(r) {
			if err := shut(); err != nil {
				return nil, err
			}
			if !p.Rename(r) {
				return nil, fmt.Errorf("a rename doesn't fit into an empty batch")
			}
		}
	}
	for i := range d.events {
		if !addTo(p, &d.events[i], resolution) {
			if err := shut(); err != nil {
				return nil, err
			}
			if !addTo(p, &d.events[i], resolution) {
				return nil, fmt.Errorf("event %d doesn't fit into an empty batch", d.events[i].sequence)
			}
		}
	}
	return packed, shut()
}

func addTo(p *callevent.Packer, h *happened, resolution int64) bool {
	e := callevent.Event{Sequence: h.sequence, Time: (h.time - testEpoch) / resolution, Line: h.line, Kind: h.kind}
	ok := true
	note := func(index uint16, entered bool) uint16 {
		ok = ok && entered
		return index
	}
	if h.kind != callevent.KindSkip {
		e.Lane = note(p.Lane(h.lane))
		if h.function != nil {
			e.Function = note(p.Function(h.function))
		}
		if h.exception != "" {
			e.Exception = note(p.Exception(h.exception))
		}
		if h.caller != nil {
			e.Exception = note(p.Function(h.caller))
		}
	}
	if !ok || !p.Add(&e) {
		return false
	}
	for _, a := range h.attributes {
		ok = ok && p.Attribute(a.Key, a.Value)
	}
	return ok
}

// take packs the delivery and passes it to the stream.
func (r *rig) take(d delivery) {
	packed, err := pack(d, r.resolution)
	if err != nil {
		r.blame("packing: %v", err)
		return
	}
	for _, data := range packed {
		r.takeData(data)
	}
}

func (r *rig) takeData(data []byte) {
	if err := r.batch.Unpack(data); err != nil {
		r.blame("unpacking: %v", err)
		return
	}
	r.stream.Accept(&r.batch, r.now, &r.out)
	// The stream must not keep memory of the batch.
	r.collect()
}

func (r *rig) expire() { r.stream.Expire(r.now, &r.out); r.collect() }

func (r *rig) giveUpOldest() bool {
	did := r.stream.GiveUpOldest(&r.out)
	r.collect()
	return did
}

func (r *rig) forget() { r.stream.Forget(&r.out); r.collect() }

func (r *rig) takeSums() { r.sums = append(r.sums, r.stream.TakeSums()) }

func (r *rig) end(cause callevent.Cause) { r.stream.End(cause, &r.out); r.collect() }

// collect moves the output into the rig, and checks the state of the stream.
func (r *rig) collect() {
	r.full()
	r.counters.add(r.out.Counters)
	r.sums = append(r.sums, r.out.Sums...)
	r.out.Reset()
	if wrong := r.stream.wrong(); wrong != "" {
		r.blame("state: %s", wrong)
	}
}

// full moves the calls of the output into the rig.
func (r *rig) full() {
	for _, s := range r.out.Calls {
		f := finished{
			Function: *s.Function, Lane: s.Lane, LaneName: s.LaneName, Start: s.Start, End: s.End, Sequence: s.Sequence,
			Parent: s.Parent, Trace: s.Trace, Link: s.Link, LinkTrace: s.LinkTrace, Truncated: s.Truncated, Unwound: s.Unwound,
			ErrorType: s.ErrorType, Line: s.Line, LeftOut: s.LeftOut, DroppedThrows: s.DroppedThrows, Kept: s.Kept,
		}
		f.Throws = append(f.Throws, r.out.Throws[s.Throws.From:s.Throws.To]...)
		f.Attributes = append(f.Attributes, r.out.Attributes[s.Attributes.From:s.Attributes.To]...)
		if of := r.out.RepeatedOf(&s); of != nil {
			f.Repeated = *of
		}
		r.spans = append(r.spans, f)
	}
	r.out.ClearCalls()
}

func (r *rig) blame(format string, args ...any) {
	if r.fault == "" {
		r.fault = fmt.Sprintf(format, args...)
	}
}

func (c *Counters) add(o Counters) {
	c.Events += o.Events
	c.Finished += o.Finished
	c.LeftOut += o.LeftOut
	c.Orphans += o.Orphans
	c.Late += o.Late
	c.Duplicates += o.Duplicates
	c.InBreak += o.InBreak
	c.Missing += o.Missing
	c.DroppedThrows += o.DroppedThrows
	c.DroppedAttributes += o.DroppedAttributes
	c.DroppedRenames += o.DroppedRenames
	c.BelowResolution = c.BelowResolution || o.BelowResolution
	for cause := range callevent.CauseCount {
		c.Truncated[cause] += o.Truncated[cause]
		c.Breaks[cause] += o.Breaks[cause]
	}
	for by := range CriterionCount {
		c.Keep.Traces[by] += o.Keep.Traces[by]
		c.Keep.Calls[by] += o.Keep.Calls[by]
		c.Keep.LimitedTraces[by] += o.Keep.LimitedTraces[by]
		c.Keep.LimitedCalls[by] += o.Keep.LimitedCalls[by]
		for early := range EarlyCount {
			c.Keep.Early[early][by] += o.Keep.Early[early][by]
		}
	}
	c.Keep.RepeatedCalls += o.Keep.RepeatedCalls
}

// decidedEarly is the number of early decisions for a reason.
func (k *KeepCounters) decidedEarly(by Early) (n uint64) {
	for _, traces := range k.Early[by] {
		n += traces
	}
	return n
}

// difference has the lines that are only in want, with a minus, and those that are only in got, with a plus.
func difference(want, got string) string {
	if want == got {
		return ""
	}
	wanted, gotten := strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n")
	var b strings.Builder
	for _, l := range wanted {
		if !slices.Contains(gotten, l) {
			b.WriteString("- " + l)
		}
	}
	for _, l := range gotten {
		if !slices.Contains(wanted, l) {
			b.WriteString("+ " + l)
		}
	}
	if b.Len() == 0 {
		return "the same lines, not equally often\n"
	}
	return b.String()
}

func checkNoFault(t *testing.T, r *rig) {
	t.Helper()
	if r.fault != "" {
		t.Fatal(r.fault)
	}
}
