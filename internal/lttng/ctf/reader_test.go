// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// plainTypes is the begin of the metadata of these tests.
const plainTypes = `typealias integer { size = 8; } := uint8_t;
typealias integer { size = 16; } := uint16_t;
typealias integer { size = 32; } := uint32_t;
typealias integer { size = 64; } := uint64_t;
`

// plainTrace is a trace with all roles of packet fields, and one event class.
const plainTrace = plainTypes + `trace { major = 1; minor = 8; byte_order = le; uuid = "00010203-0405-0607-0809-0a0b0c0d0e0f";
	packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint8_t stream_id; uint64_t stream_instance_id; }; };
clock { name = c; };
stream { id = 1; packet.context := struct { uint64_t timestamp_begin; uint64_t timestamp_end; uint64_t content_size;
	uint64_t packet_size; uint64_t packet_seq_num; uint32_t events_discarded; uint8_t cpu_id; };
	event.header := struct { uint8_t id; uint16_t timestamp; }; };
event { id = 0; stream_id = 1; name = zero; fields := struct { uint8_t n; uint8_t a[n]; }; };
`

// plainPacket is a packet of plainTrace.
type plainPacket struct {
	magic                uint64
	uuid0                byte
	class                byte
	begin, end, sequence uint64
	discarded            uint64
	// content and size in bits are derived from events if they are 0.
	content, size uint64
	events        []byte
}

func (p plainPacket) bytes() []byte {
	var w bitWriter
	if p.magic == 0 {
		p.magic = 0xC1FC1FC1
	}
	if p.class == 0 {
		p.class = 1
	}
	w.bits(p.magic, 32, true)
	for i := range byte(16) {
		w.bytes(i + p.uuid0)
	}
	w.bytes(p.class)
	w.bits(77, 64, true)
	w.bits(p.begin, 64, true)
	w.bits(p.end, 64, true)
	const rest = 8 + 8 + 8 + 4 + 1
	whole := uint64(len(w.data)+rest+len(p.events)) * 8
	if p.content == 0 {
		p.content = whole
	}
	if p.size == 0 {
		p.size = whole
	}
	w.bits(p.content, 64, true)
	w.bits(p.size, 64, true)
	w.bits(p.sequence, 64, true)
	w.bits(p.discarded, 32, true)
	w.bytes(3)
	w.bytes(p.events...)
	return w.data
}

// newTrace returns a trace with this metadata.
func newTrace(t testing.TB, text string) *ctf.Trace {
	t.Helper()
	trace := ctf.NewTrace()
	require.NoError(t, trace.Append([]byte(text)))
	return trace
}

func TestPacketsHaveTheValuesOfTheirHeader(t *testing.T) {
	r := ctf.NewReader(newTrace(t, plainTrace))
	packet := plainPacket{begin: 0x12345, end: 0x20000, sequence: 9, discarded: 4, events: []byte{0, 0x44, 0x23, 2, 'a', 'b', 0, 0, 0, 0}}.bytes()
	size, err := r.Size(packet)
	require.NoError(t, err)
	require.Equal(t, len(packet), size)
	require.NoError(t, r.Begin(packet))
	p := &r.Packet
	require.Equal(t, uint64(1), p.Class.ID)
	require.Equal(t, []uint64{0x12345, 0x20000, 9, 4, 77, uint64(len(packet)) * 8, uint64(len(packet)) * 8},
		[]uint64{p.Begin, p.End, p.Sequence, p.Discarded, p.Instance, p.Content, p.Size})
	require.Equal(t, uint64(3), p.Uint(p.Class.PacketContext.Lookup("cpu_id")))
	require.Equal(t, p.Begin, r.Clock())
	require.True(t, p.Has(metadata.RoleSequence|metadata.RoleDiscarded))
	require.Empty(t, r.Losses, "the packets before are unknown")

	require.True(t, r.Next())
	require.Equal(t, uint64(0x22344), r.Event.Clock, "16 bits less than those of the begin have wrapped")
	require.Equal(t, "ab", string(r.Event.Bytes(r.Event.Class.Field(metadata.EventFields, "a"))))
	require.True(t, r.Next())
	require.Equal(t, uint64(0x30000), r.Event.Clock)
	require.False(t, r.Next())
	require.NoError(t, r.Err())
	require.Equal(t, uint64(0x30000), r.Clock())
	require.False(t, r.Next())
}

