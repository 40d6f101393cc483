// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
)

// dropped is the log line for a session that cannot be read.
const dropped = "The session is dropped for now: its data cannot be read"

// spoiled returns wrong bytes for one packet.
type spoiled struct {
	io.ReaderAt
	at int64
}

func (s spoiled) ReadAt(b []byte, at int64) (int, error) {
	n, err := s.ReaderAt.ReadAt(b, at)
	if i := s.at - at; i >= 0 && i < int64(n) {
		b[i] ^= 0xff
	}
	return n, err
}

// spoil changes the byte at an offset of the n-th packet of a stream.
func spoil(t testing.TB, r *lttnglive.Recording, stream, n int, offset int64) *lttnglive.Recording {
	t.Helper()
	packets := 0
	for i := range r.Streams {
		s := &r.Streams[i]
		if s.Metadata || len(s.Steps) == 0 {
			continue
		}
		if stream > 0 {
			stream--
			continue
		}
		for _, step := range s.Steps {
			if step.Index.Status != lttnglive.IndexOK {
				continue
			}
			if packets == n {
				s.Packets = spoiled{s.Packets, int64(step.Index.Offset) + offset}
				return r
			}
			packets++
		}
	}
	require.Fail(t, "there is no such packet")
	return nil
}

func TestAnUnreadablePacketAffectsNoOtherPacketAndNoOtherSession(t *testing.T) {
	cases := map[string]struct {
		offset int64
		error  string
	}{
		"its magic":                 {0, "expected magic 0xc1fc1fc1"},
		"the ID of its first event": {85, "expected the ID of an event class"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			recordings := captured(t, "cyg1", "jul1")
			spoil(t, recordings[0], 0, 5, c.offset)
			r := newRelay(t, recordings, lttnglive.RelayOptions{Restart: true})
			b := newBed(t, reading(r.address()))
			said := b.awaitSaid(dropped)
			assert.Equal(t, zapcore.ErrorLevel, said.Level)
			assert.Equal(t, "vm/cyg1", said.ContextMap()["session"])
			assert.Equal(t, session.BadPacket, said.ContextMap()["what"])
			assert.Contains(t, said.ContextMap()["error"], c.error)
			b.await("the rest", func() bool { return b.said.FilterMessage("The session was closed").Len() == 2 })
			b.shutdown()
			counts := map[string]int{}
			for _, record := range b.records() {
				counts[textOf(record.resource.Attributes(), process.AttributeSession)]++
			}
			assert.Equal(t, 282, counts["jul1"])
			assert.Greater(t, counts["cyg1"], 7000)
			assert.Less(t, counts["cyg1"], 7886)
			assert.EqualValues(t, 1, b.metric("receiver_lttng_live_bad_data"))
			for _, s := range b.pipeline.streams(t) {
				assert.Empty(t, s.twice)
				s.inOrder(t)
			}
		})
	}
}

func TestUnreadableMetadataIsReadAgainLater(t *testing.T) {
	recordings := captured(t, "cygok", "jul1")
	for i := range recordings[0].Streams {
		s := &recordings[0].Streams[i]
		for j := range s.Pieces {
			s.Pieces[j].Data = bytes.Replace(s.Pieces[j].Data, []byte("packet.header"), []byte("packet.hea?er"), 1)
		}
	}
	r := newRelay(t, recordings, lttnglive.RelayOptions{Restart: true})
	b := newBed(t, reading(r.address()))
	said := b.awaitSaid(dropped)
	assert.Equal(t, session.BadMetadata, said.ContextMap()["what"])
	assert.Regexp(t, `line \d+, column \d+`, said.ContextMap()["error"])
	b.await("tries", func() bool { return b.metric("receiver_lttng_live_bad_data") >= 3 })
	b.awaitRecords(282)
	b.shutdown()
	assert.EqualValues(t, 1, said.ContextMap()["times_since_last_line"])
	assert.Equal(t, 1, b.said.FilterMessage(dropped).Len(), "it is logged rarely")
	assert.LessOrEqual(t, b.saidAloud("The session is attached again"), 1)
}

// A session may be dropped again and again, with good packets in between. This is logged rarely.
func TestManyBadPacketsAreLoggedRarely(t *testing.T) {
	recording := captured(t, "cyg1")[0]
	for n := range 5 {
		spoil(t, recording, 0, 3+2*n, 0)
	}
	r := newRelay(t, []*lttnglive.Recording{recording}, lttnglive.RelayOptions{Restart: true})
	b := newBed(t, reading(r.address()))
	b.awaitSaid("The session was closed")
	b.shutdown()
	assert.EqualValues(t, 5, b.metric("receiver_lttng_live_bad_data"))
	for _, line := range []string{dropped, "A packet is skipped"} {
		assert.Equal(t, 1, b.saidAloud(line), line)
	}
	// The relay daemon may not have noticed the end of the previous connection. Each log line about that has one
	// more.
	refused := b.saidAloud("The session cannot be attached: the receiver tries again")
	again := b.saidAloud("The session is attached again")
	assert.Positive(t, again)
	assert.LessOrEqual(t, again, 1+refused)
}

