// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lttngHeaders are the two event headers as LTTng writes them.
var lttngHeaders = map[string]string{
	"compact": `struct { enum : uint5_t { compact = 0 ... 30, extended = 31 } id; variant <id> {
		struct { uint27_clock_monotonic_t timestamp; } compact;
		struct { uint32_t id; uint64_clock_monotonic_t timestamp; } extended; } v; } align(8)`,
	"large": `struct { enum : uint16_t { compact = 0 ... 65534, extended = 65535 } id; variant <id> {
		struct { uint32_clock_monotonic_t timestamp; } compact;
		struct { uint32_t id; uint64_clock_monotonic_t timestamp; } extended; } v; } align(8)`,
}

// lttngMetadata returns metadata with an event header, and event classes with the lowest IDs.
func lttngMetadata(header, order string, classes int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `typealias integer { size = 5; align = 1; } := uint5_t;
typealias integer { size = 16; align = 8; } := uint16_t;
typealias integer { size = 32; align = 8; } := uint32_t;
trace { major = 1; minor = 8; byte_order = %s; };
clock { name = monotonic; };
typealias integer { size = 27; align = 1; map = clock.monotonic.value; } := uint27_clock_monotonic_t;
typealias integer { size = 32; align = 8; map = clock.monotonic.value; } := uint32_clock_monotonic_t;
typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := uint64_clock_monotonic_t;
stream { id = 0; event.header := %s; };
`, order, header)
	for id := range classes {
		fmt.Fprintf(&b, "event { id = %d; name = e%d; fields := struct { integer { size = 3; } a; }; };\n", id, id)
	}
	return b.String()
}

func TestFastHeadersHaveTheResultOfTheirProgram(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, header := range lttngHeaders {
		for _, order := range []string{"le", "be"} {
			t.Run(name+" "+order, func(t *testing.T) {
				trace := NewTrace()
				require.NoError(t, trace.Append([]byte(lttngMetadata(header, order, 256))))
				class := trace.StreamClasses()[0]
				fast := class.fast
				require.NotNil(t, fast)
				for range 2000 {
					packet := make([]byte, random.IntN(100))
					for i := range packet {
						// Few different bytes make existing IDs, and full IDs, likely.
						packet[i] = []byte{0, 0xFF, byte(random.Uint32())}[random.IntN(3)]
					}
					class.fast = fast
					quick := readWhole(t, trace, packet)
					class.fast = nil
					require.Equal(t, readWhole(t, trace, packet), quick, "%X", packet)
				}
			})
		}
	}
}

// readWhole returns all values of a packet as text.
func readWhole(t *testing.T, trace *Trace, packet []byte) []string {
	t.Helper()
	r := NewReader(trace)
	require.NoError(t, r.Begin(packet))
	var events []string
	for r.Next() {
		e := &r.Event
		header := e.Class.Stream.EventHeader
		text := fmt.Sprintf("class %d, clock %d, id %d", e.Class.ID, e.Clock, e.Uint(header.Lookup("id")))
		option := e.Option(header.Lookup("v"))
		for _, m := range option.Members {
			text += fmt.Sprintf(", %s.%s %d", option.Name, m.Name, e.Uint(m))
		}
		events = append(events, text)
	}
	if r.Err() != nil {
		events = append(events, "an error")
	}
	return events
}

func TestOtherHeadersAreReadByTheirProgram(t *testing.T) {
	for name, change := range map[string][2]string{
		"another alignment":   {"align(8)", "align(16)"},
		"other values":        {"30", "29"},
		"another order":       {"struct { uint27_clock_monotonic_t timestamp; } compact;", "struct { integer { size = 27; byte_order = be; map = clock.monotonic.value; align = 8; } timestamp; } compact;"},
		"another type of ID":  {"uint32_t id", "integer { size = 31; } id"},
		"a third field":       {"} v;", "} v; uint32_t more;"},
		"a sign":              {": uint5_t", ": integer { size = 5; signed = true; }"},
		"an additional field": {"timestamp; } compact", "timestamp; uint32_t more; } compact"},
		"an array":            {"struct { uint27_clock_monotonic_t timestamp; } compact", "uint32_t compact[1]"},
		"no time":             {"uint27_clock_monotonic_t timestamp", "integer { size = 27; } other"},
		"another tag":         {"variant <id>", "variant <stream.event.header.id>"},
		"options of one name": {"extended = 31", "extended = 31, compact = 32"},
	} {
		header := strings.Replace(lttngHeaders["compact"], change[0], change[1], 1)
		require.NotEqual(t, lttngHeaders["compact"], header, name)
		trace := NewTrace()
		require.NoError(t, trace.Append([]byte(lttngMetadata(header, "le", 1))), name)
		fast := trace.StreamClasses()[0].fast
		if name == "another tag" {
			require.NotNil(t, fast, "it is the same field")
			continue
		}
		require.Nil(t, fast, name)
	}
}

func TestExtend(t *testing.T) {
	for _, c := range []struct {
		last, low uint64
		size      uint8
		want      uint64
	}{
		{last: 0x1_0000_0005, low: 6, size: 32, want: 0x1_0000_0006},
		{last: 0x1_0000_0005, low: 5, size: 32, want: 0x1_0000_0005},
		{last: 0x1_0000_0005, low: 4, size: 32, want: 0x2_0000_0004},
		{last: 1<<27 - 1, low: 0, size: 27, want: 1 << 27},
		{last: 0xFFFF_FFFF_FFFF_FFFF, low: 0, size: 27, want: 0},
		{last: 7, low: 3, size: 64, want: 3},
		{last: 6, low: 1, size: 1, want: 7},
	} {
		require.Equal(t, c.want, extend(c.last, c.low, c.size), "%+v", c)
	}
}

func TestCountersThatWrapOrRunBackwards(t *testing.T) {
	require.Equal(t, uint64(3), forward(distance(1<<32-1, 2, 32), 32))
	require.Equal(t, uint64(3), forward(distance(1<<64-1, 2, 64), 64))
	require.Equal(t, uint64(3), forward(distance(1<<64-1, 2, 0), 0))
	require.Zero(t, forward(distance(5, 4, 64), 64))
	require.Zero(t, forward(distance(5, 4, 16), 16))
	require.Equal(t, uint64(1<<16-1), distance(5, 4, 16))
}
