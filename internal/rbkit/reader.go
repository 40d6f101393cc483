// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"encoding/binary"
	"fmt"
)

// Reader reads the events of a published message. The zero value has none. Open makes it
// reusable. It is for one goroutine.
type Reader struct {
	dialect Dialect
	header  Header
	cursor  cursor
	events  int // announced events that follow
	objects int // objects of the current part that follow
	behind  int // the end of the current part's event, if its objects are not at the end; 0: they are
	last    int // the end of the message, if the payload is not at the end; 0: it is
	event   Event
}

// Header is the header of a message.
type Header struct {
	Time    Time
	Counter uint64 // from 0 in each process, one more in each message
	Counted bool   // there is a counter
	Events  int    // announced events, at most the number of bytes that follow
}

// Event is an event, or a DumpedObject. Only the values of its kind are valid. The next event
// overwrites it.
type Event struct {
	Kind     Kind
	Type     uint64   // as received
	Time     Time     // for a DumpedObject the time of its part
	Object   Object   // of ObjectCreated, ObjectDestroyed and DumpedObject
	Part     Part     // of ObjectSpaceDump and DumpedObject
	Stats    Stats    // of GCStats
	Frames   Frames   // of CPUSample
	Snapshot Snapshot // of AllocationSnapshot
}

// Open begins a message, which must not change while the reader reads. Errors are *ProtocolError.
func (r *Reader) Open(dialect Dialect, message []byte) error {
	*r = Reader{dialect: dialect, cursor: newCursor(message)}
	c := &r.cursor
	payload, ok := r.readHeader()
	if !ok {
		r.header = Header{}
		return c.failure()
	}
	if payload > 0 {
		r.last, c.at = c.at, payload
	}
	r.events = c.array("the events of a collection: an array")
	r.header.Events = r.events
	return c.failure()
}

// readHeader reads the fields of a message. The cursor stands at the payload if that is the last
// field; otherwise payload is its place.
func (r *Reader) readHeader() (payload int, ok bool) {
	c := &r.cursor
	var eventType uint64
	var hasType, hasTime bool
	pairs := c.mapping("a message: a map")
	for pair := range pairs {
		switch c.key() {
		case fieldType:
			eventType, hasType = c.number("the type of a message"), true
		case fieldTime:
			r.header.Time, hasTime = c.time(), true
		case fieldCounter:
			r.header.Counter, r.header.Counted = c.number("the counter of messages"), true
		case fieldPayload:
			if pair == pairs-1 && hasType {
				return 0, r.checkHeader(eventType, hasTime)
			}
			payload = c.at
			c.skip()
		default:
			c.skip()
		}
		if c.err != nil {
			return 0, false
		}
	}
	if !hasType || payload == 0 {
		c.fail(Missing, "a message with a type and a payload", "one without")
		return 0, false
	}
	return payload, r.checkHeader(eventType, hasTime)
}

// checkHeader checks that the message is a collection.
func (r *Reader) checkHeader(eventType uint64, hasTime bool) bool {
	c := &r.cursor
	switch k := r.dialect.kind(eventType); {
	case c.err != nil:
		return false
	case k != collection:
		number, _ := r.dialect.number(collection)
		c.fail(WrongValue, fmt.Sprintf("type %d, event_collection in the %s dialect", number, r.dialect), fmt.Sprintf("type %d, %s", eventType, k))
	case !hasTime:
		c.fail(Missing, "a message with a time", "one without")
	}
	return c.err == nil
}

// Header returns the header of the message; the zero header if it could not be read.
func (r *Reader) Header() Header { return r.header }

// Event returns the event that Next has read.
func (r *Reader) Event() *Event { return &r.event }

// Err returns the error after which no more events follow: a *ProtocolError, or nil at the end of
// the message. All events before it are valid.
func (r *Reader) Err() error { return r.cursor.failure() }

// Next reads the next event, if there is one.
func (r *Reader) Next() bool {
	c := &r.cursor
	switch {
	case c.err != nil:
		return false
	case r.objects > 0:
		r.objects--
		if r.event.Kind = DumpedObject; !c.usualDumped(&r.event.Object) {
			c.object(&r.event.Object)
		}
		if r.objects == 0 {
			r.endPart()
		}
	case r.events > 0:
		if r.events--; !r.usualObject() && !r.usualEvent() {
			r.readEvent()
		}
	default:
		r.finish()
		return false
	}
	return c.err == nil
}

// finish looks for bytes after the message.
func (r *Reader) finish() {
	c := &r.cursor
	if r.last > 0 {
		c.at, r.last = r.last, 0
	}
	if more := len(c.rest()); more > 0 {
		c.fail(Trailing, "the end of the message", fmt.Sprintf("%d more bytes", more))
	}
}

// endPart moves to the end of an event after its objects.
func (r *Reader) endPart() {
	if r.behind > 0 && r.cursor.err == nil {
		r.cursor.at, r.behind = r.behind, 0
	}
}

