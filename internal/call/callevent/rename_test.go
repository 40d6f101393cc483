// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unpackRenames closes the batch and gives the renames that come out of it.
func unpackRenames(t *testing.T, p *Packer) []Rename {
	t.Helper()
	packed, err := p.Close(nil, 0, testStream.Epoch)
	require.NoError(t, err)
	var b Batch
	require.NoError(t, b.Unpack(packed.Data))
	return b.Renames
}

func TestRenamesSurviveWithAndWithoutEvents(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for round := range 60 {
		p, err := NewPacker(testStream, MinBatchBytes)
		require.NoError(t, err)
		calls := randomCalls(random, 1+random.IntN(30))
		if round%3 == 0 {
			calls = nil
		}
		var want []Rename
		rename := func() {
			r := Rename{
				Lane: random.Uint64(), Time: random.Int64N(1 << 40), First: random.IntN(2) == 0,
				Rank: random.Uint32(), Reused: random.IntN(2) == 0, Name: strings.Repeat("é", random.IntN(20)),
			}
			if r.Reused {
				r.After = random.Uint64N(MaxSequence + 1)
			}
			require.True(t, p.Rename(r))
			r.Time = testStream.Epoch + r.Time*testStream.Resolution
			want = append(want, r)
		}
		for i := range calls {
			calls[i].sequence, calls[i].time = uint64(i), int64(i)
			require.True(t, addCall(p, &calls[i]))
			if random.IntN(3) == 0 {
				rename()
			}
		}
		rename()
		assert.Equal(t, len(want), p.Renames())
		packed, err := p.Close(nil, 0, testStream.Epoch)
		require.NoError(t, err)
		var b Batch
		require.NoError(t, b.Unpack(packed.Data))
		assert.Equal(t, want, b.Renames)
		assert.Equal(t, inNanoseconds(testStream, calls), resolve(&b, 7))
	}
}

// Earlier writers derived the first number under a name, and the first time that is certainly under it.
func TestARenameOfAnEarlierWriterHoldsFromItsTime(t *testing.T) {
	for _, test := range []struct {
		name     string
		sequence uint64
		ticks    int64
		changed  func(row []byte)
		want     Rename
	}{
		{"with a number", 1234, 100, func([]byte) {}, Rename{Time: 99}},
		{"with only a time", MaxSequence, 100, func([]byte) {}, Rename{Time: 100}},
		{"provisional", 1234, 100, func(row []byte) { row[33] = 1 }, Rename{Time: 99}},
		{"of a reused lane", 1234, 100, func(row []byte) { row[34] = 1 }, Rename{Time: 100, Reused: true, After: 1234}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := NewPacker(testStream, MinBatchBytes)
			require.NoError(t, err)
			require.True(t, p.Rename(Rename{Lane: 7, Time: test.ticks, Rank: 3, Name: "n"}))
			packed, err := p.Close(nil, 0, testStream.Epoch)
			require.NoError(t, err)
			row := packed.Data[headerSize:]
			binary.LittleEndian.PutUint64(row[8:], test.sequence)
			test.changed(row)
			var b Batch
			require.NoError(t, b.Unpack(packed.Data))
			want := test.want
			want.Lane, want.Rank, want.Name, want.Time = 7, 3, "n", testStream.Epoch+want.Time*testStream.Resolution
			assert.Equal(t, []Rename{want}, b.Renames)
		})
	}
}

func TestTheTimeOfARenameIsOneThatCanBe(t *testing.T) {
	for _, test := range []struct {
		resolution, ticks, want int64
	}{
		{1_000_000, 0, testStream.Epoch},
		{1_000_000, -5, testStream.Epoch - 5_000_000},
		{1_000_000, -testStream.Epoch / 1_000_000, 0},
		{1_000_000, -testStream.Epoch/1_000_000 - 1, 0},
		{1_000_000, math.MinInt64, 0},
		{1_000_000, math.MaxInt64, maxTime},
		{1, maxTime - testStream.Epoch, maxTime},
		{1, maxTime - testStream.Epoch + 1, maxTime},
		{7, -testStream.Epoch/7 - 1, 0},
		{MaxResolution, math.MinInt64, 0},
		{MaxResolution, math.MaxInt64, maxTime},
	} {
		stream := testStream
		stream.Resolution = test.resolution
		p, err := NewPacker(stream, MinBatchBytes)
		require.NoError(t, err)
		require.True(t, p.Rename(Rename{Time: test.ticks}))
		assert.Equal(t, test.want, unpackRenames(t, p)[0].Time, "%d ticks of %d ns", test.ticks, test.resolution)
	}
}

