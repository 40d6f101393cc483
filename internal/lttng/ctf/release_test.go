// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// largeTrace has events with 800,000 values, in arrays that begin in the middle of a byte,
// and bytes that do.
const largeTrace = `/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
clock { name = c; freq = 1000000000; };
stream { id = 0; event.header := struct {
	integer { size = 16; align = 8; map = clock.c.value; } t; integer { size = 8; align = 8; map = clock.c.value; } u;
}; };
event { name = e; fields := struct {
	integer { size = 3; } first; integer { size = 1; } a[799997];
	integer { size = 8; align = 8; } n; integer { size = 4; } half; integer { size = 8; align = 1; encoding = UTF8; } text[90000];
	integer { size = 4; } last;
}; };
`

// largeSize is the size of an event of it.
const largeSize = 3 + 100_000 + 1 + 90_001

// largePacket has events with times of 24 bits in all, of which the second part goes on from
// the first and may be before it.
func largePacket(times ...[2]uint) []byte {
	var b []byte
	for i, t := range times {
		event := make([]byte, largeSize)
		event[0], event[1], event[2] = byte(t[0]), byte(t[0]>>8), byte(t[1])
		for at := range event[3:] {
			event[3+at] = byte(i*31 + at)
		}
		b = append(b, event...)
	}
	return b
}

// valuesOf is all that an event says.
func valuesOf(r *Reader) string {
	e, fields := &r.Event, r.Event.Class.Fields.Members
	array, sum := fields[1], uint64(0)
	for i := range e.Len(array) {
		element := e.Element(array, i)
		sum = sum*31 + element.Uint(array.Members[0])
	}
	return fmt.Sprint(e.Clock, e.Uint(fields[0]), e.Len(array), sum, e.Uint(fields[2]), e.Uint(fields[3]), e.Text(fields[4])[:40], e.Uint(fields[5]))
}

// keeps is how many bytes a reader holds beside its packet.
func keeps(r *Reader) int {
	return 8*cap(r.m.slots) + cap(r.m.side) + 8*cap(r.Event.slots) + cap(r.Event.side) + 8*cap(r.header.slots) + cap(r.header.side)
}

func newLargeReader(t *testing.T) *Reader {
	t.Helper()
	trace := NewTrace()
	require.NoError(t, trace.Append([]byte(largeTrace)))
	return NewReader(trace)
}

// A trace has thousands of streams, each with a reader that waits for its next packet.
func TestAReaderKeepsNoLargeSpaceBehindAPacket(t *testing.T) {
	r := newLargeReader(t)
	for range 2 {
		require.NoError(t, r.Begin(largePacket([2]uint{1, 1})))
		require.True(t, r.Next(), r.Err())
		require.Equal(t, 799997, r.Event.Len(r.Event.Class.Fields.Members[1]))
		require.Greater(t, keeps(r), 1<<20)
		require.False(t, r.Next())
		require.NoError(t, r.Err())
		require.LessOrEqual(t, keeps(r), 8*keptSlots+keptBytes)
		require.NotNil(t, r.m.data)
		r.Finish()
		require.Nil(t, r.m.data)
		require.Nil(t, r.header.data)
		require.Zero(t, r.Packet.Values)
		require.Zero(t, r.Event.Values)
		require.EqualValues(t, 8*largeSize, r.Packet.Content)
		require.False(t, r.Next())
	}
}

// Bytes that begin in the middle of a byte have space of their own.
func TestAReaderKeepsNoLargeBytesBehindAPacket(t *testing.T) {
	trace := NewTrace()
	require.NoError(t, trace.Append([]byte(`/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
stream { id = 0; };
event { name = e; fields := struct { integer { size = 4; } half; integer { size = 8; align = 1; encoding = UTF8; } text[90000]; integer { size = 4; } last; }; };
`)))
	r := NewReader(trace)
	require.NoError(t, r.Begin(make([]byte, 90001)))
	require.True(t, r.Next(), r.Err())
	require.Greater(t, keeps(r), 90000)
	r.Rest()
	require.LessOrEqual(t, keeps(r), 8*keptSlots+keptBytes)
	r.Wake()
	require.Len(t, r.Event.Bytes(r.Event.Class.Fields.Members[1]), 90000)
	require.False(t, r.Next())
	require.LessOrEqual(t, keeps(r), 8*keptSlots+keptBytes)
}

// Whether readers rest or not, an event is the same: its time, too, that goes on from the
// one before.
func TestAReaderThatHasRestedHasTheSameEvent(t *testing.T) {
	packet := largePacket([2]uint{0x1234, 0x33}, [2]uint{0x1235, 0x36}, [2]uint{0x1236, 0x34}, [2]uint{0x200, 0x01})
	read := func(rest bool) (all []string) {
		r := newLargeReader(t)
		require.NoError(t, r.Begin(packet))
		for r.Next() {
			if rest {
				r.Wake() // nothing has rested
				clock, offset := r.Event.Clock, r.Offset()
				r.Rest()
				r.Rest()
				require.LessOrEqual(t, keeps(r), 8*keptSlots+keptBytes)
				require.Equal(t, clock, r.Event.Clock)
				turns := r.m.turns
				r.m.turns = 0 // reading it twice counts once
				r.Wake()
				require.Zero(t, r.m.turns)
				r.m.turns = turns
				require.Equal(t, offset, r.Offset())
				require.NoError(t, r.Err())
			}
			all = append(all, valuesOf(r))
		}
		require.NoError(t, r.Err())
		return all
	}
	want := read(false)
	require.Len(t, slices.Compact(slices.Clone(want)), 4)
	require.Equal(t, want, read(true))
}
