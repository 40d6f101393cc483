// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"
)

// at is a time of messages, and its msgpack.
const (
	at    Time = 1795166340529
	atHex      = "cb 42 7a 1f 84 08 5b 10 00"
)

// unhex is the bytes of a text in which spaces count for nothing.
func unhex(tb testing.TB, text string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(strings.ReplaceAll(text, " ", ""), "\n", ""))
	require.NoError(tb, err)
	return b
}

// message is a message of the released dialect with these events.
func message(tb testing.TB, events ...string) []byte {
	head := msgp.AppendArrayHeader(unhex(tb, "84 00 07 01 "+atHex+" 09 05 02"), uint32(len(events)))
	return append(head, unhex(tb, strings.Join(events, ""))...)
}

// event is an event in hex, with its time.
func event(eventType int, payload string) string {
	return fmt.Sprintf("83 00 %02x 01 %s 02 %s", eventType, atHex, payload)
}

// told returns the events of a message in words.
func told(dialect Dialect, message []byte) (events []string, err error) {
	var r Reader
	if err := r.Open(dialect, message); err != nil {
		return nil, err
	}
	for r.Next() {
		events = append(events, sentence(r.Event()))
	}
	return events, r.Err()
}

func sentence(e *Event) string {
	switch e.Kind {
	case ObjectCreated, ObjectDestroyed:
		return fmt.Sprintf("%s %d %s", e.Kind, e.Object.ID, orNil(e.Object.Class))
	case ObjectSpaceDump:
		return fmt.Sprintf("%s %d of %d with %d", e.Kind, e.Part.Correlation, e.Part.Objects, e.Part.Here)
	case DumpedObject:
		o := e.Object
		return fmt.Sprintf("%s %d %s %v %s %d %d", e.Kind, o.ID, orNil(o.Class), slices.Collect(o.References.All()), orNil(o.File), o.Line, o.Size)
	case GCStats:
		var b strings.Builder
		for name, n := range e.Stats.All() {
			fmt.Fprintf(&b, " %s=%d/%g/%v", name, n.Integer, n.Float, n.IsFloat)
		}
		return e.Kind.String() + b.String()
	case CPUSample:
		var b strings.Builder
		for f := range e.Frames.All() {
			fmt.Fprintf(&b, " %s %s %s:%d %v %d;", orNil(f.Method), orNil(f.Label), orNil(f.File), f.Line, f.Singleton, f.Thread)
		}
		return e.Kind.String() + b.String()
	case AllocationSnapshot:
		return e.Kind.String() + snapshotSentence(e.Snapshot)
	default:
		return fmt.Sprintf("%s %d", e.Kind, e.Type)
	}
}

func snapshotSentence(s Snapshot) string {
	var b strings.Builder
	for id, frames := range s.AllStacks() {
		fmt.Fprintf(&b, " stack %d of %d", id, frames.Len())
	}
	for a := range s.AllAllocations() {
		fmt.Fprintf(&b, " %s:%d %s %d*%d", a.File, a.Line, orNil(a.Class), a.Count, a.Size)
		for id, count := range a.Stacks.All() {
			fmt.Fprintf(&b, " by %d*%d", id, count)
		}
	}
	return b.String()
}

func orNil(b []byte) string {
	if b == nil {
		return "nil"
	}
	return fmt.Sprintf("%q", b)
}

