// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tinylib/msgp/msgp"
)

// Collection is a message to write in the dialect of a server. An event that the dialect doesn't
// have is a *DialectError, and changes nothing.
type Collection struct {
	dialect Dialect
	events  []byte
	n       int
}

// NewCollection returns an empty message.
func NewCollection(dialect Dialect) *Collection { return &Collection{dialect: dialect} }

// DialectError is the error of a dialect that has no events of a kind.
type DialectError struct {
	Dialect Dialect
	Kind    Kind
}

func (e *DialectError) Error() string {
	return fmt.Sprintf("expected an event that the %s dialect has, got %s", e.Dialect, e.Kind)
}

// Len returns the number of events.
func (c *Collection) Len() int { return c.n }

// Reset removes all events.
func (c *Collection) Reset() { c.events, c.n = c.events[:0], 0 }

// AppendTo appends the message with its events to b.
func (c *Collection) AppendTo(b []byte, at Time, counter uint64) []byte {
	eventType, _ := c.dialect.number(collection)
	b = appendHead(b, 4, eventType, at)
	b = msgp.AppendUint64(appendKey(b, fieldCounter), counter)
	b = appendArray(appendKey(b, fieldPayload), c.n)
	return append(b, c.events...)
}

// begin begins an event with a number of fields.
func (c *Collection) begin(k Kind, at Time, fields int) error {
	eventType, ok := c.dialect.number(k)
	if !ok || k >= collection {
		return &DialectError{Dialect: c.dialect, Kind: k}
	}
	c.events = appendHead(c.events, fields, eventType, at)
	c.n++
	return nil
}

// GC adds GCStart, GCEndMark or GCEndSweep, which have only a time.
func (c *Collection) GC(k Kind, at Time) error {
	if k.hasPayload() {
		return &DialectError{Dialect: c.dialect, Kind: k}
	}
	return c.begin(k, at, 2)
}

// Created adds ObjectCreated.
func (c *Collection) Created(at Time, id uint64, class []byte) error {
	if err := c.begin(ObjectCreated, at, 3); err != nil {
		return err
	}
	c.events = appendID(msgp.AppendMapHeader(appendKey(c.events, fieldPayload), 2), id)
	c.events = c.dialect.appendText(appendKey(c.events, fieldClass), class)
	return nil
}

// Destroyed adds ObjectDestroyed.
func (c *Collection) Destroyed(at Time, id uint64) error {
	if err := c.begin(ObjectDestroyed, at, 3); err != nil {
		return err
	}
	c.events = appendID(msgp.AppendMapHeader(appendKey(c.events, fieldPayload), 1), id)
	return nil
}

// Dump adds a part of an object space dump. objects counts the objects of all its parts.
func (c *Collection) Dump(at Time, correlation, objects uint64, part []DumpObject) error {
	if err := c.begin(ObjectSpaceDump, at, 5); err != nil {
		return err
	}
	b := msgp.AppendUint64(appendKey(c.events, fieldCorrelation), correlation)
	b = msgp.AppendUint64(appendKey(b, fieldObjects), objects)
	b = appendArray(appendKey(b, fieldPayload), len(part))
	for _, o := range part {
		b = o.appendTo(b, c.dialect)
	}
	c.events = b
	return nil
}

// DumpObject is an object of a dump to write. Without a file it has no line.
type DumpObject struct {
	ID         uint64
	Class      []byte
	References []uint64
	File       []byte
	Line, Size uint64
}

func (o DumpObject) appendTo(b []byte, d Dialect) []byte {
	b = appendID(msgp.AppendMapHeader(b, 6), o.ID)
	b = d.appendText(appendKey(b, fieldClass), o.Class)
	b = appendArray(appendKey(b, fieldReferences), len(o.References))
	for _, id := range o.References {
		b = msgp.AppendUint64(b, id)
	}
	b = d.appendText(appendKey(b, fieldFile), o.File)
	b = appendKey(b, fieldLine)
	if o.File == nil {
		b = msgp.AppendNil(b)
	} else {
		b = msgp.AppendUint64(b, o.Line)
	}
	return msgp.AppendUint64(appendKey(b, fieldSize), o.Size)
}

// Stat is a number of GC.stat to write. A missing one is an empty text.
type Stat struct {
	Name    string
	Value   uint64
	Missing bool
}

// Stats adds GCStats.
func (c *Collection) Stats(at Time, stats []Stat) error {
	if err := c.begin(GCStats, at, 3); err != nil {
		return err
	}
	b := msgp.AppendMapHeader(appendKey(c.events, fieldPayload), length(len(stats)))
	for _, s := range stats {
		b = c.dialect.appendText(b, []byte(s.Name))
		if s.Missing {
			b = c.dialect.appendText(b, []byte{})
		} else {
			b = msgp.AppendUint64(b, s.Value)
		}
	}
	c.events = b
	return nil
}

// Sample adds CPUSample, with frames leaf first. Only the released dialect has the thread.
func (c *Collection) Sample(at Time, frames []Frame) error {
	if err := c.begin(CPUSample, at, 3); err != nil {
		return err
	}
	b := appendArray(appendKey(c.events, fieldPayload), len(frames))
	for _, f := range frames {
		b = f.appendTo(b, c.dialect, true, c.dialect == Released)
	}
	c.events = b
	return nil
}

