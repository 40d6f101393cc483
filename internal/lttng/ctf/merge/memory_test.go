// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/testkit"
)

// Streams use little memory apart from waiting packets, even if their events are large.
func TestManyStreamsOfLargeEventsUseLittleMemory(t *testing.T) {
	const (
		streams = 50
		bits    = 200_000
		mib     = 1 << 20
	)
	trace := ctf.NewTrace()
	require.NoError(t, trace.Append(fmt.Appendf(nil, `/* CTF 1.8 */
typealias integer { size = 64; align = 8; map = clock.c.value; } := time;
trace { major = 1; minor = 8; byte_order = le; };
clock { name = c; freq = 1000000000; };
stream {
	packet.context := struct { time timestamp_begin; time timestamp_end; };
	event.header := struct { time timestamp; };
};
event { name = e; fields := struct { integer { size = 1; } a[%d]; }; };
`, bits)))
	// Each packet has two events, and the streams alternate. An event has 1.6 MB of values.
	packet := func(i int) []byte {
		p := packet{class: 1, events: []event{
			{uint64(1000 + i), string(make([]byte, bits/8-1))}, {uint64(2000 + i), string(make([]byte, bits/8-1))},
		}}
		b := make([]byte, 0, 16+len(p.bytes()))
		b = append(b, make([]byte, 8)...)
		b = append(b, 0xB8, 0x0B, 0, 0, 0, 0, 0, 0) // it ends at 3000
		for _, e := range p.events {
			b = append(b, byte(e.time), byte(e.time>>8), 0, 0, 0, 0, 0, 0)
			b = append(append(b, e.text...), 1<<7)
		}
		return b
	}
	before := testkit.HeapBytes()
	m := merge.New(trace, merge.Options{Resumes: func(*ctf.Event) bool { return false }})
	var all []*merge.Stream
	for i := range streams {
		all = append(all, m.AddStream(uint64(i), fmt.Sprint("stream ", i)))
	}
	waiting := 0
	for i, s := range all {
		p := packet(i)
		waiting += cap(p)
		s.Packet(p, nil)
	}
	most := testkit.HeapBytes() - before
	events, ended := 0, 0
	for {
		switch m.Next() {
		case merge.Event:
			array := m.Event.Class.Fields.Members[0]
			require.Equal(t, bits, m.Event.Len(array))
			last := m.Event.Element(array, bits-1)
			require.EqualValues(t, 1, last.Uint(array.Members[0]))
			require.Equal(t, int64(1000*(1+events/streams)+events%streams), m.Time)
			require.Equal(t, all[events%streams], m.Stream)
			if events++; events%10 == 0 {
				most = max(most, testkit.HeapBytes()-before)
			}
			continue
		case merge.PacketEnd:
			ended++
			continue
		}
		break
	}
	require.NoError(t, m.Err())
	assert.Equal(t, 2*streams, events)
	assert.Equal(t, streams, ended)
	assert.Less(t, most, int64(waiting+12*mib), "one event at a time has its values")
	// No stream has ended, and no packet waits.
	assert.Less(t, testkit.HeapBytes()-before, int64(mib), "finished packets are still in memory")
	runtime.KeepAlive(all)
}