func TestLosses(t *testing.T) {
	r := ctf.NewReader(newTrace(t, plainTrace))
	for i, step := range []struct {
		packet plainPacket
		want   []ctf.Loss
	}{
		{plainPacket{begin: 10, end: 20, discarded: 3}, []ctf.Loss{{Kind: ctf.DiscardedEvents, Count: 3, From: 10, To: 20}}},
		{plainPacket{begin: 22, end: 30, sequence: 1, discarded: 3}, nil},
		{plainPacket{begin: 33, end: 40, sequence: 2, discarded: 5}, []ctf.Loss{{Kind: ctf.DiscardedEvents, Count: 2, From: 30, To: 40}}},
		{plainPacket{begin: 66, end: 70, sequence: 5, discarded: 5}, []ctf.Loss{{Kind: ctf.LostPackets, Count: 2, From: 40, To: 66}}},
		{plainPacket{begin: 77, end: 80, sequence: 7, discarded: 6}, []ctf.Loss{
			{Kind: ctf.LostPackets, Count: 1, From: 70, To: 77}, {Kind: ctf.DiscardedEvents, Count: 1, From: 70, To: 80}}},
		{plainPacket{begin: 88, end: 90, sequence: 8, discarded: 2}, []ctf.Loss{{Kind: ctf.DiscardedEvents, From: 80, To: 90}}},
		{plainPacket{begin: 92, end: 99, sequence: 1, discarded: 6}, []ctf.Loss{{Kind: ctf.LostPackets, From: 90, To: 92}}},
		{plainPacket{begin: 101, end: 103, sequence: 1, discarded: 6}, []ctf.Loss{{Kind: ctf.LostPackets, From: 99, To: 101}}},
		{plainPacket{begin: 104, end: 105, sequence: 2, discarded: 1<<32 - 1}, []ctf.Loss{{Kind: ctf.DiscardedEvents, From: 103, To: 105}}},
		{plainPacket{begin: 106, end: 107, sequence: 3, discarded: 7}, []ctf.Loss{{Kind: ctf.DiscardedEvents, Count: 1, From: 105, To: 107}}},
	} {
		require.NoError(t, r.Begin(step.packet.bytes()))
		require.Equal(t, len(step.want), len(r.Losses), "step %d: %v", i, r.Losses)
		for j := range step.want {
			require.Equal(t, step.want[j], r.Losses[j], "step %d", i)
		}
	}
	r = ctf.NewReader(newTrace(t, plainTrace))
	require.NoError(t, r.Begin(plainPacket{begin: 10, end: 20, sequence: 5, discarded: 1<<32 - 1}.bytes()))
	require.Empty(t, r.Losses, "joined later")
	require.NoError(t, r.Begin(plainPacket{begin: 20, end: 30, sequence: 6, discarded: 1}.bytes()))
	require.Equal(t, []ctf.Loss{{Kind: ctf.DiscardedEvents, Count: 2, From: 20, To: 30}}, r.Losses, "the counter has wrapped")
}

