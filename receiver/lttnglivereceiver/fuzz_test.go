// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/lttnglive"
)

// edited is a connection on which bytes that are sent are changed: each edit is the
// offset of one, in 16 bits, and what to change in it.
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

// hostile is a session of one stream with one packet, whatever they are.
func hostile(metadata, packet []byte, begin, end uint64) *lttnglive.Recording {
	const path = "ust/pid/shop-42"
	bits := uint64(len(packet)) * 8
	return &lttnglive.Recording{
		Session: lttnglive.Session{ID: 1, LiveTimer: 1, Host: "vm", Name: "hostile"}, End: time.Second,
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

// FuzzReceiver reads a session with any metadata and any packet, from a relay daemon that
// sends any bytes wrong. Whatever comes, the receiver goes on until it is shut down, and
// what it hands on is whole: each batch can be unpacked, no number is in two of them.
func FuzzReceiver(f *testing.F) {
	for _, s := range []*synthetic{toldAgain("first", 0x1000), toldAgain("second", 0x5000)} {
		for i := range s.streams[0].packets {
			p := &s.streams[0].packets[i]
			f.Add(s.metadata(), s.packetBytes(0, p), p.begin, p.end, []byte(nil))
			f.Add(s.metadata(), s.packetBytes(0, p), p.begin, p.end, []byte{0, 30, 1, 1, 200, 0x80})
		}
	}
	for _, r := range captured(f, "jul1", "julctx", "cygok", "tp1") {
		var metadata []byte
		for _, s := range r.Streams {
			for _, piece := range s.Pieces {
				metadata = append(metadata, piece.Data...)
			}
		}
		for _, s := range r.Streams {
			if len(s.Steps) == 0 || s.Steps[0].Index.Status != lttnglive.IndexOK {
				continue
			}
			index := s.Steps[0].Index
			packet := make([]byte, index.ContentLength())
			if _, err := s.Packets.ReadAt(packet, int64(index.Offset)); err != nil {
				f.Fatal(err)
			}
			f.Add(metadata, packet, index.TimestampBegin, index.TimestampEnd, []byte(nil))
		}
	}
	f.Fuzz(func(t *testing.T, metadata, packet []byte, begin, end uint64, edits []byte) {
		r := newRelay(t, []*lttnglive.Recording{hostile(metadata, packet, begin, end)}, lttnglive.RelayOptions{Timeout: time.Second})
		r.mu.Lock()
		r.wrap = func(c net.Conn) net.Conn { return &edited{Conn: c, edits: edits} }
		r.mu.Unlock()
		b := newBed(t, reading(r.address()), func(_ *bed, c *Config) {
			c.RequestTimeout = 20 * time.Millisecond
			c.Limits.MaxPacketBytes, c.Limits.MaxMetadataBytes = 1<<20, 1<<17
			c.CallRules = []CallRule{{Entry: "shop:begin", Exit: "shop:end", NameField: "a", KeyField: "b"}}
		})
		// Until it was read, could not be read, or there was time for either.
		const rounds = 20
		b.await("the end of the session, or of tries to read it", func() bool {
			told := b.said.Filter(func(e observer.LoggedEntry) bool { return e.Level >= zapcore.WarnLevel }).Len()
			return told > 1 || b.metric("receiver_lttng_live_connection_failures") > 2 || b.said.FilterMessage("The session was closed").Len() > 0 || b.receiver.watcher.rounds.Load() > rounds
		})
		b.shutdown()
		for _, stream := range b.pipeline.streams(t) {
			assert.Empty(t, stream.twice, "numbers that are in two batches")
		}
	})
}
