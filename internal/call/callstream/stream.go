// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package callstream numbers the call events of one call stream, and packs them into batches with the breaks of the
// stream. It is for receivers whose tracer sends no sequence numbers. It knows no protocol and no process.
package callstream

import (
	"math"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// Function is a function in the tables of batches. It belongs to one Stream.
type Function struct {
	callevent.Function
	// Size is the number of bytes of its code, or 0 if that is not known. Streams do not use it.
	Size       uint64
	index      uint16
	generation uint32
}

// Lane is a thread, or a key of a call rule, in the tables of batches. It belongs to one Stream.
type Lane struct {
	callevent.Lane
	index      uint16
	generation uint32
}

// Details are the optional parts of a call event.
type Details struct {
	// Attributes are attributes of the span of the call.
	Attributes []callevent.KeyValue
	// Failure is the error that the function returned, for callevent.KindFail.
	Failure string
}

// Output delivers the batches of a stream.
type Output interface {
	// SendBatch delivers a batch of so many events, and may wait for the pipeline.
	SendBatch(batch callevent.Packed, events int)
	// OfferBatch delivers an empty batch, unless the pipeline is busy.
	OfferBatch(callevent.Packed)
	// DropBatch counts the events of an impossible batch.
	DropBatch(events int)
}

// Settings are common to all call streams of a reader.
type Settings struct {
	// TextKey is the span attribute that has a function's text as the tracer recorded it.
	TextKey string
	// MaxBytes and MaxDelay close a batch: its size, and the time since its first event.
	MaxBytes int
	MaxDelay time.Duration
	// KeepaliveInterval is the interval of empty batches while there are no events.
	KeepaliveInterval time.Duration
	Now               func() time.Time
}

// Stream is the call stream of a process. It has numbers and breaks from New on, and batches from Open on. One
// goroutine at a time may use it.
type Stream struct {
	settings *Settings
	output   Output
	// next is the sequence number of the next call event.
	next   uint64
	breaks breaks

	// packer is nil before the first call event and after the end.
	packer *callevent.Packer
	// first is the smallest number in the batch. opened is when the batch got its first event, closed
	// when the last batch was delivered.
	first          uint64
	opened, closed time.Time
	barriers       []callevent.Barrier
}

// maxFreshBreaks is the number of new breaks that closes a batch: it also needs room for older ones.
const maxFreshBreaks = callevent.MaxBarriers / 2

// New returns a stream. Its first call event has the sequence number next.
func New(settings *Settings, output Output, next uint64) *Stream {
	return &Stream{settings: settings, output: output, next: next, first: math.MaxUint64, closed: settings.Now()}
}

// Open prepares the stream for its first call event.
func (s *Stream) Open(id callevent.StreamID) error {
	packer, err := callevent.NewPacker(callevent.Stream{ID: id, Resolution: 1, TextKey: s.settings.TextKey}, s.settings.MaxBytes)
	if err != nil {
		return err
	}
	s.packer = packer
	return nil
}

// IsOpen reports whether the stream has or had call events, and has not ended.
func (s *Stream) IsOpen() bool { return s.packer != nil }

// Next returns the number of the next call event.
func (s *Stream) Next() uint64 { return s.next }

// AssignNumber returns the number of a call event.
func (s *Stream) AssignNumber() uint64 {
	n := s.next
	s.next++
	return n
}

// Packed returns the number of events in the current batch.
func (s *Stream) Packed() int { return s.packer.Len() }

// Held returns the size of the current batch in memory, in bytes.
func (s *Stream) Held() int {
	if s.packer == nil {
		return 0
	}
	return s.packer.Held()
}

// Pack packs a call event with its number. Function and details may be nil.
func (s *Stream) Pack(kind callevent.Kind, number uint64, nanos int64, f *Function, l *Lane, with *Details) {
	for !s.tryPack(kind, number, nanos, f, l, with) {
		s.makeRoom()
	}
	s.packed(number)
}

// PackFrom packs the entry of f with its number. The caller was entered before. Calls above it have ended without an
// exit.
func (s *Stream) PackFrom(number uint64, nanos int64, f, caller *Function, l *Lane) {
	for !s.tryPackFrom(number, nanos, f, caller, l) {
		s.makeRoom()
	}
	s.packed(number)
}

// makeRoom begins another batch: the batch is full, or its times lie too far apart. Every event fits into an empty
// batch.
func (s *Stream) makeRoom() {
	s.Flush()
	if s.packer.Len() == 0 {
		s.packer.Reset()
	}
}

// packed notes that the batch got the event with a number.
func (s *Stream) packed(number uint64) {
	s.first = min(s.first, number)
	if s.opened.IsZero() {
		s.opened = s.settings.Now()
	}
}

func (s *Stream) tryPack(kind callevent.Kind, number uint64, nanos int64, f *Function, l *Lane, with *Details) bool {
	generation := s.packer.Generation()
	if l.generation != generation && !s.enterLane(l) || f != nil && f.generation != generation && !s.enterFunction(f) {
		return false
	}
	e := callevent.Event{Sequence: number, Time: nanos, Lane: l.index, Kind: kind}
	if f != nil {
		e.Function = f.index
	}
	if with == nil {
		return s.packer.Add(&e)
	}
	if kind == callevent.KindFail {
		exception, ok := s.packer.Exception(with.Failure)
		if !ok {
			return false
		}
		e.Exception = exception
	}
	return s.packer.AddWith(&e, with.Attributes)
}

// tryPackFrom is tryPack for the entry of f whose caller is known.
func (s *Stream) tryPackFrom(number uint64, nanos int64, f, caller *Function, l *Lane) bool {
	if !s.enterLane(l) || !s.enterFunction(f) || !s.enterFunction(caller) {
		return false
	}
	return s.packer.Add(&callevent.Event{
		Sequence: number, Time: nanos, Lane: l.index, Kind: callevent.KindEnterFrom, Function: f.index, Exception: caller.index,
	})
}

// enterLane enters a lane into the table of the batch. It returns false if the batch is full.
func (s *Stream) enterLane(l *Lane) bool {
	index, ok := s.packer.Lane(l.Lane)
	if ok {
		l.index, l.generation = index, s.packer.Generation()
	}
	return ok
}

// enterFunction enters a function into the table of the batch. It returns false if the batch is full.
func (s *Stream) enterFunction(f *Function) bool {
	index, ok := s.packer.Function(&f.Function)
	if ok {
		f.index, f.generation = index, s.packer.Generation()
	}
	return ok
}

// BreakHere breaks the stream before the next call event.
func (s *Stream) BreakHere(cause callevent.Cause) { s.breaks.append(callevent.Point(s.next, cause)) }

// BreakSince breaks the stream from a number to the next call event.
func (s *Stream) BreakSince(from uint64, cause callevent.Cause) {
	s.breaks.append(callevent.Interval(from, s.next, cause))
}

// BeginBreak opens a break until EndBreak, unless one is open.
func (s *Stream) BeginBreak(cause callevent.Cause) { s.breaks.begin(s.next, cause) }

// IsBroken reports whether a break has begun and not ended.
func (s *Stream) IsBroken() bool { return s.breaks.isOpen }

// EndBreak closes the open break, if there is one.
func (s *Stream) EndBreak() { s.breaks.finish(s.next) }

// FlushBreaks delivers the batch if it has many new breaks.
func (s *Stream) FlushBreaks() {
	if s.breaks.fresh >= maxFreshBreaks {
		s.Flush()
	}
}

// DeliverDue delivers the batch if it is old enough or has many breaks, and an empty batch if the
// stream had no events for the keep-alive interval.
func (s *Stream) DeliverDue(now time.Time) {
	switch {
	case !s.opened.IsZero() && now.Sub(s.opened) >= s.settings.MaxDelay, s.breaks.fresh >= maxFreshBreaks:
		s.Flush()
	case s.opened.IsZero() && s.breaks.unsent:
		s.Flush()
	case s.opened.IsZero() && now.Sub(s.closed) >= s.settings.KeepaliveInterval:
		if batch, ok := s.closeBatch(); ok {
			s.output.OfferBatch(batch)
		}
		s.beginBatch()
	}
}

// Flush delivers the batch, if it has events or new breaks, and begins the next.
func (s *Stream) Flush() {
	if s.packer == nil || s.packer.Len() == 0 && !s.breaks.unsent {
		return
	}
	events := s.packer.Len()
	if batch, ok := s.closeBatch(); ok {
		s.output.SendBatch(batch, events)
	}
	s.beginBatch()
}

func (s *Stream) closeBatch() (callevent.Packed, bool) {
	s.barriers = s.breaks.appendConcerning(s.barriers[:0], min(s.first, s.next), s.next)
	batch, err := s.packer.Close(s.barriers, s.next, s.settings.Now().UnixNano())
	if err != nil {
		// No accepted event makes a batch impossible. If one does, only these events are dropped.
		s.output.DropBatch(s.packer.Len())
		return callevent.Packed{}, false
	}
	return batch, true
}

func (s *Stream) beginBatch() {
	s.packer.Reset()
	s.breaks.unsent, s.breaks.fresh = false, 0
	s.first, s.opened, s.closed = math.MaxUint64, time.Time{}, s.settings.Now()
}

// Close delivers the last batch. If the stream resumes later, it ends with a break instead of an
// end.
func (s *Stream) Close(cause callevent.Cause, resumes bool) {
	s.EndBreak()
	if resumes {
		s.BreakHere(cause)
	} else {
		s.breaks.append(callevent.End(s.next, cause))
	}
	s.Flush()
	s.packer = nil
}