// unusual are messages that no server was seen to write, and that are right all the same.
func TestOtherSpellingsOfAMessageAreRead(t *testing.T) {
	for _, tt := range []struct {
		name, event string
		want        []string
	}{
		{"an ID of any size", event(0, "82 03 cf ff ff ff ff ff ff ff ff 04 c0"), []string{"obj_created 18446744073709551615 nil"}},
		{"an ID that is signed but not negative", event(0, "82 03 d3 00 00 00 00 00 00 00 05 04 c0"), []string{"obj_created 5 nil"}},
		{"no class", event(0, "81 03 05"), []string{"obj_created 5 nil"}},
		{"another field in the place of the class", event(0, "82 03 05 63 a1 41"), []string{"obj_created 5 nil"}},
		{"a class as str8", event(0, "82 03 05 04 d9 02 41 42"), []string{`obj_created 5 "AB"`}},
		{"a class as raw or str16", event(0, "82 03 05 04 da 00 02 41 42"), []string{`obj_created 5 "AB"`}},
		{"a class as raw or str32", event(0, "82 03 05 04 db 00 00 00 02 41 42"), []string{`obj_created 5 "AB"`}},
		{"a class as bin", event(0, "82 03 05 04 c4 02 41 42"), []string{`obj_created 5 "AB"`}},
		{"an empty class", event(0, "82 03 05 04 a0"), []string{`obj_created 5 ""`}},
		{"more fields, in another order", event(0, "84 04 a1 41 63 93 01 02 80 a1 78 a1 79 03 05"), []string{`obj_created 5 "A"`}},
		{"a key of several bytes", event(0, "82 cd 00 03 05 d1 00 04 a1 41"), []string{`obj_created 5 "A"`}},
		{"a large map of two", event(0, "de 00 02 03 05 04 a1 41"), []string{`obj_created 5 "A"`}},
		{"an event with its payload first", "83 02 82 03 05 04 a1 41 01 " + atHex + " 00 00", []string{`obj_created 5 "A"`}},
		{"a dump with its payload first", "85 02 92 81 03 05 81 03 06 01 " + atHex + " 00 05 0a 07 0b 08", []string{"object_space_dump 7 of 8 with 2", "object 5 nil [] nil 0 0", "object 6 nil [] nil 0 0"}},
		{"an empty dump with its payload first", "85 02 90 01 " + atHex + " 00 05 0a 07 0b 08", []string{"object_space_dump 7 of 8 with 0"}},
		{"a dump without its number", event(5, "91 81 03 05"), []string{"object_space_dump 0 of 0 with 1", "object 5 nil [] nil 0 0"}},
		{"references of all sizes", event(5, "91 82 03 05 05 95 01 cc 02 cd 00 03 ce 00 00 00 04 cf 00 00 00 00 00 00 00 05"), []string{"object_space_dump 0 of 0 with 1", "object 5 nil [1 2 3 4 5] nil 0 0"}},
		{"references that are nil", event(5, "91 82 03 05 05 c0"), []string{"object_space_dump 0 of 0 with 1", "object 5 nil [] nil 0 0"}},
		{"a dumped object in another order", event(5, "91 86 08 28 07 03 06 a1 66 05 91 06 04 a1 41 03 05"), []string{"object_space_dump 0 of 0 with 1", `object 5 "A" [6] "f" 3 40`}},
		{"a time as a whole number", "82 00 02 01 ce 00 00 00 01", []string{"gc_start 2"}},
		{"a time as a short float", "82 00 02 01 ca 3f 80 00 00", []string{"gc_start 2"}},
		{"a payload where there is none", event(2, "c0"), []string{"gc_start 2"}},
		{"an unknown event", event(0x63, "81 a1 78 91 c3"), []string{"unknown 99"}},
		{"a collection in a collection", event(7, "90"), []string{"unknown 7"}},
		{"a number that this Ruby doesn't have", event(6, "83 a1 61 05 a1 62 a0 a1 63 c0"), []string{"gc_stats a=5/0/false"}},
		{"numbers of all types", event(6, "84 a1 61 ff a1 62 cf ff ff ff ff ff ff ff ff a1 63 cb 3f f8 00 00 00 00 00 00 05 06"), []string{"gc_stats a=-1/0/false b=0/1.8446744073709552e+19/true c=0/1.5/true"}},
		{"frames without anything", event(9, "92 80 82 0e c3 0c a1 6d"), []string{`cpu_sample nil nil nil:0 false 0; "m" nil nil:0 true 0;`}},
		{"a sample without frames", event(9, "90"), []string{"cpu_sample"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// The events after it are read, too.
			got, err := told(Released, message(t, tt.event, event(1, "81 03 09")))
			require.NoError(t, err)
			require.Equal(t, append(tt.want, "obj_destroyed 9 nil"), got)
		})
	}
}

func TestAnEventHasNoFieldsOfTheEventBefore(t *testing.T) {
	numbered := "85 00 05 01 " + atHex + " 0a 07 0b 08 02 91 86 03 05 04 a1 41 05 91 06 06 a1 66 07 03 08 28"
	for _, without := range []string{
		event(5, "91 81 03 09"),
		"84 63 c0 00 05 01 " + atHex + " 02 91 81 03 09",
	} {
		got, err := told(Released, message(t, numbered, without, event(0, "81 03 09")))
		require.NoError(t, err)
		require.Equal(t, []string{
			"object_space_dump 7 of 8 with 1", `object 5 "A" [6] "f" 3 40`,
			"object_space_dump 0 of 0 with 1", "object 9 nil [] nil 0 0",
			"obj_created 9 nil",
		}, got)
	}
}

