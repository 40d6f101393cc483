// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unhex parses hexadecimal bytes with spaces between fields.
func unhex(tb testing.TB, text string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	require.NoError(tb, err)
	return b
}

var eventCases = []struct {
	name  string
	bytes string
	event Event
	size  int
}{
	{
		name:  "method entry: time, sequence, method, thread",
		bytes: "14 00000102 00000304 00000506 0708",
		event: Event{Type: TypeMethodEntry, Time: 0x102, Sequence: 0x304, Method: 0x506, Thread: 0x708},
		size:  15,
	},
	{
		name:  "method exit: time, sequence, method, line, thread",
		bytes: "15 00000102 00000304 00000506 0708 090A",
		event: Event{Type: TypeMethodExit, Time: 0x102, Sequence: 0x304, Method: 0x506, Line: 0x708, Thread: 0x90A},
		size:  17,
	},
	{
		name:  "exception: time, sequence, method, exception, line, thread",
		bytes: "16 00000102 00000304 00000506 00000708 090A 0B0C",
		event: Event{Type: TypeException, Time: 0x102, Sequence: 0x304, Method: 0x506, Exception: 0x708, Line: 0x90A, Thread: 0xB0C},
		size:  21,
	},
	{
		name:  "exception bubble is 19 bytes: time, sequence, method, exception, thread",
		bytes: "17 00000102 00000304 00000506 00000708 090A",
		event: Event{Type: TypeExceptionBubble, Time: 0x102, Sequence: 0x304, Method: 0x506, Exception: 0x708, Thread: 0x90A},
		size:  19,
	},
	{
		name:  "the largest numbers of an exit",
		bytes: "15 FFFFFFFF FFFFFFFF FFFFFFFF FFFF FFFF",
		event: Event{Type: TypeMethodExit, Time: 1<<32 - 1, Sequence: 1<<32 - 1, Method: 1<<32 - 1, Line: 1<<16 - 1, Thread: 1<<16 - 1},
		size:  17,
	},
	{
		name:  "the largest numbers of an exception",
		bytes: "16 FFFFFFFF FFFFFFFF FFFFFFFF FFFFFFFF FFFF FFFF",
		event: Event{Type: TypeException, Time: 1<<32 - 1, Sequence: 1<<32 - 1, Method: 1<<32 - 1, Exception: 1<<32 - 1, Line: 1<<16 - 1, Thread: 1<<16 - 1},
		size:  21,
	},
}

func TestEvents(t *testing.T) {
	for _, c := range eventCases {
		t.Run(c.name, func(t *testing.T) {
			b := unhex(t, c.bytes)
			assert.Len(t, b, c.size)
			assert.Equal(t, c.size, EventSize(c.event.Type))
			assert.Equal(t, b, AppendEvent(nil, c.event))

			// Alone, and in front of other bytes, which must not change the result.
			for _, behind := range []string{"", "FF", strings.Repeat("FF", MaxEventSize)} {
				dst := []Event{{Time: 9, Sequence: 9, Method: 9, Exception: 9, Line: 9, Thread: 9, Type: 9}}
				n, consumed := DecodeEvents(dst, append(unhex(t, c.bytes), unhex(t, behind)...))
				assert.Equal(t, 1, n)
				assert.Equal(t, c.size, consumed)
				assert.Equal(t, c.event, dst[0])
			}
		})
	}
}

func TestDecodeEventsStops(t *testing.T) {
	var all []byte
	var events []Event
	for _, c := range eventCases {
		all = AppendEvent(all, c.event)
		events = append(events, c.event)
	}
	mapping := MapMethod{Method: 1, Signature: "demo/Shop.main;9;([Ljava/lang/String;)V"}.AppendTo(nil)

	cases := []struct {
		name      string
		room      int
		bytes     []byte
		events    int
		remaining int
	}{
		{"when dst is full", 2, all, 2, len(all) - MethodEntrySize - MethodExitSize},
		{"when dst has no room", 0, all, 0, len(all)},
		{"at the end", len(events) + 1, all, len(events), 0},
		{"at the end with dst just full", len(events), all, len(events), 0},
		{"at no bytes", 3, nil, 0, 0},
		{"inside the last event", len(events), all[:len(all)-1], len(events) - 1, ExceptionSize - 1},
		{"at a type byte alone", 1, all[:1], 0, 1},
		{"in front of another message", len(events) + 1, append(append([]byte{}, all...), mapping...), len(events), len(mapping)},
		{"in front of another message that is short", len(events) + 1, append(append([]byte{}, all...), mapping[:3]...), len(events), 3},
		{"in front of an unknown type", 1, []byte{24, 0, 0}, 0, 3},
		{"in front of type 19", 1, append([]byte{19}, all...), 0, len(all) + 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dst := make([]Event, c.room)
			n, consumed := DecodeEvents(dst, c.bytes)
			assert.Equal(t, c.events, n)
			assert.Equal(t, c.remaining, len(c.bytes)-consumed)
			assert.Equal(t, events[:c.events], append([]Event{}, dst[:n]...))
		})
	}
}

func TestEventsAreDecodedUpToAnyEndOfTheBytes(t *testing.T) {
	var all []byte
	var ends []int
	for _, c := range eventCases {
		all = AppendEvent(all, c.event)
		ends = append(ends, len(all))
	}
	dst := make([]Event, len(eventCases))
	for end := range len(all) + 1 {
		want := 0
		for want < len(ends) && ends[want] <= end {
			want++
		}
		n, consumed := DecodeEvents(dst, all[:end])
		require.Equal(t, want, n, "with %d bytes", end)
		if want > 0 {
			require.Equal(t, ends[want-1], consumed, "with %d bytes", end)
			require.Equal(t, eventCases[want-1].event, dst[want-1], "with %d bytes", end)
		}
	}
}

func TestEventTypes(t *testing.T) {
	for i := range 256 {
		typ := MessageType(i)
		isEvent := i >= 20 && i <= 23
		assert.Equal(t, isEvent, typ.IsEvent(), "type %d", i)
		assert.Equal(t, isEvent, EventSize(typ) > 0, "type %d", i)
		if !isEvent {
			assert.Panics(t, func() { AppendEvent(nil, Event{Type: typ}) }, "type %d", i)
		}
	}
}

func TestEventsAllocateNothing(t *testing.T) {
	var all []byte
	for range 100 {
		for _, c := range eventCases {
			all = AppendEvent(all, c.event)
		}
	}
	dst := make([]Event, 100*len(eventCases))
	assert.Zero(t, testing.AllocsPerRun(100, func() { DecodeEvents(dst, all) }))
	out := make([]byte, 0, len(all))
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		out = out[:0]
		for _, e := range dst {
			out = AppendEvent(out, e)
		}
	}))
	assert.Equal(t, all, out)
}
