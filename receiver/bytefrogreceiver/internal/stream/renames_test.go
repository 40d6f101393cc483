// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/runmemory"
)

// packed is a packer with the renames and the sequence numbers of its batches.
type packed struct {
	*Packer
	t         *testing.T
	renames   [][]callevent.Rename
	sequences [][]uint64
	woken     wakeUps
}

// wakeUps counts the calls of wake.
type wakeUps struct{ atomic.Int32 }

func (w *wakeUps) add() { w.Add(1) }

func newPacked(t *testing.T) *packed { return newPackedOf(t, newPackedStream()) }

// newPackedStream is the shared state of the connections of a run.
func newPackedStream() *Stream { return New(settings(memoryOf(1 << 20))) }

func newPackedOf(t *testing.T, s *Stream) *packed {
	p := &packed{t: t}
	batch, err := NewPacker(s, p.unpack, nil, nil, p.woken.add)
	require.NoError(t, err)
	p.Packer = batch
	return p
}

func (p *packed) unpack(batch callevent.Packed) {
	var b callevent.Batch
	require.NoError(p.t, b.Unpack(batch.Data))
	p.renames = append(p.renames, b.Renames)
	events := make([]callevent.Event, b.Len())
	b.Events(events, 0)
	sequences := []uint64{}
	for _, e := range events {
		sequences = append(sequences, e.Sequence)
	}
	p.sequences = append(p.sequences, sequences)
}

// nameAt reads the name of a thread from a tick on.
func (p *packed) nameAt(thread uint16, tick uint32, name string, now time.Time) {
	require.NoError(p.t, p.Name(bytefrog.MapThreadName{Thread: thread, Time: tick, Name: name}, now))
}

// text is the renames of a batch as thread, name and tick.
func (p *packed) text(batch int) string {
	var all []string
	for _, r := range p.renames[batch] {
		all = append(all, fmt.Sprintf("%d %s %d", r.Lane, r.Name, (r.Time-p.stream.Epoch().UnixNano())/int64(tick)))
	}
	return strings.Join(all, ", ")
}

func TestARenameIsInTheNextBatchOfItsConnection(t *testing.T) {
	p := newPacked(t)
	now := p.stream.Epoch()
	p.Skip(5, 0, now)
	p.nameAt(3, 10, "a", now)
	p.nameAt(3, 7, "b", now)
	p.Skip(8, 0, now)
	p.Flush()
	p.Skip(9, 0, now)
	p.Flush()
	require.Len(t, p.renames, 2)
	assert.Equal(t, []string{"3 a 10, 3 b 7", ""}, []string{p.text(0), p.text(1)})
	assert.Equal(t, [][]uint64{{5, 8}, {9}}, p.sequences)
	a, b := p.renames[0][0], p.renames[0][1]
	assert.True(t, a.First && b.First, "b overtook no name, but it is the earlier one")
	assert.Less(t, a.Rank, b.Rank)
}

func TestARenameWithoutEventsIsSentAfterTheDelayOfABatch(t *testing.T) {
	now := time.Now()
	p := newPacked(t)
	assert.True(t, p.Wake(now).IsZero())
	p.nameAt(3, 0, "a", now)
	due := now.Add(p.stream.settings.MaxBatchDelay)
	assert.Equal(t, due, p.Wake(now))
	p.Attend(due.Add(-1))
	assert.Empty(t, p.renames)
	p.Attend(due)
	require.Len(t, p.renames, 1)
	assert.Equal(t, "3 a 0", p.text(0))
	assert.Empty(t, p.sequences[0])
	assert.True(t, p.Wake(now).IsZero())
}

// The events under a new name are mostly on another connection than the name.
func TestAllConnectionsSendARenameUntilItsOwnConnectionHasSentIt(t *testing.T) {
	s := newPackedStream()
	now := s.Epoch()
	a, b := newPackedOf(t, s), newPackedOf(t, s)
	sequence := uint64(100)
	nextOfB := func() string {
		b.Skip(sequence, 0, now)
		sequence++
		b.Flush()
		return b.text(len(b.renames) - 1)
	}
	a.Skip(4, 0, now)
	a.nameAt(3, 5, "x", now)
	assert.Equal(t, "3 x 5", nextOfB())
	a.nameAt(3, 6, "y", now)
	assert.Equal(t, "3 x 5, 3 y 6", nextOfB())
	a.Flush()
	assert.Equal(t, "3 x 5, 3 y 6", a.text(0))
	assert.Equal(t, b.renames[1], a.renames[0], "each rename is the same in all batches")
	assert.Empty(t, nextOfB())
}

