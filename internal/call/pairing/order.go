// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// order passes the events of a stream to its stacks in the order of their sequence
// numbers, and ends stacks at barriers: rules 1, 4 and 5.
//
// Every method leaves it settled: the event at next is missing, and no barrier stands
// before it.
type order struct {
	settings *Settings
	names    *names
	stacks   *stacks

	// window has the events above next that wait. attributes are theirs.
	window     window
	attributes waitingAttributes
	arrivals   arrivals
	passed     ranges
	barriers   barriers

	// next is the lowest number that the stream has neither paired nor given up.
	next uint64
	// direct is the event that is paired without waiting.
	direct event
	// fresh: the stream has not begun yet, neither with number 0 nor elsewhere.
	fresh bool
	// gap is the cause of the break before next, if numbers were given up since the last
	// event. Numbers that are missing right after them belong to the same break.
	gap   callevent.Cause
	ended bool
}

func newOrder(settings *Settings, n *names, stacks *stacks) order {
	return order{
		settings: settings, names: n, stacks: stacks, fresh: true,
		barriers:   barriers{stop: never},
		attributes: waitingAttributes{bytes: &stacks.attributes, byNumber: map[uint64][]attribute{}},
	}
}

// acceptBatch accepts the barriers and the events of a batch at the monotonic time now:
//
//  1. It obeys each barrier, or remembers it until the numbers before it are done.
//  2. It decodes the events, some at a time.
//  3. An event above next waits in the window. One at next is paired, and after it the
//     waiting events that it held up. One below next is old: counted and ignored.
//  4. It notes when the highest number became known, to know later since when the
//     missing ones are missing.
func (o *order) acceptBatch(b *callevent.Batch, now time.Duration) {
	known := b.Next
	var attributes []callevent.Attribute
	if !o.ended {
		known, attributes = o.acceptBarriers(b.Barriers, known), b.Attributes
	}
	scratch := &o.stacks.out.scratch
	scratch.values.set(b)
	for first := 0; first < b.Len(); {
		n := b.Events(scratch.events[:], first)
		for i := 0; i < n; i++ {
			// Most events are in order, and save the call.
			if len(attributes) == 0 && scratch.events[i].Sequence > o.next {
				i += o.waitMany(scratch.events[i:n], b.Received)
				if i == n {
					break
				}
			}
			e := &scratch.events[i]
			var own []attribute
			if len(attributes) > 0 && int(attributes[0].Event) == first+i {
				own, attributes = scratch.values.ofFirstEvent(attributes)
			}
			o.acceptEvent(e, b.Received, own)
		}
		first += n
	}
	known = max(known, o.next, o.window.next())
	o.arrivals.forget(o.next)
	if known > o.next {
		o.arrivals.rise(known, now, o.settings.MaxWait/64)
	}
}

// acceptEvent accepts one event of the batch that arrived at the time received.
func (o *order) acceptEvent(e *callevent.Event, received int64, attributes []attribute) {
	if e.Sequence > o.next && !o.ended && !o.window.roomy(e.Sequence, o.settings.MaxEvents) {
		o.makeRoom(e.Sequence)
	}
	switch {
	case e.Sequence < o.next:
		o.countOld(e.Sequence)
	case o.ended:
		o.counters().Late++
	case e.Sequence > o.next:
		o.wait(e, received, attributes)
	default:
		o.direct.set(e, received, o.settings.MaxClockJump, o.names)
		o.stacks.pair(&o.direct, e.Sequence, attributes)
		o.step()
		o.pairWaiting()
	}
}

func (o *order) counters() *Counters { return &o.stacks.out.Counters }

// countOld counts an event below next.
func (o *order) countOld(sequence uint64) {
	p, found := o.passed.remove(sequence)
	switch {
	case !found:
		o.counters().Duplicates++
	case p.inBreak:
		o.counters().InBreak++
	default:
		o.counters().Late++
	}
}

// wait puts the event into the window, which has room for it.
func (o *order) wait(e *callevent.Event, received int64, attributes []attribute) {
	place := o.window.place(e.Sequence)
	if place.kind != 0 {
		o.counters().Duplicates++
		return
	}
	place.set(e, received, o.settings.MaxClockJump, o.names)
	o.window.count++
	if len(attributes) > 0 {
		place.attributes = true
		o.attributes.put(e.Sequence, attributes)
	}
}

// waitMany is wait for the many. It stops at an event that need not wait or for which the
// window has no place, and returns the number of events before it. None has attributes.
func (o *order) waitMany(events []callevent.Event, received int64) (n int) {
	if o.ended {
		return 0
	}
	next, limit := o.next, uint64(o.settings.MaxEvents)
	for ; n < len(events); n++ {
		e := &events[n]
		if e.Sequence <= next {
			break
		}
		place := o.window.ready(e.Sequence, limit)
		if place == nil {
			break
		}
		if place.kind != 0 {
			o.counters().Duplicates++
			continue
		}
		place.set(e, received, o.settings.MaxClockJump, o.names)
		o.window.count++
	}
	return n
}

// pairWaiting pairs the waiting events from next on, up to the first missing one. The compiler inlines it: most events have no
// waiting ones behind them.
func (o *order) pairWaiting() {
	if o.window.count > 0 {
		o.pairRuns()
	}
}

func (o *order) pairRuns() {
	for !o.ended && o.window.has(o.next) {
		o.pairRun(o.window.run(o.next))
	}
}

// pairRun pairs the events of a run that begins with next. It stops at a missing event
// and behind a barrier.
func (o *order) pairRun(run []event) {
	for i := range run {
		e, sequence := &run[i], o.next
		if e.kind == 0 {
			return
		}
		var attributes []attribute
		if e.attributes {
			attributes = o.attributes.remove(sequence)
		}
		o.stacks.pair(e, sequence, attributes)
		o.window.removeFrom(e, sequence)
		if o.step(); o.next != sequence+1 || o.ended {
			return
		}
	}
}

