// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package stream packs the call stream of one run into batches. It knows the call events and the
// names that an agent sends, and no connections, no pipeline and no settings of the receiver.
//
// A Stream has the state that all connections of a run share: sequence numbers, the clock of the
// agent, names, breaks, and renames. Each connection has a Packer of its own. The order between
// connections is the work of the processor, so packers share nothing that changes with each event.
//
// The way of an event through the files: packer.go makes its sequence number (sequence.go) and
// its time (clock.go) 64 bits long, finds its names in the tables of the batch (namecache.go) or
// of the run (names.go, threads.go), and adds it to the batch. An event without a name waits
// (pendingevents.go); a new name wakes its connection (sleepers.go). A closed batch carries breaks (barriers.go) and the new names of threads
// (renames.go).
package stream

import (
	"fmt"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/runmemory"
)

// Settings describe a call stream.
type Settings struct {
	ID callevent.StreamID
	// TextKey is the attribute for the text of a method as the agent sent it.
	TextKey string
	// MaxBatchBytes is the largest size of a batch, MaxBatchDelay the longest time from its first
	// event until it is closed.
	MaxBatchBytes int
	MaxBatchDelay time.Duration
	// NameWait is how long an event waits for its names.
	NameWait time.Duration
	Memory   *runmemory.Memory
	// Now is the time.
	Now    func() time.Time
	Counts Counts
}

// Counts are called with what happens, never for each event. All are set.
type Counts struct {
	// NamesLate counts events that got their names late, NamesUnknown events whose names did not
	// arrive in time.
	NamesLate, NamesUnknown func(events int64)
	// NameRemapped counts a method or an exception that got another name.
	NameRemapped func()
	// ThreadReused counts a thread with the ID of another thread.
	ThreadReused func()
	// BatchDropped counts a batch that could not be made.
	BatchDropped func(events int)
}

// Stream is the state that the connections of a run share. The zero value counts sequence numbers.
type Stream struct {
	bytefrog.Numbering
	settings Settings
	clock    agentClock
	names    *names
	sleepers sleepers
	barriers barriers
	renames  pendingRenames
}

// New makes the stream of a run whose agent starts now, until StartClock gives a better time.
func New(settings Settings) *Stream {
	s := &Stream{settings: settings, names: newNames(settings.Memory)}
	s.clock.zero = settings.Now()
	return s
}

// StartClock sets the time at which the agent received start: tick 0 of its clock. It comes before
// all other data.
func (s *Stream) StartClock(at time.Time) { s.clock.zero = at }

// Epoch is tick 0 of the clock of the agent.
func (s *Stream) Epoch() time.Time { return s.clock.zero }

// Time is the time of a tick, at most 69 years from the epoch.
func (s *Stream) Time(ticks int64) time.Time { return s.clock.time(ticks) }

// Ticks makes a time of the agent that arrives now 64 bits long.
func (s *Stream) Ticks(t uint32, now time.Time) int64 { return unwrapTicks(s.clock.expected(now), t) }

// SequenceOffset is the offset of the sequence number in call events and markers, in bytes.
const SequenceOffset = 5

// Sequence makes a sequence number 64 bits long. The error is a *bytefrog.ProtocolError for the
// offset in the message, when the agent cannot have counted so far.
func (s *Stream) Sequence(n uint32, offset int) (uint64, error) {
	reference := s.Next()
	sequence := bytefrog.Unwrap(reference, n)
	if !validSequence(sequence) {
		return 0, invalidSequence(offset, n, reference)
	}
	return sequence, nil
}

// validSequence reports whether an unwrapped number is a sequence number.
func validSequence(n uint64) bool { return n < callevent.MaxSequence }

// invalidSequence is the error for a sequence number, at an offset of a message, that the agent
// cannot have counted to.
func invalidSequence(offset int, n uint32, next uint64) error {
	return &bytefrog.ProtocolError{
		Offset:   offset,
		Expected: "a sequence number of the run",
		Got:      fmt.Sprintf("sequence number %d where %d is next", n, next),
	}
}

// Count counts events that are not packed. The error, a *bytefrog.ProtocolError, is for the event
// with the index bad, whose sequence number is impossible.
func (s *Stream) Count(events []bytefrog.Event) (bad int, err error) {
	reference := s.Next()
	next := reference
	for i, e := range events {
		sequence := bytefrog.Unwrap(reference, e.Sequence)
		if !validSequence(sequence) {
			s.Advance(next, uint64(i))
			return i, invalidSequence(SequenceOffset, e.Sequence, reference)
		}
		next = max(next, sequence+1)
	}
	s.Advance(next, uint64(len(events)))
	return 0, nil
}

// AddBarrier adds a break, or the end. It returns how many old barriers were dropped for it, and
// whether it was known before.
func (s *Stream) AddBarrier(barrier callevent.Barrier) (dropped int, known bool) {
	dropped, known = s.barriers.add(barrier)
	if !known && dropped == 0 {
		s.settings.Memory.Reserve(barrierBytes)
	}
	return dropped, known
}

// HasNewBarriers reports whether no accepted empty batch has announced some barriers.
func (s *Stream) HasNewBarriers() bool { return s.barriers.haveNews() }

// NewBarriers are the barriers that no accepted empty batch has announced, or the last barrier.
func (s *Stream) NewBarriers() []callevent.Barrier { return s.barriers.unannounced(nil) }

// BarriersAnnounced removes barriers from NewBarriers: the pipeline has accepted an empty batch
// that carries them.
func (s *Stream) BarriersAnnounced(accepted []callevent.Barrier) { s.barriers.announced(accepted) }

// DropNames drops all names and returns their memory.
func (s *Stream) DropNames() { s.names.drop() }

// ThreadName is the latest name of a thread, or empty.
func (s *Stream) ThreadName(id uint16) string {
	name, _ := s.names.thread(id)
	return name
}

// EmptyBatches makes batches without events, for one goroutine. The zero value is not ready: see
// NewEmptyBatches.
type EmptyBatches struct {
	stream *Stream
	packer *callevent.Packer
}

// NewEmptyBatches makes the empty batches of a stream.
func NewEmptyBatches(s *Stream) *EmptyBatches { return &EmptyBatches{stream: s} }

// Batch makes an empty batch with barriers. It is valid until the next one.
func (e *EmptyBatches) Batch(barriers []callevent.Barrier) (callevent.Packed, error) {
	if e.packer == nil {
		packer, err := e.stream.newPacker(callevent.MinBatchBytes)
		if err != nil {
			return callevent.Packed{}, err
		}
		e.packer = packer
	}
	e.packer.Reset()
	return e.packer.Close(barriers, e.stream.Next(), e.stream.settings.Now().UnixNano())
}

func (s *Stream) newPacker(maxBytes int) (*callevent.Packer, error) {
	return callevent.NewPacker(callevent.Stream{
		ID:         s.settings.ID,
		Epoch:      s.clock.zero.UnixNano(),
		Resolution: int64(tick),
		TextKey:    s.settings.TextKey,
	}, maxBytes)
}