func TestPacketsThatContradictTheirMetadata(t *testing.T) {
	whole := plainPacket{events: []byte{0, 1, 0, 0}}.bytes()
	for _, c := range []struct {
		name   string
		packet []byte
		want   string
	}{
		{"nothing", nil, "packet of 0 bytes: packet header, field \"magic\", bit 0: expected 232 bits, got 0: unexpected EOF"},
		{"a piece of the header", whole[:20], "packet of 20 bytes: packet header, field \"magic\", bit 0: expected 232 bits, got 160: unexpected EOF"},
		{"another magic number", plainPacket{magic: 0xC1FC1FC2}.bytes(), "packet of 74 bytes: expected magic 0xc1fc1fc1, got 0xc1fc1fc2"},
		{"another UUID", plainPacket{uuid0: 1}.bytes(), "packet of 74 bytes: expected UUID 000102030405060708090a0b0c0d0e0f, got 0102030405060708090a0b0c0d0e0f10"},
		{"another stream class", plainPacket{class: 2}.bytes(), "packet of 74 bytes: expected the ID of a stream class that is known, got 2"},
		{"a piece of the context", whole[:50], "packet of 50 bytes: packet context, field \"timestamp_begin\", bit 232: expected 360 bits, got 168: unexpected EOF"},
		{"a content beyond the packet", plainPacket{content: 601, size: 600}.bytes(), "packet of 74 bytes: expected a content of at most the packet's 600 bits, got 601"},
		{"a content of less than the context", plainPacket{content: 591}.bytes(), "packet of 74 bytes: expected a content of at least the header's and context's 592 bits, got 591"},
		{"a piece of the content", plainPacket{content: 8000, size: 8000}.bytes(), "packet of 74 bytes: expected the content's 8000 bits, got 592: unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.EqualError(t, ctf.NewReader(newTrace(t, plainTrace)).Begin(c.packet), c.want)
		})
	}
	for _, c := range []struct {
		name   string
		events []byte
		read   int
		want   string
	}{
		{"another event class", []byte{0, 1, 0, 0, 9, 0, 0}, 1, "event at bit 624 of a packet with 648: expected the ID of an event class of stream class 1, got 9"},
		{"a piece of an event header", []byte{0, 1, 0, 0, 0, 0}, 1, "event at bit 624 of a packet with 640: event header, field \"id\", bit 624: expected 24 bits, got 16: unexpected EOF"},
		{"a length beyond the packet", []byte{0, 1, 0, 200, 1, 2, 3}, 0, "event at bit 592 of a packet with 648: event \"zero\": event fields, field \"a\", bit 624: expected 200 bytes, got 3: unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ctf.NewReader(newTrace(t, plainTrace))
			require.NoError(t, r.Begin(plainPacket{events: c.events}.bytes()))
			n := 0
			for r.Next() {
				n++
			}
			require.Equal(t, c.read, n)
			require.EqualError(t, r.Err(), c.want)
			require.False(t, r.Next())
			require.NoError(t, r.Begin(whole), "the next packet is good")
			require.True(t, r.Next())
		})
	}
}

func TestPacketsOfAnotherStreamClassAreRefused(t *testing.T) {
	trace := newTrace(t, plainTrace+"stream { id = 2; };")
	r := ctf.NewReader(trace)
	require.NoError(t, r.Begin(plainPacket{}.bytes()))
	require.EqualError(t, r.Begin(plainPacket{class: 2}.bytes()), "packet of 74 bytes: expected a packet of stream class 1 as before, got one of 2")
}

func TestPacketsWithoutSizesHaveTheSizeOfTheirBytes(t *testing.T) {
	trace := newTrace(t, plainTypes+`trace { major = 1; minor = 8; byte_order = be; };
event { name = only; fields := struct { uint16_t a; }; };`)
	r := ctf.NewReader(trace)
	size, err := r.Size([]byte{1, 2})
	require.NoError(t, err)
	require.Zero(t, size)
	require.NoError(t, r.Begin([]byte{1, 2, 3, 4}))
	var got []uint64
	for r.Next() {
		require.Equal(t, int64(0), r.Event.UnixNano(), "no clock")
		got = append(got, r.Event.Uint(r.Event.Class.Fields.Lookup("a")))
	}
	require.Equal(t, []uint64{0x0102, 0x0304}, got)
	require.NoError(t, r.Begin(nil), "an empty packet")
	require.False(t, r.Next())
	require.NoError(t, r.Err())
	require.EqualError(t, trace.Append([]byte("stream { id = 0; };")), "stream class 0: expected its declaration before packets are read, got it after packets")
}

func TestSizeNeedsMoreBytesUntilItIsKnown(t *testing.T) {
	packet := plainPacket{}.bytes()
	r := ctf.NewReader(newTrace(t, plainTrace))
	for n := range packet {
		_, err := r.Size(packet[:n])
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes", n)
	}
	_, err := r.Size(plainPacket{size: 1 << 62}.bytes())
	require.EqualError(t, err, "expected a packet of 1 to 1073741824 whole bytes, got 4611686018427387904 bits")
	_, err = r.Size(plainPacket{size: 999}.bytes())
	require.Error(t, err)
}

func TestClassesMayBecomeKnownInTheMiddleOfAPacket(t *testing.T) {
	trace := newTrace(t, plainTrace)
	r := ctf.NewReader(trace)
	require.NoError(t, r.Begin(plainPacket{events: []byte{0, 1, 0, 0, 200, 2, 0, 5, 6, 7, 8}}.bytes()))
	require.True(t, r.Next())
	zero := r.Event.Class
	require.NoError(t, trace.Append([]byte(`event { id = 200; stream_id = 1; name = late; fields := struct { uint8_t a; uint8_t b; uint16_t c; }; };
stream { id = 9; }; event { id = 200; stream_id = 9; };`)))
	require.True(t, r.Next(), "%v", r.Err())
	require.Equal(t, "late", r.Event.Class.Name)
	require.Equal(t, 1, r.Event.Class.Index)
	require.Equal(t, uint64(0x0807), r.Event.Uint(r.Event.Class.Fields.Lookup("c")))
	require.Same(t, zero, trace.StreamClasses()[0].Event(0))
	require.Equal(t, 3, trace.EventClasses())

	err := trace.Append([]byte("event { id = 200; stream_id = 1; name = other; };"))
	require.ErrorContains(t, err, "expected event class 200 of stream class 1 as it was declared before, got another declaration")
	require.Same(t, err, trace.Append(nil), "no more metadata is accepted")
	require.NoError(t, r.Begin(plainPacket{}.bytes()), "known classes can still be read")
}