func TestABatchIsFullOfRenames(t *testing.T) {
	for _, test := range []struct {
		name      string
		maxBytes  int
		length    int
		least     int
		mostBytes int
	}{
		{"by their number", MaxBatchBytes, 10, MaxRenames, MaxBatchBytes},
		{"by their size", MinBatchBytes, 1000, 100, MinBatchBytes},
		{"of the longest names", MinBatchBytes, 2 * MaxNameBytes, 1, MinBatchBytes},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := NewPacker(testStream, test.maxBytes)
			require.NoError(t, err)
			n := 0
			for p.Rename(Rename{Lane: uint64(n), Name: strings.Repeat("x", test.length)}) {
				n++
			}
			assert.GreaterOrEqual(t, n, test.least)
			renames := unpackRenames(t, p)
			assert.Len(t, renames, n)
			assert.Len(t, renames[n-1].Name, min(test.length, MaxNameBytes))
			assert.False(t, p.Rename(Rename{}), "closed")
			p.Reset()
			assert.Zero(t, p.Renames())
			assert.True(t, p.Rename(Rename{Name: strings.Repeat("x", test.length)}))
		})
	}
}

// Renames and events share the room of a batch, also of one whose memory is there
// from the one before.
func TestEventsAndRenamesFillABatchTogether(t *testing.T) {
	p, err := NewPacker(testStream, MinBatchBytes)
	require.NoError(t, err)
	for _, perEvent := range []int{0, 1, 40} {
		skip := Event{Kind: KindSkip}
		for i := 0; p.Add(&skip); i++ {
			for j := range perEvent {
				p.Rename(Rename{Name: fmt.Sprint(i, j)})
			}
		}
		packed, err := p.Close(manyBarriers(MaxBarriers), 1, 1)
		require.NoError(t, err)
		assert.LessOrEqual(t, len(packed.Data), MinBatchBytes)
		assert.Greater(t, len(packed.Data), MinBatchBytes-200)
		require.NoError(t, new(Batch).Unpack(packed.Data))
		p.Reset()
	}
	// All the renames that fit, and then events.
	for p.Rename(Rename{Name: strings.Repeat("x", 1000)}) {
	}
	for skip := (Event{Kind: KindSkip}); p.Add(&skip); {
	}
	packed, err := p.Close(manyBarriers(MaxBarriers), 1, 1)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(packed.Data), MinBatchBytes)
}

func manyBarriers(n int) []Barrier {
	barriers := make([]Barrier, n)
	for i := range barriers {
		barriers[i] = Point(uint64(i), CauseSuspended)
	}
	return barriers
}

// When a batch is full and has few barriers, there is room for renames.
func TestRenamesAtLast(t *testing.T) {
	for _, barriers := range []int{0, 1, MaxBarriers / 2, MaxBarriers} {
		p, err := NewPacker(testStream, MinBatchBytes)
		require.NoError(t, err)
		skip := Event{Kind: KindSkip}
		for p.Add(&skip) {
		}
		require.False(t, p.Rename(Rename{Name: "late"}))
		n := 0
		for p.RenameAtLast(Rename{Name: "late"}, barriers) {
			n++
		}
		assert.InDelta(t, (MaxBarriers-barriers)*barrierSize/(renameSize+len("late")), n, 1, "%d barriers", barriers)
		assert.False(t, p.Add(&skip), "there is no room for events")
		packed, err := p.Close(manyBarriers(barriers), 1, 1)
		require.NoError(t, err)
		assert.LessOrEqual(t, len(packed.Data), MinBatchBytes)
		var b Batch
		require.NoError(t, b.Unpack(packed.Data))
		assert.Len(t, b.Renames, n)
		assert.False(t, p.RenameAtLast(Rename{}, 0), "closed")
	}
}
