// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
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

// packed is a batcher whose batches are unpacked, and what of them matters here.
type packed struct {
	*batcher
	t *testing.T
	// batches are the renames and the numbers of each.
	renames   [][]callevent.Rename
	sequences [][]uint64
}

func newPacked(t *testing.T) *packed { return newPackedOf(t, newPackedStream()) }

// newPackedStream is what the connections of one run share.
func newPackedStream() *stream {
	s := &stream{now: time.Now, memory: memoryOf(1 << 20)}
	s.clock.zero = time.Now()
	s.names = newNames(s.memory)
	return s
}

func newPackedOf(t *testing.T, s *stream) *packed {
	p := &packed{t: t}
	config := createDefaultConfig()
	config.Batch.MaxBytes = callevent.MinBatchBytes
	batch, err := newBatcher(s, callevent.StreamID{1}, config, p.hand)
	require.NoError(t, err)
	p.batcher = batch
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
	p.skip(5, 0, now)
	assert.Zero(t, p.packer.Renames())
	p.skip(8, 0, now)
	assert.Equal(t, 1, p.packer.Renames())
	p.called(3, "b", now)
	p.skip(10, 0, now)
	// The batch ends before the second has come, and once before the first.
	p.flush()
	p.skip(12, 0, now)
	p.called(3, "c", now)
	p.flush()
	p.skip(20, 0, now)
	p.skip(21, 0, now)
	p.flush()
	require.Len(t, p.renames, 3)
	// What nothing has followed is told as it is known then.
	assert.Equal(t, []string{"3 a 3, 3 b 9", "3 c 13~", "3 c 16"}, []string{p.what(0), p.what(1), p.what(2)})
	assert.Equal(t, [][]uint64{{5, 8, 10}, {12}, {20, 21}}, p.sequences)
}

func TestARenameThatNothingFollowsIsHandedOnAlone(t *testing.T) {
	now := time.Now()
	p := newPacked(t)
	assert.True(t, p.wake(now).IsZero())
	p.called(3, "a", now)
	assert.Equal(t, now.Add(renameWait), p.wake(now))
	p.attend(now.Add(renameWait - 1))
	assert.Empty(t, p.renames)
	p.attend(now.Add(renameWait))
	require.Len(t, p.renames, 1)
	assert.Equal(t, "3 a ?", p.what(0))
	assert.Empty(t, p.sequences[0])
	assert.True(t, p.wake(now).IsZero())
}

func TestTwoNamesOfAThreadInARowKeepTheirOrder(t *testing.T) {
	now := time.Now()
	p := newPacked(t)
	p.skip(7, 0, now)
	p.called(3, "a", now)
	p.called(4, "x", now)
	p.called(3, "b", now)
	p.called(3, "c", now)
	p.skip(15, 0, now)
	p.skip(99, 0, now)
	p.flush()
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
		b.skip(sequence, 0, now)
		sequence++
		b.flush()
		return b.what(len(b.renames) - 1)
	}
	a.skip(4, 0, now)
	a.called(3, "x", now)
	a.called(3, "y", now)
	assert.Equal(t, "3 x 5~, 3 y 5~", tells())
	a.flush()
	assert.Equal(t, "3 x 5~, 3 y 5~", a.what(0))
	assert.Equal(t, "3 x 5~, 3 y 5~", tells(), "they have been handed on, but will be known better")
	a.skip(8, 0, now)
	a.skip(12, 0, now)
	assert.Equal(t, "3 x 5, 3 y 6", tells())
	assert.Equal(t, "3 x 5, 3 y 6", tells(), "they have not been handed on")
	a.flush()
	assert.Equal(t, "3 x 5, 3 y 6", a.what(1))
	assert.Empty(t, tells())
	for i, want := range []uint32{1, 2} {
		assert.Equal(t, [2]uint32{want, want}, [2]uint32{a.renames[0][i].Order, a.renames[1][i].Order})
	}
	assert.Zero(t, s.memory.used.Load())
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
			b.skip(sequence, 0, now)
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
	p.skip(4, 0, now)
	p.called(3, "a", now)
	used := p.stream.memory.used.Load()
	assert.EqualValues(t, tidingBytes+1, used)
	p.stream.memory.limit = used
	p.called(3, "b", now)
	require.Len(t, p.renames, 1)
	assert.Equal(t, "3 a 5, 3 b 5", p.what(0))
	assert.Equal(t, []uint64{4}, p.sequences[0])
	assert.Zero(t, p.stream.memory.used.Load())
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
	p.flush()
	renames := 0
	for i := range p.renames {
		renames += len(p.renames[i])
	}
	assert.Equal(t, 20_000, renames)
	assert.Zero(t, p.stream.memory.used.Load())
}

func TestANumberOfNoRunPlacesNothing(t *testing.T) {
	now := time.Now()
	p := newPacked(t)
	p.called(3, "a", now)
	p.pass(callevent.MaxSequence, 0, now)
	p.pass(^uint64(0), 0, now)
	p.place(1, passed{}, now)
	p.flush()
	assert.Equal(t, "3 a ?", p.what(0))
}

// A rename that is the last that an agent sends on a connection is told as well as it
// can be known.
func TestARenameThatIsTheLastMessage(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1))
	a := connect(b, 1)
	p := a.join()
	p.write(append(append(namesOne(), calls(0, 1)...), thread(9, 5000, "late")...))
	a.finish()
	b.awaitRuns(0)
	s := b.pipeline.only(t)
	assert.True(t, slices.ContainsFunc(s.renames, func(r callevent.Rename) bool { return r.Name == "late" && !r.Provisional }), "%+v", s.renames)
}

// A name can be read before an earlier one, which came on another connection.
func TestNamesThatOvertakeEachOther(t *testing.T) {
	b := newBed(t, quickly)
	a := connect(b, 1)
	p, other := a.join(), a.join()
	at := func(sequence, time uint32) []byte { return enter(sequence, 1, 3, time) }
	p.write(append(append(method(1, "run"), thread(3, 200, "grown")...), at(5, 200)...))
	b.awaitReceived(1)
	p.write(at(7, 200))
	b.awaitReceived(2)
	other.write(append(append(thread(3, 100, "born"), at(1, 100)...), at(3, 100)...))
	b.awaitReceived(4)
	for i, e := range [][]byte{at(0, 100), at(2, 100), at(4, 200), at(6, 200), at(8, 300)} {
		p.write(e)
		b.awaitReceived(uint64(5 + i))
	}
	a.finish()
	b.awaitRuns(0)
	s := b.pipeline.only(t)
	for sequence, want := range []string{"born", "born", "born", "born", "grown", "grown", "grown", "grown", "grown"} {
		assert.Equal(t, want, s.events[uint64(sequence)].thread, "event %d", sequence)
	}
}

// An agent that renames its threads for ever with the longest names loses nothing.
func TestLongNamesFillBatches(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1), func(_ *bed, c *Config) { c.Batch.MaxBytes = callevent.MinBatchBytes })
	a := connect(b, 1)
	p := a.join()
	p.write(method(1, "run"))
	long := strings.Repeat("x", bytefrog.MaxString-1)
	for i := range uint32(40) {
		p.write(append(thread(3, i, string(rune('a'+i))+long), enter(i, 1, 3, i)...))
	}
	a.finish()
	b.awaitRuns(0)
	s := b.pipeline.only(t)
	assert.Len(t, s.events, 40)
	assert.Len(t, s.renames, 40)
}
