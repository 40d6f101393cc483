// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// largeTrace has events with 800,000 values, in arrays that begin in the middle of a byte, and bytes that also do.
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

// largeSize is the size of one of its events.
const largeSize = 3 + 100_000 + 1 + 90_001

// largePacket returns a packet with events. Their times have 24 bits in two parts. The second part continues the
// first and may be before it.
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

// valuesOf returns all values of an event as text.
func valuesOf(r *Reader) string {
	e, fields := &r.Event, r.Event.Class.Fields.Members
	array, sum := fields[1], uint64(0)
	for i := range e.Len(array) {
		element := e.Element(array, i)
		sum = sum*31 + element.Uint(array.Members[0])
	}
	return fmt.Sprint(e.Clock, e.Uint(fields[0]), e.Len(array), sum, e.Uint(fields[2]), e.Uint(fields[3]), e.Text(fields[4])[:40], e.Uint(fields[5]))
}

// heldBytes returns the memory of a reader for values.
func heldBytes(r *Reader) int {
	return 8*cap(r.m.slots) + cap(r.m.side) + 8*cap(r.Event.slots) + cap(r.Event.side) + 8*cap(r.header.slots) + cap(r.header.side)
}

func newLargeReader(t *testing.T) *Reader {
	t.Helper()
	trace := NewTrace()
	require.NoError(t, trace.Append([]byte(largeTrace)))
	return NewReader(trace)
}

// A trace has thousands of streams, and each has a reader that waits for its next packet.
func TestAReaderFreesLargeValuesAfterAPacket(t *testing.T) {
	r := newLargeReader(t)
	for range 2 {
		require.NoError(t, r.Begin(largePacket([2]uint{1, 1})))
		require.True(t, r.Next(), r.Err())
		require.Equal(t, 799997, r.Event.Len(r.Event.Class.Fields.Members[1]))
		require.Greater(t, heldBytes(r), 1<<20)
		require.False(t, r.Next())
		require.NoError(t, r.Err())
		require.LessOrEqual(t, heldBytes(r), 8*keptSlots+keptBytes)
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

// Bytes that begin in the middle of a byte are copied.
func TestAReaderFreesLargeCopiedBytesAfterAPacket(t *testing.T) {
	trace := NewTrace()
	require.NoError(t, trace.Append([]byte(`/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
stream { id = 0; };
event { name = e; fields := struct { integer { size = 4; } half; integer { size = 8; align = 1; encoding = UTF8; } text[90000]; integer { size = 4; } last; }; };
`)))
	r := NewReader(trace)
	require.NoError(t, r.Begin(make([]byte, 90001)))
	require.True(t, r.Next(), r.Err())
	require.Greater(t, heldBytes(r), 90000)
	r.Unload()
	require.LessOrEqual(t, heldBytes(r), 8*keptSlots+keptBytes)
	r.Reload()
	require.Len(t, r.Event.Bytes(r.Event.Class.Fields.Members[1]), 90000)
	require.False(t, r.Next())
	require.LessOrEqual(t, heldBytes(r), 8*keptSlots+keptBytes)
}

// An event is the same with and without Unload. This includes its time, which depends on the previous event.
func TestAnEventIsTheSameAfterUnload(t *testing.T) {
	packet := largePacket([2]uint{0x1234, 0x33}, [2]uint{0x1235, 0x36}, [2]uint{0x1236, 0x34}, [2]uint{0x200, 0x01})
	read := func(rest bool) (all []string) {
		r := newLargeReader(t)
		require.NoError(t, r.Begin(packet))
		for r.Next() {
			if rest {
				r.Reload() // nothing was dropped
				clock, offset := r.Event.Clock, r.Offset()
				r.Unload()
				r.Unload()
				require.LessOrEqual(t, heldBytes(r), 8*keptSlots+keptBytes)
				require.Equal(t, clock, r.Event.Clock)
				operations := r.m.operations
				r.m.operations = 0 // reading it twice counts once
				r.Reload()
				require.Zero(t, r.m.operations)
				r.m.operations = operations
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
