// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// The message types of a run, by their numbers in the document.
const (
	hello           = 0
	heartbeat       = 8
	dataBreak       = 9
	mapThreadName   = 10
	mapMethod       = 11
	mapException    = 12
	methodEntry     = 20
	methodExit      = 21
	exception       = 22
	exceptionBubble = 23
	dataHello       = 30
	classTransform  = 40
	classIgnored    = 41
	classFailed     = 42
	marker          = 50
	errorMessage    = 99
)

// Event is a message that has a sequence number.
type Event struct {
	Type            byte
	Time            uint32 // milliseconds
	Sequence        uint32
	Method          string // the signature as it was sent; empty for a marker
	Exception       string // the class
	Thread          uint16
	Line            uint16
	method, thrown  uint32
	hasMethod, hasX bool
}

// Run has all data of an agent's run that spans depend on.
type Run struct {
	Events  []Event                 // sorted by sequence number
	Threads map[uint16][]ThreadName // sorted by time
	Breaks  []uint32                // the sequence numbers of data breaks, sorted
}

// Open reads a capture.
func Open(file string) (*Run, error) {
	archive, err := zip.OpenReader(file)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	var control []byte
	var data [][]byte
	for _, f := range archive.File {
		name := path.Base(f.Name)
		if !strings.HasSuffix(name, ".bin") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if name == "control.bin" {
			control = b
		} else {
			data = append(data, b)
		}
	}
	return Read(control, data)
}

// Read reads the bytes of an agent's connections.
func Read(control []byte, data [][]byte) (*Run, error) {
	r := &Run{Threads: map[uint16][]ThreadName{}}
	names := names{methods: map[uint32]string{}, exceptions: map[uint32]string{}}
	for i, bytes := range append([][]byte{control}, data...) {
		m := &messages{rest: bytes}
		for len(m.rest) > 0 && m.err == nil {
			r.readMessage(m, names)
		}
		if m.err != nil {
			return nil, fmt.Errorf("connection %d, %d bytes before its end: %w", i, len(m.rest), m.err)
		}
	}
	for i := range r.Events {
		if err := names.resolve(&r.Events[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(r.Events, func(a, b Event) int { return int(int64(a.Sequence) - int64(b.Sequence)) })
	slices.Sort(r.Breaks)
	for _, names := range r.Threads {
		slices.SortStableFunc(names, func(a, b ThreadName) int { return int(int64(a.Time) - int64(b.Time)) })
	}
	return r, nil
}

// Before returns the run without the events numbered n and above.
func (r *Run) Before(n uint32) *Run {
	part := &Run{Threads: r.Threads}
	for _, e := range r.Events {
		if e.Sequence < n {
			part.Events = append(part.Events, e)
		}
	}
	for _, b := range r.Breaks {
		if b < n {
			part.Breaks = append(part.Breaks, b)
		}
	}
	return part
}

// readMessage reads one message of a connection.
func (r *Run) readMessage(m *messages, names names) {
	switch t := m.u8(); t {
	case hello, dataHello:
		m.u8()
	case heartbeat:
		m.u8()
		m.u16()
	case dataBreak:
		r.Breaks = append(r.Breaks, m.u32())
	case mapThreadName:
		thread := m.u16()
		r.Threads[thread] = append(r.Threads[thread], ThreadName{Time: m.u32(), Name: m.text()})
	case mapMethod:
		id := m.u32()
		names.methods[id] = m.text()
	case mapException:
		id := m.u32()
		names.exceptions[id] = m.text()
	case methodEntry:
		r.Events = append(r.Events, Event{Type: t, Time: m.u32(), Sequence: m.u32(), method: m.u32(), hasMethod: true, Thread: m.u16()})
	case methodExit:
		r.Events = append(r.Events, Event{Type: t, Time: m.u32(), Sequence: m.u32(), method: m.u32(), hasMethod: true, Line: m.u16(), Thread: m.u16()})
	case exception:
		r.Events = append(r.Events, Event{
			Type: t, Time: m.u32(), Sequence: m.u32(), method: m.u32(), hasMethod: true, thrown: m.u32(), hasX: true, Line: m.u16(), Thread: m.u16(),
		})
	case exceptionBubble:
		r.Events = append(r.Events, Event{
			Type: t, Time: m.u32(), Sequence: m.u32(), method: m.u32(), hasMethod: true, thrown: m.u32(), hasX: true, Thread: m.u16(),
		})
	case marker:
		r.Events = append(r.Events, Event{Type: t, Time: m.u32(), Sequence: m.u32()})
		m.text()
		m.text()
	case classTransform, classIgnored, classFailed, errorMessage:
		m.text()
	default:
		m.err = fmt.Errorf("unknown message type %d", t)
	}
}

// names has the names of IDs. In the captures no ID changes its meaning.
type names struct{ methods, exceptions map[uint32]string }

func (n names) resolve(e *Event) error {
	var ok bool
	if e.hasMethod {
		if e.Method, ok = n.methods[e.method]; !ok {
			return fmt.Errorf("event %d: method %d has no name", e.Sequence, e.method)
		}
	}
	if e.hasX {
		if e.Exception, ok = n.exceptions[e.thrown]; !ok {
			return fmt.Errorf("event %d: exception %d has no name", e.Sequence, e.thrown)
		}
	}
	return nil
}

// messages are the unread bytes of a connection.
type messages struct {
	rest []byte
	err  error
}

func (m *messages) bytes(n int) []byte {
	if m.err != nil || n > len(m.rest) {
		m.err = fmt.Errorf("expected %d more bytes, got %d", n, len(m.rest))
		return make([]byte, n)
	}
	b := m.rest[:n]
	m.rest = m.rest[n:]
	return b
}

func (m *messages) u8() byte    { return m.bytes(1)[0] }
func (m *messages) u16() uint16 { return binary.BigEndian.Uint16(m.bytes(2)) }
func (m *messages) u32() uint32 { return binary.BigEndian.Uint32(m.bytes(4)) }

// text reads a string in Java's modified UTF-8. The captures contain only ASCII, for which it equals UTF-8.
func (m *messages) text() string {
	s := string(m.bytes(int(m.u16())))
	if strings.ContainsFunc(s, func(r rune) bool { return r == 0 || r >= 0x80 }) {
		m.err = fmt.Errorf("expected ASCII, got %q", s)
	}
	return s
}