func TestMetadataOfASessionIsBoundedOverAllItsTraces(t *testing.T) {
	recording := (&crowd{traces: 90, streams: 1, packets: 1}).recording()
	recording.Session.ID += 1000
	for i := range recording.Streams {
		recording.Streams[i].ID += 100_000
	}
	r := newRelay(t, append(captured(t, "jul1"), recording), lttnglive.RelayOptions{Restart: true})
	one := len(synthetic.New("crowd 00000000").Metadata())
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.Limits.MaxSessionMetadataBytes = 64 * kib })
	require.Greater(t, 90*one, 64*kib, "the metadata of all traces")
	said := b.awaitSaid(dropped)
	assert.Equal(t, "vm/crowd", said.ContextMap()["session"])
	assert.Equal(t, session.BadMetadata, said.ContextMap()["what"])
	assert.Contains(t, said.ContextMap()["error"], "expected at most 65536 bytes of metadata of all 90 traces of the session, with the classes made of it (limits.max_session_metadata_bytes), got more")
	b.await("tries", func() bool { return b.metric("receiver_lttng_live_bad_data") >= 3 })
	b.awaitRecords(282)
}

// TestTheMemoryOfMetadataIsBoundedOverAllTraces: a few hundred bytes can declare a hundred thousand fields.
func TestTheMemoryOfMetadataIsBoundedOverAllTraces(t *testing.T) {
	const traces = 20
	types := "}; struct s0 { integer { size = 8; } a; }; "
	for i := range 13 {
		types += fmt.Sprintf("struct s%d { struct s%d a; struct s%d b; }; ", i+1, i, i)
	}
	var all []*synthetic.Session
	for i := range traces {
		s := synthetic.New(fmt.Sprintf("large %08d", i))
		s.Environment = types + "struct rest { integer { size = 8; } a;" // the following text closes it
		s.Class("large", "a; struct s13 b")
		s.Stream()
		all = append(all, s)
	}
	require.Less(t, traces*len(all[0].Metadata()), 64*kib, "the metadata itself")
	r := newRelay(t, []*lttnglive.Recording{synthetic.InOneSession("large", all...)}, lttnglive.RelayOptions{Restart: true})
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.Limits.MaxSessionMetadataBytes = 16 * mib })
	assert.Contains(t, b.awaitSaid(dropped).ContextMap()["error"], "expected at most 16777216 bytes of metadata of all 20 traces of the session, with the classes made of it (limits.max_session_metadata_bytes), got more")
}

// stalling stops writing after a number of bytes, until the other side closes the connection.
type stalling struct {
	net.Conn
	left *atomic.Int64
}

func (s stalling) Write(b []byte) (int, error) {
	left := s.left.Add(-int64(len(b)))
	if left >= 0 {
		return s.Conn.Write(b)
	}
	if n := int64(len(b)) + left; n > 0 {
		if _, err := s.Conn.Write(b[:n]); err != nil {
			return 0, err
		}
	}
	_, _ = io.Copy(io.Discard, s.Conn)
	return 0, net.ErrClosed
}

func TestTheReceiverReconnectsAfterAStalledReply(t *testing.T) {
	r := newRelay(t, captured(t, "cygok"), lttnglive.RelayOptions{Restart: true})
	stalls := 0
	r.mu.Lock()
	r.wrap = func(c net.Conn) net.Conn {
		// The first connection lists sessions. Each of the next three stalls later than the one before.
		stalls++
		left := new(atomic.Int64)
		left.Store(1 << 40)
		if stalls > 1 && stalls < 5 {
			left.Store(int64(4000 * stalls))
		}
		return stalling{c, left}
	}
	r.mu.Unlock()
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.RequestTimeout = 100 * time.Millisecond })
	records := b.awaitRecords(245)
	assert.Len(t, records, 245)
	assert.GreaterOrEqual(t, b.metric("receiver_lttng_live_connection_failures"), int64(3))
	b.await("call events", func() bool { return b.pipeline.events() == 218 })
	assert.Empty(t, b.pipeline.only(t).twice)
}

func TestAStreamAnnouncedTwiceOnOneConnectionViolatesTheProtocol(t *testing.T) {
	s := synthetic.New("twice", "vpid", "vtid")
	s.Class("shop:sold", "number")
	s.Stream().Packet(10).Event(10, "shop:sold", 7, 7, 1)
	s.Stream().Packet(11).Event(11, "shop:sold", 7, 7, 2)
	recording := s.Recording(1)
	recording.Streams[2].Channel = recording.Streams[1].Channel
	for name, at := range map[string]time.Duration{"together": 0, "later": time.Hour} {
		t.Run(name, func(t *testing.T) {
			recording.Streams[2].At, recording.End = at, 2*time.Hour
			for i := range recording.Streams {
				recording.Streams[i].End = recording.End
			}
			var clock handClock
			r := newRelay(t, []*lttnglive.Recording{recording}, lttnglive.RelayOptions{Clock: clock.read})
			b := newBed(t, reading(r.address()))
			if at > 0 {
				b.awaitRecords(1)
				clock.move(at)
			}
			said := b.awaitSaid(dropped)
			assert.Equal(t, session.BadProtocol, said.ContextMap()["what"])
			assert.Contains(t, said.ContextMap()["error"], "stream ust/uid/0/64-bit/channel0_0: expected one stream of that path and channel, got the IDs 100 and 101")
		})
	}
}