// usualObject reads a created or destroyed object in the encoding of all servers. Nearly all
// events are such objects.
func (r *Reader) usualObject() bool {
	const (
		size      = 16 // up to the ID
		head      = uint64(firstMap|3)<<32 | fieldType<<24 | fieldTime<<8 | firstFloat64
		created   = head | releasedCreated<<16
		destroyed = head | releasedDestroyed<<16
		payload   = fieldPayload<<16 | firstMap<<8 | fieldID
	)
	c, e := &r.cursor, &r.event
	begin := c.at
	b := c.rest()
	if len(b) < size || r.dialect != Released {
		return false
	}
	begins, ends := binary.BigEndian.Uint64(b)>>24, binary.BigEndian.Uint32(b[size-4:])&0xff_ff_ff
	switch {
	case begins == created && ends == payload|2<<8:
		e.Kind, e.Type = ObjectCreated, releasedCreated
	case begins == destroyed && ends == payload|1<<8:
		e.Kind, e.Type = ObjectDestroyed, releasedDestroyed
	default:
		return false
	}
	c.at += 4
	e.Time = c.time()
	if c.err != nil {
		return true
	}
	c.at += 3
	if e.Object.ID = c.number(expectedID); e.Kind == ObjectDestroyed {
		e.Object.Class = nil
		return true
	}
	if c.err == nil && !c.follows(fieldClass) {
		c.at = begin
		return false
	}
	e.Object.Class = c.text(expectedClass)
	return true
}

// usualEvent reads an event of three fields in the encoding of all servers: the type, the time as
// a float64, the payload.
func (r *Reader) usualEvent() bool {
	const size = 14 // up to the payload
	c, e := &r.cursor, &r.event
	b := c.rest()
	if len(b) < size || b[0] != firstMap|3 || b[1] != fieldType || b[2] > lastSmall ||
		b[3] != fieldTime || b[4] != firstFloat64 || b[13] != fieldPayload {
		return false
	}
	c.at += 4
	e.Part = Part{}
	e.Time = c.time()
	e.setType(r.dialect, uint64(b[2]))
	if c.err == nil {
		c.at++
		r.readPayload()
	}
	return true
}

// setType sets the type of an event and its kind. The type of a message is no event.
func (e *Event) setType(d Dialect, eventType uint64) {
	e.Type = eventType
	if e.Kind = d.kind(eventType); e.Kind >= collection {
		e.Kind = Unknown
	}
}

// readEvent reads an event with any fields in any order.
func (r *Reader) readEvent() {
	c, e := &r.cursor, &r.event
	e.Part = Part{}
	var hasType, hasTime bool
	var payload int
	pairs := c.mapping("an event: a map")
	for pair := range pairs {
		switch c.key() {
		case fieldType:
			e.setType(r.dialect, c.number("the type of an event"))
			hasType = true
		case fieldTime:
			e.Time, hasTime = c.time(), true
		case fieldCorrelation:
			e.Part.Correlation = c.number("a correlation ID")
		case fieldObjects:
			e.Part.Objects, e.Part.Counted = c.number("a number of objects"), true
		case fieldPayload:
			if pair == pairs-1 && hasType && hasTime {
				r.readPayload()
				return
			}
			payload = c.at
			c.skip()
		default:
			c.skip()
		}
		if c.err != nil {
			return
		}
	}
	switch {
	case !hasType || !hasTime:
		c.fail(Missing, "an event with a type and a time", "one without")
	case payload > 0:
		behind := c.at
		c.at = payload
		if r.readPayload(); r.objects > 0 {
			r.behind = behind
		} else if c.err == nil {
			c.at = behind
		}
	case e.Kind.hasPayload():
		c.fail(Missing, fmt.Sprintf("%s with a payload", e.Kind), "one without")
	}
}

// hasPayload reports whether an event of the kind must have a payload.
func (k Kind) hasPayload() bool {
	switch k {
	case ObjectCreated, ObjectDestroyed, AllocationSnapshot, ObjectSpaceDump, GCStats, CPUSample:
		return true
	default:
		return false
	}
}

// readPayload reads the payload of the event, and only the head of a dump.
func (r *Reader) readPayload() {
	c, e := &r.cursor, &r.event
	switch e.Kind {
	case ObjectCreated:
		if !c.usualCreated(&e.Object) {
			c.object(&e.Object)
		}
	case ObjectDestroyed:
		c.object(&e.Object)
	case ObjectSpaceDump:
		r.objects = c.array("objects: an array")
		e.Part.Here = r.objects
	case GCStats:
		e.Stats = c.stats()
	case CPUSample:
		e.Frames = c.frames()
	case AllocationSnapshot:
		e.Snapshot = c.snapshot()
	default:
		c.skip()
	}
}
