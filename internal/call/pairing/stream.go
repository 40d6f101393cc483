// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// Stream pairs the call events of one call stream.
//
// Its state is: next, the lowest number that has neither been paired nor given
// up; the window of events above it that wait; the barriers ahead; and the
// lanes with their open frames. Every method ends with nothing left to do: the
// event at next is missing, and no barrier stands before it.
type Stream struct {
	settings *Settings
	// out is where finished calls go, during a call of a method.
	out *Output

	names    names
	window   window
	arrivals arrivals
	passed   ranges
	barriers barriers
	traces   traces

	lanes []lane
	// laneIDs gives the index in lanes.
	laneIDs map[uint64]int32
	// breaks is how often the knowledge of stacks ended.
	breaks uint64
	// open counts the open frames of all lanes.
	open int

	next uint64
	// direct is the event that is paired without waiting.
	direct event
	// fresh: the stream has not begun yet, neither with number 0 nor elsewhere.
	fresh bool
	// lost is the cause of the break before next, if numbers were given up since
	// the last event: numbers missing right after them are of the same break.
	lost  callevent.Cause
	ended bool

	// last is the time of the last event, in Unix nanoseconds, or beforeAll;
	// offset is what was added to the source's clock when it was set anew.
	last, offset int64

	// attributes of waiting events, by number, of which there were mostAttributes
	// at once since the map was made.
	attributes     map[uint64][]attribute
	mostAttributes int
	// attributeBytes is what attributes of waiting events and of open frames
	// take, stackBytes the lanes' stacks.
	attributeBytes, stackBytes int
}

// NewStream returns a stream of which nothing is known.
func NewStream(settings *Settings) *Stream {
	return &Stream{
		settings:   settings,
		names:      newNames(),
		barriers:   barriers{stop: never},
		laneIDs:    map[uint64]int32{},
		attributes: map[uint64][]attribute{},
		fresh:      true,
		last:       beforeAll,
	}
}

// letGo forgets the output when a method ends: it belongs to others, who may
// keep it for a long time or not at all.
func (s *Stream) letGo() { s.out = nil }

// Waiting is the number of events that wait for earlier ones.
func (s *Stream) Waiting() int { return s.window.count }

// OpenFrames is the number of calls that have not ended.
func (s *Stream) OpenFrames() int { return s.open }

// Ended reports whether nothing of the stream follows.
func (s *Stream) Ended() bool { return s.ended }

// Take takes a batch of the stream, at the monotonic time now, and puts what is
// finished by it into out:
//
//  1. What the batch says of the whole stream is learned: its barriers and the
//     highest number.
//  2. Its names are given the stream's numbers.
//  3. Each event that is the next is paired at once; one above it waits in the
//     window; one below it is old, and only counted.
//  4. What stands behind an event that was missing, and waits, is paired.
func (s *Stream) Take(b *callevent.Batch, now time.Duration, out *Output) {
	s.out = out
	defer s.letGo()
	out.Counters.Events += uint64(b.Len())
	if s.settings.MinDuration > 0 && s.settings.MinDuration < b.Resolution {
		out.Counters.BelowResolution = true
	}
	s.boundNames()
	known := b.Next
	var attributes []callevent.Attribute
	if !s.ended {
		known, attributes = s.learn(b), b.Attributes
	}
	for first := 0; first < b.Len(); {
		n := b.Events(s.out.chunk[:], first)
		for i := 0; i < n; i++ {
			if len(attributes) == 0 {
				i += s.waitAll(s.out.chunk[i:n], b.Received)
				if i == n {
					break
				}
			}
			e := &s.out.chunk[i]
			var own []attribute
			if len(attributes) > 0 && int(attributes[0].Event) == first+i {
				own, attributes = out.ownAttributes(attributes)
			}
			s.accept(e, b.Received, own)
		}
		first += n
	}
	known = max(known, s.next, s.window.next())
	s.arrivals.forget(s.next)
	if known > s.next {
		s.arrivals.rise(known, now, s.settings.MaxWait/64)
	}
	s.trim()
}

// learn learns what the batch says beside its events: barriers, names and
// values. It gives the number below which all numbers are known by that.
func (s *Stream) learn(b *callevent.Batch) (known uint64) {
	known = b.Next
	// Before the barriers, which may end the wait of events.
	s.learnRenames(b)
	for _, barrier := range b.Barriers {
		if s.ended {
			break
		}
		// Whoever knows of a barrier knows of the numbers before it.
		known = max(known, barrier.From)
		s.learnBarrier(barrier)
	}
	s.names.learn(b, s.settings.TraceRoot)
	s.out.ownValues(b)
	return known
}