func TestSnapshotsHaveStacksAndAllocations(t *testing.T) {
	for _, tt := range []struct{ name, payload, want string }{
		{
			"both", "82 10 82 05 92 80 80 06 90 12 81 a1 66 82 ab 37 20 41 3c 42 20 43 3e 20 34 30 82 11 03 10 82 05 02 06 01 a5 38 20 41 20 30 82 11 01 10 c0",
			` stack 5 of 2 stack 6 of 0 f:7 "A<B C>" 3*40 by 5*2 by 6*1 f:8 "A" 1*0`,
		},
		{"neither", "80", ""},
		{"nil", "82 10 c0 12 c0", ""},
		{"a class that is hidden", "81 12 81 a1 66 81 ab 37 20 28 6e 75 6c 6c 29 20 34 30 80", ` f:7 nil 0*40`},
		{"a class without a name", "81 12 81 a1 66 81 a4 37 20 20 30 80", ` f:7 "" 0*0`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, "84 00 06 01 "+atHex+" 09 00 02 91"+event(0, tt.payload))
			got, err := told(Documented, b)
			require.NoError(t, err)
			require.Equal(t, []string{"allocation_snapshot" + tt.want}, got)
		})
	}
}

func TestWrongPlacesOfAllocations(t *testing.T) {
	for _, place := range []string{"", "7", "7 40", "x A 40", "7 A x", "7 A -1", "7 A ", " A 40", "99999999999999999999 A 40"} {
		text := append([]byte{0xa0 | byte(len(place))}, place...)
		b := unhex(t, "84 00 06 01 "+atHex+" 09 00 02 91"+event(0, "81 12 81 a1 66 81"+hex.EncodeToString(text)+"80"))
		_, err := told(Documented, b)
		start := len(b) - len(text) - 1
		require.EqualError(t, err, fmt.Sprintf("byte %d: expected %q, got %q", start, "LINE CLASS SIZE", place))
	}
}

func TestAMessageMayHaveItsFieldsInAnyOrder(t *testing.T) {
	b := unhex(t, "85 63 90 02 91"+event(1, "81 03 09")+"09 cd 01 00 01 "+atHex+"00 07")
	var r Reader
	require.NoError(t, r.Open(Released, b))
	require.Equal(t, Header{Time: at, Counter: 256, Counted: true, Events: 1}, r.Header())
	require.True(t, r.Next())
	require.Equal(t, "obj_destroyed 9 nil", sentence(r.Event()))
	require.Equal(t, at, r.Event().Time)
	require.False(t, r.Next())
	require.NoError(t, r.Err())
}

func TestAHeaderThatCannotBeReadIsNone(t *testing.T) {
	var r Reader
	require.EqualError(t, r.Open(Released, unhex(t, "83 00 07 09 05 02 90")), "byte 6: expected a message with a time, got one without")
	require.Zero(t, r.Header())
	require.Error(t, r.Open(Released, unhex(t, "84 00 07 01 "+atHex+" 09 05 02 c0")))
	require.Equal(t, Header{Time: at, Counter: 5, Counted: true}, r.Header(), "its events can't be read")
}

