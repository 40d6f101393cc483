// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package synthetic makes small LTTng sessions for tests, with events that captures lack. Fields are texts or numbers
// of 64 bits.
package synthetic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/process"
)

// Session is a session with one trace.
type Session struct {
	Host, Name string
	// Environment is added to the metadata's environment.
	Environment string
	// Anonymous is set if the trace has no UUID.
	Anonymous bool
	// CTF2 is set if the metadata is that of CTF 2.
	CTF2 bool
	// Kernel is set if the trace is of the kernel. Its packets have the number of their CPU.
	Kernel  bool
	Streams []*Stream

	uuid [16]byte
	// contexts are the contexts of all events. Names that end with $ are texts, others are numbers.
	contexts []string
	classes  []eventClass
}

// eventClass is an event class. Fields with names that end with $ are texts.
type eventClass struct {
	name   string
	fields []string
}

// Stream is a stream of packets.
type Stream struct {
	// Path is the path of its trace.
	Path string
	// CPU is the CPU of its packets, if the trace is of the kernel.
	CPU     uint64
	Packets []Packet

	of *Session
}

// Packet is a packet with its index.
type Packet struct {
	Begin, End uint64
	// Sequence is the packet's number, Discarded the number of discarded events so far.
	Sequence, Discarded uint64
	Content             []byte
	// Room is the size of the padding after the content, in bits.
	Room uint64
}

func isText(name string) bool { return strings.HasSuffix(name, "$") }

// New returns a session without events. Each event has these contexts.
func New(name string, contexts ...string) *Session {
	s := &Session{Host: "vm", Name: name, contexts: contexts}
	copy(s.uuid[:], name)
	return s
}

// Class declares an event class.
func (s *Session) Class(name string, fields ...string) {
	s.classes = append(s.classes, eventClass{name, fields})
}

// Stream adds a stream.
func (s *Session) Stream() *Stream {
	stream := &Stream{of: s, Path: "ust/uid/0/64-bit"}
	s.Streams = append(s.Streams, stream)
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

// Metadata returns the metadata of the trace.
func (s *Session) Metadata() []byte {
	var b strings.Builder
	id, field := fmt.Sprintf("uuid = %q; ", process.UUIDText(s.uuid)), "uuid"
	environment, cpu := s.Environment, ""
	if s.Kernel {
		environment, cpu = environment+` domain = "kernel";`, "u64 cpu_id; "
	}
	if s.Anonymous {
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
  packet.context := struct { stamp timestamp_begin; stamp timestamp_end; u64 content_size; u64 packet_size; u64 packet_seq_num; u64 events_discarded; %s};
  event.header := struct { u64 id; stamp timestamp; };
  event.context := struct { %s}; };
`, id, field, s.Host, environment, cpu, declare(s.contexts))
	for i, c := range s.classes {
		fmt.Fprintf(&b, "event { name = \"%s\"; id = %d; stream_id = 0; loglevel = 13; fields := struct { %s}; };\n", c.name, i, declare(c.fields))
	}
	return []byte(b.String())
}

// entry is an entry of the environment in the metadata language.
var entry = regexp.MustCompile(`(\w+) = ("[^"]*"|\d+);`)

// MetadataCTF2 returns the metadata of the trace in CTF 2. The trace is of programs, and has a UUID.
func (s *Session) MetadataCTF2() []byte {
	number := func(name, roles string) string {
		return fmt.Sprintf(`{"name": %q, "field-class": {"type": "fixed-length-unsigned-integer", "length": 64, "byte-order": "little-endian", "alignment": 8, "roles": [%s]}}`, name, roles)
	}
	structure := func(members ...string) string {
		return `{"type": "structure", "member-classes": [` + strings.Join(members, ", ") + `]}`
	}
	fields := func(names []string) string {
		members := make([]string, len(names))
		for i, name := range names {
			if text, ok := strings.CutSuffix(name, "$"); ok {
				members[i] = fmt.Sprintf(`{"name": %q, "field-class": {"type": "null-terminated-string"}}`, text)
				continue
			}
			members[i] = fmt.Sprintf(`{"name": %q, "field-class": {"type": "fixed-length-signed-integer", "length": 64, "byte-order": "little-endian", "alignment": 8, "preferred-display-base": 10}}`, name)
		}
		return structure(members...)
	}
	environment := fmt.Sprintf(`"hostname": %q`, s.Host)
	for _, e := range entry.FindAllStringSubmatch(s.Environment, -1) {
		environment += fmt.Sprintf(`, %q: %s`, e[1], e[2])
	}
	fragments := []string{
		`{"type": "preamble", "version": 2, "uuid": ` + strings.ReplaceAll(fmt.Sprint(s.uuid), " ", ", ") + `}`,
		`{"type": "clock-class", "id": "c", "frequency": 1000000000, "origin": "unix-epoch", "offset-from-origin": {"seconds": 1700000000, "cycles": 0}}`,
		`{"type": "trace-class", "environment": {` + environment + `}, "packet-header-field-class": ` + structure(
			`{"name": "magic", "field-class": {"type": "fixed-length-unsigned-integer", "length": 32, "byte-order": "little-endian", "alignment": 8, "roles": ["packet-magic-number"]}}`,
			`{"name": "uuid", "field-class": {"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]}}`,
			number("stream", `"data-stream-class-id"`), number("instance", `"data-stream-id"`)) + `}`,
		`{"type": "data-stream-class", "id": 0, "default-clock-class-id": "c", "packet-context-field-class": ` + structure(
			number("begin", `"default-clock-timestamp"`), number("end", `"packet-end-default-clock-timestamp"`), number("content", `"packet-content-length"`),
			number("size", `"packet-total-length"`), number("number", `"packet-sequence-number"`), number("discarded", `"discarded-event-record-counter-snapshot"`)) +
			`, "event-record-header-field-class": ` + structure(number("id", `"event-record-class-id"`), number("time", `"default-clock-timestamp"`)) +
			`, "event-record-common-context-field-class": ` + fields(s.contexts) + `}`,
	}
	for i, c := range s.classes {
		fragments = append(fragments, fmt.Sprintf(`{"type": "event-record-class", "id": %d, "data-stream-class-id": 0, "name": %q, "payload-field-class": %s}`, i, c.name, fields(c.fields)))
	}
	return []byte("\x1e" + strings.Join(fragments, "\n\x1e") + "\n")
}

// Packet begins a packet at a time in nanoseconds.
func (s *Stream) Packet(begin uint64) *Stream {
	p := Packet{Begin: begin, End: begin, Sequence: uint64(len(s.Packets))}
	if n := len(s.Packets); n > 0 {
		p.Sequence, p.Discarded = s.Packets[n-1].Sequence+1, s.Packets[n-1].Discarded
	}
	s.Packets = append(s.Packets, p)
	return s
}

// Event adds an event to the last packet: the values of its contexts and fields, in order.
func (s *Stream) Event(at uint64, name string, values ...any) *Stream {
	p := &s.Packets[len(s.Packets)-1]
	for id, c := range s.of.classes {
		if c.name != name {
			continue
		}
		if n := len(s.of.contexts) + len(c.fields); n != len(values) {
			panic(fmt.Sprintf("%s has %d values, not %d", name, n, len(values)))
		}
		p.Content = binary.LittleEndian.AppendUint64(p.Content, uint64(id))
		p.Content = binary.LittleEndian.AppendUint64(p.Content, at)
		for _, value := range values {
			switch v := value.(type) {
			case int:
				p.Content = binary.LittleEndian.AppendUint64(p.Content, uint64(v))
			case string:
				p.Content = append(append(p.Content, v...), 0)
			}
		}
		p.End = at
		return s
	}
	panic("there is no event " + name)
}

// PacketBytes returns the bytes of a packet of a stream.
func (s *Session) PacketBytes(stream int, p *Packet) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xC1FC1FC1)
	b = append(b, s.uuid[:]...)
	b = le.AppendUint64(b, 0)
	b = le.AppendUint64(b, uint64(stream))
	context := []uint64{p.Begin, p.End, 0, 0, p.Sequence, p.Discarded}
	if s.Kernel {
		context = append(context, s.Streams[stream].CPU)
	}
	bits := uint64(len(b)+8*len(context)+len(p.Content)) * 8
	context[2], context[3] = bits, bits+p.Room
	for _, n := range context {
		b = le.AppendUint64(b, n)
	}
	return append(b, p.Content...)
}

