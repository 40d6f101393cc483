// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
)

// ticking returns a clock that advances with each call.
func ticking() func() time.Duration {
	var ticks atomic.Int64
	return func() time.Duration { return time.Duration(ticks.Add(2)) * time.Millisecond }
}

// shortProcesses returns a session with buffers for each process, in which processes run one after the other.
func shortProcesses(n int) *lttnglive.Recording {
	const life = 40 * time.Millisecond
	all := &lttnglive.Recording{
		Session: lttnglive.Session{ID: 1, LiveTimer: time.Second, Host: "vm", Name: "short"},
		End:     time.Duration(n+1) * life,
	}
	for i := range n {
		s := synthetic.New(fmt.Sprintf("process %08d", i))
		s.Environment = fmt.Sprintf("vpid = %d; procname = \"p\";", i+1)
		s.Class("shop:sold", "number")
		s.Stream().Packet(uint64(100*i+1)).Event(uint64(100*i+2), "shop:sold", i)
		for _, stream := range s.Recording(uint64(i + 1)).Streams {
			stream.At = time.Duration(i) * life
			stream.End = stream.At + life/2
			for j := range stream.Pieces {
				stream.Pieces[j].At = stream.At
			}
			for j := range stream.Steps {
				stream.Steps[j].At = stream.At
			}
			stream.Path = fmt.Sprintf("ust/pid/p-%d", i)
			all.Streams = append(all.Streams, stream)
		}
	}
	return all
}

func TestEndedProcessesAreRemovedAndNotReadTwice(t *testing.T) {
	const processes = 60
	r := newRelay(t, []*lttnglive.Recording{shortProcesses(processes)}, lttnglive.RelayOptions{Clock: ticking()})
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.Limits.MaxStreams, c.Poll.MaxInterval = 200, c.Poll.MinInterval })
	var sessions []*watchedSession
	b.await("the session", func() bool {
		sessions = b.receiver.watcher.active()
		return len(sessions) == 1
	})
	// The relay daemon announces all of them again on another connection.
	b.await("some records", func() bool { return b.logs.LogRecordCount() >= processes/2 })
	r.hangUp()
	b.awaitSaid("The session was closed")
	read := sessions[0].runningSession.(*session.Session)
	<-read.Done()
	assert.Less(t, read.Traces(), processes/4)
	b.shutdown()
	seen := map[int64]int{}
	for _, record := range b.records() {
		number, ok := record.Attributes().Get("number")
		require.True(t, ok)
		seen[number.Int()]++
	}
	assert.Len(t, seen, processes)
	for number, times := range seen {
		assert.Equal(t, 1, times, "process %d", number)
	}
}

func TestStreamsWithoutMetadataCountAsStreamsOfTheSession(t *testing.T) {
	recording := &lttnglive.Recording{
		Session: lttnglive.Session{ID: 1, LiveTimer: time.Second, Host: "vm", Name: "blank"},
		End:     lttnglive.Never,
	}
	for i := range uint64(100) {
		at := time.Duration(20*i) * time.Millisecond
		recording.Streams = append(recording.Streams, lttnglive.RecordedStream{
			Stream: lttnglive.Stream{ID: i, TraceID: i / 10, Path: "ust/uid/0/64-bit", Channel: fmt.Sprint(i)},
			At:     at, End: lttnglive.Never,
		})
	}
	r := newRelay(t, []*lttnglive.Recording{recording}, lttnglive.RelayOptions{Clock: ticking()})
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.Limits.MaxStreams, c.Poll.MaxInterval = 50, c.Poll.MinInterval })
	said := b.awaitSaid(dropped)
	assert.Equal(t, session.BadProtocol, said.ContextMap()["what"])
	assert.Contains(t, said.ContextMap()["error"], "expected at most 50 streams of the session (limits.max_streams), got 51")
}

