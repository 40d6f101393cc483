// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"math"
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
)

// Packer packs the call events of one connection into batches of its own. It is for one goroutine.
type Packer struct {
	stream *Stream
	// send, closing, awaitNames and wake: see NewPacker.
	send       func(callevent.Packed)
	closing    func()
	awaitNames func(now time.Time) NameWait
	wake       func()

	packer                     *callevent.Packer
	methods, exceptions, lanes idCache
	pending                    pendingEvents
	// remaps is the count of names.remaps at which the caches are right.
	remaps uint32
	// barriers and renames are buffers for those of the batch that is being closed.
	barriers []callevent.Barrier
	renames  []callevent.Rename
	// ownRenames is the number of renames that the connection has read and not sent.
	ownRenames int

	// first and last are the smallest and largest sequence number of the batch. opened is the time at which
	// its first event or rename arrived.
	first, last uint64
	opened      time.Time
	// latest is the sequence number that the connection read last.
	latest uint64

	// dropped is the number of events that were dropped because the run's memory is full.
	dropped int
}

// NewPacker makes the packer of a connection. The packer calls send with each closed batch. If closing is not nil,
// the packer calls it before it closes a batch with events; closing returns when the run has all breaks that the
// agent sent before these events. If awaitNames is not nil, it reports whether events have waited long enough for
// names. wake is called on other goroutines when the caller has to call Attend before the time that Wake has returned.
func NewPacker(s *Stream, send func(callevent.Packed), closing func(), awaitNames func(now time.Time) NameWait, wake func()) (*Packer, error) {
	packer, err := s.newPacker(s.settings.MaxBatchBytes)
	if err != nil {
		return nil, err
	}
	if closing == nil {
		closing = func() {}
	}
	if awaitNames == nil {
		awaitNames = func(now time.Time) NameWait { return NameWait{Over: true, Begun: now} }
	}
	memory := s.settings.Memory
	return &Packer{
		stream:     s,
		send:       send,
		closing:    closing,
		awaitNames: awaitNames,
		wake:       wake,
		packer:     packer,
		methods:    newIDCache(memory),
		exceptions: newIDCache(memory),
		lanes:      newIDCache(memory),
		pending:    pendingEvents{memory: memory, wait: s.settings.NameWait},
		first:      math.MaxUint64,
	}, nil
}

// NameWait reports whether events have waited long enough for names.
type NameWait struct {
	// Over: the events that arrived name_wait before Begun have.
	Over  bool
	Begun time.Time
	// Again is the time to ask again if the wait is not over. Zero: a call of Attend for another reason is the time.
	Again time.Time
}

// SetSend changes the function that sends closed batches.
func (b *Packer) SetSend(send func(callevent.Packed)) { b.send = send }

// Memory is the number of bytes of the packer's buffers that the memory of the run does not include.
func (b *Packer) Memory() int { return b.packer.Memory() }

// Waiting is the number of events that wait for names.
func (b *Packer) Waiting() int { return len(b.pending.events) }

