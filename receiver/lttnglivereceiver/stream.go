// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// stream is a stream of packets of a trace. It outlives connections: on each it has
// another ID.
type stream struct {
	// key is its path and channel.
	key   string
	trace *trace
	in    *merge.Stream

	// What follows is of the connection that there is.

	id      uint64
	source  *source
	present bool
	hungUp  bool
	// current says that the stream had nothing once: what was recorded before the connection
	// was made has come.
	current bool
	// pending is a packet that could not be had yet.
	pending    lttnglive.Index
	hasPending bool

	// offset is where the last packet lay; any says that there was one, full that it had
	// no room for another event.
	offset uint64
	any    bool
	full   bool
	// given are the packets that the merger has.
	given []givenPacket
	// bad are packets that can't be read: they are passed over.
	bad []packetTimes
}

// givenPacket is a packet that the merger has.
type givenPacket struct {
	packetTimes
	// bytes is how many it holds.
	bytes int
	// rewound says that it lies before the one that was written before it.
	rewound bool
}

// packetTimes are the times that a packet begins and ends at, by which it is known
// again on another connection.
type packetTimes struct{ begin, end uint64 }

func timesOf(i *lttnglive.Index) packetTimes { return packetTimes{i.TimestampBegin, i.TimestampEnd} }

// maxBad bounds how many bad packets of a trace are passed over. What is beyond ends
// every try to read the session.
const maxBad = 1000

// streamKey is what a stream is known by on all connections.
func streamKey(told lttnglive.Stream) string { return told.Path + "/" + told.Channel }

// open gives the trace a stream of a connection.
func (t *trace) open(told lttnglive.Stream) *stream {
	key := streamKey(told)
	s := t.streams[key]
	if s == nil {
		s = t.add(key)
	} else {
		s.in.Again()
	}
	s.id, s.present, s.hungUp, s.hasPending, s.current = told.ID, true, false, false, false
	return s
}

// add makes a stream that is not read yet.
func (t *trace) add(key string) *stream {
	number := uint64(len(t.numbered))
	if last := len(t.free) - 1; last >= 0 {
		number, t.free = t.free[last], t.free[:last]
	} else {
		t.numbered = append(t.numbered, nil)
	}
	s := &stream{key: key, trace: t, in: t.merger.AddStream(number, key), bad: t.bad[key]}
	s.in.Resume(t.record.Streams[key])
	t.streams[key], t.numbered[number] = s, s
	t.follower.counts.streams.Add(1)
	t.env.telemetry.streams(1)
	return s
}

// give gives the merger a packet.
func (s *stream) give(data []byte, i *lttnglive.Index) {
	s.trace.hold(cap(data))
	s.given = append(s.given, givenPacket{timesOf(i), cap(data), s.any && i.Offset <= s.offset})
	s.offset, s.any = i.Offset, true
	s.full = i.PacketSize >= i.ContentSize && i.PacketSize-i.ContentSize < fullRoom
	s.in.Packet(data, &merge.Index{
		StreamClass: i.StreamClass, Begin: i.TimestampBegin, End: i.TimestampEnd,
		Discarded: i.EventsDiscarded, Content: i.ContentSize,
	})
}

// fullRoom is how many bits a packet that was full has left at most: less than an event
// takes.
const fullRoom = 256 * 8

// isCut reports whether a stream that has ended surely lacks its last packet. When a
// process ends, the tracer closes a packet of each of its streams, empty or not; and one
// that is full was closed for an event that is in the next.
func (s *stream) isCut() bool { return !s.any || s.full }

// readPacket is called when a packet was read.
func (s *stream) readPacket(data []byte) {
	s.trace.hold(-s.given[0].bytes)
	s.given = s.given[1:]
	s.trace.follower.buffers.give(data)
}

// isRewound reports whether the packet that is read lies before the one that was
// written before: its file was emptied, or is written round.
func (s *stream) isRewound() bool { return len(s.given) > 0 && s.given[0].rewound }
