// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// features are the parts of a generated world beside calls that return.
type features uint32

const (
	withExceptions features = 1 << iota
	withAnomalies
	withSkips
	withAttributes
	withBreaks
	withIntervals
	withLateBarriers
	withClockJumps
	withBase
	withConnections
	withShuffle
	withDuplicates
	withLoss
	withExpiry
	withSmallWindow
	withGiveUpOldest
	withTraces
	withLess
	withLimits
	withEnd
	withRenames
	withRepeats

	allFeatures features = 1<<iota - 1
)

var featureNames = []string{
	"exceptions", "anomalies", "skips", "attributes", "breaks", "intervals", "late barriers", "clock jumps", "base",
	"connections", "shuffle", "duplicates", "loss", "expiry", "small window", "give up oldest", "traces", "less", "limits", "end", "renames",
	"repeats",
}

func (f features) String() string {
	var names []string
	for i, name := range featureNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// plan determines a generated world.
type plan struct {
	seed   uint64
	events int
	with   features
}

func (p plan) String() string {
	return fmt.Sprintf("plan{seed: %d, events: %d, with: %#x /* %s */}", p.seed, p.events, uint32(p.with), p.with)
}

func (p plan) has(f features) bool { return p.with&f != 0 }

// dice are random numbers for one aspect of the plan, so a removed feature changes the rest as little as possible.
func (p plan) dice(aspect uint64) *rand.Rand { return rand.New(rand.NewPCG(p.seed, aspect)) }

// world has the events of a program, and their deliveries.
type world struct {
	plan       plan
	settings   Settings
	resolution int64
	// events are all events, in order; barriers likewise.
	events     []happened
	barriers   []callevent.Barrier
	renames    []callevent.Rename
	deliveries []delivery
}

func generate(p plan) *world {
	w := &world{plan: p, settings: p.settings(), resolution: []int64{1, 1000, 1_000_000}[p.seed%3]}
	w.happen()
	w.rename()
	w.breakUp()
	w.deliver()
	return w
}

func (p plan) settings() Settings {
	s, r := wide(), p.dice(1)
	if p.has(withSmallWindow) {
		s.MaxEvents = 1 + r.IntN(30)
	}
	if p.has(withTraces) {
		s.MaxSpansPerTrace = r.IntN(6)
		s.TraceRoot = func(qualified string) bool { return strings.HasPrefix(qualified, "root") }
	}
	if p.has(withLess) {
		s.MinDuration = []int64{0, 1, 2, 1_000_000, 3_000_000, 20_000_000}[r.IntN(6)]
		s.MaxDepth = []int{0, 0, 1, 2, 3}[r.IntN(5)]
		s.DropTruncated = r.IntN(3) == 0
	}
	if p.has(withLimits) {
		s.MaxFrames = 1 + r.IntN(6)
		s.MaxThrows = r.IntN(3)
	}
	return s
}

var testFunctions = func() (functions []*callevent.Function) {
	for _, name := range []string{"a.A.a", "b.B.b", "c.C.c", "root.R.r", "root.Q.q"} {
		functions = append(functions, &callevent.Function{Qualified: name, Display: name[2:], Text: name + ";0;()V", Line: 7})
	}
	// Two functions have this name.
	return append(functions, &callevent.Function{Qualified: "a.A.a", Display: "A.a", Text: "a.A.a;0;(I)V"})
}()

var testExceptions = []string{"", "java.lang.Error", "demo.Failure"}

// happen makes the events: a random walk on the stacks of some lanes.
func (w *world) happen() {
	p, r := w.plan, w.plan.dice(2)
	lanes := make([]callevent.Lane, 1+r.IntN(4))
	for i := range lanes {
		lanes[i] = callevent.Lane{ID: uint64(i) * 1000, Name: fmt.Sprintf("worker-%d", i)}
	}
	stacks := make([][]*callevent.Function, len(lanes))
	clock, jumps := newSourceClock(p, w.resolution), p.dice(3)
	odd, attributes, repeats := p.dice(4), p.dice(5), p.dice(50)
	sequence := w.base()
	for len(w.events) < p.events {
		if i := repeats.IntN(len(lanes)); p.has(withRepeats) && len(stacks[i]) > 0 && repeats.IntN(6) == 0 {
			calls := repeatedCalls(repeats, lanes[i], stacks[i][len(stacks[i])-1])
			for _, e := range calls[:min(len(calls), p.events-len(w.events))] {
				e.sequence, e.time = sequence, clock.tick(jumps)
				w.events = append(w.events, plain(e))
				sequence++
			}
			continue
		}
		i := r.IntN(len(lanes))
		if r.IntN(40) == 0 {
			lanes[i].Name += "+"
		}
		e := happened{
			sequence: sequence, lane: lanes[i], function: testFunctions[r.IntN(len(testFunctions))], line: uint32(r.IntN(3) * 100),
			exception: testExceptions[r.IntN(len(testExceptions))],
		}
		action, count := r.IntN(100), 1
		switch top := len(stacks[i]) - 1; {
		case p.has(withAnomalies) && odd.IntN(12) == 0:
			e.kind = []callevent.Kind{
				callevent.KindExit, callevent.KindThrow, callevent.KindUnwind, callevent.KindEnterFrom, callevent.KindFail,
				callevent.KindEnterOutermost,
			}[odd.IntN(6)]
			if e.kind == callevent.KindEnterFrom {
				e.caller = testFunctions[odd.IntN(len(testFunctions))]
			}
			stacks[i] = stackAfter(stacks[i], e)
		case p.has(withSkips) && odd.IntN(10) == 0:
			e.kind = callevent.KindSkip
		case top < 0 || action < 42 && top < 12:
			e.kind = callevent.KindEnter
			stacks[i] = append(stacks[i], e.function)
		case action < 50:
			e.kind, e.function = callevent.KindExitTop, nil
			stacks[i] = stacks[i][:top]
		case action < 80 || !p.has(withExceptions):
			e.kind, e.function = callevent.KindExit, stacks[i][top]
			stacks[i] = stacks[i][:top]
		case action < 90:
			e.kind, e.function = callevent.KindThrow, stacks[i][top]
		default:
			e.kind, count = callevent.KindUnwind, 1+r.IntN(top+1)
		}
		for ; count > 0; count-- {
			if e.kind == callevent.KindUnwind && len(stacks[i]) > 0 && action >= 90 {
				e.function = stacks[i][len(stacks[i])-1]
				stacks[i] = stacks[i][:len(stacks[i])-1]
			}
			e.sequence = sequence
			e.time = clock.tick(jumps)
			e.attributes = nil
			if p.has(withAttributes) && attributes.IntN(6) == 0 {
				e.attributes = []Attribute{{Key: "n", Value: callevent.IntValue(int64(sequence))}, {Key: "s", Value: callevent.StringValue(lanes[i].Name)}}
			}
			w.events = append(w.events, plain(e))
			sequence++
		}
	}
}

// repeatedCalls are calls of a loop in caller with a few functions, and here and there with many. Some return an error.
func repeatedCalls(r *rand.Rand, lane callevent.Lane, caller *callevent.Function) (all []happened) {
	functions := []int{1, 2, 3, 21}[r.IntN(4)]
	first := r.IntN(21)
	for i := range 1 + r.IntN(2*functions+6) {
		n := first + i%functions
		if r.IntN(10) == 0 {
			n = r.IntN(21)
		}
		e := happened{kind: callevent.KindEnter, lane: lane, function: testFunctions[n%len(testFunctions)]}
		if r.IntN(4) == 0 {
			e.kind, e.caller = callevent.KindEnterFrom, caller
		}
		all = append(all, e)
		e.kind, e.caller, e.line = callevent.KindExit, nil, uint32(n/len(testFunctions)%3)
		if r.IntN(6) == 0 {
			e.kind, e.exception = callevent.KindFail, testExceptions[r.IntN(len(testExceptions))]
		}
		all = append(all, e)
	}
	return all
}

// plain leaves only those fields that the event's kind has.
func plain(e happened) happened {
	switch e.kind {
	case callevent.KindSkip:
		e = happened{sequence: e.sequence, time: e.time, kind: e.kind}
	case callevent.KindEnter, callevent.KindEnterOutermost, callevent.KindExit, callevent.KindExitTop, callevent.KindEnterFrom:
		e.exception = ""
	}
	return e
}

// stackAfter is a tracer's own stack after an event of a function that may not
// be on top.
func stackAfter(stack []*callevent.Function, e happened) []*callevent.Function {
	if e.kind == callevent.KindEnterOutermost {
		return append(stack[:0], e.function)
	}
	if e.kind == callevent.KindEnterFrom {
		if i := slices.Index(stack, e.caller); i >= 0 {
			for stack[len(stack)-1] != e.caller {
				stack = stack[:len(stack)-1]
			}
		}
		return append(stack, e.function)
	}
	for i := len(stack) - 1; i >= 0; i-- {
		if stack[i] == e.function {
			if e.kind == callevent.KindThrow {
				return stack[:i+1]
			}
			return stack[:i]
		}
	}
	return stack
}

// base is the first sequence number.
func (w *world) base() uint64 {
	if !w.plan.has(withBase) {
		return 0
	}
	r := w.plan.dice(6)
	n := uint64(w.plan.events)
	return []uint64{1, 5, 1<<32 - n/2, 1<<32 + 1, 1<<40 - 1, callevent.MaxSequence - 4*n}[r.IntN(6)]
}

// sourceClock is a clock that runs, stands still, and jumps.
type sourceClock struct {
	plan       plan
	resolution int64
	// now is the true time. skew is the difference of the source's clock from it.
	now, skew int64
}

func newSourceClock(p plan, resolution int64) *sourceClock {
	return &sourceClock{plan: p, resolution: resolution, now: testEpoch + testJump*4}
}

func (c *sourceClock) tick(r *rand.Rand) int64 {
	steps := []int64{0, 0, 1, c.resolution, c.resolution, 2 * c.resolution, 3_000_000, 25_000_000}
	c.now += steps[r.IntN(len(steps))]
	if c.plan.has(withClockJumps) && r.IntN(15) == 0 {
		jumps := []int64{
			testJump, -testJump, testJump + c.resolution, -testJump - c.resolution, testJump / 2, -testJump / 2,
			2 * testJump, -2 * testJump, c.resolution, -c.resolution,
		}
		c.skew += jumps[r.IntN(len(jumps))]
		if c.skew < -3*testJump || c.skew > 20*testJump {
			c.skew = 0
		}
	}
	t := c.now + c.skew
	return t - (t-testEpoch)%c.resolution
}

// breakUp places barriers between the events.
func (w *world) breakUp() {
	r, first := w.plan.dice(7), w.base()
	last := w.events[len(w.events)-1].sequence
	place := func() uint64 { return first + r.Uint64N(last-first+2) }
	if first > 0 && r.IntN(2) == 0 {
		w.barriers = append(w.barriers, callevent.Interval(0, first, callevent.CauseDropped))
	}
	if w.plan.has(withBreaks) {
		for range r.IntN(4) {
			w.barriers = append(w.barriers, callevent.Point(place(), callevent.CauseSuspended))
		}
	}
	if w.plan.has(withIntervals) {
		for range r.IntN(4) {
			from := place()
			w.barriers = append(w.barriers, callevent.Interval(from, min(from+uint64(r.IntN(12)), last+3), callevent.CauseDiscarded))
		}
	}
	if w.plan.has(withEnd) {
		end := last + 1
		if r.IntN(4) == 0 {
			end = place()
		}
		w.barriers = append(w.barriers, callevent.End(end, callevent.CauseEnded))
	}
	slices.SortFunc(w.barriers, compareBarriers)
	// One place has one cause, so the order of arrival does not matter.
	w.barriers = slices.CompactFunc(w.barriers, func(a, b callevent.Barrier) bool { return compareBarriers(a, b) == 0 })
}

// deliver drops some events, spreads the others over connections and batches, and chooses the order of the batches.
func (w *world) deliver() {
	p, r := w.plan, w.plan.dice(8)
	connections := make([][]happened, 1)
	if p.has(withConnections) {
		connections = make([][]happened, 1+r.IntN(3))
	}
	loss, chosen := p.dice(9), 0
	losing := 0
	for _, e := range w.events {
		if p.has(withLoss) && loss.IntN(25) == 0 {
			losing = 1 + loss.IntN(4)
		}
		if losing > 0 {
			losing--
			continue
		}
		if r.IntN(5) == 0 {
			chosen = r.IntN(len(connections))
		}
		connections[chosen] = append(connections[chosen], e)
	}
	queues := make([][]delivery, len(connections))
	for i, events := range connections {
		queues[i] = w.cut(r, events)
	}
	for len(queues) > 0 {
		i := r.IntN(len(queues))
		if len(queues[i]) == 0 {
			queues = slices.Delete(queues, i, i+1)
			continue
		}
		w.deliveries = append(w.deliveries, queues[i][0])
		queues[i] = queues[i][1:]
	}
	if p.has(withShuffle) {
		r.Shuffle(len(w.deliveries), func(i, j int) { w.deliveries[i], w.deliveries[j] = w.deliveries[j], w.deliveries[i] })
	}
	w.attachRenames()
	w.announce()
	w.repeat()
}

// cut makes batches from the events of one connection.
func (w *world) cut(r *rand.Rand, events []happened) (batches []delivery) {
	longest := []int{1, 3, 10, 100}[r.IntN(4)]
	for len(events) > 0 {
		n := min(len(events), 1+r.IntN(longest))
		d := delivery{events: slices.Clone(events[:n])}
		for range r.IntN(3) {
			if i := r.IntN(n); i > 0 && w.plan.has(withConnections) {
				d.events[i-1], d.events[i] = d.events[i], d.events[i-1]
			}
		}
		for _, e := range d.events {
			d.received = max(d.received, e.time)
		}
		// The receiver's clock is right, the source's may be ahead or behind.
		if w.plan.has(withClockJumps) {
			d.received = testEpoch + testJump*4 + (d.received-testEpoch-testJump*4)%testJump
		}
		d.received = (d.received + receivedGrain) &^ (receivedGrain - 1)
		for i := range d.events {
			d.events[i].received = d.received
		}
		d.barriers = barriersFor(w.barriers, d.events)
		batches = append(batches, d)
		events = events[n:]
	}
	return batches
}

// barriersFor are the barriers inside the range of the events, the last one at or below the first event, and all that
// reach beyond the first event.
func barriersFor(all []callevent.Barrier, events []happened) (carried []callevent.Barrier) {
	bySequence := func(a, b happened) int { return cmp.Compare(a.sequence, b.sequence) }
	first, last := slices.MinFunc(events, bySequence).sequence, slices.MaxFunc(events, bySequence).sequence
	below := uint64(0)
	for _, b := range all {
		if b.From <= first {
			below = max(below, b.From)
		}
	}
	for _, b := range all {
		if b.From == below || b.From <= first && b.To > first || b.From > first && b.From <= last+1 {
			carried = append(carried, b)
		}
	}
	return carried
}

// announce sets the highest number that the receiver had seen at each batch. It removes some late barriers. All
// barriers are in a last, empty batch.
func (w *world) announce() {
	r, seen := w.plan.dice(10), uint64(0)
	for i := range w.deliveries {
		d := &w.deliveries[i]
		for _, e := range d.events {
			seen = max(seen, e.sequence+1)
		}
		d.next = seen
		if w.plan.has(withLateBarriers) && r.IntN(2) == 0 {
			d.barriers = nil
		}
	}
	received := testEpoch
	if len(w.deliveries) > 0 {
		received = w.deliveries[len(w.deliveries)-1].received
	}
	if w.plan.has(withLateBarriers) {
		early := delivery{barriers: slices.Clone(w.barriers), received: received}
		at := r.IntN(len(w.deliveries) + 1)
		w.deliveries = slices.Insert(w.deliveries, at, early)
	}
	w.deliveries = append(w.deliveries, delivery{
		barriers: slices.Clone(w.barriers), next: w.events[len(w.events)-1].sequence + 1, received: received,
	})
}

// repeat delivers some batches twice, and some events again in others.
func (w *world) repeat() {
	if !w.plan.has(withDuplicates) {
		return
	}
	r := w.plan.dice(11)
	for range r.IntN(4) {
		again := w.deliveries[r.IntN(len(w.deliveries))]
		if len(again.events) > 0 && r.IntN(2) == 0 {
			again.events = again.events[:1+r.IntN(len(again.events))]
		}
		w.deliveries = slices.Insert(w.deliveries, r.IntN(len(w.deliveries)+1), again)
	}
}

// rename makes renames of the names that lanes have at their events, as a tracer does. Some have a wrong time. Half of the events
// then have no name, or a wrong one.
func (w *world) rename() {
	if !w.plan.has(withRenames) {
		return
	}
	r, names, earliest := w.plan.dice(13), map[uint64]string{}, map[uint64]int64{}
	for i := range w.events {
		e := &w.events[i]
		if e.kind == callevent.KindSkip {
			continue
		}
		old, known := names[e.lane.ID]
		names[e.lane.ID] = e.lane.Name
		if known && old == e.lane.Name {
			continue
		}
		added := callevent.Rename{Lane: e.lane.ID, Name: e.lane.Name, Time: max(e.time, 0), Rank: uint32(len(w.renames))}
		switch r.IntN(8) {
		case 0:
			added.Time += 1000 * testJump
		case 1:
			added.Time = max(0, added.Time+(r.Int64N(5)-2)*w.resolution)
		}
		// Some lanes have no first name.
		first, begun := earliest[e.lane.ID]
		if !begun && r.IntN(6) == 0 {
			first, begun = -1, true
		}
		added.First = !begun || added.Time < first
		earliest[e.lane.ID] = min(added.Time, first)
		if !begun {
			earliest[e.lane.ID] = added.Time
		}
		w.renames = append(w.renames, added)
	}
	for i := range w.events {
		if e := &w.events[i]; e.kind != callevent.KindSkip && r.IntN(2) == 0 {
			e.lane.Name = []string{"", "?", names[e.lane.ID]}[r.IntN(3)]
		}
	}
}

// attachRenames puts each rename into the batches with events that it holds for, and here and there into others. With late
// barriers a rename is in any batches.
func (w *world) attachRenames() {
	r := w.plan.dice(14)
	for _, added := range w.renames {
		for i := range w.deliveries {
			d := &w.deliveries[i]
			concerned := slices.ContainsFunc(d.events, func(e happened) bool {
				return e.kind != callevent.KindSkip && e.lane.ID == added.Lane && (added.First || e.time >= added.Time)
			})
			if w.plan.has(withLateBarriers) {
				concerned = r.IntN(len(w.deliveries)) == 0
			}
			if concerned || r.IntN(8) == 0 {
				d.renames = slices.Insert(d.renames, r.IntN(len(d.renames)+1), added)
			}
		}
	}
}
