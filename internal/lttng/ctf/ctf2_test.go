// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf_test

import (
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/testkit"
)

// ctf2Case is a trace of CTF 2 with one event.
type ctf2Case struct {
	name string
	// payload is the member classes of the payload, as JSON.
	payload string
	// write writes the payload.
	write func(w *bitWriter)
	// text is the expected text of the payload.
	text string
}

// metadata returns the metadata of a whole trace with the payload.
func (c ctf2Case) metadata() string {
	fragments := []string{
		`{"type": "preamble", "version": 2, "uuid": [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]}`,
		`{"type": "field-class-alias", "name": "u8", "field-class":
			{"type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian", "alignment": 8}}`,
		`{"type": "field-class-alias", "name": "byte", "field-class": "u8"}`,
		`{"type": "clock-class", "id": "c", "name": "clock", "frequency": 1000, "origin": "unix-epoch", "offset-from-origin": {"seconds": 5, "cycles": 1}}`,
		`{"type": "trace-class", "environment": {"hostname": "vm", "pid": 3}, "packet-header-field-class": {"type": "structure", "member-classes": [
			{"name": "a", "field-class": {"type": "fixed-length-unsigned-integer", "length": 32, "byte-order": "big-endian", "roles": ["packet-magic-number"]}},
			{"name": "b", "field-class": {"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]}},
			{"name": "c", "field-class": {"type": "variable-length-unsigned-integer", "roles": ["data-stream-class-id"]}}]}}`,
		`{"type": "data-stream-class", "id": 300, "default-clock-class-id": "c",
			"packet-context-field-class": {"type": "structure", "member-classes": [
				{"name": "begin", "field-class": {"type": "fixed-length-unsigned-integer", "length": 64, "byte-order": "little-endian", "roles": ["default-clock-timestamp"]}},
				{"name": "bits", "field-class": {"type": "fixed-length-unsigned-integer", "length": 64, "byte-order": "little-endian", "roles": ["packet-content-length", "packet-total-length"]}}]},
			"event-record-header-field-class": {"type": "structure", "member-classes": [
				{"name": "id", "field-class": {"type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian", "alignment": 8, "roles": ["event-record-class-id"]}},
				{"name": "time", "field-class": {"type": "variable-length-unsigned-integer", "roles": ["default-clock-timestamp"]}}]},
			"event-record-common-context-field-class": {"type": "structure", "member-classes": [{"name": "flag", "field-class": "byte"}]}}`,
		`{"type": "event-record-class", "id": 4, "data-stream-class-id": 300, "name": "one",
			"attributes": {"lttng.org,2009": {"log-level": "warning", "emf-uri": "here"}},
			"payload-field-class": {"type": "structure", "member-classes": [` + c.payload + `]}}`,
	}
	return "\x1e" + strings.Join(fragments, "\n\x1e") + "\n"
}

// packet writes a packet with one event. Its time has 14 bits, fewer than the packet's begin at 0x1000, so it has
// wrapped.
func (c ctf2Case) packet(w *bitWriter) {
	w.bits(0xC1FC1FC1, 32, false)
	for i := range byte(16) {
		w.bytes(i)
	}
	w.bytes(0xAC, 0x02) // 300
	begin := len(w.data)
	w.bits(0x1000, 64, true)
	w.bits(0, 64, true) // patched below
	w.bytes(4)
	w.bytes(0x85, 0x01) // 0x85, of 14 bits
	w.bytes(7)
	c.write(w)
	w.align(8)
	w.patch(begin+8, uint64(w.pos), true)
}

// member returns the JSON of a structure's member.
func member(name, class string) string {
	return fmt.Sprintf(`{"name": %q, "field-class": {%s}}`, name, class)
}

const le16 = `"type": "fixed-length-unsigned-integer", "length": 16, "byte-order": "little-endian", "alignment": 16`