// Renames fit into a batch that is full of events, or are in batches in front of it.
func TestAFullBatchHasRenames(t *testing.T) {
	for _, length := range []int{10, callevent.MaxNameBytes} {
		s := newPackedStream()
		now := s.Epoch()
		a, b := newPackedOf(t, s), newPackedOf(t, s)
		for i := range maxOwnRenames - 1 {
			a.nameAt(uint16(i), 0, fmt.Sprintf("%02d", i)+strings.Repeat("x", length-2), now)
		}
		for sequence := uint64(0); !slices.ContainsFunc(b.sequences, func(events []uint64) bool { return len(events) > 0 }); sequence++ {
			b.Skip(sequence, 0, now)
		}
		threads := map[uint64]bool{}
		for batch := range b.renames {
			for _, r := range b.renames[batch] {
				threads[r.Lane] = true
			}
			assert.Equal(t, batch == len(b.renames)-1, len(b.sequences[batch]) > 0, "events in batch %d of %d", batch, len(b.renames))
		}
		assert.Len(t, threads, maxOwnRenames-1)
		assert.Equal(t, length > 10, len(b.renames) > 1)
	}
}

func TestARenameWithoutMemoryIsSentImmediately(t *testing.T) {
	p := newPacked(t)
	now := p.stream.Epoch()
	p.Skip(4, 0, now)
	p.nameAt(3, 0, "a", now)
	memory := p.stream.settings.Memory
	before := memory.Bounded()
	require.True(t, memory.Reserve(1<<20-int(before)))
	p.rename(callevent.Rename{Lane: 3, Name: "b"}, now)
	require.Len(t, p.renames, 1)
	assert.Equal(t, "3 a 0, 3 b 0", p.text(0))
	assert.Equal(t, []uint64{4}, p.sequences[0])
	assert.EqualValues(t, 1<<20-pendingRenameBytes-len("a"), memory.Bounded())
}

func TestManyRenamesAreBoundedAndAllAreSent(t *testing.T) {
	p := newPacked(t)
	now := p.stream.Epoch()
	other := newPackedOf(t, p.stream)
	other.rename(callevent.Rename{Lane: 1, Name: "other"}, now)
	for i := range 20_000 {
		p.rename(callevent.Rename{Lane: uint64(i), Name: strings.Repeat("x", i%300)}, now)
		require.LessOrEqual(t, len(p.stream.renames.pending), maxOwnRenames)
	}
	p.Flush()
	threads := map[uint64]bool{}
	for _, renames := range p.renames {
		for _, r := range renames {
			threads[r.Lane] = true
		}
	}
	assert.Len(t, threads, 20_000)
	assert.EqualValues(t, pendingRenameBytes+len("other"), p.stream.settings.Memory.Bounded())
	other.Flush()
	assert.Zero(t, p.stream.settings.Memory.Bounded())
}

// The new thread's first event can have a time long before its name, but no sequence number before it.
func TestARenameOfAReusedIDHasTheSequenceNumberThatItsConnectionReadLast(t *testing.T) {
	p := newPackedOf(t, New(settings(memoryOf(64<<20))))
	now := p.stream.Epoch()
	for id := range threadIDs {
		_, _, err := p.stream.names.mapThread(uint16(id), 0, "")
		require.NoError(t, err)
	}
	p.Skip(50, 0, now)
	p.nameAt(0, 9, "new", now)
	p.Skip(60, 0, now)
	p.nameAt(30_000, 9, "renamed", now)
	p.Flush()
	require.Len(t, p.renames, 1)
	want := []callevent.Rename{{Reused: true, After: 50}, {}}
	for i, r := range p.renames[0] {
		assert.Equal(t, want[i].Reused, r.Reused, r.Name)
		assert.Equal(t, want[i].After, r.After, r.Name)
	}
}

// memoryOf is the memory of a run in a process that has much.
func memoryOf(limit int) *runmemory.Memory {
	return runmemory.New(budget.New(1<<40).Group("test"), limit, errLimit)
}

var errLimit = errors.New("the limit of the run is reached")

// settings are those of a stream with the given memory.
func settings(memory *runmemory.Memory) Settings {
	return Settings{
		ID: callevent.StreamID{1}, MaxBatchBytes: callevent.MinBatchBytes, MaxBatchDelay: 200 * time.Millisecond,
		NameWait: time.Second, Memory: memory, Now: time.Now,
		Counts: Counts{
			NamesLate: func(int64) {}, NamesUnknown: func(int64) {}, NameRemapped: func() {},
			ThreadReused: func() {}, BatchDropped: func(int) {},
		},
	}
}