// wrongEvents are events that are wrong.
var wrongEvents = []struct {
	name, event string
	problem     Problem
	err         string // without the place, which is the place in the event
	offset      int
}{
	{"no map", "05", WrongType, "expected an event: a map, got int (0x05)", 0},
	{"no msgpack", "c1", WrongType, "expected an event: a map, got <invalid> (0xc1)", 0},
	{"no type", "81 01 " + atHex, Missing, "expected an event with a type and a time, got one without", 11},
	{"no time", "81 00 02", Missing, "expected an event with a type and a time, got one without", 3},
	{"no payload", "82 00 00 01 " + atHex, Missing, "expected obj_created with a payload, got one without", 13},
	{"a type that is a text", "82 00 a1 61 01 " + atHex, WrongType, "expected the type of an event, got str (0xa1)", 2},
	{"a type below zero", "82 00 ff 01 " + atHex, WrongValue, "expected the type of an event, got -1", 2},
	{"a time that is a text", "82 00 02 01 a1 61", WrongType, "expected a time, in milliseconds since 1970, got str (0xa1)", 4},
	{"a time that is no number", "82 00 02 01 cb 7f f8 00 00 00 00 00 01", WrongValue, "expected a time, in milliseconds since 1970, got NaN", 4},
	{"a time without end", "82 00 02 01 cb 7f f0 00 00 00 00 00 00", WrongValue, "expected a time, in milliseconds since 1970, got +Inf", 4},
	{"a time before 1970", "82 00 02 01 ff", WrongValue, "expected a time, in milliseconds since 1970, got -1", 4},
	{"a time after 2262", "82 00 02 01 cf 7f ff ff ff ff ff ff ff", WrongValue, "expected a time, in milliseconds since 1970, got 9.223372036854776e+18", 4},
	{"a time of another event after 2262", "83 00 01 01 cb 7f ef ff ff ff ff ff ff 02 81 03 09", WrongValue, "expected a time, in milliseconds since 1970, got 1.7976931348623157e+308", 4},
	{"an object that is none", event(0, "05"), WrongType, "expected an object: a map, got int (0x05)", 14},
	{"an object without an ID", event(0, "81 04 a1 41"), Missing, "expected an object with an ID, got none", 18},
	{"an ID below zero", event(0, "82 03 d0 80 04 c0"), WrongValue, "expected the ID of an object, got -128", 16},
	{"an ID that is a float", event(0, "81 03 cb 3f f0 00 00 00 00 00 00"), WrongType, "expected the ID of an object, got float64 (0xcb)", 16},
	{"a class that is a number", event(0, "82 03 05 04 05"), WrongType, "expected the name of a class, got int (0x05)", 18},
	{"an array that is none", event(5, "81 03 05"), WrongType, "expected objects: an array, got map (0x81)", 14},
	{"a reference that is a text", event(5, "91 82 03 05 05 92 01 a1 61"), WrongType, "expected the ID of an object, got str (0xa1)", 21},
	{"statistics that are none", event(6, "90"), WrongType, "expected statistics: a map, got array (0x90)", 14},
	{"frames that are none", event(9, "80"), WrongType, "expected frames: an array, got map (0x80)", 14},
	{"a line below zero", event(9, "91 81 07 ff"), WrongValue, "expected the number of a line, got -1", 17},
	{"a flag that is a text", event(9, "91 81 0e a1 61"), WrongType, "expected 0 or 1, got str (0xa1)", 17},
}

func TestAMistakeIsAnErrorAndEventsBeforeItAreRead(t *testing.T) {
	before := event(1, "81 03 09")
	for _, tt := range wrongEvents {
		t.Run(tt.name, func(t *testing.T) {
			got, err := told(Released, message(t, before, tt.event, before))
			var wrong *ProtocolError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, tt.problem, wrong.Problem)
			start := len(message(t)) + len(unhex(t, before))
			require.EqualError(t, err, fmt.Sprintf("byte %d: %s", start+tt.offset, tt.err))
			require.Equal(t, "obj_destroyed 9 nil", got[0])
		})
	}
}

func TestTheReaderReturnsEveryEventBeforeACut(t *testing.T) {
	whole := message(t, event(0, "82 03 05 04 a1 41"), event(5, "92 81 03 05 82 03 06 05 91 05"), event(6, "81 a1 61 05"), event(9, "91 81 0c a1 6d"))
	all, err := told(Released, whole)
	require.NoError(t, err)
	require.Len(t, all, 6)
	kept := 0
	for n := range len(whole) {
		got, err := told(Released, whole[:n])
		var wrong *ProtocolError
		require.ErrorAs(t, err, &wrong, "%d bytes", n)
		require.Equal(t, Truncated, wrong.Problem, "%d bytes: %v", n, err)
		require.True(t, slices.Equal(all[:len(got)], got), "%d bytes: %v", n, got)
		require.GreaterOrEqual(t, len(got), kept)
		kept = len(got)
	}
	require.Equal(t, 5, kept)
}

func TestTheCapturedBrokenMessageIsAnError(t *testing.T) {
	b := files(t, "samples")[malformed]
	dialect, err := DialectOf(b)
	require.NoError(t, err)
	require.Equal(t, Documented, dialect)
	got, err := told(dialect, b)
	require.EqualError(t, err, "byte 17: expected an event: a map, got the end of the message after 17 bytes")
	require.Empty(t, got)
}