var ctf2Cases = []ctf2Case{
	{
		name:    "integers of fixed length, of both byte orders",
		payload: member("a", `"type": "fixed-length-signed-integer", "length": 5, "byte-order": "little-endian"`) + "," + member("b", `"type": "fixed-length-unsigned-integer", "length": 27, "byte-order": "little-endian", "preferred-display-base": 16`) + "," + member("c", `"type": "fixed-length-unsigned-integer", "length": 64, "byte-order": "big-endian", "alignment": 8`),
		write: func(w *bitWriter) {
			w.bits(0x1F, 5, true)
			w.bits(0x5ABCDEF, 27, true)
			w.align(8)
			w.bits(0xFEDCBA9876543210, 64, false)
		},
		text: "{ a = -1, b = 0x5ABCDEF, c = 18364758544493064720 }",
	},
	{
		name:    "integers of variable length",
		payload: member("a", `"type": "variable-length-unsigned-integer"`) + "," + member("b", `"type": "variable-length-signed-integer"`) + "," + member("c", `"type": "variable-length-unsigned-integer"`) + "," + member("d", `"type": "variable-length-signed-integer"`),
		write: func(w *bitWriter) {
			w.bytes(0xE5, 0x8E, 0x26)
			w.bytes(0x80, 0x7F)
			w.bytes(0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01)
			w.bytes(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7F)
		},
		text: "{ a = 624485, b = -128, c = 18446744073709551615, d = -9223372036854775808 }",
	},
	{
		name:    "names of values",
		payload: member("a", le16+`, "mappings": {"few": [[1, 3]], "many": [[4, 1e3], [5000, 18446744073709551615]]}`) + "," + member("b", `"type": "variable-length-signed-integer", "mappings": {"below": [[-10, -1]]}`),
		write: func(w *bitWriter) {
			w.align(16)
			w.bits(1000, 16, true)
			w.bytes(0x7F)
		},
		text: `{ a = ( "many" : container = 1000 ), b = ( "below" : container = -1 ) }`,
	},
	{
		name:    "bit arrays, bit maps and booleans",
		payload: member("a", `"type": "fixed-length-bit-array", "length": 3, "byte-order": "big-endian"`) + "," + member("b", `"type": "fixed-length-bit-map", "length": 5, "byte-order": "big-endian", "flags": {"x": [[0, 1]]}`) + "," + member("c", `"type": "fixed-length-boolean", "length": 8, "byte-order": "big-endian"`),
		write: func(w *bitWriter) {
			w.bits(5, 3, false)
			w.bits(2, 5, false)
			w.bits(1, 8, false)
		},
		text: "{ a = 5, b = 2, c = 1 }",
	},
	{
		name:    "floating point numbers",
		payload: member("a", `"type": "fixed-length-floating-point-number", "length": 32, "byte-order": "big-endian", "alignment": 8`) + "," + member("b", `"type": "fixed-length-floating-point-number", "length": 64, "byte-order": "little-endian"`),
		write: func(w *bitWriter) {
			w.align(8)
			w.bits(uint64(math.Float32bits(-1.5)), 32, false)
			w.bits(math.Float64bits(0.25), 64, true)
		},
		text: "{ a = -1.5, b = 0.25 }",
	},
	{
		name: "strings of every length and encoding",
		payload: member("a", `"type": "null-terminated-string"`) + "," + member("b", `"type": "null-terminated-string", "encoding": "utf-16le"`) + "," +
			member("c", `"type": "static-length-string", "length": 8, "encoding": "utf-32be"`) + "," + `{"name": "n", "field-class": "u8"}` + "," +
			member("d", `"type": "dynamic-length-string", "encoding": "utf-16be", "length-field-location": {"path": ["n"]}`) + "," +
			member("e", `"type": "static-length-string", "length": 4`),
		write: func(w *bitWriter) {
			w.bytes('h', 0xC3, 0xA9, 0)
			w.bytes(0xE9, 0, 0x3D, 0xD8, 0x00, 0xDE, 0x00, 0xDC, 'x', 0, 0, 0)
			w.bytes(0, 1, 0xF6, 0, 0, 0, 0, 0)
			w.bytes(4, 0x20, 0xAC, 0, 'y')
			w.bytes('a', 0, 'b', 0)
		},
		text: "{ a = \"hé\", b = \"é😀\uFFFDx\", c = \"😀\", n = 4, d = \"€y\", e = \"a\" }",
	},
	{
		name: "blobs",
		payload: member("a", `"type": "static-length-blob", "length": 2, "media-type": "image/png"`) + "," + `{"name": "n", "field-class": "u8"}` + "," +
			member("b", `"type": "dynamic-length-blob", "length-field-location": {"origin": "event-record-payload", "path": ["n"]}`),
		write: func(w *bitWriter) { w.bytes(1, 2, 3, 4, 5, 6) },
		text:  "{ a = [ [0] = 0x1, [1] = 0x2 ], n = 3, b = [ [0] = 0x4, [1] = 0x5, [2] = 0x6 ] }",
	},
	{
		name: "arrays with their own alignment",
		payload: member("a", `"type": "static-length-array", "length": 3, "minimum-alignment": 64, "element-field-class": {"type": "fixed-length-boolean", "length": 1, "byte-order": "little-endian"}`) + "," +
			member("b", `"type": "static-length-array", "length": 2, "minimum-alignment": 32, "element-field-class": "u8"`) + "," +
			member("c", `"type": "dynamic-length-array", "length-field-location": {"origin": "event-record-common-context", "path": ["flag"]}, "element-field-class": {`+le16+`}`),
		write: func(w *bitWriter) {
			w.align(64)
			w.bits(5, 3, true)
			w.align(32)
			w.bytes(8, 9)
			for i := range uint64(7) {
				w.align(16)
				w.bits(i, 16, true)
			}
		},
		text: "{ a = [ [0] = 1, [1] = 0, [2] = 1 ], b = [ [0] = 8, [1] = 9 ], c = [ [0] = 0, [1] = 1, [2] = 2, [3] = 3, [4] = 4, [5] = 5, [6] = 6 ] }",
	},
	{
		name: "optional fields",
		payload: member("yes", `"type": "fixed-length-boolean", "length": 8, "byte-order": "little-endian", "alignment": 8`) + "," +
			member("a", `"type": "optional", "selector-field-location": {"path": ["yes"]}, "field-class": "u8"`) + "," +
			member("b", `"type": "optional", "selector-field-location": {"origin": "event-record-common-context", "path": ["flag"]}, "selector-field-ranges": [[0, 6], [8, 255]], "field-class": "u8"`) + "," +
			`{"name": "c", "field-class": "u8"}`,
		write: func(w *bitWriter) { w.bytes(2, 3, 4) },
		text:  "{ yes = 2, a = 3, b = <none>, c = 4 }",
	},
	{
		name: "variants, and locations from parents",
		payload: member("s", `"type": "variable-length-signed-integer"`) + "," +
			member("in", `"type": "structure", "member-classes": [{"name": "v", "field-class": {"type": "variant",
				"selector-field-location": {"path": [null, "s"]}, "options": [
					{"name": "pos", "selector-field-ranges": [[0, 100]], "field-class": "u8"},
					{"name": "neg", "selector-field-ranges": [[-3, -2], [-9, -5]], "field-class": {"type": "null-terminated-string"}}]}}]`),
		write: func(w *bitWriter) { w.bytes(0x79, 'x', 0) },
		text:  `{ s = -7, in = { v = { neg = "x" } } }`,
	},
}

