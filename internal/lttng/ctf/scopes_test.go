// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

func TestFieldsReferToScopesBeforeThem(t *testing.T) {
	trace := newTrace(t, scopesMetadata)
	var w bitWriter
	w.bytes(1, 2)               // inheader, all
	w.bytes(9)                  // fromheader
	w.bytes(3, 1)               // inpacket, twice
	w.bytes(1, 2)               // inevent, s.deep
	w.bytes('A')                // frompacket
	w.bytes(1)                  // common
	w.bytes('B', 'C')           // fromevent
	w.bytes(2, 1)               // own, twice: b
	w.bytes('D')                // fromcommon
	w.bytes(1)                  // early
	w.bytes('E', 'F')           // fromheader
	w.bytes('G', 'H', 'I')      // frompacket
	w.bytes('J')                // fromevent
	w.bytes('K', 'L')           // fromcontext
	w.bytes(1)                  // s2[0].n
	w.bytes('M', 'N', 'O', 'P') // s2[0].e[0]
	w.bytes('Q', 'R', 'S', 'T') // s2[0].e[1]
	w.bytes('U', 0)             // v, selected by the context's tag, the nearest
	r := ctf.NewReader(trace)
	require.NoError(t, r.Begin(w.data))
	require.True(t, r.Next(), "%v", r.Err())
	b := &renderer{}
	for scope := metadata.EventHeader; scope <= metadata.EventFields; scope++ {
		b.field(&r.Event.Values, r.Event.Class.Scope(scope))
		b.WriteString("\n")
	}
	require.Equal(t, `{ inevent = 1, s = { deep = 2 }, frompacket = "A" }
{ common = 1, fromevent = "BC" }
{ own = 2, twice = ( "b" : container = 1 ), fromcommon = "D" }
{ early = 1, fromheader = "EF", frompacket = "GHI", fromevent = "J", fromcontext = "KL", s2 = [ [0] = { n = 1, e = [ [0] = { inner = "M", outer = "NO", whole = "P" }, [1] = { inner = "Q", outer = "RS", whole = "T" } ] } ], v = { b = "U" } }
`, b.String())
	require.False(t, r.Next())
	require.NoError(t, r.Err())
	b.Reset()
	b.field(&r.Packet.Values, r.Packet.Class.PacketContext)
	require.Equal(t, `{ fromheader = [ [0] = 9 ], inpacket = 3, twice = 1 }`, b.String())
}

// scopesMetadata has references from every scope to earlier ones.
const scopesMetadata = plainTypes + `typealias integer { size = 8; encoding = ASCII; } := char;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { uint8_t inheader; uint8_t all; }; };
stream { id = 0;
	packet.context := struct { uint8_t fromheader[trace.packet.header.inheader]; uint8_t inpacket; uint8_t twice; };
	event.header := struct { uint8_t inevent; struct { uint8_t deep; } s; char frompacket[twice]; };
	event.context := struct { uint8_t common; char fromevent[stream.event.header.s.deep]; };
};
event { name = x;
	context := struct { uint8_t own; enum : uint8_t { a, b } twice; char fromcommon[stream.event.context.common]; };
	fields := struct {
		uint8_t early;
		char fromheader[all], frompacket[stream.packet.context.inpacket], fromevent[inevent], fromcontext[event.context.own];
		struct { uint8_t n; struct { char inner[n], outer[all], whole[event.fields.early]; } e[2]; } s2[1];
		variant <twice> { uint8_t a; string b; } v;
	};
};
`

// fieldsText returns the first event of a trace that has one class with these fields.
func fieldsText(t *testing.T, order, fields string, write func(*bitWriter)) string {
	t.Helper()
	trace := newTrace(t, plainTypes+"trace { major = 1; minor = 8; byte_order = "+order+"; };\nevent { fields := struct { "+fields+" }; };")
	var w bitWriter
	write(&w)
	r := ctf.NewReader(trace)
	require.NoError(t, r.Begin(w.data))
	require.True(t, r.Next(), "%v", r.Err())
	b := &renderer{}
	b.field(&r.Event.Values, r.Event.Class.Fields)
	return b.String()
}

