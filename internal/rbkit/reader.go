// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import "fmt"

// Reader goes through the events of a published message. The zero value has none. It can
// be used again by Open; it is for one goroutine.
type Reader struct {
	dialect Dialect
	header  Header
	cursor  cursor
	events  int    // that are still to come, as announced
	objects int    // of the part that is read, that are still to come
	behind  []byte // what stands behind that part, where its objects are not the last of its event; nil: they are
	last    []byte // what stands behind the payload, where that is not the last of the message; nil: it is
	event   Event
}

// Header is what a message says of itself.
type Header struct {
	Time    Time
	Counter uint64 // from 0 in each process, one more in each message
	Counted bool   // there is a counter
	Events  int    // that it announces
}

// Event is an event, and DumpedObject. Only what belongs to its kind has a value that
// means something. It is gone when the next is read.
type Event struct {
	Kind     Kind
	Type     uint64   // as it was sent
	Time     Time     // of a DumpedObject: of its part
	Object   Object   // of ObjectCreated, ObjectDestroyed and DumpedObject
	Part     Part     // of ObjectSpaceDump and DumpedObject
	Stats    Stats    // of GCStats
	Frames   Frames   // of CPUSample
	Snapshot Snapshot // of AllocationSnapshot
}

// Open begins with a message, which may not be changed while the reader is used. Errors
// are *ProtocolError.
func (r *Reader) Open(dialect Dialect, message []byte) error {
	*r = Reader{dialect: dialect, cursor: newCursor(message)}
	c := &r.cursor
	payload, ok := r.readHeader()
	if !ok {
		return c.failure()
	}
	if payload != nil {
		r.last = c.rest
		c.rest = payload
	}
	r.events = c.array("the events of a collection: an array")
	r.header.Events = r.events
	return c.failure()
}

// readHeader reads the fields of a message. The cursor stands at the payload, if it is
// last; otherwise payload is where it stands.
func (r *Reader) readHeader() (payload []byte, ok bool) {
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
				return nil, r.checkHeader(eventType, hasTime)
			}
			payload = c.rest
			c.skip()
		default:
			c.skip()
		}
		if c.err != nil {
			return nil, false
		}
	}
	if !hasType || payload == nil {
		c.fail(Missing, "a message with a type and a payload", "one without")
		return nil, false
	}
	return payload, r.checkHeader(eventType, hasTime)
}

// checkHeader says whether it is that of a collection.
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

// Header is that of the message.
func (r *Reader) Header() Header { return r.header }

// Event is the one that Next has read.
func (r *Reader) Event() *Event { return &r.event }

// Err is why there are no more events, if that is not the end of the message: a
// *ProtocolError. All events before it were right.
func (r *Reader) Err() error { return r.cursor.failure() }

// Next reads the next event, if there is one.
func (r *Reader) Next() bool {
	c := &r.cursor
	switch {
	case c.err != nil:
		return false
	case r.objects > 0:
		r.objects--
		c.object(&r.event.Object)
		r.event.Kind = DumpedObject
		if r.objects == 0 {
			r.leavePart()
		}
	case r.events > 0:
		r.events--
		r.readEvent()
	default:
		r.finish()
		return false
	}
	return c.err == nil
}

// finish looks for what stands behind the message.
func (r *Reader) finish() {
	c := &r.cursor
	if r.last != nil {
		c.rest, r.last = r.last, nil
	}
	if len(c.rest) > 0 {
		c.fail(Trailing, "the end of the message", fmt.Sprintf("%d more bytes", len(c.rest)))
	}
}

// leavePart goes on behind the event whose objects were read.
func (r *Reader) leavePart() {
	if r.behind != nil && r.cursor.err == nil {
		r.cursor.rest, r.behind = r.behind, nil
	}
}

// readEvent reads an event.
func (r *Reader) readEvent() {
	c, e := &r.cursor, &r.event
	e.Part = Part{}
	var hasType, hasTime bool
	var payload []byte
	pairs := c.mapping("an event: a map")
	for pair := range pairs {
		switch c.key() {
		case fieldType:
			e.Type, hasType = c.number("the type of an event"), true
			if e.Kind = r.dialect.kind(e.Type); e.Kind >= collection {
				e.Kind = Unknown // what is a message is no event
			}
		case fieldTime:
			e.Time, hasTime = c.time(), true
		case fieldCorrelation:
			e.Part.Correlation = c.number("a correlation ID")
		case fieldObjects:
			e.Part.Objects = c.number("a number of objects")
		case fieldPayload:
			if pair == pairs-1 && hasType && hasTime {
				r.readPayload()
				return
			}
			payload = c.rest
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
	case payload != nil:
		behind := c.rest
		c.rest = payload
		if r.readPayload(); r.objects > 0 {
			r.behind = behind
		} else if c.err == nil {
			c.rest = behind
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

// readPayload reads the payload of the event; of a dump only its head.
func (r *Reader) readPayload() {
	c, e := &r.cursor, &r.event
	switch e.Kind {
	case ObjectCreated, ObjectDestroyed:
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