func TestOpenCallsEndWithTheShutdown(t *testing.T) {
	recordings := captured(t, "cygok")
	recordings[0].End = lttnglive.Never
	for i := range recordings[0].Streams {
		recordings[0].Streams[i].End = lttnglive.Never
	}
	r := newRelay(t, recordings, lttnglive.RelayOptions{})
	b := newBed(t, reading(r.address()))
	b.awaitSaid("The session is attached")
	b.await("call events", func() bool { return b.pipeline.events() > 0 })
	b.shutdown()
	s := b.pipeline.only(t)
	assert.True(t, s.has(callevent.BarrierEnd, callevent.CauseShutdown))
	assert.False(t, s.has(callevent.BarrierEnd, callevent.CauseEnded))
}

func TestALossInsideAnotherDoesNotEndIt(t *testing.T) {
	s := synthetic.New("overlapping", "vpid", "vtid")
	s.Class(mapping.EventCygEntry, "addr", "call_site")
	for range 3 {
		s.Stream()
	}
	entry := func(stream int, at uint64) {
		s.Streams[stream].Packet(at).Event(at, mapping.EventCygEntry, 7, 7, int(at), 0)
	}
	discarded := func(stream int, end uint64) {
		packets := s.Streams[stream].Packets
		last := &packets[len(packets)-1]
		last.End, last.Discarded = end, 1
	}
	entry(2, 5)
	entry(0, 10)
	entry(1, 11)
	entry(0, 20)
	discarded(0, 100)
	entry(1, 30)
	discarded(1, 60)
	entry(2, 70) // after the loss of stream 1, inside that of stream 0
	entry(2, 200)
	r := newRelay(t, []*lttnglive.Recording{s.Recording(1)}, lttnglive.RelayOptions{})
	b := newBed(t, reading(r.address()))
	b.awaitSaid("The session was closed")
	b.shutdown()
	seen := b.pipeline.only(t)
	require.Len(t, seen.inOrder(t), 7)
	ends := map[uint64]uint64{} // by the begin of the interval: a slow machine closes a batch inside it, so it grows
	for barrier := range seen.barriers {
		if barrier.Kind == callevent.BarrierBreak && barrier.From < barrier.To {
			ends[barrier.From] = max(ends[barrier.From], barrier.To)
		}
	}
	assert.Equal(t, []uint64{6}, slices.Collect(maps.Values(ends)), "the one interval reaches to the call at 200")
}

// The data of a stream after its first unreadable byte is unknown: calls that were open then may have ended.
func TestAStreamThatCannotBeReadFurtherIsABreak(t *testing.T) {
	s := synthetic.New("unreadable", "vpid", "vtid")
	s.Class(mapping.EventCygEntry, "addr", "call_site")
	s.Stream().Packet(10).Event(10, mapping.EventCygEntry, 7, 7, 16, 0).Packet(20).Event(20, mapping.EventCygEntry, 7, 7, 64, 0)
	s.Stream().Packet(5).Event(5, mapping.EventCygEntry, 7, 7, 32, 0).Event(30, mapping.EventCygEntry, 7, 7, 48, 0)
	recording := s.Recording(1)
	unreadable := &recording.Streams[1]
	unreadable.Packets = io.NewSectionReader(unreadable.Packets, 0, int64(unreadable.Steps[1].Index.Offset))
	r := newRelay(t, []*lttnglive.Recording{recording}, lttnglive.RelayOptions{})
	b := newBed(t, reading(r.address()))
	b.awaitSaid("A stream cannot be read further")
	b.awaitRecords(3)
	b.shutdown()
	seen := b.pipeline.only(t)
	require.Len(t, seen.inOrder(t), 3)
	assert.True(t, seen.has(callevent.BarrierBreak, callevent.CauseDisconnected), "%v", seen.barriers)
}

