// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"fmt"
	"math"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
)

// batcher packs the call events of one connection into batches of its own: the
// order between connections is the processor's work, so they share nothing for an
// event. It is for one goroutine.
type batcher struct {
	stream   *stream
	id       callevent.StreamID
	maxDelay time.Duration
	// hand takes a finished batch.
	hand func(batch callevent.Packed)
	// closing is called before a batch is closed: whatever has been said of its
	// events has to be known then.
	closing func()
	// reckon says for which time on events that wait for names can give up, if
	// there is one: those that came early enough before it.
	reckon func(now time.Time) (begun time.Time, over bool)

	packer                     *callevent.Packer
	methods, exceptions, lanes idCache
	pending                    pending
	unplaced                   unplaced
	// remaps are those of the names that the caches know of.
	remaps uint32
	// barriers and tidings are where those of a batch are collected.
	barriers []callevent.Barrier
	tidings  []callevent.Rename

	// first and last are the smallest and largest number of the batch; opened is
	// when the first of what is in it came.
	first, last uint64
	opened      time.Time

	// dropped is how many events were dropped because the run's memory is full.
	dropped int
}

// stream is what the connections of a run share of its call stream.
type stream struct {
	numbering
	clock    agentClock
	names    *names
	barriers barriers
	tidings  tidings
	memory   *memory
	counts   *telemetry
	// now is the time; tests have their own.
	now func() time.Time
}

func newBatcher(s *stream, id callevent.StreamID, config *Config, hand func(callevent.Packed)) (*batcher, error) {
	packer, err := newPacker(s, id, config.Batch.MaxBytes)
	if err != nil {
		return nil, err
	}
	return &batcher{
		stream:     s,
		id:         id,
		maxDelay:   config.Batch.MaxDelay,
		hand:       hand,
		closing:    func() {},
		reckon:     func(now time.Time) (time.Time, bool) { return now, true },
		packer:     packer,
		methods:    newIDCache(s.memory),
		exceptions: newIDCache(s.memory),
		lanes:      newIDCache(s.memory),
		pending:    pending{memory: s.memory, wait: config.NameWait},
		first:      math.MaxUint64,
	}, nil
}

func newPacker(s *stream, id callevent.StreamID, maxBytes int) (*callevent.Packer, error) {
	return callevent.NewPacker(callevent.Stream{
		ID:         id,
		Epoch:      s.clock.zero.UnixNano(),
		Resolution: int64(tick),
		TextKey:    attributeSignature,
	}, maxBytes)
}

// The types of call events follow one another from firstEvent.
const (
	firstEvent = bytefrog.TypeMethodEntry
	eventTypes = 4
)

// kinds are the call events in the order of their types.
var kinds = [eventTypes]callevent.Kind{
	bytefrog.TypeMethodEntry - firstEvent:     callevent.KindEnter,
	bytefrog.TypeMethodExit - firstEvent:      callevent.KindExit,
	bytefrog.TypeException - firstEvent:       callevent.KindThrow,
	bytefrog.TypeExceptionBubble - firstEvent: callevent.KindUnwind,
}

// noLine is what an agent sends where it knows no line, beside 0.
const noLine = math.MaxUint16

// passAll says that events come next. They may be packed later, and in pieces.
func (b *batcher) passAll(events []bytefrog.Event, now time.Time) {
	reference, clock := b.stream.next.Load(), b.stream.clock.expected(now)
	// Renames ask for the two messages behind them, and for the last before.
	for _, e := range events[:min(2, len(events))] {
		b.pass(unwrapSequence(reference, e.Sequence), unwrapTicks(clock, e.Time), now)
	}
	if n := len(events); n > 2 {
		b.pass(unwrapSequence(reference, events[n-1].Sequence), unwrapTicks(clock, events[n-1].Time), now)
	}
}

