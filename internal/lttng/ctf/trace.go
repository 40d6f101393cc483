// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"bytes"
	"fmt"

	"github.com/callbraid/callbraid/internal/lttng/ctf/ctf2"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
	"github.com/callbraid/callbraid/internal/lttng/ctf/tsdl"
)

// Trace is the metadata of a CTF trace so far, compiled. One goroutine at a time may use a Trace and its Readers.
type Trace struct {
	meta   metadata.Trace
	unwrap unwrapper
	// text is metadata whose language is not known yet. Afterwards it is nil.
	text   []byte
	parser parser
	// length is the length of the metadata in bytes.
	length int
	// err is the first error. Append accepts no metadata after it.
	err error

	// knownStreams and knownEvents count the stream and event declarations of meta that were processed.
	knownStreams, knownEvents int
	// waiting are events whose stream class is not known yet.
	waiting []*metadata.Event
	clocks  map[string]*Clock
	header  *Field
	// headerOf is the declaration of header. In CTF 2 it may follow the preamble.
	headerOf *metadata.Struct
	// headerSlots is the first slot after those of the packet header, headerEnd is its end.
	headerSlots uint32
	headerEnd   position
	headerProg  program
	streams     map[uint64]*StreamClass
	classes     []*StreamClass
	// events is the number of event classes.
	events int
	worked int
	// labels are the label tables of enumerations, by type.
	labels map[*metadata.Integer]*selector
}

// parser reads one of the languages of metadata.
type parser interface {
	Append(text []byte) error
	Pending() int
}

// NewTrace returns a trace without metadata.
func NewTrace() *Trace {
	return &Trace{clocks: map[string]*Clock{}, streams: map[uint64]*StreamClass{}}
}

// Append reads metadata, in packets or plain. It continues the previous bytes and may end anywhere. After Append
// returns, its declarations are known. After an error, which contains the position, the trace accepts no more
// metadata. Packets of classes that are known already can still be read.
func (t *Trace) Append(b []byte) error {
	for t.err == nil {
		n := min(len(b), appendedBytes)
		t.err = t.append(b[:n])
		if b = b[n:]; len(b) == 0 {
			break
		}
	}
	return t.err
}

// CostOfReading returns the approximate memory of Append while it reads these bytes.
func (t *Trace) CostOfReading(b []byte) int {
	if t.isJSON() || t.parser == nil && bytes.HasPrefix(b, []byte{ctf2.RecordSeparator}) {
		return bytesOfReadingJSON * len(b)
	}
	return bytesOfReading * len(b)
}

// maxLength returns the maximum length of the metadata in its language.
func (t *Trace) maxLength() int {
	if t.isJSON() {
		return MaxMetadataBytes
	}
	return maxMetadataBytes18
}

// isJSON reports whether the metadata is CTF 2, as far as it is known.
func (t *Trace) isJSON() bool {
	_, is := t.parser.(*ctf2.Parser)
	return is
}

func (t *Trace) append(b []byte) error {
	t.length += len(b)
	if most := t.maxLength(); t.length > most {
		return fmt.Errorf("expected metadata of at most %d bytes, got more", most)
	}
	text, err := t.unwrap.append(b)
	if err != nil {
		return err
	}
	if t.parser == nil {
		t.text = append(t.text, text...)
		if !t.choose(text) {
			return nil
		}
		text, t.text = t.text, nil
	}
	if err := t.parser.Append(text); err != nil {
		return err
	}
	return t.classify()
}

// choose detects the language from the first byte that is not blank. All text before is blank.
func (t *Trace) choose(text []byte) bool {
	switch rest := bytes.TrimLeft(text, " \t\r\n"); {
	case len(rest) == 0:
		return false
	case rest[0] == ctf2.RecordSeparator:
		t.parser = ctf2.NewParser(&t.meta)
	default:
		t.parser = tsdl.NewParser(&t.meta)
	}
	return true
}

// Incomplete returns the number of bytes of metadata that wait for more, because a packet or a declaration has not
// ended. White space and comments at the end count.
func (t *Trace) Incomplete() int {
	n := len(t.unwrap.rest) + len(t.text)
	if t.parser != nil {
		n += t.parser.Pending()
	}
	return n
}

