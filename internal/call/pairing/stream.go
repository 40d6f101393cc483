// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callsum"
)

// Stream pairs the call events of one call stream. Its parts own its state: names has
// the numbers of functions, lanes and exceptions, order the events that wait, and stacks
// the open calls. It must not be copied.
type Stream struct {
	settings *Settings
	names    names
	stacks   stacks
	order    order
}

// NewStream returns a stream without any events. random returns the lowest 56 bits of the ID of
// a trace, from the sequence number of its root. It is for Settings.Keep, and nil without that.
func NewStream(settings *Settings, random func(root uint64) uint64) *Stream {
	s := &Stream{settings: settings, names: newNames()}
	s.stacks = newStacks(settings, &s.names)
	s.stacks.traces.undecided = newUndecided(settings.Keep, random, &s.names, &s.stacks.attributes)
	s.order = newOrder(settings, &s.names, &s.stacks)
	return s
}

// Accept accepts a batch of the stream at the monotonic time now, and writes the calls that
// it finishes to out:
//
//  1. If the names take too much memory, the stream forgets some.
//  2. The names of the batch get the stream's numbers.
//  3. The renames of the batch apply to lanes and to open frames. They come before the
//     barriers, which can release waiting events.
//  4. The barriers and events are put into order. Each event whose turn it is is paired on
//     the stack of its lane, and a call that ends is written to out.
func (s *Stream) Accept(b *callevent.Batch, now time.Duration, out *Output) {
	s.stacks.out = out
	defer s.finish()
	s.stacks.traces.undecided.setNow(now)
	out.Counters.Events += uint64(b.Len())
	if s.settings.MinDuration > 0 && s.settings.MinDuration < b.Resolution {
		out.Counters.BelowResolution = true
	}
	s.boundNames()
	if !s.order.ended {
		s.names.setBatch(b, s.settings.TraceRoot)
		s.stacks.rename(b.Renames)
	}
	s.order.acceptBatch(b, now)
}

// finish ends a method that writes to an output. The stream must not keep the output, which
// belongs to its caller. An ended stream frees its memory.
func (s *Stream) finish() {
	s.noteStep()
	if s.order.ended {
		s.stacks.releaseContinuations()
		s.order.freeEnded()
		s.stacks.sums.end(s.stacks.lanes, s.stacks.out)
		s.names, s.stacks = names{}, stacks{settings: s.settings, names: &s.names}
	}
	s.stacks.out = nil
}

// noteStep notes when the last event arrived.
func (s *Stream) noteStep() {
	s.stacks.traces.undecided.noteStep(s.stacks.clock.now, s.order.window.count > 0)
}

// Due reports whether Expire has work: a number is missing or a trace waits for too long, or
// memory is free.
func (s *Stream) Due(now time.Duration) bool {
	o := &s.order
	o.window.tighten()
	u := s.stacks.traces.undecided
	return !o.ended && o.next < o.overdue(now) || o.window.rests() || u.isOverdue(now) || u.rests()
}

// Expire gives up the numbers that are missing for longer than MaxWait, and decides the traces
// that wait for longer than Keep.DecideAfter. now is the monotonic time of Accept, which stands
// still while waiting is not the stream's fault.
func (s *Stream) Expire(now time.Duration, out *Output) {
	s.stacks.out = out
	defer s.finish()
	s.stacks.traces.undecided.setNow(now)
	s.order.expire(now)
	s.noteStep()
	if !s.order.ended {
		s.stacks.decideOverdue(now)
	}
	s.order.window.shrink()
	s.stacks.traces.undecided.shrink()
}

// GiveUpOldest gives up the oldest gap, to free memory. It reports false if nothing waits.
func (s *Stream) GiveUpOldest(out *Output) bool {
	s.stacks.out = out
	defer s.finish()
	if s.order.window.count == 0 {
		return false
	}
	s.order.giveUp(never)
	s.order.window.shrink()
	return true
}

// OldestUndecided returns the time, as Keep.Now showed it, since which the stream's oldest trace
// waits to be decided. It reports false if none waits.
func (s *Stream) OldestUndecided() (since time.Duration, waits bool) {
	return s.stacks.traces.undecided.oldestSince()
}

// UndecidedBytes is the stream's part of Keep.HeldBytes. Bytes contains it.
func (s *Stream) UndecidedBytes() int64 { return s.stacks.traces.undecided.heldBytes() }

// DecideOldest decides the oldest trace with its calls so far, to free memory of Keep. It reports false
// if none waits.
func (s *Stream) DecideOldest(out *Output) bool {
	s.stacks.out = out
	defer s.finish()
	return s.stacks.decideOldest(EarlyByBound)
}

