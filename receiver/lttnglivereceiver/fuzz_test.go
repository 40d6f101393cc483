// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"bytes"
	"encoding/binary"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
)

// edited is a connection that changes sent bytes: each edit is the offset of one byte, in 16 bits, and a mask for it.
type edited struct {
	net.Conn
	edits []byte
	sent  int
}

func (e *edited) Write(b []byte) (int, error) {
	changed := bytes.Clone(b)
	for edits := e.edits; len(edits) >= 3; edits = edits[3:] {
		if at := int(binary.BigEndian.Uint16(edits)) - e.sent; at >= 0 && at < len(changed) {
			changed[at] ^= edits[2]
		}
	}
	e.sent += len(b)
	return e.Conn.Write(changed)
}

// hostile returns a session of one stream with one packet, which may be invalid.
func hostile(metadata, packet []byte, begin, end uint64) *lttnglive.Recording {
	const path = "ust/uid/0/64-bit"
	bits := uint64(len(packet)) * 8
	return &lttnglive.Recording{
		Session: lttnglive.Session{ID: 1, LiveTimer: time.Millisecond, Host: "vm", Name: "hostile"}, End: time.Second,
		Streams: []lttnglive.RecordedStream{
			{
				Stream: lttnglive.Stream{ID: 1, TraceID: 1, Metadata: true, Path: path, Channel: "metadata"}, End: time.Second,
				Pieces: []lttnglive.MetadataPiece{{Data: metadata}},
			},
			{
				Stream: lttnglive.Stream{ID: 2, TraceID: 1, Path: path, Channel: "channel0_0"}, End: time.Second,
				Packets: bytes.NewReader(packet),
				Steps: []lttnglive.Step{{Index: lttnglive.Index{
					PacketSize: bits, ContentSize: bits, TimestampBegin: begin, TimestampEnd: end, Status: lttnglive.IndexOK,
				}}},
			},
		},
	}
}

// hostileSeed is a seed of FuzzReceiver.
type hostileSeed struct {
	metadata, packet []byte
	begin, end       uint64
}

func hostileSeeds(t testing.TB) (seeds []hostileSeed) {
	t.Helper()
	for _, s := range []*synthetic.Session{twoDumps("first", 0x1000), twoDumps("second", 0x5000)} {
		for i := range s.Streams[0].Packets {
			p := &s.Streams[0].Packets[i]
			seeds = append(seeds, hostileSeed{s.Metadata(), s.PacketBytes(0, p), p.Begin, p.End})
		}
	}
	kernel := newKernelSession("kernel", 1)
	for _, h := range simulate(1, 300).events {
		kernel.Streams[0].Event(uint64(h.at*tick), h.class, h.values()...)
	}
	packet := &kernel.Streams[0].Packets[0]
	seeds = append(seeds, hostileSeed{kernel.Metadata(), kernel.PacketBytes(0, packet), packet.Begin, packet.End})
	for _, r := range captured(t, "jul1", "julctx", "cygok", "tp1") {
		var metadata []byte
		for _, s := range r.Streams {
			for _, piece := range s.Pieces {
				metadata = append(metadata, piece.Data...)
			}
		}
		for _, s := range r.Streams {
			// The first packet with events, because tracers also send empty ones.
			i := slices.IndexFunc(s.Steps, func(step lttnglive.Step) bool {
				return step.Index.Status == lttnglive.IndexOK && step.Index.ContentLength() > 200
			})
			if i < 0 {
				continue
			}
			index := s.Steps[i].Index
			packet := make([]byte, index.ContentLength())
			_, err := s.Packets.ReadAt(packet, int64(index.Offset))
			require.NoError(t, err)
			seeds = append(seeds, hostileSeed{metadata, packet, index.TimestampBegin, index.TimestampEnd})
		}
	}
	return seeds
}

// readHostile reads a hostile session until it was read, failed, or the time for both is over. Missing replies end
// after the timeout. The receiver still runs when it returns.
func readHostile(t *testing.T, s hostileSeed, edits []byte, timeout time.Duration) *bed {
	t.Helper()
	r := newRelay(t, []*lttnglive.Recording{hostile(s.metadata, s.packet, s.begin, s.end)}, lttnglive.RelayOptions{Timeout: time.Second})
	r.mu.Lock()
	r.wrap = func(c net.Conn) net.Conn { return &edited{Conn: c, edits: edits} }
	r.mu.Unlock()
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) {
		c.RequestTimeout = timeout
		c.Reconnect = RetryConfig{InitialInterval: time.Millisecond, MaxInterval: 2 * time.Millisecond}
		c.Limits.MaxPacketBytes, c.Limits.MaxMetadataBytes = 1<<20, 1<<17
		c.CallRules = append(shippedRules(t), CallRule{Entry: event("shop:begin"), Exit: event("shop:end"), NameField: "a", KeyFields: []string{"b"}})
	})
	const rounds = 10
	b.await("the end of the session, or of tries to read it", func() bool {
		told := b.said.Filter(func(e observer.LoggedEntry) bool { return e.Level >= zapcore.WarnLevel }).Len()
		return told > 1 || b.metric("receiver_lttng_live_connection_failures") > 2 || b.said.FilterMessage("The session was closed").Len() > 0 || b.receiver.watcher.rounds.Load() > rounds
	})
	return b
}

// FuzzReceiver reads a session with any metadata and any packet, from a relay daemon that changes any sent bytes. The
// receiver runs until its shutdown, and its deliveries are valid: each batch can be unpacked, and no sequence number
// is in two of them.
func FuzzReceiver(f *testing.F) {
	for _, s := range hostileSeeds(f) {
		f.Add(s.metadata, s.packet, s.begin, s.end, []byte(nil))
		f.Add(s.metadata, s.packet, s.begin, s.end, []byte{0, 30, 1, 1, 200, 0x80})
	}
	f.Fuzz(func(t *testing.T, metadata, packet []byte, begin, end uint64, edits []byte) {
		b := readHostile(t, hostileSeed{metadata, packet, begin, end}, edits, 50*time.Millisecond)
		b.shutdown()
		for _, stream := range b.pipeline.streams(t) {
			assert.Empty(t, stream.twice, "numbers that are in two batches")
		}
	})
}

// Otherwise the fuzz test would find nothing.
func TestTheSeedsOfTheFuzzTestAreRead(t *testing.T) {
	for i, s := range hostileSeeds(t) {
		b := readHostile(t, s, nil, patience)
		b.awaitSaid("The session was closed")
		assert.Positive(t, b.metric("receiver_lttng_live_events"), "seed %d", i)
		b.shutdown()
	}
}