// step advances to the next number, and past the barriers before it.
func (o *order) step() {
	o.next++
	o.fresh, o.gap = false, 0
	if o.barriers.stop <= o.next {
		o.cross()
	}
}

// acceptBarriers accepts the barriers of a batch. It returns the number below which all
// numbers are known, which was known before: a barrier proves the numbers before it.
func (o *order) acceptBarriers(barriers []callevent.Barrier, known uint64) uint64 {
	for _, b := range barriers {
		if o.ended {
			break
		}
		known = max(known, b.From)
		o.acceptBarrier(b)
	}
	return known
}

// acceptBarrier obeys the barrier if all numbers before it are done. Otherwise it
// remembers the barrier until then.
func (o *order) acceptBarrier(b callevent.Barrier) {
	for len(o.barriers.pending) >= maxPending && !o.ended && b.From > o.next {
		o.giveUp(o.barriers.stop)
	}
	switch {
	case o.ended:
	case b.From > o.next:
		o.barriers.note(b)
	default:
		o.obey(b)
		// An interval goes on to its end.
		o.cross()
		o.pairWaiting()
	}
}

// cross obeys the pending barriers that stand before the next number.
func (o *order) cross() {
	for !o.ended && o.barriers.stop <= o.next {
		o.obey(o.barriers.pop())
	}
}

// obey ends the calls that the barrier ends: rules 4 and 5. All numbers below From were
// paired or given up. If the barrier arrives late, so were later ones.
func (o *order) obey(b callevent.Barrier) {
	if !o.barriers.hear(b) {
		return
	}
	if b.Kind == callevent.BarrierEnd {
		o.stacks.endAll(b.Cause)
		o.ended = true
		return
	}
	o.counters().Breaks[b.Cause]++
	if b.To >= o.next {
		o.stacks.endAll(b.Cause)
	} else {
		o.stacks.endBefore(b.To, b.Cause)
	}
	if b.To > o.next {
		o.skipTo(b.To)
	}
}

// skipTo advances to a number past a break. It discards the events that wait below it,
// and remembers the missing numbers.
func (o *order) skipTo(to uint64) {
	for o.window.count > 0 && o.window.first() < to {
		waits := o.window.first()
		o.passed.append(passed{from: o.next, to: waits, inBreak: true})
		o.next = waits + 1
		if o.window.at(waits).attributes {
			o.attributes.remove(waits)
		}
		o.window.remove(waits)
		o.counters().InBreak++
	}
	o.passed.append(passed{from: o.next, to: to, inBreak: true})
	o.next, o.fresh = to, false
}

// makeRoom gives up the oldest gaps until the window has room for the number, or the
// number is the next.
func (o *order) makeRoom(sequence uint64) {
	for !o.ended && sequence > o.next && o.window.exceeds(uint64(o.settings.MaxEvents), sequence) {
		o.giveUp(sequence)
	}
}

// maxMissing bounds the count of one gap. Numbers are up to 2^62, and a sum of forged gaps
// must not overflow.
const maxMissing = 1 << 32

// giveUp gives up the missing numbers from next to the first waiting event, at most those
// below limit, and pairs the events behind them. The given-up numbers are a break. Either
// limit is a number, or something waits. Numbers inside an interval break are not missing,
// and neither are those from before the engine joined the stream.
func (o *order) giveUp(limit uint64) {
	to := limit
	if o.window.count > 0 {
		to = min(to, o.window.first())
	}
	if o.gap == 0 {
		o.gap = callevent.CauseGap
		if o.fresh {
			o.gap = callevent.CauseJoined
		}
		o.counters().Breaks[o.gap]++
		o.stacks.endAll(o.gap)
	}
	o.fresh = false
	for !o.ended && o.next < to {
		until := min(to, o.barriers.stop)
		if o.gap == callevent.CauseGap {
			o.counters().Missing += min(until-o.next, maxMissing)
		}
		o.passed.append(passed{from: o.next, to: until})
		o.next = until
		o.cross()
	}
	o.pairWaiting()
}

// giveUpAll gives up all gaps before waiting events.
func (o *order) giveUpAll() {
	for !o.ended && o.window.count > 0 {
		o.giveUp(never)
	}
}

// overdue is the number below which the missing ones are overdue at the time now.
func (o *order) overdue(now time.Duration) uint64 {
	return o.arrivals.knownBefore(now - o.settings.MaxWait)
}

// expire gives up the overdue numbers.
func (o *order) expire(now time.Duration) {
	for overdue := o.overdue(now); !o.ended && o.next < overdue; {
		o.giveUp(overdue)
	}
	o.arrivals.forget(o.next)
}

// end ends the stream for a cause that is not in its batches. It gives up all gaps, and
// truncates open frames.
func (o *order) end(cause callevent.Cause) {
	o.giveUpAll()
	if !o.ended {
		o.stacks.endAll(cause)
		o.ended = true
	}
}

// freeEnded frees the memory of an ended order. The rest recognises old events.
func (o *order) freeEnded() {
	o.counters().Late += uint64(o.window.count)
	*o = order{
		settings: o.settings, names: o.names, stacks: o.stacks,
		ended: true, next: o.next, passed: o.passed, barriers: barriers{stop: never},
	}
}

// bytes is about the memory of the order, without attributes.
func (o *order) bytes() int {
	return o.window.bytes() + o.attributes.tableBytes() + o.passed.bytes() + o.arrivals.bytes() + o.barriers.bytes()
}
