// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/runmemory"
)

// at is a message with a number that came.
func at(sequence uint64, ticks int64) passed {
	return passed{sequence: sequence, ticks: ticks, known: true}
}

func TestFromWhereANameHolds(t *testing.T) {
	var nothing passed
	const always = callevent.MaxSequence
	for _, test := range []struct {
		name                  string
		before, after, second passed
		sequence              uint64
		later                 int64 // from how many ticks after it was said
	}{
		{"in the middle of two neighbours", at(10, 100), at(12, 100), at(14, 100), 11, 1},
		{"where three buffers are in use", at(10, 100), at(14, 100), at(17, 100), 12, 1},
		{"neighbours as far apart as they can be", at(10, 100), at(18, 101), at(26, 101), 14, 1},
		{"neighbours, a millisecond before", at(10, 99), at(12, 100), at(14, 100), 11, 1},
		{"at the only number between", at(10, 100), at(11, 100), at(12, 100), 10, 1},
		{"alone in a new buffer, beside one", at(900, 105), at(12, 100), at(14, 100), 11, 1},
		{"alone in a new buffer, beside three", at(900, 105), at(14, 100), at(18, 100), 11, 1},
		{"in a new buffer, the one before is old", at(10, 98), at(12, 100), at(15, 100), 10, 1},
		{"in a new buffer, the one before is far", at(3, 100), at(12, 100), at(14, 100), 11, 1},
		{"in a new buffer, which nobody else writes to", nothing, at(12, 100), at(13, 100), 11, 1},
		{"in a new buffer, the second is in another", nothing, at(12, 100), at(400, 120), 11, 1},
		{"in a new buffer, the second is in another, before", nothing, at(12, 100), at(5, 100), 11, 1},
		{"before one, which is much later", nothing, at(12, 5000), nothing, 11, 1},
		{"at the beginning", nothing, at(0, 100), at(3, 100), 0, 1},
		{"near the beginning", nothing, at(2, 100), at(9, 100), 0, 1},
		{"the one behind is in another buffer", at(10, 100), at(5, 99), at(14, 100), 11, 1},
		{"nothing behind it", at(10, 100), nothing, nothing, 11, 1},
		{"nothing but later ones before it", at(10, 101), nothing, nothing, always, 0},
		{"nothing around it", nothing, nothing, nothing, always, 0},
		{"nothing but what was earlier", at(10, 50), at(5, 40), at(6, 40), always, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := unplacedRename{thread: 7, name: "n", first: true, ticks: 100, before: test.before, after: test.after}
			assert.Equal(t, callevent.Rename{Lane: 7, Sequence: test.sequence, Time: 100 + test.later, First: true, Name: "n"}, r.between(test.second))
		})
	}
}

// packed is a packer whose batches are unpacked, and what of them matters here.
type packed struct {
	*Packer
	t *testing.T
	// batches are the renames and the numbers of each.
	renames   [][]callevent.Rename
	sequences [][]uint64
}

func newPacked(t *testing.T) *packed { return newPackedOf(t, newPackedStream()) }

// newPackedStream is what the connections of one run share.
func newPackedStream() *Stream { return New(settings(memoryOf(1 << 20))) }

func newPackedOf(t *testing.T, s *Stream) *packed {
	p := &packed{t: t}
	batch, err := NewPacker(s, p.hand, nil, nil)
	require.NoError(t, err)
	p.Packer = batch
	return p
}