func TestBytesThatDoNotBeginAtAByte(t *testing.T) {
	const fields = "integer { size = 3; align = 1; } n; integer { size = 8; align = 1; encoding = UTF8; } text[5]; " +
		"integer { size = 8; align = 1; } blob[n]; integer { size = 8; align = 2; signed = true; } two[2]; string s; integer { size = 8; align = 1; } at[2];"
	for _, little := range []bool{true, false} {
		got := fieldsText(t, orderName(little), fields, func(w *bitWriter) {
			w.bits(2, 3, little)
			for _, c := range "ab\x00cd" {
				w.bits(uint64(c), 8, little)
			}
			w.bits(0xFE, 8, little)
			w.bits(0x01, 8, little)
			w.align(2)
			w.bits(0xFF, 8, little)
			w.bits(0x03, 8, little)
			w.bytes('x', 0, 1, 2)
		})
		require.Equal(t, `{ n = 2, text = "ab", blob = [ [0] = 254, [1] = 1 ], two = [ [0] = -1, [1] = 3 ], s = "x", at = [ [0] = 1, [1] = 2 ] }`, got)
	}
}

func TestArraysOfNumbersOfEverySize(t *testing.T) {
	var fields strings.Builder
	for _, order := range []string{"le", "be"} {
		for _, size := range []string{"8", "16", "32", "64"} {
			for _, signed := range []string{"true", "false"} {
				fields.WriteString("integer { size = " + size + "; align = 8; signed = " + signed + "; byte_order = " + order + "; } " + order + size + signed + "[2]; ")
			}
		}
		fields.WriteString("floating_point { exp_dig = 8; mant_dig = 24; byte_order = " + order + "; } f" + order + "[2]; ")
		fields.WriteString("floating_point { exp_dig = 11; mant_dig = 53; byte_order = " + order + "; } d" + order + "[2]; ")
		fields.WriteString("enum : integer { size = 8; signed = true; byte_order = " + order + "; } { x = -2 } e" + order + "[2]; ")
		fields.WriteString("enum : integer { size = 8; byte_order = " + order + "; } { x = 5 } u" + order + "[2]; ")
	}
	got := fieldsText(t, "le", fields.String(), func(w *bitWriter) {
		for _, little := range []bool{true, false} {
			for _, size := range []int{8, 8, 16, 16, 32, 32, 64, 64} {
				w.bits(^uint64(1), size, little) // -2
				w.bits(5, size, little)
			}
			w.bits(uint64(math.Float32bits(-2)), 32, little)
			w.bits(uint64(math.Float32bits(5)), 32, little)
			w.bits(math.Float64bits(-2), 64, little)
			w.bits(math.Float64bits(5), 64, little)
			w.bytes(0xFE, 5, 0xFE, 5)
		}
	})
	want := ""
	for _, order := range []string{"le", "be"} {
		for _, size := range []string{"8", "16", "32", "64"} {
			most := map[string]string{"8": "254", "16": "65534", "32": "4294967294", "64": "18446744073709551614"}[size]
			want += order + size + "true = [ [0] = -2, [1] = 5 ], " + order + size + "false = [ [0] = " + most + ", [1] = 5 ], "
		}
		want += "f" + order + " = [ [0] = -2, [1] = 5 ], d" + order + " = [ [0] = -2, [1] = 5 ], "
		want += "e" + order + " = [ [0] = ( \"x\" : container = -2 ), [1] = ( <unknown> : container = 5 ) ], "
		want += "u" + order + " = [ [0] = ( <unknown> : container = 254 ), [1] = ( \"x\" : container = 5 ) ], "
	}
	require.Equal(t, "{ "+strings.TrimSuffix(want, ", ")+" }", got)
}