func TestEventsWaitForTheirStreamClass(t *testing.T) {
	trace := ctf.NewTrace()
	for _, step := range []struct {
		text string
		want int
	}{
		{"event { id = 0; stream_id = 4; name = before; };", 0},
		{"trace { major = 1; minor = 8; byte_order = le; };", 0},
		{"event { id = 1; name = only; };", 0},
		{"stream { id = 4; };", 2},
	} {
		require.NoError(t, trace.Append([]byte(step.text)))
		require.Equal(t, step.want, trace.EventClasses(), step.text)
	}
	require.Equal(t, "only", trace.StreamClasses()[0].Event(1).Name)
}

func TestMetadataThatCannotBeCompiled(t *testing.T) {
	const traceBlock = plainTypes + "trace { major = 1; minor = 8; byte_order = le; };\n"
	event := func(fields string) string {
		return traceBlock + "stream { id = 0; };\nevent { name = x; fields := struct { " + fields + " }; };"
	}
	for _, c := range []struct{ name, text, want string }{
		{"a length that does not exist", event("uint8_t a[b];"), `line 7, column 48, event fields, field "a", reference "b": expected a field of this scope or one before, in front of it, got none`},
		{"a length after the array", event("uint8_t a[b]; uint8_t b;"), `expected a field of this scope or one before, in front of it, got none`},
		{"a length of itself", event("uint8_t a[a];"), `expected a field of this scope or one before, in front of it, got none`},
		{"a length inside an array", event("struct { uint8_t n; } s[2]; uint8_t a[s.n];"), `expected a field of this scope or one before, in front of it, got none`},
		{"a length inside a variant", event("enum : uint8_t { p } t; variant <t> { struct { uint8_t n; } p; } v; uint8_t a[v.p.n];"), `in front of it, got none`},
		{"a length in a later scope", traceBlock + "stream { id = 0; event.context := struct { uint8_t a[event.fields.n]; }; };", `in front of it, got none`},
		{"a length with sign", event("integer { size = 8; signed = true; } n; uint8_t a[n];"), `expected an integer without sign, got one with sign`},
		{"a length that is text", event("string n; uint8_t a[n];"), `expected an integer without sign, got a field of kind text`},
		{"a tag without labels", event("uint8_t t; variant <t> { string a; } v;"), `expected an enumeration, got an integer without labels`},
		{"a tag for nothing", event("enum : uint8_t { q } t; variant <t> { string a; } v;"), `expected a selector that selects an option, got one that selects none`},
		{"a byte order that changes in a byte", event("integer { size = 3; byte_order = le; } a; integer { size = 3; byte_order = be; } b;"), `field "b": expected the byte order of the field before it`},
		{"a clock that does not exist", traceBlock + "stream { id = 0; event.header := struct { integer { size = 8; map = clock.c.value; } t; }; };", `expected a clock that is declared, got "c"`},
		{"two clocks", traceBlock + "clock { name = c; }; clock { name = d; }; stream { id = 0; event.header := struct { integer { size = 8; map = clock.c.value; } t; integer { size = 8; map = clock.d.value; } u; }; };", `expected one clock for all times, got "c" and "d"`},
		{"times of one of two clocks", traceBlock + "clock { name = c; }; clock { name = d; }; stream { id = 0; event.header := struct { uint8_t timestamp; }; };", `expected times that are mapped to a clock, got times without a clock, and several clocks: c, d`},
		{"an event class that occurs twice", event("") + "event { name = y; stream_id = 0; id = 0; };", "another declaration"},
		{"a length beyond all packets", event("uint8_t a[0xFFFFFFFFFFFF];"), `expected a length of at most 1073741824 bytes`},
		{"a length beyond all numbers", event("uint16_t a[0xFFFFFFFFFFFFFFFF];"), `expected a length of at most 1099511627776`},
		{"fields without end", event("struct s0 { uint8_t a; }; " + doubling(40) + "struct s40 x;"), `expected at most 65536 fields, got more`},
		{"a packet header without end", plainTypes + "struct s0 { uint8_t a; }; " + doubling(10) + "trace { major = 1; minor = 8; byte_order = le; packet.header := struct { struct s10 x; }; };", `expected at most 512 values in the header and the context of a packet, got 1024`},
		{"a packet context without end", traceBlock + "struct s0 { uint8_t a; }; " + doubling(10) + "stream { id = 0; packet.context := struct { struct s10 x; }; };", `expected at most 512 values in the header and the context of a packet, got 1024`},
		{"structures without end", event("struct s0 { }; " + doubling(40) + "struct s40 x;"), `expected at most 65536 fields, got more`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := ctf.NewTrace().Append([]byte(c.text))
			require.ErrorContains(t, err, c.want)
		})
	}
	text := traceBlock + "struct s0 { uint8_t a; }; " + doubling(14) + "stream { id = 0; };" + manyEvents(200)
	require.ErrorContains(t, ctf.NewTrace().Append([]byte(text)), "expected classes with at most 524288 fields and operations in all, got more")
}

