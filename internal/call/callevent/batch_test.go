// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sample returns a batch with an entry in every table, and the offsets of its sections.
func sample(t testing.TB) (data []byte, s sections) {
	p, err := NewPacker(testStream, MinBatchBytes)
	require.NoError(t, err)
	for i, c := range []call{
		{kind: KindEnter, function: functionMain, lane: laneMain, attributes: []attributeOf{{"k", StringValue("é")}}},
		{kind: KindThrow, function: functionInit, lane: laneWorker, exception: "java.lang.Error"},
		{kind: KindExitTop, lane: laneMain},
		{kind: KindSkip, attributes: []attributeOf{{"n", IntValue(3)}, {"k", BoolValue(true)}}},
	} {
		c.sequence, c.time = uint64(10+i), int64(i)
		require.True(t, addCall(p, &c))
	}
	require.True(t, p.Rename(Rename{Lane: 8, Time: 3, First: true, Rank: 70000, Name: "né"}))
	require.True(t, p.Rename(Rename{Lane: 0, Reused: true, After: 12, Time: 4, Name: "main"}))
	packed, err := p.Close([]Barrier{Point(10, CauseSuspended), End(14, CauseEnded)}, 14, 99)
	require.NoError(t, err)
	require.NoError(t, s.measure(packed.Data))
	return packed.Data, s
}

func put16(offset int, v uint16) func([]byte) {
	return func(b []byte) { binary.LittleEndian.PutUint16(b[offset:], v) }
}

func put32(offset int, v uint32) func([]byte) {
	return func(b []byte) { binary.LittleEndian.PutUint32(b[offset:], v) }
}

func put64(offset int, v uint64) func([]byte) {
	return func(b []byte) { binary.LittleEndian.PutUint64(b[offset:], v) }
}

func put8(offset int, v byte) func([]byte) { return func(b []byte) { b[offset] = v } }