func (p *packed) hand(batch callevent.Packed) {
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

func (p *packed) called(thread uint16, name string, now time.Time) {
	p.rename(unplacedRename{thread: thread, name: name, since: now})
}

// what gives the renames of a batch as thread, name and number, with a ~ where they are
// provisional.
func (p *packed) what(batch int) string {
	var all []string
	for _, r := range p.renames[batch] {
		number := fmt.Sprint(r.Sequence)
		if r.Sequence == callevent.MaxSequence {
			number = "?"
		}
		if r.Provisional {
			number += "~"
		}
		all = append(all, fmt.Sprintf("%d %s %s", r.Lane, r.Name, number))
	}
	return strings.Join(all, ", ")
}

func TestARenameIsInTheBatchOfWhatFollowsIt(t *testing.T) {
	now := time.Now()
	p := newPacked(t)
	p.called(3, "a", now)
	// Two messages behind it are waited for, in the same batch.
	p.Skip(5, 0, now)
	assert.Zero(t, p.packer.Renames())
	p.Skip(8, 0, now)
	assert.Equal(t, 1, p.packer.Renames())
	p.called(3, "b", now)
	p.Skip(10, 0, now)
	// The batch ends before the second has come, and once before the first.
	p.Flush()
	p.Skip(12, 0, now)
	p.called(3, "c", now)
	p.Flush()
	p.Skip(20, 0, now)
	p.Skip(21, 0, now)
	p.Flush()
	require.Len(t, p.renames, 3)
	// What nothing has followed is told as it is known then.
	assert.Equal(t, []string{"3 a 3, 3 b 9", "3 c 13~", "3 c 16"}, []string{p.what(0), p.what(1), p.what(2)})
	assert.Equal(t, [][]uint64{{5, 8, 10}, {12}, {20, 21}}, p.sequences)
}

func TestARenameThatNothingFollowsIsHandedOnAlone(t *testing.T) {
	now := time.Now()
	p := newPacked(t)
	assert.True(t, p.Wake(now).IsZero())
	p.called(3, "a", now)
	assert.Equal(t, now.Add(renameWait), p.Wake(now))
	p.Attend(now.Add(renameWait - 1))
	assert.Empty(t, p.renames)
	p.Attend(now.Add(renameWait))
	require.Len(t, p.renames, 1)
	assert.Equal(t, "3 a ?", p.what(0))
	assert.Empty(t, p.sequences[0])
	assert.True(t, p.Wake(now).IsZero())
}

func TestTwoNamesOfAThreadInARowKeepTheirOrder(t *testing.T) {
	now := time.Now()
	p := newPacked(t)
	p.Skip(7, 0, now)
	p.called(3, "a", now)
	p.called(4, "x", now)
	p.called(3, "b", now)
	p.called(3, "c", now)
	p.Skip(15, 0, now)
	p.Skip(99, 0, now)
	p.Flush()
	assert.Equal(t, "3 a 9, 4 x 11, 3 b 10, 3 c 11", p.what(0))
}

// The events under a new name are mostly on another connection than the name.
func TestARenameIsToldByEveryConnection(t *testing.T) {
	now := time.Now()
	s := newPackedStream()
	a, b := newPackedOf(t, s), newPackedOf(t, s)
	sequence := uint64(100)
	// tells is what the next batch of the other connection says.
	tells := func() string {
		b.Skip(sequence, 0, now)
		sequence++
		b.Flush()
		return b.what(len(b.renames) - 1)
	}
	a.Skip(4, 0, now)
	a.called(3, "x", now)
	a.called(3, "y", now)
	assert.Equal(t, "3 x 5~, 3 y 5~", tells())
	a.Flush()
	assert.Equal(t, "3 x 5~, 3 y 5~", a.what(0))
	assert.Equal(t, "3 x 5~, 3 y 5~", tells(), "they have been handed on, but will be known better")
	a.Skip(8, 0, now)
	a.Skip(12, 0, now)
	assert.Equal(t, "3 x 5, 3 y 6", tells())
	assert.Equal(t, "3 x 5, 3 y 6", tells(), "they have not been handed on")
	a.Flush()
	assert.Equal(t, "3 x 5, 3 y 6", a.what(1))
	assert.Empty(t, tells())
	for i, want := range []uint32{1, 2} {
		assert.Equal(t, [2]uint32{want, want}, [2]uint32{a.renames[0][i].Order, a.renames[1][i].Order})
	}
	assert.Zero(t, s.settings.Memory.Bounded())
}

// A batch that events have filled carries renames too, or has them in front of it.
func TestAFullBatchTellsRenames(t *testing.T) {
	now := time.Now()
	for _, length := range []int{10, callevent.MaxNameBytes} {
		s := newPackedStream()
		a, b := newPackedOf(t, s), newPackedOf(t, s)
		for i := range maxUnplaced {
			a.called(uint16(i), fmt.Sprintf("%02d", i)+strings.Repeat("x", length-2), now)
		}
		sequence := uint64(0)
		for ; !slices.ContainsFunc(b.sequences, func(events []uint64) bool { return len(events) > 0 }); sequence++ {
			b.Skip(sequence, 0, now)
		}
		told := map[uint64]bool{}
		for batch := range b.renames {
			for _, r := range b.renames[batch] {
				told[r.Lane] = true
			}
			assert.Equal(t, batch == len(b.renames)-1, len(b.sequences[batch]) > 0, "events in batch %d of %d", batch, len(b.renames))
		}
		assert.Len(t, told, maxUnplaced)
		assert.Equal(t, length > 10, len(b.renames) > 1)
	}
}

// Where the run has no memory left, a rename is told as it is known then.
func TestARenameThatCannotWaitIsHandedOnAtOnce(t *testing.T) {
	now := time.Now()
	p := newPacked(t)
	p.Skip(4, 0, now)
	p.called(3, "a", now)
	used := p.stream.settings.Memory.Bounded()
	assert.EqualValues(t, pendingRenameBytes+1, used)
	// Nothing else is free.
	free := 1<<20 - int(used)
	require.True(t, p.stream.settings.Memory.Reserve(free))
	p.called(3, "b", now)
	require.Len(t, p.renames, 1)
	assert.Equal(t, "3 a 5, 3 b 5", p.what(0))
	assert.Equal(t, []uint64{4}, p.sequences[0])
	assert.EqualValues(t, free, p.stream.settings.Memory.Bounded())
}

func TestRenamesWithoutEndAreBounded(t *testing.T) {
	now := time.Now()
	p := newPacked(t)
	for i := range 20_000 {
		p.called(uint16(i), strings.Repeat("x", i%300), now)
		require.LessOrEqual(t, len(p.unplaced.renames), maxUnplaced)
		require.LessOrEqual(t, p.packer.Renames(), maxUntold+maxUnplaced)
	}
	p.place(len(p.unplaced.renames), passed{}, now)
	p.Flush()
	renames := 0
	for i := range p.renames {
		renames += len(p.renames[i])
	}
	assert.Equal(t, 20_000, renames)
	assert.Zero(t, p.stream.settings.Memory.Bounded())
}

func TestANumberOfNoRunPlacesNothing(t *testing.T) {
	now := time.Now()
	p := newPacked(t)
	p.called(3, "a", now)
	p.pass(callevent.MaxSequence, 0, now)
	p.pass(^uint64(0), 0, now)
	p.place(1, passed{}, now)
	p.Flush()
	assert.Equal(t, "3 a ?", p.what(0))
}

// memoryOf is the memory of a run in a process that has much.
func memoryOf(limit int) *runmemory.Memory {
	return runmemory.New(budget.New(1<<40).Group("test"), limit, errLimit)
}

var errLimit = errors.New("the limit of the run is reached")

// settings are those of a stream with so much memory.
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