func TestCTF2(t *testing.T) {
	for _, c := range ctf2Cases {
		t.Run(c.name, func(t *testing.T) {
			trace := ctf.NewTrace()
			require.NoError(t, trace.Append([]byte(c.metadata())))
			require.Zero(t, trace.Incomplete())
			var w bitWriter
			c.packet(&w)
			r := ctf.NewReader(trace)
			require.NoError(t, r.Begin(w.data))
			require.True(t, r.Next(), "%v", r.Err())
			require.Equal(t, "one", r.Event.Class.Name)
			require.Equal(t, int64(4), r.Event.Class.Meta.LogLevel)
			require.Equal(t, "here", r.Event.Class.Meta.URI)
			require.Equal(t, uint64(0x4085), r.Event.Clock)
			require.Equal(t, int64(5_001_000_000+0x4085*1_000_000), r.Event.UnixNano())
			require.Equal(t, uint64(7), r.Event.Uint(r.Event.Class.Stream.EventCommonContext.Lookup("flag")))
			b := &renderer{}
			b.field(&r.Event.Values, r.Event.Class.Fields)
			require.Equal(t, c.text, b.String())
			require.False(t, r.Next())
			require.NoError(t, r.Err())
			require.Equal(t, "vm", trace.Env("hostname"))
			require.Equal(t, "3", trace.Env("pid"))
		})
	}
}