func TestTheErrorOfACorruptBatchHasItsPosition(t *testing.T) {
	data, s := sample(t)
	event := func(i int) int { return headerSize + i*eventSize }
	for _, test := range []struct {
		name    string
		corrupt func([]byte)
		want    string
	}{
		{"stream ID", func(b []byte) { clear(b[:16]) }, "byte 0: expected a call stream ID, got zero"},
		{"no resolution", put64(16, 0), "byte 16: expected a clock resolution of 1 to 1000000000 ns, got 0"},
		{"coarse resolution", put64(16, MaxResolution+1), "byte 16: expected a clock resolution of 1 to 1000000000 ns, got 1000000001"},
		{"base time", put64(24, math.MaxUint64), "byte 24: expected a time after 1970, got -1"},
		{"base time in the far future", put64(24, maxTime+1), "byte 24: expected a time after 1970, got 4611686018427387905"},
		{"base sequence", put64(32, MaxSequence+1), "byte 32: expected a sequence number of at most 4611686018427387904, got 4611686018427387905"},
		{"next", put64(40, MaxSequence+1), "byte 40: expected a sequence number of at most 4611686018427387904, got 4611686018427387905"},
		{"received", put64(48, 1<<63), "byte 48: expected a time after 1970, got -9223372036854775808"},
		{"number of events", put32(56, 5), "byte 56: expected counts that make"},
		{"number of barriers", put32(60, 0), "byte 56: expected counts that make"},
		{"number of attributes", put32(64, math.MaxUint32), "byte 56: expected counts that make"},
		{"number of functions", put32(68, math.MaxUint32), "byte 56: expected counts that make"},
		{"number of lanes", put32(72, 1), "byte 56: expected counts that make"},
		{"number of exceptions", put32(76, 0), "byte 56: expected counts that make"},
		{"number of values", put32(80, 9), "byte 56: expected counts that make"},
		{"number of renames", put32(92, 1), "byte 56: expected counts that make"},
		{"length of strings", put32(84, 0), "byte 56: expected counts that make"},
		{"all counts", func(b []byte) {
			for i := 56; i < headerSize; i++ {
				b[i] = 0xff
			}
		}, "byte 56: expected counts that make"},
		{"one count is another's", func(b []byte) { // an attribute less, a lane more
			b[64]--
			b[72]++
		}, "expected strings of the lengths in the tables"},

		{"event of no kind", put8(event(0), 0), "byte 96: expected a kind of event, got 0"},
		{"event of a later kind", put8(event(2), byte(kindEnd)), "byte 136: expected a kind of event, got 10"},
		{"lane", put16(event(0)+2, 2), "byte 98: expected a lane of 2, got 2"},
		{"lane of exit top", put16(event(2)+2, 65535), "byte 138: expected a lane of 2, got 65535"},
		{"function", put16(event(1)+4, 2), "byte 120: expected a function of 2, got 2"},
		{"exception", put16(event(1)+6, 2), "byte 122: expected an exception of 1, got 2"},
		{"sequence below 0", put32(event(1)+12, ^uint32(10)), "byte 128: expected a sequence number, got -11 from base 10"},
		{"sequence of a skip below 0", put32(event(3)+12, 1<<31), "byte 168: expected a sequence number, got -2147483648 from base 10"},
		{"sequence above the highest", func(b []byte) { put64(32, MaxSequence-1)(b); put32(event(1)+12, 2)(b) },
			"byte 128: expected a sequence number, got 2 from base 4611686018427387903"},

		{"barrier of no kind", put8(s.barriers+16, 0), "byte 192: expected a kind of barrier, got 0"},
		{"barrier of a later kind", put8(s.barriers+16, 3), "byte 192: expected a kind of barrier, got 3"},
		{"barrier without cause", put8(s.barriers+17, 0), "byte 193: expected a cause of a barrier, got 0"},
		{"barrier of a cause of pairing", put8(s.barriers+17, byte(CauseGap)), "byte 193: expected a cause of a barrier, got 10"},
		{"barrier that ends before it begins", put64(s.barriers, 11), "byte 176: expected a barrier from a number to one not below it, got 11 to 10"},
		{"barrier beyond the highest number", put64(s.barriers+8, MaxSequence+1),
			"byte 176: expected a barrier from a number to one not below it, got 10 to 4611686018427387905"},
		{"end that is an interval", put64(s.barriers+barrierSize+8, 15), "byte 200: expected a barrier from a number to one not below it, got 14 to 15"},

		{"attribute of no event", put32(s.attributes, 4), "byte 224: expected an event from 0 to 4, got 4"},
		{"attributes out of order", put32(s.attributes+attributeSize, 4), "byte 236: expected an event from 0 to 4, got 4"},
		{"attribute before the last one's event", put32(s.attributes+2*attributeSize, 2), "byte 248: expected an event from 3 to 4, got 2"},
		{"key that is no value", put32(s.attributes+4, 5), "byte 228: expected a string and a value of 5 values, got 5 and 1"},
		{"key that is no string", put32(s.attributes+4, 3), "byte 228: expected a string and a value of 5 values, got 3 and 1"},
		{"value that is none", put32(s.attributes+8, 5), "byte 228: expected a string and a value of 5 values, got 0 and 5"},

		{"name of a function too long", put32(s.functions+8, MaxNameBytes+1), "expected strings of the lengths in the tables"},
		{"name of a function longer than all", put32(s.functions, math.MaxUint32), "expected strings of the lengths in the tables"},
		{"name of a lane shorter", put32(s.lanes+8, 3), "expected strings of the lengths in the tables"},
		{"name that ends inside a character", func(b []byte) { put32(s.lanes+8, 6)(b); put32(s.lanes+laneSize+8, 7)(b) },
			"expected strings of the lengths in the tables"},
		{"name of an exception longer", put32(s.exceptions, 16), "expected strings of the lengths in the tables"},
		{"value without a type", put32(s.values, 0), "expected a type of value, got 0"},
		{"value of a later type", put32(s.values+valueSize, uint32(valueTypeEnd)), "expected a type of value, got 5"},
		{"string value longer", put64(s.values+4, math.MaxUint64), "expected strings of the lengths in the tables"},
		{"number of a rename", put64(s.renames+8, MaxSequence+1), "expected a sequence number of at most 4611686018427387904, got 4611686018427387905"},
		{"time of a rename", put64(s.renames+16, math.MaxUint64), "expected a time after 1970, got -1"},
		{"time of a rename in the far future", put64(s.renames+renameSize+16, maxTime+1), "expected a time after 1970, got 4611686018427387905"},
		{"first of a rename", put8(s.renames+32, 2), "expected 0 or 1, got 2"},
		{"provisional rename", put8(s.renames+renameSize+33, 2), "expected 0 or 1, got 2"},
		{"reused of a rename", put8(s.renames+34, 2), "expected 0 or 1, got 2"},
		{"name of a rename longer", put32(s.renames+24, 5), "expected strings of the lengths in the tables"},
		{"name of a rename that ends inside a character", func(b []byte) { put32(s.renames+24, 2)(b); put32(s.renames+renameSize+24, 5)(b) },
			"expected strings of the lengths in the tables"},

		{"text key longer", put32(88, 10), "expected strings of the lengths in the tables"},
		{"text key too long", put32(88, math.MaxUint32), "expected strings of the lengths in the tables"},
		{"strings that are no UTF-8", put8(s.strings, 0xff), "expected UTF-8, got something else"},
	} {
		t.Run(test.name, func(t *testing.T) {
			corrupt := slices.Clone(data)
			test.corrupt(corrupt)
			require.NotEqual(t, data, corrupt)
			err := new(Batch).Unpack(corrupt)
			var layout *LayoutError
			require.True(t, errors.As(err, &layout), "%v", err)
			assert.Contains(t, err.Error(), test.want)
			assert.Contains(t, err.Error(), "call event batch, byte ")
			assert.Less(t, layout.Offset, len(data)+1)
		})
	}
}