// add packs events that have passed. The error says which of them, by its index, has a
// sequence number that cannot be; those before it are packed. It is a
// *bytefrog.ProtocolError.
func (b *batcher) add(events []bytefrog.Event, now time.Time) (bad int, err error) {
	s := b.stream
	reference, clock := s.next.Load(), s.clock.expected(now)
	b.refresh()
	next, first, last := reference, b.first, b.last
	var out callevent.Event
	for i := range events {
		e := &events[i]
		sequence, ticks := unwrapSequence(reference, e.Sequence), unwrapTicks(clock, e.Time)
		if !validSequence(sequence) {
			b.first, b.last = first, last
			s.advance(next, uint64(i))
			return i, notOfTheRun(sequenceOffset, e.Sequence, reference)
		}
		next = max(next, sequence+1)
		method, methodKnown := b.methods.lookup(e.Method)
		lane, laneKnown := b.lanes.lookup(uint32(e.Thread))
		exception, exceptionKnown := uint16(0), true
		if e.Type >= bytefrog.TypeException {
			exception, exceptionKnown = b.exceptions.lookup(e.Exception)
		}
		line := uint32(e.Line)
		if line == noLine {
			line = 0
		}
		// Field by field: a whole struct would be built elsewhere and copied, and
		// the copy has to wait for the smaller writes that it reads.
		out.Sequence, out.Time, out.Line = sequence, ticks, line
		out.Lane, out.Function, out.Exception = lane, method, exception
		out.Kind = kinds[(e.Type-firstEvent)%eventTypes]
		if methodKnown && laneKnown && exceptionKnown && b.packer.Add(&out) {
			first, last = min(first, sequence), max(last, sequence)
			continue
		}
		b.first, b.last = first, last
		b.admit(numbered{
			sequence: sequence, ticks: ticks, method: e.Method, exception: e.Exception,
			line: uint16(line), thread: e.Thread, kind: out.Kind,
		}, now)
		first, last = b.first, b.last
	}
	b.first, b.last = first, last
	s.advance(next, uint64(len(events)))
	if n := len(events); n > 0 {
		s.clock.saw(unwrapTicks(clock, events[n-1].Time), now)
		b.open(now)
	}
	return 0, nil
}

// sequenceOffset is where the sequence number stands in call events and markers.
const sequenceOffset = 5

// notOfTheRun is the error for a sequence number, at an offset of a message, that
// the run cannot have got to.
func notOfTheRun(offset int, n uint32, next uint64) error {
	return &bytefrog.ProtocolError{
		Offset:   offset,
		Expected: "a sequence number of the run",
		Got:      fmt.Sprintf("sequence number %d where %d is next", n, next),
	}
}

// skip packs a number that the agent used for something that is no call.
func (b *batcher) skip(sequence uint64, ticks int64, now time.Time) {
	b.pass(sequence, ticks, now)
	e := callevent.Event{Kind: callevent.KindSkip, Sequence: sequence, Time: ticks}
	if !b.packer.Add(&e) {
		b.flush()
		b.packer.Add(&e)
	}
	b.first, b.last = min(b.first, sequence), max(b.last, sequence)
	b.open(now)
}

// open says that there is something in the batch since now, if there was nothing.
func (b *batcher) open(now time.Time) {
	if b.opened.IsZero() && b.packer.Len()+b.packer.Renames() > 0 {
		b.opened = now
	}
}

// refresh forgets what other names than those that the caches know of may have
// made wrong.
func (b *batcher) refresh() {
	if n := b.stream.names.remaps.Load(); n != b.remaps {
		b.remaps = n
		b.methods.forget()
		b.exceptions.forget()
	}
}

// admit packs an event for which the caches had no answer, or lets it wait for
// its names. When the memory is full the names are gone, and the event is dropped.
func (b *batcher) admit(e numbered, now time.Time) {
	if b.pack(&e, false) || b.pending.add(e, now) {
		return
	}
	if b.stream.memory.isFull() {
		b.dropped++
		return
	}
	b.pack(&e, true)
	b.stream.counts.namesUnknown(1)
}