func TestCTF2MetadataMayArriveInAnyPieces(t *testing.T) {
	text := ctf2Cases[0].metadata()
	for _, size := range []int{1, 3, 100, 5000} {
		trace := ctf.NewTrace()
		for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
			require.NoError(t, trace.Append([]byte(rest[:min(size, len(rest))])))
		}
		require.Equal(t, 1, trace.EventClasses(), "pieces of %d", size)
		require.NoError(t, trace.Append([]byte(text)), "the same again")
		require.Equal(t, 1, trace.EventClasses())
	}
}

// eventTypes returns the metadata of event types with 22 integers each, indented as LTTng 2.15 indents it.
func eventTypes(n int) string {
	var fields strings.Builder
	for i := range 22 {
		fmt.Fprintf(&fields, `
      {
        "field-class": {
          "alignment": 8,
          "byte-order": "little-endian",
          "length": 32,
          "preferred-display-base": 10,
          "type": "fixed-length-signed-integer"
        },
        "name": "field_number_%d"
      },`, i)
	}
	members := strings.TrimSuffix(fields.String(), ",")
	var text strings.Builder
	text.WriteString("\x1e" + `{"type": "preamble", "version": 2}` + "\x1e" + `{"type": "trace-class"}` + "\x1e" + `{"type": "data-stream-class", "id": 0}`)
	for i := range n {
		fmt.Fprintf(&text, "\x1e"+`{
  "attributes": {
    "lttng.org,2009": {
      "log-level": "debug:line"
    }
  },
  "data-stream-class-id": 0,
  "id": %d,
  "name": "provider:event_type_%d",
  "payload-field-class": {
    "member-classes": [%s
    ],
    "type": "structure"
  },
  "type": "event-record-class"
}`, i, i, members)
	}
	return text.String()
}

// CTF 2 is longer than CTF 1.8 for the same events, and needs less memory for each byte.
func TestTheSizeOfATraceInCTF2BoundsItsMemory(t *testing.T) {
	text := []byte(eventTypes(2000))
	before := testkit.HeapBytes()
	trace := ctf.NewTrace()
	require.NoError(t, trace.Append(text))
	took := testkit.HeapBytes() - before
	t.Logf("%d bytes of metadata took %d; size %d, cost of reading %d", len(text), took, trace.Size(), trace.CostOfReading(text))
	require.Equal(t, 2000, trace.EventClasses())
	require.Less(t, took, int64(trace.Size()))
	if strconv.IntSize == 64 { // with 32 bits, objects are half as large, and the size is for 64
		require.Greater(t, 2*took, int64(trace.Size()))
	}
	runtime.KeepAlive(trace)
	// 8,000 types of this size fit into the defaults of a receiver, 80 MiB for the metadata and 192 MiB with all classes.
	require.Less(t, 4*len(text), ctf.MaxMetadataBytes)
	require.Less(t, 4*trace.Size(), 192<<20)
}
