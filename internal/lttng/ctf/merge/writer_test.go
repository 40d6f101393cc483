// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"cmp"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
)

// metadataText is the metadata of the traces of these tests. Each event has its full time and text of any length.
// Stream class 1 has no clock, class 2 has no counters, class 3 has counters, but no end.
const metadataText = `/* CTF 1.8 */
typealias integer { size = 32; align = 8; } := u32;
typealias integer { size = 64; align = 8; } := u64;
trace {
	major = 1; minor = 8; byte_order = le;
	packet.header := struct { u32 magic; u32 stream_id; };
};
clock { name = c; freq = 1000000000; };
typealias integer { size = 64; align = 8; map = clock.c.value; } := time;
stream {
	id = 0;
	packet.context := struct {
		time timestamp_begin; time timestamp_end;
		u64 content_size; u64 packet_size; u64 packet_seq_num; u64 events_discarded;
	};
	event.header := struct { time timestamp; };
};
event { name = e; id = 0; stream_id = 0; fields := struct { string text; }; };
stream {
	id = 1;
	packet.context := struct { u64 content_size; u64 packet_size; };
};
event { name = untimed; id = 0; stream_id = 1; fields := struct { string text; }; };
`

// moreText adds stream classes 2 and 3.
const moreText = `
stream {
	id = 2;
	packet.context := struct { time timestamp_begin; time timestamp_end; u64 content_size; u64 packet_size; };
	event.header := struct { time timestamp; };
};
event { name = uncounted; id = 0; stream_id = 2; fields := struct { string text; }; };
stream {
	id = 3;
	packet.context := struct {
		time timestamp_begin; u64 discarded_before;
		u64 content_size; u64 packet_size; u64 packet_seq_num; u64 events_discarded;
	};
	event.header := struct { time timestamp; };
};
event { name = endless; id = 0; stream_id = 3; fields := struct { string text; }; };
`

func newTrace(t testing.TB) *ctf.Trace {
	t.Helper()
	trace := ctf.NewTrace()
	require.NoError(t, trace.Append([]byte(metadataText)))
	return trace
}

// packet is a packet to write.
type packet struct {
	class               uint32
	begin, end          uint64
	sequence, discarded uint64
	events              []event
	// room is the number of bytes after the content. 0 means muchRoom.
	room uint64
}

// muchRoom is more than the largest event of these tests needs.
const muchRoom = 1000

// event is an event to write, or one that was read.
type event struct {
	time uint64
	text string
}

// size returns the size of an event of class 0 in bytes.
func (e event) size() uint64 { return 8 + uint64(len(e.text)) + 1 }

// bytes returns the packet without the bytes after its content.
func (p *packet) bytes() []byte {
	order := binary.LittleEndian
	b := order.AppendUint32(nil, 0xC1FC1FC1)
	b = order.AppendUint32(b, p.class)
	if p.class != 1 {
		b = order.AppendUint64(b, p.begin)
		b = order.AppendUint64(b, p.end)
	}
	sizes := len(b)
	b = append(b, make([]byte, 16)...)
	if p.class == 0 || p.class == 3 {
		b = order.AppendUint64(b, p.sequence)
		b = order.AppendUint64(b, p.discarded)
	}
	for _, e := range p.events {
		if p.class != 1 {
			b = order.AppendUint64(b, e.time)
		}
		b = append(append(b, e.text...), 0)
	}
	order.PutUint64(b[sizes:], uint64(len(b))*8)
	order.PutUint64(b[sizes+8:], (uint64(len(b))+cmp.Or(p.room, muchRoom))*8)
	return b
}

// isFull reports whether less than an eighth of the packet is free.
func (p *packet) isFull() bool {
	room := cmp.Or(p.room, muchRoom)
	return 8*room < uint64(len(p.bytes()))+room
}

// at returns events at these times.
func at(times ...uint64) []event {
	var events []event
	for _, time := range times {
		events = append(events, event{time: time})
	}
	return events
}

// text returns text of n bytes.
func text(n int) string { return strings.Repeat("x", n) }