func TestMoreElementsThanAreAnnouncedAreTrailing(t *testing.T) {
	got, err := told(Released, append(message(t, event(1, "81 03 09")), unhex(t, event(1, "81 03 0a"))...))
	require.ErrorContains(t, err, "expected the end of the message, got 17 more bytes")
	require.Len(t, got, 1)
	var wrong *ProtocolError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, Trailing, wrong.Problem)
}

// Where int has 32 bits, 4 G would be a number below zero.
func TestNoMoreIsAnnouncedThanCanBeThere(t *testing.T) {
	for name, most := range map[string]struct {
		head string
		read func(*cursor) int
	}{
		"an array": {"dd ff ff ff ff", func(c *cursor) int { return c.array("") }},
		"a map":    {"df ff ff ff ff", func(c *cursor) int { return c.mapping("") }},
	} {
		c := newCursor(unhex(t, most.head+"c0 c0 c0"))
		require.Equal(t, 4, most.read(&c), "%s: the first that isn't there is where it ends", name)
		require.NoError(t, c.failure())
	}
	var r Reader
	require.NoError(t, r.Open(Released, unhex(t, "83 00 07 01 "+atHex+" 02 dd ff ff ff ff "+event(1, "81 03 09"))))
	require.True(t, r.Next(), "the reader reads the events before the error")
	require.False(t, r.Next())
	require.ErrorContains(t, r.Err(), "expected an event: a map, got the end of the message")
}

func TestHostileMessagesNeedLittleMemory(t *testing.T) {
	nested := strings.Repeat("91", 5_000_000)
	for _, tt := range []struct {
		name, event string
	}{
		{"an array of 4 G elements", event(5, "dd ff ff ff ff")},
		{"a map of 4 G pairs", event(6, "df ff ff ff ff")},
		{"a list of 4 G references", event(5, "91 82 03 05 05 dd ff ff ff ff")},
		{"5 M nested arrays", event(0x63, nested)},
		{"5 M nested arrays where a name is expected", event(6, "81 "+nested)},
		{"5 M nested arrays in an object", event(0, "82 03 05 63 "+nested)},
		{"a text of 4 GiB", event(0, "82 03 05 04 db ff ff ff ff 41")},
		{"an extension of 4 GiB", event(0x63, "c9 ff ff ff ff 05")},
		{"4 G pairs of a key that is passed over", event(0, "df ff ff ff ff c0 c0 c0 c0")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := message(t, tt.event)
			var r Reader
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			require.NoError(t, r.Open(Released, b))
			for r.Next() {
			}
			err := r.Err()
			runtime.ReadMemStats(&after)
			require.Error(t, err)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10))
		})
	}
}

func TestWrongMessages(t *testing.T) {
	for _, tt := range []struct{ name, message, err string }{
		{"nothing", "", "byte 0: expected a message: a map, got the end of the message after 0 bytes"},
		{"no map", "05", "byte 0: expected a message: a map, got int (0x05)"},
		{"the other dialect", "84 00 06 01 " + atHex + " 09 00 02 90", "byte 16: expected type 7, event_collection in the released dialect, got type 6, gc_stats"},
		{"a handshake", "83 00 08 01 " + atHex + " 02 80", "byte 14: expected type 7, event_collection in the released dialect, got type 8, handshake"},
		{"no type", "82 01 " + atHex + " 02 90", "byte 13: expected a message with a type and a payload, got one without"},
		{"no payload", "82 00 07 01 " + atHex, "byte 13: expected a message with a type and a payload, got one without"},
		{"no time", "82 00 07 02 90", "byte 4: expected a message with a time, got one without"},
		{"a payload that is no array", "83 00 07 01 " + atHex + " 02 80", "byte 14: expected the events of a collection: an array, got map (0x80)"},
		{"a counter below zero", "84 00 07 01 " + atHex + " 09 ff 02 90", "byte 14: expected the counter of messages, got -1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := told(Released, unhex(t, tt.message))
			require.EqualError(t, err, tt.err)
		})
	}
}