func TestFloatsThatDoNotBeginAtAByte(t *testing.T) {
	got := fieldsText(t, "be", "integer { size = 1; } a; floating_point { exp_dig = 8; mant_dig = 24; align = 1; } f; floating_point { exp_dig = 11; mant_dig = 53; align = 1; } d;", func(w *bitWriter) {
		w.bits(1, 1, false)
		w.bits(uint64(math.Float32bits(0.5)), 32, false)
		w.bits(math.Float64bits(-0.125), 64, false)
	})
	require.Equal(t, "{ a = 1, f = 0.5, d = -0.125 }", got)
}

func TestTagsWithSeveralLabelsAndWithLabelsBeyondTheirIntegers(t *testing.T) {
	const tag = "enum : integer { size = 64; signed = true; } { none = 18446744073709551615, low = -18446744073709551615 ... -1, mid = 0, mid = 5 ... 9, high = 5 ... 18446744073709551615 } t; " +
		"variant <t> { uint8_t none; uint8_t low; uint16_t mid; uint32_t high; } v;"
	for value, want := range map[int64]string{
		-1: "low = 1", math.MinInt64: "low = 1", 0: "mid = 1", 7: "mid = 1", 10: "high = 1", math.MaxInt64: "high = 1",
	} {
		got := fieldsText(t, "le", tag, func(w *bitWriter) {
			w.bits(uint64(value), 64, true)
			w.bits(1, 32, true)
		})
		require.Contains(t, got, "v = { "+want+" }", "%d", value)
	}
	trace := newTrace(t, plainTypes+"trace { major = 1; minor = 8; byte_order = le; };\nevent { name = x; fields := struct { "+tag+" }; };")
	r := ctf.NewReader(trace)
	require.NoError(t, r.Begin([]byte{3, 0, 0, 0, 0, 0, 0, 0, 0}))
	require.False(t, r.Next())
	require.EqualError(t, r.Err(), `event at bit 0 of a packet with 72: event "x": event fields, field "v", bit 64: expected a value that selects an option, got 3`)
}

func TestMetadataPacketsThatAreWrong(t *testing.T) {
	good := metadataPackets("trace { major = 1; minor = 8; byte_order = le; };", binary.LittleEndian)
	for _, c := range []struct {
		name  string
		at    int
		bytes []byte
		want  string
	}{
		{"another magic number", 256, []byte{1, 2, 3, 4}, "metadata packet at byte 256: expected magic 0x75d11d57, got 0x4030201"},
		{"another UUID", 256 + 4, []byte{1}, "metadata packet at byte 256: expected UUID 00000000000000000000000000000000, got 01000000000000000000000000000000"},
		{"a content smaller than the header", 24, []byte{8, 0}, "metadata packet at byte 0: expected at least 296 bits of content in a packet of at least that, got 8 and 2048"},
		{"a packet smaller than the content", 28, []byte{8, 0}, "metadata packet at byte 0: expected at least 296 bits of content in a packet of at least that, got 688 and 8"},
		{"compression", 32, []byte{1}, "metadata packet at byte 0: expected no compression (0), got scheme 1, which is not supported"},
		{"encryption", 33, []byte{2}, "metadata packet at byte 0: expected no encryption (0), got scheme 2, which is not supported"},
		{"a checksum", 34, []byte{3}, "metadata packet at byte 0: expected no checksum (0), got scheme 3, which is not supported"},
		{"another version", 35, []byte{1, 9}, "metadata packet at byte 0: expected CTF 1.8 or 2.0, got 1.9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := append(append([]byte{}, good...), good...)
			copy(b[c.at:], c.bytes)
			require.EqualError(t, ctf.NewTrace().Append(b), c.want)
		})
	}
	trace := newTrace(t, string(good))
	require.NoError(t, trace.Append(good[:100]))
	require.Equal(t, 100, trace.Incomplete())
	require.ErrorContains(t, newTrace(t, " \n").Append(bytes.Repeat([]byte(" "), 16<<20)), "metadata of at most 16777216 bytes")
}

func TestPacketsBeforeTheirMetadata(t *testing.T) {
	err := ctf.NewReader(newTrace(t, "event { name = x; };")).Begin([]byte{1})
	require.EqualError(t, err, "packet of 1 bytes: expected metadata with a trace before packets, got none")
}
