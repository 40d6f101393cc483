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

// Trace is what the metadata of a CTF trace has said so far, compiled. One goroutine
// at a time may use a Trace and its Readers.
type Trace struct {
	meta   metadata.Trace
	unwrap unwrapper
	// text is metadata whose language isn't known yet, then nil.
	text   []byte
	parser parser
	// length is how much metadata there was, in bytes.
	length int
	// err is why no more metadata is taken.
	err error

	// known is how many streams and events of meta have been seen.
	knownStreams, knownEvents int
	// waiting are events whose stream class isn't known.
	waiting []*metadata.Event
	clocks  map[string]*Clock
	header  *Field
	// headerOf is what header was made of: in CTF 2 it may come after the preamble.
	headerOf *metadata.Struct
	// headerSlots is the slot behind the packet header's, headerEnd where it ends.
	headerSlots uint32
	headerEnd   position
	headerProg  program
	streams     map[uint64]*StreamClass
	classes     []*StreamClass
	// events is how many event classes there are.
	events int
	worked int
	// labels are those of enumerations, by their types.
	labels map[*metadata.Integer]*selector
}

// parser reads one of the languages of metadata.
type parser interface {
	Append(text []byte) error
	Pending() int
}

// NewTrace returns a trace that knows nothing.
func NewTrace() *Trace {
	return &Trace{clocks: map[string]*Clock{}, streams: map[uint64]*StreamClass{}}
}

// Append reads metadata, in packets or plain, which continues what was given before
// and may end anywhere. What it declares is known afterwards. After an error, which
// says where the metadata is wrong, the trace takes no more; what was known before
// can be read on.
func (t *Trace) Append(b []byte) error {
	if t.err == nil {
		t.err = t.append(b)
	}
	return t.err
}

func (t *Trace) append(b []byte) error {
	if t.length += len(b); t.length > MaxMetadataBytes {
		return fmt.Errorf("expected metadata of at most %d bytes, got more", MaxMetadataBytes)
	}
	text, err := t.unwrap.append(b)
	if err != nil {
		return err
	}
	if t.parser == nil {
		t.text = append(t.text, text...)
		if text = t.text; !t.choose() {
			return nil
		}
		t.text = nil
	}
	if err := t.parser.Append(text); err != nil {
		return err
	}
	return t.classify()
}

// choose finds out the language from the first byte that isn't blank.
func (t *Trace) choose() bool {
	switch rest := bytes.TrimLeft(t.text, " \t\r\n"); {
	case len(rest) == 0:
		return false
	case rest[0] == ctf2.RecordSeparator:
		t.parser = ctf2.NewParser(&t.meta)
	default:
		t.parser = tsdl.NewParser(&t.meta)
	}
	return true
}

// Incomplete is how many bytes of metadata wait for more, because a packet or a
// declaration hasn't ended. White space and comments at the end count.
func (t *Trace) Incomplete() int {
	n := len(t.unwrap.rest) + len(t.text)
	if t.parser != nil {
		n += t.parser.Pending()
	}
	return n
}

// Metadata is what was declared. It must not be changed, and grows with Append.
func (t *Trace) Metadata() *metadata.Trace { return &t.meta }

// StreamClasses are those that are known, in the order of their declaration.
func (t *Trace) StreamClasses() []*StreamClass { return t.classes }

// Size is about how many bytes the trace takes in memory: declarations in proportion to the
// metadata, and the classes made of these. A few bytes can declare many fields.
func (t *Trace) Size() int { return t.length*declaredBytes + t.worked*workBytes }

// EventClasses is how many event classes are known. Their indexes are below it.
func (t *Trace) EventClasses() int { return t.events }

// Env returns an entry of the environment as text; "" if there is none.
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

// classify compiles the classes that have become known.
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

// compileHeader compiles the packet header, once it is known.
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

// addEvents compiles the events whose stream class is known; the others wait.
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

// streamOf returns the stream class that an event belongs to; nil if it isn't known.
// An event that doesn't say belongs to the only one there is.
func (t *Trace) streamOf(e *metadata.Event) *StreamClass {
	if !e.HasStreamID && len(t.classes) == 1 {
		return t.classes[0]
	}
	return t.streams[e.StreamID]
}

// streamClass returns the stream class of a packet that says this ID, or none.
// Metadata without stream classes means one whose packets and events have nothing but
// fields.
func (t *Trace) streamClass(id uint64, said bool) (*StreamClass, error) {
	if !said && len(t.classes) == 1 {
		return t.classes[0], nil
	}
	if s := t.streams[id]; s != nil {
		return s, nil
	}
	if !said && len(t.classes) == 0 {
		if err := t.addStream(&metadata.Stream{}); err != nil {
			return nil, err
		}
		return t.streams[0], t.addEvents()
	}
	return nil, fmt.Errorf("expected the ID of a stream class that is known, got %d", id)
}