func TestABatchOfAnotherLengthIsRefused(t *testing.T) {
	data, _ := sample(t)
	for n := range data {
		require.Error(t, new(Batch).Unpack(data[:n]), "the first %d bytes", n)
	}
	require.Error(t, new(Batch).Unpack(append(slices.Clone(data), 0)))
	require.ErrorContains(t, new(Batch).Unpack(nil), "byte 0: expected 96 to 1048576 bytes, got 0")
	require.ErrorContains(t, new(Batch).Unpack(make([]byte, MaxBatchBytes+1)), "got 1048577")
}

func TestTooManyBarriersAreRefused(t *testing.T) {
	data, _ := sample(t)
	b := slices.Clone(data[:headerSize])
	clear(b[56:])
	binary.LittleEndian.PutUint32(b[60:], MaxBarriers+1)
	for i := range MaxBarriers + 1 {
		b = binary.LittleEndian.AppendUint64(b, uint64(i))
		b = binary.LittleEndian.AppendUint64(b, uint64(i))
		b = append(b, byte(BarrierBreak), byte(CauseSuspended), 0, 0, 0, 0, 0, 0)
	}
	require.EqualError(t, new(Batch).Unpack(b), "call event batch, byte 96: expected at most 1024 barriers, got 1025")
}

func TestTooManyRenamesAreRefused(t *testing.T) {
	data, _ := sample(t)
	b := slices.Clone(data[:headerSize])
	clear(b[56:])
	binary.LittleEndian.PutUint32(b[92:], MaxRenames+1)
	b = append(b, make([]byte, (MaxRenames+1)*renameSize)...)
	require.EqualError(t, new(Batch).Unpack(b), "call event batch, byte 96: expected at most 4096 renames, got 4097")
}

// Unpack refuses a changed byte, or the result is another usable batch.
func TestAChangedByteIsRefusedOrHarmless(t *testing.T) {
	data, _ := sample(t)
	for i := range data {
		for _, change := range []byte{1, 0x80, 0xff} {
			corrupt := slices.Clone(data)
			corrupt[i] ^= change
			checkUnpack(t, corrupt)
		}
	}
}

func TestTheNamesOfCausesAndKinds(t *testing.T) {
	seen := map[string]bool{}
	for c := range CauseCount {
		assert.NotEmpty(t, c.String())
		assert.False(t, seen[c.String()], "%s twice", c)
		seen[c.String()] = true
	}
	assert.Equal(t, "unknown", CauseCount.String())
	for k := range kindEnd {
		assert.NotEmpty(t, k.String())
	}
	assert.Equal(t, "unknown", kindEnd.String())
	assert.Equal(t, "0a000000000000000000000000000001", StreamID{0: 10, 15: 1}.String())
}

func TestTheValueOfAType(t *testing.T) {
	assert.Equal(t, "x", StringValue("x").Str())
	assert.Equal(t, int64(-3), IntValue(-3).Int())
	assert.Equal(t, -0.5, DoubleValue(-0.5).Double())
	assert.True(t, BoolValue(true).Bool())
	assert.False(t, BoolValue(false).Bool())
	assert.Equal(t, []ValueType{ValueString, ValueInt, ValueDouble, ValueBool},
		[]ValueType{StringValue("").Type(), IntValue(0).Type(), DoubleValue(0).Type(), BoolValue(false).Type()})
}