func (f Frame) appendTo(b []byte, d Dialect, label, thread bool) []byte {
	fields := uint32(4)
	for _, more := range []bool{label, thread} {
		if more {
			fields++
		}
	}
	b = d.appendText(appendKey(msgp.AppendMapHeader(b, fields), fieldMethod), f.Method)
	if label {
		b = d.appendText(appendKey(b, fieldLabel), f.Label)
	}
	b = d.appendText(appendKey(b, fieldFile), f.File)
	b = msgp.AppendUint64(appendKey(b, fieldLine), f.Line)
	b = appendFlag(appendKey(b, fieldSingleton), f.Singleton)
	if thread {
		b = msgp.AppendUint64(appendKey(b, fieldThread), f.Thread)
	}
	return b
}

// Stack is a stack of an allocation snapshot to write.
type Stack struct {
	ID     uint64
	Frames []Frame
}

// FileAllocations are the allocations in one file of a snapshot to write.
type FileAllocations struct {
	File        []byte
	Allocations []PlaceAllocations
}

// PlaceAllocations are the allocations at one place. Stacks is nil without stacks.
type PlaceAllocations struct {
	Line   uint64
	Class  []byte
	Size   uint64
	Count  uint64
	Stacks []StackCount
}

// StackCount is how many objects a stack allocated.
type StackCount struct{ ID, Count uint64 }

// Snapshot adds AllocationSnapshot.
func (c *Collection) Snapshot(at Time, stacks []Stack, files []FileAllocations) error {
	if err := c.begin(AllocationSnapshot, at, 3); err != nil {
		return err
	}
	b := msgp.AppendMapHeader(appendKey(c.events, fieldPayload), 2)
	b = msgp.AppendMapHeader(appendKey(b, fieldStacks), length(len(stacks)))
	for _, s := range stacks {
		b = appendArray(msgp.AppendUint64(b, s.ID), len(s.Frames))
		for _, f := range s.Frames {
			b = f.appendTo(b, c.dialect, false, false)
		}
	}
	b = msgp.AppendMapHeader(appendKey(b, fieldAllocations), length(len(files)))
	for _, f := range files {
		b = msgp.AppendMapHeader(c.dialect.appendText(b, f.File), length(len(f.Allocations)))
		for _, a := range f.Allocations {
			b = a.appendTo(b, c.dialect)
		}
	}
	c.events = b
	return nil
}

func (a PlaceAllocations) appendTo(b []byte, d Dialect) []byte {
	class := a.Class
	if class == nil {
		class = []byte(hiddenClass)
	}
	b = d.appendText(b, fmt.Appendf(nil, "%d %s %d", a.Line, class, a.Size))
	b = msgp.AppendUint64(appendKey(msgp.AppendMapHeader(b, 2), fieldCount), a.Count)
	b = appendKey(b, fieldStacks)
	if a.Stacks == nil {
		return msgp.AppendNil(b)
	}
	b = msgp.AppendMapHeader(b, length(len(a.Stacks)))
	for _, s := range a.Stacks {
		b = msgp.AppendUint64(msgp.AppendUint64(b, s.ID), s.Count)
	}
	return b
}

// AppendHandshake appends the reply to Handshake in the dialect of h.
func AppendHandshake(b []byte, h HandshakeReply) []byte {
	eventType, _ := h.Dialect.number(handshake)
	b = msgp.AppendMapHeader(appendKey(appendHead(b, 3, eventType, h.Time), fieldPayload), 9)
	name := func(key string) []byte { return h.Dialect.appendText(b, []byte(key)) }
	text := func(key, value string) { b = h.Dialect.appendText(name(key), []byte(value)) }
	text(keyServerVersion, h.ServerVersion)
	text(keyProtocolVersion, h.ProtocolVersion)
	text(keyProcessName, h.ProcessName)
	text(keyWorkingDirectory, h.WorkingDirectory)
	b = msgp.AppendUint64(name(keyPID), h.PID)
	b = appendFlag(name(keyObjectTrace), h.ObjectTraceEnabled)
	b = appendFlag(name(keyCPUProfiling), h.CPUProfiling)
	text(keyClock, h.Clock)
	text(keyCPUMode, h.CPUProfilingMode)
	return b
}

// appendHead appends the head of a map with a number of fields, and its first two.
func appendHead(b []byte, fields int, eventType uint64, at Time) []byte {
	b = msgp.AppendUint64(appendKey(msgp.AppendMapHeader(b, length(fields)), fieldType), eventType)
	return msgp.AppendFloat64(appendKey(b, fieldTime), float64(at))
}

func appendKey(b []byte, key byte) []byte { return append(b, key) }

func appendID(b []byte, id uint64) []byte { return msgp.AppendUint64(appendKey(b, fieldID), id) }

func appendFlag(b []byte, is bool) []byte {
	if is {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendArray(b []byte, n int) []byte { return msgp.AppendArrayHeader(b, length(n)) }

// length returns n for the head of a msgpack value. No memory has more elements.
func length(n int) uint32 { return uint32(min(uint64(n), math.MaxUint32)) }

// First bytes of longer texts. The old msgpack of servers of the documented dialect has no
// firstText8, and calls the others raw.
const (
	firstText8, firstText16, firstText32 = 0xd9, 0xda, 0xdb
)

// appendText appends a text in the encoding of the dialect; nil is nil.
func (d Dialect) appendText(b, text []byte) []byte {
	n := len(text)
	switch {
	case text == nil:
		return msgp.AppendNil(b)
	case n <= firstTextBits:
		b = append(b, firstText|byte(n))
	case n <= math.MaxUint8 && d == Released:
		b = append(b, firstText8, byte(n))
	case n <= math.MaxUint16:
		b = binary.BigEndian.AppendUint16(append(b, firstText16), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, firstText32), uint32(n))
	}
	return append(b, text...)
}