// InOneSession returns a session with all these traces, each in its own directory.
func InOneSession(name string, traces ...*Session) *lttnglive.Recording {
	all := &lttnglive.Recording{Session: lttnglive.Session{ID: 1, LiveTimer: 1000000, Host: "vm", Name: name}, End: time.Second}
	for i, s := range traces {
		one := s.Recording(uint64(i + 1))
		all.Session.Format = one.Session.Format
		for _, stream := range one.Streams {
			stream.Path = fmt.Sprint("ust/uid/", i, "/64-bit")
			all.Streams = append(all.Streams, stream)
		}
	}
	return all
}

// Recording returns the session for a relay daemon. The session is closed after it was read.
func (s *Session) Recording(id uint64) *lttnglive.Recording {
	r := &lttnglive.Recording{Session: lttnglive.Session{ID: id, LiveTimer: 1000000, Host: s.Host, Name: s.Name}, End: time.Second}
	metadata := s.Metadata
	if s.CTF2 {
		r.Session.Format, metadata = lttnglive.TraceFormatCTF2, s.MetadataCTF2
	}
	path := "ust/uid/0/64-bit"
	if len(s.Streams) > 0 {
		path = s.Streams[0].Path
	}
	r.Streams = append(r.Streams, lttnglive.RecordedStream{
		Stream: lttnglive.Stream{ID: 100*id + 99, TraceID: id, Metadata: true, Path: path, Channel: "metadata"},
		End:    time.Second,
		Pieces: []lttnglive.MetadataPiece{{Data: metadata()}},
	})
	for i, stream := range s.Streams {
		recorded := lttnglive.RecordedStream{
			Stream: lttnglive.Stream{ID: 100*id + uint64(i), TraceID: id, Path: stream.Path, Channel: fmt.Sprintf("channel0_%d", i)},
			End:    time.Second,
		}
		var data []byte
		for j := range stream.Packets {
			p := &stream.Packets[j]
			packet := s.PacketBytes(i, p)
			recorded.Steps = append(recorded.Steps, lttnglive.Step{Index: lttnglive.Index{
				Offset: uint64(len(data)), PacketSize: uint64(len(packet))*8 + p.Room, ContentSize: uint64(len(packet)) * 8,
				TimestampBegin: p.Begin, TimestampEnd: p.End, EventsDiscarded: p.Discarded, Status: lttnglive.IndexOK,
			}})
			data = append(data, packet...)
		}
		recorded.Packets = bytes.NewReader(data)
		r.Streams = append(r.Streams, recorded)
	}
	return r
}