// Metadata returns the declarations. Callers must not change it. It grows with Append.
func (t *Trace) Metadata() *metadata.Trace { return &t.meta }

// StreamClasses returns the known stream classes in the order of their declaration.
func (t *Trace) StreamClasses() []*StreamClass { return t.classes }

// Size returns the approximate memory of the trace in bytes: declarations in proportion to the metadata, and the
// classes made of these. A few bytes can declare many fields.
func (t *Trace) Size() int {
	declared := t.length * declaredBytes
	if t.isJSON() {
		declared = t.length * declaredBytesJSON / 2
	}
	return declared + t.worked*workBytes
}

// EventClasses returns the number of known event classes. Their indexes are lower.
func (t *Trace) EventClasses() int { return t.events }

// Env returns an entry of the environment as text, or "".
func (t *Trace) Env(name string) string {
	for _, e := range t.meta.Env {
		if e.Name == name {
			if e.IsNumber {
				return e.Number.String()
			}
			return e.Text
		}
	}
	return ""
}

// classify compiles the new classes.
func (t *Trace) classify() error {
	if !t.meta.Declared {
		return nil
	}
	if err := t.compileHeader(); err != nil {
		return err
	}
	for _, c := range t.meta.Clocks {
		if t.clocks[c.Name] == nil {
			t.clocks[c.Name] = newClock(c)
		}
	}
	if t.knownStreams == len(t.meta.Streams) && t.knownEvents == len(t.meta.Events) {
		return nil
	}
	for ; t.knownStreams < len(t.meta.Streams); t.knownStreams++ {
		if err := t.addStream(t.meta.Streams[t.knownStreams]); err != nil {
			return err
		}
	}
	t.waiting = append(t.waiting, t.meta.Events[t.knownEvents:]...)
	t.knownEvents = len(t.meta.Events)
	return t.addEvents()
}

// compileHeader compiles the packet header once it is known.
func (t *Trace) compileHeader() error {
	if t.header != nil && t.headerOf == t.meta.PacketHeader {
		return nil
	}
	t.headerOf = t.meta.PacketHeader
	var err error
	if t.header, t.headerSlots, err = t.build(metadata.PacketHeader, t.meta.PacketHeader, 0); err != nil {
		return err
	}
	if err := checkPacketSlots(t.headerSlots); err != nil {
		return err
	}
	known := scopes{metadata.PacketHeader: t.header}
	if err := known.resolve(t.header); err != nil {
		return err
	}
	t.headerProg, t.headerEnd, err = t.compile(packetBegin, true, t.header)
	return err
}

// addEvents compiles the events whose stream class is known. The others wait.
func (t *Trace) addEvents() error {
	waiting := t.waiting[:0]
	for _, e := range t.waiting {
		stream := t.streamOf(e)
		if stream == nil {
			waiting = append(waiting, e)
			continue
		}
		if err := t.addEvent(stream, e); err != nil {
			return fmt.Errorf("event class %d (%q) of stream class %d: %w", e.ID, e.Name, stream.ID, err)
		}
	}
	clear(t.waiting[len(waiting):])
	t.waiting = waiting
	return nil
}

// streamOf returns the stream class of an event, or nil if it is not known. An event without a stream ID belongs to
// the only class, if there is only one.
func (t *Trace) streamOf(e *metadata.Event) *StreamClass {
	if !e.HasStreamID && len(t.classes) == 1 {
		return t.classes[0]
	}
	return t.streams[e.StreamID]
}

// streamClass returns the stream class of a packet with or without an ID. Metadata without stream classes implies
// one, whose packets and events have only their fields.
func (t *Trace) streamClass(id uint64, hasID bool) (*StreamClass, error) {
	if !hasID && len(t.classes) == 1 {
		return t.classes[0], nil
	}
	if s := t.streams[id]; s != nil {
		return s, nil
	}
	if !hasID && len(t.classes) == 0 {
		if err := t.addStream(&metadata.Stream{}); err != nil {
			return nil, err
		}
		return t.streams[0], t.addEvents()
	}
	return nil, fmt.Errorf("expected the ID of a stream class that is known, got %d", id)
}
