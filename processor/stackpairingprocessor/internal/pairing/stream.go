// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"math"
	"time"

	"github.com/callbraid/callbraid/internal/callevent"
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
	attributes     map[uint64][]Attribute
	mostAttributes int
	// attributeBytes is what attributes of waiting events and of open frames
	// take, stackBytes the lanes' stacks.
	attributeBytes, stackBytes int
}

// beforeAll is earlier than every event.
const beforeAll = math.MinInt64 / 2

// NewStream returns a stream of which nothing is known.
func NewStream(settings *Settings) *Stream {
	return &Stream{
		settings:   settings,
		names:      newNames(),
		barriers:   barriers{stop: never},
		laneIDs:    map[uint64]int32{},
		attributes: map[uint64][]Attribute{},
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
	if s.names.bytes > s.settings.MaxNameBytes {
		s.forgetNames()
	}
	if s.ended {
		s.countAfterEnd(b)
		return
	}
	known := b.Next
	for _, barrier := range b.Barriers {
		if s.ended {
			break
		}
		// Whoever knows of a barrier knows of the numbers before it.
		known = max(known, barrier.From)
		s.learnBarrier(barrier)
	}
	s.names.learn(b, s.settings.TraceRoot)
	out.ownValues(b)

	attributes := b.Attributes
	for first := 0; first < b.Len(); {
		n := b.Events(s.out.chunk[:], first)
		for i := range s.out.chunk[:n] {
			e := &s.out.chunk[i]
			known = max(known, e.Sequence+1)
			var own []Attribute
			if len(attributes) > 0 && int(attributes[0].Event) == first+i {
				own, attributes = out.ownAttributes(attributes)
			}
			s.accept(e, b.Received, own)
		}
		first += n
	}
	s.arrivals.forget(s.next)
	if known > s.next {
		s.arrivals.rise(known, now, s.settings.MaxWait/64)
	}
	s.trim()
}

// accept takes one event of the batch that is being taken.
func (s *Stream) accept(e *callevent.Event, received int64, attributes []Attribute) {
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

// countAfterEnd counts the events of a batch that comes after the end.
func (s *Stream) countAfterEnd(b *callevent.Batch) {
	for first := 0; first < b.Len(); {
		n := b.Events(s.out.chunk[:], first)
		for _, e := range s.out.chunk[:n] {
			if e.Sequence < s.next {
				s.old(e.Sequence)
			} else {
				s.out.Counters.Late++
			}
		}
		first += n
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

// makeRoom gives up what has been waited for longest until the window has room
// for the number, or the number is the next.
func (s *Stream) makeRoom(sequence uint64) {
	for !s.ended && sequence > s.next && s.window.exceeds(uint64(s.settings.MaxEvents), sequence) {
		s.giveUp(sequence)
	}
}

// wait puts the event into the window, which has room for it.
func (s *Stream) wait(e *callevent.Event, received int64, attributes []Attribute) {
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

// advance pairs what waits from the next number on.
func (s *Stream) advance() {
	for !s.ended && s.window.has(s.next) {
		place := s.window.at(s.next)
		var attributes []Attribute
		if place.attributes {
			attributes = s.takeAttributes(s.next)
		}
		s.pair(place, s.next, attributes)
		s.window.remove(s.next)
		s.step()
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

// pair brings the event to its lane, at its time: rule 7.
func (s *Stream) pair(e *event, sequence uint64, attributes []Attribute) {
	if e.kind == callevent.KindSkip {
		return
	}
	t := e.time + s.offset
	// A difference of times may not fit into 63 bits.
	behind := t < s.last && uint64(s.last-t) > uint64(s.settings.MaxClockJump)
	if behind || e.ahead && t-e.received() > s.settings.MaxClockJump {
		s.setClock(e, sequence)
	} else {
		s.last = max(t, s.last+1)
	}
	l := s.lane(e.lane)
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

// setClock ends all stacks because the clock jumped, and sets it anew: a time
// that is too far ahead becomes the time of receipt, and any other is taken as
// it is.
func (s *Stream) setClock(e *event, sequence uint64) {
	s.out.Counters.Breaks[callevent.CauseClock]++
	s.truncateBefore(sequence, callevent.CauseClock)
	s.offset = 0
	if e.ahead {
		s.offset = e.received() - e.time
	}
	s.last = e.time + s.offset
}

// lane gives the lane that is called by the number, which it may make.
func (s *Stream) lane(name uint32) *lane {
	n := &s.names.laneNames[name]
	if n.lane != noLane {
		return &s.lanes[n.lane]
	}
	index, ok := s.laneIDs[n.id]
	if !ok {
		if len(s.lanes) >= s.settings.MaxLanes {
			s.forgetLanes()
		}
		index = int32(len(s.lanes))
		s.lanes = append(s.lanes, lane{id: n.id, continuation: noTrace})
		s.laneIDs[n.id] = index
	}
	n.lane = index
	return &s.lanes[index]
}

// forgetLanes makes room where there are too many lanes: those without open
// frames are forgotten, and if that is less than half, all are.
func (s *Stream) forgetLanes() {
	kept := s.lanes[:0]
	busy := 0
	for i := range s.lanes {
		if len(s.lanes[i].frames) > 0 {
			busy++
		}
	}
	for i := range s.lanes {
		l := s.lanes[i]
		if busy > len(s.lanes)/2 {
			s.truncate(&l, 0, callevent.CauseLimit, s.last)
		}
		if len(l.frames) > 0 {
			kept = append(kept, l)
		} else {
			s.traces.release(l.continuation)
			s.drop(&l)
		}
	}
	clear(s.lanes[len(kept):])
	s.lanes = kept
	clear(s.laneIDs)
	for i := range s.lanes {
		s.laneIDs[s.lanes[i].id] = int32(i)
	}
	for i := range s.names.laneNames {
		s.names.laneNames[i].lane = noLane
	}
}

// forgetNames begins anew with names where there are too many: what waits is
// given up to the end, and open frames are truncated.
func (s *Stream) forgetNames() {
	for !s.ended && s.window.count > 0 {
		s.giveUp(never)
	}
	if s.ended {
		s.trim()
		return
	}
	s.truncateBefore(s.next, callevent.CauseLimit)
	s.out.Counters.Breaks[callevent.CauseLimit]++
	for i := range s.lanes {
		s.traces.release(s.lanes[i].continuation)
	}
	s.lanes, s.laneIDs, s.stackBytes = nil, map[uint64]int32{}, 0
	s.names = newNames()
}

// Forget ends all that is known of stacks and names, to hold less.
func (s *Stream) Forget(out *Output) {
	s.out = out
	defer s.letGo()
	if !s.ended {
		s.forgetNames()
		s.window.shrink()
	}
}

// maxMissing is the most that a gap counts as: numbers are up to 2^62, and a sum
// of gaps must not overflow because somebody sends nonsense.
const maxMissing = 1 << 32

// giveUp gives up the missing numbers from next to the first that waits, at
// most those below limit, which is a break. There is such a limit, or something
// waits. Numbers in a break that is an interval are not missing, nor are those
// from before the stream was joined.
func (s *Stream) giveUp(limit uint64) {
	to := limit
	if s.window.count > 0 {
		to = min(to, s.window.first())
	}
	if s.lost == 0 {
		s.lost = callevent.CauseGap
		if s.fresh {
			s.lost = callevent.CauseJoined
		}
		s.out.Counters.Breaks[s.lost]++
		s.truncateBefore(s.next, s.lost)
	}
	s.fresh = false
	for !s.ended && s.next < to {
		until := min(to, s.barriers.stop)
		if s.lost == callevent.CauseGap {
			s.out.Counters.Missing += min(until-s.next, maxMissing)
		}
		s.passed.add(passed{from: s.next, to: until})
		s.next = until
		s.cross()
	}
	s.advance()
}

// GiveUpOldest gives up the oldest missing numbers, to hold less. It reports
// false if nothing waits.
func (s *Stream) GiveUpOldest(out *Output) bool {
	s.out = out
	defer s.letGo()
	if s.window.count == 0 {
		return false
	}
	s.giveUp(never)
	s.trim()
	s.window.shrink()
	return true
}

// Due reports whether Expire has something to do: something was missing for too
// long, or memory can be given back.
func (s *Stream) Due(now time.Duration) bool {
	s.window.tighten()
	return !s.ended && s.next < s.arrivals.knownBefore(now-s.settings.MaxWait) || s.window.idle()
}

// Expire gives up what has been missing for longer than MaxWait. now is the
// monotonic time that Take was told, which stands still where waiting is not
// the stream's fault.
func (s *Stream) Expire(now time.Duration, out *Output) {
	s.out = out
	defer s.letGo()
	for overdue := s.arrivals.knownBefore(now - s.settings.MaxWait); !s.ended && s.next < overdue; {
		s.giveUp(overdue)
	}
	s.arrivals.forget(s.next)
	s.trim()
	s.window.shrink()
}

// End ends the stream for a reason that is not in its batches: what waits is
// given up to, and open frames are truncated.
func (s *Stream) End(cause callevent.Cause, out *Output) {
	s.out = out
	defer s.letGo()
	for !s.ended && s.window.count > 0 {
		s.giveUp(never)
	}
	if !s.ended {
		s.truncateBefore(never, cause)
		s.ended = true
	}
	s.trim()
}

// trim frees what an ended stream no longer needs; what is left tells that its
// events are old.
func (s *Stream) trim() {
	if !s.ended {
		return
	}
	s.out.Counters.Late += uint64(s.window.count)
	*s = Stream{settings: s.settings, out: s.out, ended: true, next: s.next, passed: s.passed, barriers: barriers{stop: never}}
}

// discard takes the lowest waiting event out, with what belongs to it.
func (s *Stream) discard(sequence uint64) {
	if s.window.at(sequence).attributes {
		s.takeAttributes(sequence)
	}
	s.window.remove(sequence)
}