func TestTheDialectOfAMessage(t *testing.T) {
	for _, tt := range []struct {
		message string
		want    Dialect
		err     string
	}{
		{"84 00 07", Released, ""},
		{"84 00 06", Documented, ""},
		{"82 01 c0 00 06", Documented, ""},
		{"84 00 05", 0, "expected type 7 or 6, event_collection, got type 5"},
		{"81 01 c0", 0, "byte 3: expected a message with a type, got none"},
		{"93", 0, "byte 0: expected a message: a map, got array (0x93)"},
		{"81 00 a1 61", 0, "byte 2: expected the type of an event, got str (0xa1)"},
		{"82 01", 0, "byte 2: expected a value, got the end of the message after 2 bytes"},
	} {
		got, err := DialectOf(unhex(t, tt.message))
		require.Equal(t, tt.want, got, tt.message)
		if tt.err != "" {
			require.ErrorContains(t, err, tt.err, tt.message)
		} else {
			require.NoError(t, err, tt.message)
		}
	}
}

func TestWrongHandshakes(t *testing.T) {
	for _, tt := range []struct{ name, reply, err string }{
		{"ok", "6f 6b", "byte 0: expected a handshake: a map, got int (0x6f)"},
		{"nothing", "", "byte 0: expected a handshake: a map, got the end of the message after 0 bytes"},
		{"another type", "82 00 05 02 80", "expected type 8 or 7, handshake, got type 5"},
		{"no type", "81 02 80", "byte 3: expected a handshake with a type and a payload, got one without"},
		{"no payload", "81 00 08", "byte 3: expected a handshake with a type and a payload, got one without"},
		{"a payload that is no map", "82 00 08 02 90", "byte 4: expected the properties of a server: a map, got array (0x90)"},
		{"a process that is a text", "82 00 08 02 81 a3 70 69 64 a1 61", "byte 9: expected the ID of a process, got str (0xa1)"},
		{"more than a handshake", "82 00 08 02 80 80", "byte 5: expected the end of the handshake, got more bytes"},
		{"4 G properties", "82 00 08 02 df ff ff ff ff", "byte 9: expected a value, got the end of the message after 9 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := DecodeHandshake(unhex(t, tt.reply))
			require.EqualError(t, err, cmpPlace(tt.err))
		})
	}
	h, err := DecodeHandshake(unhex(t, "83 a1 78 90 00 07 02 83 05 05 a1 79 90 a3 70 69 64 07"))
	require.NoError(t, err, "unknown values are skipped")
	require.Equal(t, HandshakeReply{Dialect: Documented, PID: 7}, h)
}

// cmpPlace adds the position to the error of a whole message.
func cmpPlace(err string) string {
	if strings.HasPrefix(err, "byte ") {
		return err
	}
	return "byte 0: " + err
}

func TestCommandsAreTheseBytes(t *testing.T) {
	require.Equal(t, []Command{"handshake", "start_memory_profile", "stop_memory_profile", "trigger_gc", "objectspace_snapshot", "use_cpu_time", "use_wall_time", "start_cpu_profiling", "stop_cpu_profiling"},
		[]Command{Handshake, StartMemoryProfile, StopMemoryProfile, TriggerGC, ObjectSpaceSnapshot, UseCPUTime, UseWallTime, StartCPUProfiling, StopCPUProfiling})
	require.NoError(t, CheckOK(OK()))
	require.EqualError(t, CheckOK([]byte("no")), `byte 0: expected "ok", got "no"`)
}

func TestADialectHasNotEveryEvent(t *testing.T) {
	released, documented := NewCollection(Released), NewCollection(Documented)
	require.EqualError(t, documented.Created(at, 5, nil), "expected an event that the documented dialect has, got obj_created")
	require.EqualError(t, documented.Destroyed(at, 5), "expected an event that the documented dialect has, got obj_destroyed")
	require.EqualError(t, released.Snapshot(at, nil, nil), "expected an event that the released dialect has, got allocation_snapshot")
	for _, k := range []Kind{Unknown, GCStats, DumpedObject, collection, handshake} {
		require.Error(t, released.GC(k, at), k)
	}
	require.Zero(t, released.Len()+documented.Len())
	require.NoError(t, released.GC(GCEndSweep, at))
	require.Equal(t, 1, released.Len())
	released.Reset()
	got, err := told(Released, released.AppendTo(nil, at, 3))
	require.NoError(t, err)
	require.Empty(t, got)
}