// pack packs an event by its names, and reports false when one of them is not
// known; with force it is then packed by its number.
func (b *batcher) pack(e *numbered, force bool) bool {
	for {
		out := callevent.Event{Sequence: e.sequence, Time: e.ticks, Line: uint32(e.line), Kind: e.kind}
		r := b.identify(e, &out, force)
		if r == nameUnknown {
			return false
		}
		if r == identified && b.packer.Add(&out) {
			b.first, b.last = min(b.first, e.sequence), max(b.last, e.sequence)
			return true
		}
		// The batch is full. Any event fits into an empty one.
		b.flush()
	}
}

// attend packs what has waited for names that are there now, or for too long, places
// renames that nothing has followed, and closes the batch when it is old.
func (b *batcher) attend(now time.Time) {
	b.attendNames(now)
	if b.unplaced.due(now) {
		// Events on other connections go on, so that is said at once.
		b.place(len(b.unplaced.renames), passed{}, now)
		b.flush()
	}
	b.flushOld(now)
}

// attendUnread is attend while the connection is not read: what follows a rename may
// stand on it.
func (b *batcher) attendUnread(now time.Time) {
	b.attendNames(now)
	b.flushOld(now)
}

func (b *batcher) attendNames(now time.Time) {
	if b.pending.due(b.stream.names.arrivals.Load(), now) {
		b.retry(now, time.Time{})
	}
	if b.pending.overdue(now) {
		if begun, over := b.reckon(now); over {
			b.retry(now, begun)
		}
	}
}

func (b *batcher) flushOld(now time.Time) {
	if !b.opened.IsZero() && now.Sub(b.opened) >= b.maxDelay {
		b.flush()
	}
}

// forEver is longer than any event waits.
const forEver = 100 * 365 * 24 * time.Hour

// settle tries all that waits for names; with force, none waits any longer.
func (b *batcher) settle(now time.Time, force bool) {
	until := time.Time{}
	if force {
		until = now.Add(forEver)
	}
	b.retry(now, until)
}

// retry tries all that waits for names; what has waited long enough at the time
// until waits no longer.
func (b *batcher) retry(now, until time.Time) {
	if b.stream.memory.isFull() {
		b.dropped += b.pending.drop()
		return
	}
	b.refresh()
	var late, unknown int64
	b.pending.try(b.stream.names.arrivals.Load(), now, until, func(e *numbered, overdue bool) bool {
		if b.pack(e, false) {
			late++
			return true
		}
		if overdue {
			unknown++
			return b.pack(e, true)
		}
		return false
	})
	b.open(now)
	b.stream.counts.namesLate(late)
	b.stream.counts.namesUnknown(unknown)
}

// wake is when attend has something to do, or zero.
func (b *batcher) wake(now time.Time) time.Time {
	wake := earliest(b.pending.wake(now), b.unplaced.wake())
	if !b.opened.IsZero() {
		wake = earliest(wake, b.opened.Add(b.maxDelay))
	}
	return wake
}

// earliest is the earlier of two times, of which zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// flush hands on the batch, if there is anything in it, and begins the next.
func (b *batcher) flush() {
	// What follows them may be in this batch.
	b.place(b.unplaced.followed(), passed{}, b.opened)
	if b.packer.Len()+b.packer.Renames() > 0 {
		batch, err := b.close()
		if err == nil {
			b.hand(batch)
		} else {
			// Nothing that was let in makes a batch impossible; should it be so
			// after all, it costs these events and not the process.
			b.stream.counts.batchDropped(b.packer.Len(), droppedInvalid)
		}
		b.stream.memory.give(b.stream.tidings.handedOn(b))
	}
	b.packer.Reset()
	b.methods.forget()
	b.exceptions.forget()
	b.lanes.forget()
	b.first, b.last, b.opened = math.MaxUint64, 0, time.Time{}
}

// close closes the batch, in which there is something.
func (b *batcher) close() (callevent.Packed, error) {
	if b.packer.Len() == 0 {
		return b.packer.Close(nil, b.stream.next.Load(), b.stream.now().UnixNano())
	}
	b.closing()
	b.barriers = b.stream.barriers.concerning(b.barriers[:0], b.first, b.last)
	b.tellRenames(len(b.barriers))
	next := max(b.stream.next.Load(), b.last+1)
	return b.packer.Close(b.barriers, next, b.stream.now().UnixNano())
}