func TestMetadataMayArriveInPieces(t *testing.T) {
	s := synthetic.New("pieces")
	s.Class("shop:sold", "number")
	s.Stream().Packet(1).Event(2, "shop:sold", 1)
	recording := s.Recording(1)
	recording.End = lttnglive.Never
	metadata := &recording.Streams[0]
	all := metadata.Pieces[0].Data
	metadata.Pieces = nil
	for i := 0; i < len(all); i += 400 {
		metadata.Pieces = append(metadata.Pieces, lttnglive.MetadataPiece{
			At: time.Duration(i) * time.Millisecond, Data: all[i:min(i+400, len(all))],
		})
	}
	for i := range recording.Streams {
		recording.Streams[i].End = lttnglive.Never
	}
	// A tracer sends the metadata of a packet before it.
	recording.Streams[1].Steps[0].At = time.Duration(len(all)) * time.Millisecond
	r := newRelay(t, []*lttnglive.Recording{recording}, lttnglive.RelayOptions{Clock: ticking()})
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.Poll.MaxInterval = c.Poll.MinInterval })
	b.awaitRecords(1)
	assert.Empty(t, b.said.FilterMessage(dropped).All())
}

// Each of two traces with the same UUID on a connection may receive metadata later.
func TestMetadataOfBothTracesWithOneUUIDIsRead(t *testing.T) {
	s := synthetic.New("one UUID")
	s.Class("shop:sold", "number")
	first := s.Metadata()
	s.Class("shop:bought", "number")
	s.Stream().Packet(10).Event(10, "shop:sold", 1).Packet(30).Event(30, "shop:sold", 3)
	s.Stream().Packet(20).Event(20, "shop:sold", 2).Packet(40).Event(40, "shop:bought", 4)
	rest := s.Metadata()[len(first):]
	other := bytes.Replace(rest, []byte("_number"), []byte("_amount"), 1)
	for name, c := range map[string]struct {
		// more is the later metadata of each trace.
		more [2][]byte
		bad  bool
	}{
		"received by the second":   {more: [2][]byte{nil, rest}},
		"received by both":         {more: [2][]byte{rest, rest}},
		"received in part by one":  {more: [2][]byte{rest[:10], rest}},
		"different in both traces": {more: [2][]byte{other, rest}, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.Recording(1)
			r.End = 2 * time.Second
			again := r.Streams[0]
			again.ID, again.TraceID, again.Path = 98, 2, "ust/uid/1/64-bit"
			r.Streams = []lttnglive.RecordedStream{r.Streams[0], again, r.Streams[1], r.Streams[2]}
			r.Streams[3].TraceID = 2
			for i := range r.Streams {
				r.Streams[i].End = r.End
				if i < 2 {
					r.Streams[i].Pieces = []lttnglive.MetadataPiece{{Data: first}, {At: time.Second, Data: c.more[i]}}
				} else {
					r.Streams[i].Steps[1].At = time.Second
				}
			}
			var clock handClock
			served := newRelay(t, []*lttnglive.Recording{r}, lttnglive.RelayOptions{Clock: clock.read})
			b := newBed(t, reading(served.address()))
			b.await("packets", func() bool { return b.metric("receiver_lttng_live_packets") == 2 })
			clock.move(time.Second)
			if c.bad {
				said := b.awaitSaid(dropped)
				assert.Equal(t, session.BadMetadata, said.ContextMap()["what"])
				assert.Contains(t, said.ContextMap()["error"], "as in another trace with the UUID")
				return
			}
			b.await("packets", func() bool { return b.metric("receiver_lttng_live_packets") == 4 })
			clock.move(2 * time.Second)
			b.awaitSaid("The session was closed")
			b.shutdown()
			assert.Zero(t, b.said.FilterMessage(dropped).Len())
			var names []string
			for _, record := range b.records() {
				names = append(names, record.EventName())
			}
			assert.Equal(t, []string{"shop:sold", "shop:sold", "shop:sold", "shop:bought"}, names)
		})
	}
}