// accept takes one event of the batch that is being taken.
func (s *Stream) accept(e *callevent.Event, received int64, attributes []attribute) {
	if e.Sequence > s.next && !s.ended && !s.window.roomy(e.Sequence, s.settings.MaxEvents) {
		s.makeRoom(e.Sequence)
	}
	switch {
	case e.Sequence < s.next:
		s.old(e.Sequence)
	case s.ended:
		s.out.Counters.Late++
	case e.Sequence > s.next:
		s.wait(e, received, attributes)
	default:
		s.translate(e, received, &s.direct)
		s.pair(&s.direct, e.Sequence, attributes)
		s.step()
		s.advance()
	}
}

// translate makes into an event of the batch with the stream's numbers for its
// names.
func (s *Stream) translate(e *callevent.Event, received int64, into *event) {
	// No clock shows a time before 1970.
	t := max(e.Time, 0)
	into.time, into.line = t, e.Line
	into.function, into.lane, into.exception = 0, 0, 0
	into.kind, into.ahead, into.attributes = e.Kind, t-received > s.settings.MaxClockJump, false
	into.setReceived(received)
	if e.Kind == callevent.KindSkip {
		return
	}
	into.lane = s.names.batchLanes[e.Lane]
	if e.Kind != callevent.KindExitTop {
		into.function = s.names.batchFunctions[e.Function]
	}
	if e.Kind >= callevent.KindThrow {
		into.exception = s.names.batchExceptions[e.Exception]
	}
}

// old counts an event whose number has been passed.
func (s *Stream) old(sequence uint64) {
	p, found := s.passed.remove(sequence)
	switch {
	case !found:
		s.out.Counters.Duplicates++
	case p.inBreak:
		s.out.Counters.InBreak++
	default:
		s.out.Counters.Late++
	}
}

// wait puts the event into the window, which has room for it.
func (s *Stream) wait(e *callevent.Event, received int64, attributes []attribute) {
	place := s.window.place(e.Sequence)
	if place.kind != 0 {
		s.out.Counters.Duplicates++
		return
	}
	s.translate(e, received, place)
	s.window.count++
	if len(attributes) > 0 {
		place.attributes = true
		s.keepAttributes(e.Sequence, attributes)
	}
}

// waitAll puts events into the window as long as they go there, have a place, and
// have no attributes, and says how many those were. It is wait for the many.
func (s *Stream) waitAll(events []callevent.Event, received int64) (n int) {
	if s.ended {
		return 0
	}
	least, limit := s.next, uint64(s.settings.MaxEvents)
	for ; n < len(events); n++ {
		e := &events[n]
		if e.Sequence <= least {
			break
		}
		place := s.window.ready(e.Sequence, limit)
		if place == nil {
			break
		}
		if place.kind != 0 {
			s.out.Counters.Duplicates++
			continue
		}
		s.translate(e, received, place)
		s.window.count++
	}
	return n
}

// advance pairs what waits from the next number on.
func (s *Stream) advance() {
	for !s.ended && s.window.has(s.next) {
		s.pairRun(s.window.run(s.next))
	}
}

// pairRun pairs the events of a run, which begins with the next number: up to the
// first that is missing, or behind a barrier.
func (s *Stream) pairRun(run []event) {
	for i := range run {
		e, sequence := &run[i], s.next
		if e.kind == 0 {
			return
		}
		var attributes []attribute
		if e.attributes {
			attributes = s.takeAttributes(sequence)
		}
		s.pair(e, sequence, attributes)
		s.window.removeFrom(e, sequence)
		if s.step(); s.next != sequence+1 || s.ended {
			return
		}
	}
}

// step goes on to the next number, and past the barriers before it.
func (s *Stream) step() {
	s.next++
	s.fresh, s.lost = false, 0
	if s.barriers.stop <= s.next {
		s.cross()
	}
}

// pair brings the event to its lane, at its time.
func (s *Stream) pair(e *event, sequence uint64, attributes []attribute) {
	if e.kind == callevent.KindSkip {
		return
	}
	s.tick(e, sequence)
	l := s.lane(e.lane)
	if l.reuse != nil && s.pairReused(l, e, sequence, attributes) {
		return
	}
	switch e.kind {
	case callevent.KindEnter:
		s.enter(l, e, sequence, attributes)
	case callevent.KindExit:
		s.exit(l, e, attributes)
	case callevent.KindExitTop:
		s.exitTop(l, e, attributes)
	case callevent.KindThrow:
		s.throw(l, e, attributes)
	case callevent.KindUnwind:
		s.unwind(l, e, attributes)
	}
}