// DecideAll decides all traces with their calls so far, and frees the memory of the calls. It
// reports false if none waits.
func (s *Stream) DecideAll(by Early, out *Output) bool {
	s.stacks.out = out
	defer s.finish()
	decided := s.stacks.decideAll(by)
	s.stacks.traces.undecided.spare()
	return decided
}

// Forget forgets all stacks and names, to free memory.
func (s *Stream) Forget(out *Output) {
	s.stacks.out = out
	defer s.finish()
	s.forgetNames()
	s.order.window.shrink()
	s.stacks.traces.undecided.spare()
}

// End ends the stream for a cause that is not in its batches. It gives up all gaps, and
// truncates open frames.
func (s *Stream) End(cause callevent.Cause, out *Output) {
	s.stacks.out = out
	defer s.finish()
	s.order.end(cause)
}

// sweepShare limits the memory that lanes' names may gain between two sweeps, as a share of
// the bound of all names: one of so many. Some programs rename their threads with every
// request.
const sweepShare = 8

// boundNames keeps the memory of names below its bound:
//
//  1. It forgets the names of lanes that nothing refers to.
//  2. If the others take half of the bound, it decides all traces early, because waiting calls
//     refer to names.
//  3. If that is not enough, it forgets all renames except the last of each lane.
//  4. If functions, exceptions or lanes are too many, it forgets all names.
func (s *Stream) boundNames() {
	n, limit := &s.names, s.settings.MaxNameBytes
	if n.bytesOfLanes-n.sweptBytes > limit/sweepShare {
		s.sweepLaneNames()
		if n.bytesOfLanes > limit/2 && s.stacks.decideAll(EarlyByNames) {
			s.sweepLaneNames()
		}
		if n.bytesOfLanes > limit/2 {
			s.stacks.renames.forgetAllButLast(&s.stacks.out.Counters)
			s.sweepLaneNames()
		}
	}
	if n.bytes > limit && s.stacks.decideAll(EarlyByNames) {
		s.sweepLaneNames()
	}
	if n.bytes > limit {
		s.forgetNames()
	}
}

// sweepLaneNames forgets the past renames, and the names of lanes that nothing refers to.
func (s *Stream) sweepLaneNames() {
	s.stacks.renames.forgetPast(s.stacks.earliest())
	sweep := s.names.startSweep()
	s.stacks.moveNames(sweep)
	s.order.window.each(func(e *event) {
		if e.kind != callevent.KindSkip {
			sweep.move(&e.laneName)
		}
	})
	sweep.end()
}

// forgetNames forgets all names. Before that it gives up all gaps, and truncates open
// frames.
func (s *Stream) forgetNames() {
	s.order.giveUpAll()
	if s.order.ended {
		return
	}
	s.stacks.endAll(callevent.CauseLimit)
	s.stacks.out.Counters.Breaks[callevent.CauseLimit]++
	s.stacks.forget()
	s.names = newNames()
}

// TakeSums returns the growth of the sums since the last increment. If there are no sums, or no
// call ended since then, the increment is empty. When a stream ends or forgets its names, it
// writes the last increment to its Output.
func (s *Stream) TakeSums() callsum.Increment {
	return s.stacks.sums.take(s.stacks.lanes)
}

// TakeInterval is TakeSums at the end of an interval. It forgets the call paths if many of them did not grow in the
// interval, as those of threads that have ended. The paths of later calls are made again.
func (s *Stream) TakeInterval() callsum.Increment {
	taken := s.TakeSums()
	s.stacks.sums.forgetIdlePaths(s.stacks.lanes)
	return taken
}

// Waiting is the number of events that wait for earlier ones.
func (s *Stream) Waiting() int { return s.order.window.count }

// OpenFrames is the number of calls that have not ended.
func (s *Stream) OpenFrames() int { return s.stacks.open }

// Ended reports whether the stream has ended.
func (s *Stream) Ended() bool { return s.order.ended }

// Spare frees memory that is not in use: places of events and of calls that waited, and former
// names of lanes. It loses nothing.
func (s *Stream) Spare() {
	s.order.window.shrink()
	s.stacks.traces.undecided.spare()
	if s.names.bytesOfLanes > s.names.sweptBytes {
		s.sweepLaneNames()
	}
}

// emptyBytes is the memory of a stream's empty maps.
const emptyBytes = 1100

// Bytes is about the memory of the stream.
func (s *Stream) Bytes() int {
	if s.order.ended {
		return s.order.bytes()
	}
	return emptyBytes + s.order.bytes() + s.names.bytes + s.stacks.memory()
}