// Compiled metadata uses no more memory than Trace.Size returns.
func TestTheSizeOfATraceBoundsItsMemory(t *testing.T) {
	text := plainTypes + "trace { major = 1; minor = 8; byte_order = le; }; struct s0 { uint8_t a; }; " + doubling(14) + "stream { id = 0; };"
	for i := range 6 {
		text += fmt.Sprintf("event { name = e; id = %d; stream_id = 0; fields := struct { struct s14 x; }; };", i)
	}
	before := testkit.HeapBytes()
	trace := newTrace(t, text)
	took := testkit.HeapBytes() - before
	require.Greater(t, took, int64(20<<20))
	require.Less(t, took, int64(trace.Size()))
	require.Greater(t, 2*took, int64(trace.Size()))
}

// Declarations of many events with a few fields each need memory in proportion to their text.
func TestTheSizeOfATraceIncludesItsDeclarations(t *testing.T) {
	var text strings.Builder
	text.WriteString(plainTypes + "trace { major = 1; minor = 8; byte_order = le; }; stream { id = 0; };")
	for i := range 20_000 {
		fmt.Fprintf(&text, "event { name = \"attack:event%d\"; id = %d; stream_id = 0; fields := struct { uint8_t _text%d; uint8_t _a; uint8_t _b; uint8_t _c; }; };\n", i, i, i)
	}
	before := testkit.HeapBytes()
	trace := newTrace(t, text.String())
	took := testkit.HeapBytes() - before
	require.Less(t, took, int64(trace.Size())*5/4)
	require.Greater(t, 2*took, int64(trace.Size()))
	require.Less(t, took, int64(trace.CostOfReading([]byte(text.String()))), "the memory charged before reading")
	runtime.KeepAlive(trace)
}

// A packet of a few bytes does not become many MiB.
func TestValuesOfAnEventAreBoundedByTheSizeOfItsPacket(t *testing.T) {
	const begin = plainTypes + "trace { major = 1; minor = 8; byte_order = le; packet.header := struct { struct { } h[H]; }; };\nstream { id = 0; };\n"
	for name, c := range map[string]struct {
		header, fields string
		fits           bool
	}{
		"some more than there are bits": {"1", "struct { } a[4900];", true},
		"more":                          {"1", "struct { } a[5000];", false},
		"too many in all arrays":        {"1", "struct { } a[3000]; struct { } b[3000];", false},
		"too many in elements":          {"1", "struct { struct { } b[1000]; } a[5];", false},
		"as many as a header may have":  {"512", "", true},
		"too many in a header":          {"513", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := ctf.NewReader(newTrace(t, strings.Replace(begin, "H", c.header, 1)+"event { name = x; fields := struct { uint8_t n[106]; "+c.fields+" }; };"))
			err := r.Begin(make([]byte, 106))
			if err == nil && !r.Next() {
				err = r.Err()
			}
			if c.fits {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "at most 4096 more than it has bits, and at most 512 in headers, got more")
			}
		})
	}
}

// doubling returns declarations of structures. Each contains the previous one twice.
func doubling(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "struct s%d { struct s%d a; struct s%d b; }; ", i+1, i, i)
	}
	return b.String()
}

