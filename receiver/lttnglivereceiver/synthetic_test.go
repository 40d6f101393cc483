// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// Traces that a test makes, of events that captures don't have. Texts and numbers of
// 64 bits are all the types there are.

// synthetic is a session with one trace.
type synthetic struct {
	host, name  string
	uuid        [16]byte
	environment string
	// anonymous is a trace that doesn't tell its UUID.
	anonymous bool
	// contexts are those of all events: "vpid" and so on are numbers, names that end
	// with $ are texts.
	contexts []string
	classes  []syntheticClass
	streams  []*syntheticStream
}

// syntheticClass is an event class; names of fields that end with $ are texts.
type syntheticClass struct {
	name   string
	fields []string
}

type syntheticStream struct {
	of      *synthetic
	path    string
	packets []syntheticPacket
}

type syntheticPacket struct {
	begin, end          uint64
	sequence, discarded uint64
	content             []byte
	// room is how many bits the packet has left behind its content.
	room uint64
}

func isText(name string) bool { return strings.HasSuffix(name, "$") }

func newSynthetic(name string, contexts ...string) *synthetic {
	s := &synthetic{host: "vm", name: name, contexts: contexts}
	copy(s.uuid[:], name)
	return s
}

// class declares an event class.
func (s *synthetic) class(name string, fields ...string) {
	s.classes = append(s.classes, syntheticClass{name, fields})
}

// stream adds a stream.
func (s *synthetic) stream() *syntheticStream {
	stream := &syntheticStream{of: s, path: "ust/uid/0/64-bit"}
	s.streams = append(s.streams, stream)
	return stream
}

// declare declares fields in the metadata language.
func declare(names []string) string {
	var b strings.Builder
	for _, name := range names {
		if isText(name) {
			fmt.Fprintf(&b, "string _%s; ", strings.TrimSuffix(name, "$"))
		} else {
			fmt.Fprintf(&b, "i64 _%s; ", name)
		}
	}
	return b.String()
}

// metadata is the metadata of the trace.
func (s *synthetic) metadata() []byte {
	var b strings.Builder
	id, field := fmt.Sprintf("uuid = %q; ", uuidText(s.uuid)), "uuid"
	if s.anonymous {
		id, field = "", "room"
	}
	fmt.Fprintf(&b, `/* CTF 1.8 */
typealias integer { size = 64; align = 8; signed = true; } := i64;
typealias integer { size = 64; align = 8; signed = false; } := u64;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := stamp;
trace { major = 1; minor = 8; %sbyte_order = le;
  packet.header := struct { integer { size = 32; align = 8; } magic; integer { size = 8; align = 8; } %s[16]; u64 stream_id; u64 stream_instance_id; }; };
env { hostname = "%s"; %s };
clock { name = "monotonic"; freq = 1000000000; offset = 1700000000000000000; };
stream { id = 0;
  packet.context := struct { stamp timestamp_begin; stamp timestamp_end; u64 content_size; u64 packet_size; u64 packet_seq_num; u64 events_discarded; };
  event.header := struct { u64 id; stamp timestamp; };
  event.context := struct { %s}; };
`, id, field, s.host, s.environment, declare(s.contexts))
	for i, c := range s.classes {
		fmt.Fprintf(&b, "event { name = \"%s\"; id = %d; stream_id = 0; loglevel = 13; fields := struct { %s}; };\n", c.name, i, declare(c.fields))
	}
	return []byte(b.String())
}

// packet begins a packet at a time in nanoseconds.
func (s *syntheticStream) packet(begin uint64) *syntheticStream {
	p := syntheticPacket{begin: begin, end: begin, sequence: uint64(len(s.packets))}
	if n := len(s.packets); n > 0 {
		p.sequence, p.discarded = s.packets[n-1].sequence+1, s.packets[n-1].discarded
	}
	s.packets = append(s.packets, p)
	return s
}

// event adds an event to the last packet: the values of its contexts and fields, in
// their order.
func (s *syntheticStream) event(at uint64, name string, values ...any) *syntheticStream {
	p := &s.packets[len(s.packets)-1]
	for id, c := range s.of.classes {
		if c.name != name {
			continue
		}
		if n := len(s.of.contexts) + len(c.fields); n != len(values) {
			panic(fmt.Sprintf("%s has %d values, not %d", name, n, len(values)))
		}
		p.content = binary.LittleEndian.AppendUint64(p.content, uint64(id))
		p.content = binary.LittleEndian.AppendUint64(p.content, at)
		for _, value := range values {
			switch v := value.(type) {
			case int:
				p.content = binary.LittleEndian.AppendUint64(p.content, uint64(v))
			case string:
				p.content = append(append(p.content, v...), 0)
			}
		}
		p.end = at
		return s
	}
	panic("there is no event " + name)
}

// packetBytes are the bytes of a packet of a stream.
func (s *synthetic) packetBytes(stream int, p *syntheticPacket) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xC1FC1FC1)
	b = append(b, s.uuid[:]...)
	b = le.AppendUint64(b, 0)
	b = le.AppendUint64(b, uint64(stream))
	const contextBytes = 6 * 8
	bits := uint64(len(b)+contextBytes+len(p.content)) * 8
	for _, n := range [...]uint64{p.begin, p.end, bits, bits + p.room, p.sequence, p.discarded} {
		b = le.AppendUint64(b, n)
	}
	return append(b, p.content...)
}

// inOneSession is a session with the traces of all, each in a folder of its own.
func inOneSession(name string, traces ...*synthetic) *lttnglive.Recording {
	all := &lttnglive.Recording{Session: lttnglive.Session{ID: 1, LiveTimer: 1000000, Host: "vm", Name: name}, End: time.Second}
	for i, s := range traces {
		for _, stream := range s.recording(uint64(i + 1)).Streams {
			stream.Path = fmt.Sprint("ust/uid/", i, "/64-bit")
			all.Streams = append(all.Streams, stream)
		}
	}
	return all
}

// recording is the session as a relay daemon serves it, closed when it was read.
func (s *synthetic) recording(id uint64) *lttnglive.Recording {
	r := &lttnglive.Recording{Session: lttnglive.Session{ID: id, LiveTimer: 1000000, Host: s.host, Name: s.name}, End: time.Second}
	path := "ust/uid/0/64-bit"
	if len(s.streams) > 0 {
		path = s.streams[0].path
	}
	r.Streams = append(r.Streams, lttnglive.RecordedStream{
		Stream: lttnglive.Stream{ID: 100*id + 99, TraceID: id, Metadata: true, Path: path, Channel: "metadata"},
		End:    time.Second,
		Pieces: []lttnglive.MetadataPiece{{Data: s.metadata()}},
	})
	for i, stream := range s.streams {
		recorded := lttnglive.RecordedStream{
			Stream: lttnglive.Stream{ID: 100*id + uint64(i), TraceID: id, Path: stream.path, Channel: fmt.Sprintf("channel0_%d", i)},
			End:    time.Second,
		}
		var data []byte
		for j := range stream.packets {
			p := &stream.packets[j]
			packet := s.packetBytes(i, p)
			recorded.Steps = append(recorded.Steps, lttnglive.Step{Index: lttnglive.Index{
				Offset: uint64(len(data)), PacketSize: uint64(len(packet))*8 + p.room, ContentSize: uint64(len(packet)) * 8,
				TimestampBegin: p.begin, TimestampEnd: p.end, EventsDiscarded: p.discarded, Status: lttnglive.IndexOK,
			}})
			data = append(data, packet...)
		}
		recorded.Packets = bytes.NewReader(data)
		r.Streams = append(r.Streams, recorded)
	}
	return r
}