// TakeDropped is the number of events that the packer has dropped since the last call, because the memory of the run
// is full.
func (b *Packer) TakeDropped() int {
	dropped := b.dropped
	b.dropped = 0
	return dropped
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

// noLine is an unknown line, as is 0.
const noLine = math.MaxUint16

// Pack packs events. The error, a *bytefrog.ProtocolError, is for the event
// with the index bad, whose sequence number is impossible; the events before it are packed.
func (b *Packer) Pack(events []bytefrog.Event, now time.Time) (bad int, err error) {
	s := b.stream
	reference, clock := s.Next(), s.clock.expected(now)
	b.refresh()
	next, first, last := reference, b.first, b.last
	var out callevent.Event
	for i := range events {
		e := &events[i]
		sequence, ticks := bytefrog.Unwrap(reference, e.Sequence), unwrapTicks(clock, e.Time)
		if !validSequence(sequence) {
			b.first, b.last = first, last
			s.Advance(next, uint64(i))
			return i, invalidSequence(SequenceOffset, e.Sequence, reference)
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
		// Field by field: the compiler builds a whole struct elsewhere and copies it, and the copy waits for the
		// smaller writes that it reads.
		out.Sequence, out.Time, out.Line = sequence, ticks, line
		out.Lane, out.Function, out.Exception = lane, method, exception
		out.Kind = kinds[(e.Type-firstEvent)%eventTypes]
		if methodKnown && laneKnown && exceptionKnown && b.packer.Add(&out) {
			first, last = min(first, out.Sequence), max(last, out.Sequence)
			continue
		}
		b.first, b.last = first, last
		b.admit(e, &out, now)
		first, last = b.first, b.last
	}
	b.first, b.last = first, last
	s.Advance(next, uint64(len(events)))
	if n := len(events); n > 0 {
		b.latest = bytefrog.Unwrap(reference, events[n-1].Sequence)
		s.clock.saw(unwrapTicks(clock, events[n-1].Time), now)
		b.open(now)
	}
	return 0, nil
}

// Name enters the name of a method, an exception or a thread. Other messages have no effect. The
// error is ErrMemory.
func (b *Packer) Name(m bytefrog.Message, now time.Time) (err error) {
	names, remapped := b.stream.names, false
	arrivals := names.arrivals.Load()
	switch m := m.(type) {
	case bytefrog.MapMethod:
		remapped, err = names.mapMethod(m.Method, m.Signature)
	case bytefrog.MapException:
		remapped, err = names.mapException(m.Exception, m.Name)
	case bytefrog.MapThreadName:
		err = b.nameThread(m, now)
	}
	if names.arrivals.Load() != arrivals {
		b.stream.sleepers.wakeOthers(b)
	}
	if remapped {
		b.stream.settings.Counts.NameRemapped()
	}
	return err
}

func (b *Packer) nameThread(m bytefrog.MapThreadName, now time.Time) error {
	from := b.stream.Ticks(m.Time, now)
	first, reused, err := b.stream.names.mapThread(m.Thread, from, m.Name)
	if err != nil {
		return err
	}
	rename := callevent.Rename{Lane: uint64(m.Thread), Time: from, First: first, Reused: reused, Name: m.Name}
	if reused {
		// The new thread's first event got its sequence number after the agent had sent its name.
		rename.After = b.latest
	}
	b.rename(rename, now)
	if reused {
		b.stream.settings.Counts.ThreadReused()
	}
	return nil
}

// Skip packs a sequence number that the agent used for a message that is no call.
func (b *Packer) Skip(sequence uint64, ticks int64, now time.Time) {
	e := callevent.Event{Kind: callevent.KindSkip, Sequence: sequence, Time: ticks}
	if !b.packer.Add(&e) {
		b.Flush()
		b.packer.Add(&e)
	}
	b.first, b.last, b.latest = min(b.first, sequence), max(b.last, sequence), sequence
	b.open(now)
}

// open sets the time of the batch when its first event or rename has arrived.
func (b *Packer) open(now time.Time) {
	if b.opened.IsZero() && b.packer.Len()+b.ownRenames > 0 {
		b.opened = now
	}
}

// refresh empties the caches if an ID has got another name since the last call.
func (b *Packer) refresh() {
	if n := b.stream.names.remaps.Load(); n != b.remaps {
		b.remaps = n
		b.methods.forget()
		b.exceptions.forget()
	}
}

// admit packs an event that the caches do not know, or lets it wait for its names. If the memory is full, there are
// no names, and admit drops the event. out has the event without its names.
func (b *Packer) admit(from *bytefrog.Event, out *callevent.Event, now time.Time) {
	e := numbered{
		sequence: out.Sequence, ticks: out.Time, method: from.Method, exception: from.Exception,
		line: uint16(out.Line), thread: from.Thread, kind: out.Kind,
	}
	if b.packNamed(&e, false) || b.pending.add(e, now) {
		return
	}
	if b.stream.settings.Memory.IsFull() {
		b.dropped++
		return
	}
	b.packNamed(&e, true)
	b.stream.settings.Counts.NamesUnknown(1)
}

// packNamed packs an event by its names. It reports false if one of them is unknown; with force it
// packs the event by its IDs instead.
func (b *Packer) packNamed(e *numbered, force bool) bool {
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
		b.Flush()
	}
}

// identity is the result of the search for an index in the tables of the batch.
type identity uint8

const (
	identified identity = iota
	nameUnknown
	batchFull
)

// identify enters the method, the thread and the exception of an event into the tables of the batch.
func (b *Packer) identify(e *numbered, out *callevent.Event, force bool) identity {
	var r [3]identity
	out.Function, r[0] = b.function(e.method, force)
	out.Lane, r[1] = b.lane(e.thread, force)
	if e.kind == callevent.KindThrow || e.kind == callevent.KindUnwind {
		out.Exception, r[2] = b.exception(e.exception, force)
	}
	for _, r := range r {
		if r != identified {
			return r
		}
	}
	return identified
}

func (b *Packer) function(id uint32, force bool) (uint16, identity) {
	if index, ok := b.methods.find(id); ok {
		return index, identified
	}
	f := b.stream.names.method(id)
	if f == nil && !force {
		return 0, nameUnknown
	}
	if f == nil {
		f = b.stream.names.numberedMethod(id)
	}
	index, ok := b.packer.Function(f)
	if !ok {
		return 0, batchFull
	}
	b.methods.remember(id, index)
	return index, identified
}

// lane enters a thread with its latest name. Renames have its names at earlier events.
func (b *Packer) lane(thread uint16, force bool) (uint16, identity) {
	if index, ok := b.lanes.find(uint32(thread)); ok {
		return index, identified
	}
	name, known := b.stream.names.thread(thread)
	if !known && !force {
		return 0, nameUnknown
	}
	index, ok := b.packer.Lane(callevent.Lane{ID: uint64(thread), Name: name})
	if !ok {
		return 0, batchFull
	}
	if known {
		b.lanes.remember(uint32(thread), index)
	}
	return index, identified
}

func (b *Packer) exception(id uint32, force bool) (uint16, identity) {
	if index, ok := b.exceptions.find(id); ok {
		return index, identified
	}
	class, known := b.stream.names.exception(id)
	if !known {
		if force {
			// 0 is an unknown exception.
			return 0, identified
		}
		return 0, nameUnknown
	}
	index, ok := b.packer.Exception(class)
	if !ok {
		return 0, batchFull
	}
	b.exceptions.remember(id, index)
	return index, identified
}

// Attend packs events whose names have arrived, or that have waited too long, and closes an old batch.
func (b *Packer) Attend(now time.Time) {
	b.attendNames(now)
	if !b.opened.IsZero() && now.Sub(b.opened) >= b.stream.settings.MaxBatchDelay {
		b.Flush()
	}
}

func (b *Packer) attendNames(now time.Time) {
	if b.pending.due(b.stream.names.arrivals.Load(), now) {
		b.retry(now, time.Time{})
	}
	if b.pending.overdue(now) {
		wait := b.awaitNames(now)
		b.pending.asked, b.pending.again = !wait.Over, wait.Again
		if wait.Over {
			b.retry(now, wait.Begun)
		}
	}
}

// forEver is longer than any event waits.
const forEver = 100 * 365 * 24 * time.Hour

// Settle packs all events that wait, with their names or without. Nothing more
// arrives on the connection. Flush sends the last batch.
func (b *Packer) Settle(now time.Time) {
	if b.stream.settings.Memory.IsFull() {
		b.Release()
	}
	b.retry(now, now.Add(forEver))
}

// retry packs the waiting events whose names have arrived, and those that had waited long enough
// at the time until.
func (b *Packer) retry(now, until time.Time) {
	if b.stream.settings.Memory.IsFull() {
		b.dropped += b.pending.drop()
		return
	}
	b.refresh()
	var late, unknown int64
	b.pending.try(b.stream.names.arrivals.Load(), now, until, func(e *numbered, overdue bool) bool {
		if b.packNamed(e, false) {
			late++
			return true
		}
		if overdue {
			unknown++
			return b.packNamed(e, true)
		}
		return false
	})
	if b.Waiting() == 0 {
		b.stream.sleepers.remove(b)
	}
	b.open(now)
	b.stream.settings.Counts.NamesLate(late)
	b.stream.settings.Counts.NamesUnknown(unknown)
}

// Wake is the time at which Attend has something to do, or zero. A name that another connection receives
// later wakes the connection if events wait.
func (b *Packer) Wake(now time.Time) time.Time {
	if b.Waiting() > 0 && b.wake != nil {
		b.stream.sleepers.add(b)
	}
	// A name that arrived before the packer slept has not woken it.
	wake := b.pending.wake(b.stream.names.arrivals.Load(), now)
	if !b.opened.IsZero() {
		wake = earliest(wake, b.opened.Add(b.stream.settings.MaxBatchDelay))
	}
	return wake
}

// Flush sends the batch, if it is not empty, and begins the next.
func (b *Packer) Flush() {
	if b.packer.Len()+b.ownRenames > 0 {
		batch, err := b.close()
		if err == nil {
			b.send(batch)
		} else {
			// No accepted event should make a batch impossible. If one does, the batch is dropped, and the process
			// goes on.
			b.stream.settings.Counts.BatchDropped(b.packer.Len())
		}
		b.stream.settings.Memory.Return(b.stream.renames.removeSent(b))
		b.ownRenames = 0
	}
	b.packer.Reset()
	b.methods.forget()
	b.exceptions.forget()
	b.lanes.forget()
	b.first, b.last, b.opened = math.MaxUint64, 0, time.Time{}
}

// close closes the batch, which has events or follows renames that the connection has read.
func (b *Packer) close() (callevent.Packed, error) {
	b.barriers = b.barriers[:0]
	next := b.stream.Next()
	if b.packer.Len() > 0 {
		b.closing()
		b.barriers = b.stream.barriers.concerning(b.barriers, b.first, b.last)
		next = max(b.stream.Next(), b.last+1)
	}
	b.packRenames()
	return b.packer.Close(b.barriers, next, b.stream.settings.Now().UnixNano())
}

// rename keeps a rename that arrived on the connection for the next batches. Without memory for it, the connection sends its
// batch immediately.
func (b *Packer) rename(r callevent.Rename, now time.Time) {
	bytes := pendingRenameBytes + len(r.Name)
	if !b.stream.settings.Memory.Reserve(bytes) {
		bytes = 0
	}
	b.stream.renames.add(r, b, bytes)
	b.ownRenames++
	b.open(now)
	if bytes == 0 || b.ownRenames == maxOwnRenames {
		b.Flush()
	}
}

// packRenames packs the pending renames of the run just before the batch is closed. It sends those that do not fit before the
// batch.
func (b *Packer) packRenames() {
	b.renames = b.stream.renames.appendAll(b.renames[:0])
	rest := slices.DeleteFunc(b.renames, func(r callevent.Rename) bool { return b.packer.RenameAtLast(r, len(b.barriers)) })
	if len(rest) > 0 {
		b.sendRenames(rest)
	}
	clear(b.renames)
}

// sendRenames sends batches of renames only.
func (b *Packer) sendRenames(renames []callevent.Rename) {
	packer, err := b.stream.newPacker(callevent.MinBatchBytes)
	for err == nil && len(renames) > 0 {
		n := 0
		for n < len(renames) && packer.Rename(renames[n]) {
			n++
		}
		var batch callevent.Packed
		if batch, err = packer.Close(nil, b.stream.Next(), b.stream.settings.Now().UnixNano()); err == nil {
			b.send(batch)
		}
		packer.Reset()
		renames = renames[n:]
	}
	if err != nil {
		// No setting and no accepted rename should make such a batch impossible.
		b.stream.settings.Counts.BatchDropped(0)
	}
}

// Release returns the memory of the caches. Call it after the last event.
func (b *Packer) Release() {
	b.methods.release()
	b.exceptions.release()
	b.lanes.release()
	b.stream.sleepers.remove(b)
}