func manyEvents(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "event { id = %d; stream_id = 0; fields := struct { struct s14 x; }; };", i)
	}
	return b.String()
}

func TestFieldsOfNoSizeAreBounded(t *testing.T) {
	const begin = plainTypes + "trace { major = 1; minor = 8; byte_order = le; };\nstream { id = 0; };\n"
	const elements, operations = "expected at most 1048576 values in all arrays of an event, at most 4096 more than it has bits, and at most 512 in headers, got more", "expected a packet of at most 16 fields for each bit, got more"
	for name, c := range map[string]struct{ fields, want string }{
		"elements of no size":                  {"uint32_t n; struct { } a[n];", elements},
		"elements of no size in each":          {"uint16_t n; struct { struct { } b[1000]; } a[n];", elements},
		"elements of a bit with large options": {"uint32_t n; struct { integer { size = 1; } s; enum : integer { size = 1; } { x } t; variant <t> { integer { size = 1; } x[1]; } v; } a[n];", elements},
		"elements of no size, many times":      {"integer { size = 3; } n; struct { } a[500000];", operations},
		"bytes of no size":                     {"integer { size = 3; align = 1; } n; " + strings.Repeat("struct { uint8_t a[0], b[0], c[0], d[0], e[0], f[0], g[0]; } N; ", 1000), operations},
		"bytes of no size in elements":         {"uint16_t n; struct { " + strings.Repeat("struct { uint8_t a[0], b[0], c[0], d[0], e[0], f[0], g[0]; } N; ", 1000) + "} a[n];", elements},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 1000 {
				c.fields = strings.Replace(c.fields, "N;", fmt.Sprintf("n%d;", i), 1)
			}
			r := ctf.NewReader(newTrace(t, begin+"event { name = x; fields := struct { "+c.fields+" }; };"))
			packet := make([]byte, 1<<16)
			copy(packet, []byte{0xFF, 0xFF, 0xFF, 0xFF})
			require.NoError(t, r.Begin(packet))
			for r.Next() {
			}
			require.ErrorContains(t, r.Err(), c.want)
		})
	}
	trace := newTrace(t, begin+"event { name = x; };")
	r := ctf.NewReader(trace)
	require.NoError(t, r.Begin([]byte{1}))
	require.False(t, r.Next())
	require.EqualError(t, r.Err(), `event at bit 0 of a packet with 8: event "x": expected an event of one bit or more, got none`)
}

func TestReadingAllocatesNothing(t *testing.T) {
	for _, c := range lttngdata.Captures {
		dir := lttngdata.OpenTrace(t, lttngdata.OpenCapture(t, c.Name))
		for _, packets := range lttngdata.Packets(t, dir) {
			r := ctf.NewReader(dir.Trace)
			require.Zero(t, testing.AllocsPerRun(5, func() {
				for _, packet := range packets {
					if r.Begin(packet) != nil {
						t.Fail()
					}
					for r.Next() {
					}
				}
			}), c.Name)
			require.NoError(t, r.Err())
		}
	}
}

func TestLookup(t *testing.T) {
	many := ""
	for i := range 40 {
		many += fmt.Sprintf("uint8_t _m%d; ", i)
	}
	trace := newTrace(t, plainTypes+"trace { major = 1; minor = 8; byte_order = le; };\nstream { id = 0; };\n"+
		"event { name = x; fields := struct { struct { uint8_t _a; uint8_t a; } s; struct { "+many+"} _big; "+
		"enum : uint8_t { _one } t; variant <t> { uint8_t _one; } v; uint16_t array[2]; }; };")
	class := trace.StreamClasses()[0].Event(0)
	for path, want := range map[string]string{
		"s": "s", "s._a": "s._a", "s.a": "s.a", "big.m39": "_big._m39", "_big._m3": "_big._m3", "v.one": "v._one", "v._one": "v._one",
	} {
		f := class.Field(metadata.EventFields, path)
		require.NotNil(t, f, path)
		require.Equal(t, want, f.Path())
	}
	for _, path := range []string{"", "x", "s.x", "s.a.x", "big.m40", "array.x", "."} {
		require.Nil(t, class.Field(metadata.EventFields, path), "%q", path)
	}
	require.Nil(t, class.Field(metadata.NoScope, "s"))
	require.Nil(t, class.Field(metadata.EventContext, "s"))
	require.Equal(t, "array[]", class.Fields.Lookup("array").Members[0].Path())
}
