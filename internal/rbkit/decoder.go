// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import "fmt"

// Decoder reads messages. It is for one goroutine, and uses its memory again.
type Decoder struct {
	limits  Limits
	in      reader
	visitor Visitor
	events  int
	// frames and stats are those of the event under way, object the one of a dump.
	frames     []Frame
	stats      []Stat
	object     DumpedObject
	allocation Allocation
}

// NewDecoder makes a decoder.
func NewDecoder(limits Limits) *Decoder { return &Decoder{limits: limits.withDefaults()} }

// Decode tells a visitor of the events of a message, and says how many they are: objects
// of dumps are not counted by themselves. With an error, which is an *Error, these are
// those before it.
func (d *Decoder) Decode(message []byte, visitor Visitor) (events int, err error) {
	d.in, d.visitor, d.events = newReader(message), visitor, 0
	defer func() { d.in, d.visitor = reader{}, nil }()
	if err := d.message(); err != nil {
		return d.events, err
	}
	if left := len(d.in.rest()); left > 0 {
		return d.events, d.in.fail(FaultTrailing, "the end of the message", fmt.Sprintf("%d more bytes", left))
	}
	return d.events, nil
}

// DialectOf is the dialect of a message; UnknownDialect: it is no event collection.
func DialectOf(message []byte) Dialect {
	in := newReader(message)
	if _, err := in.mapping(""); err != nil {
		return UnknownDialect
	}
	if key, err := in.key(); err != nil || key != keyType {
		return UnknownDialect
	}
	number, err := in.uint("")
	if err != nil {
		return UnknownDialect
	}
	return dialectOf(EventCollection, number)
}

// ReadHeader reads what a message is, and none of its events. An error is an *Error.
func ReadHeader(message []byte) (Header, error) {
	in := newReader(message)
	h, _, err := in.header()
	return h, err
}

// header reads an event collection up to its events (section "Message frame for
// event_collection").
func (r *reader) header() (h Header, e envelope, err error) {
	if h.Dialect = DialectOf(r.all); h.Dialect == UnknownDialect {
		return h, e, r.fail(FaultMessage, "an event collection: a map that begins with the type 7 or 6", r.next())
	}
	if e, err = r.envelope(); err != nil {
		return h, e, err
	}
	h.Millis, h.Counter, h.HasCounter = e.millis, e.counter, e.hasCounter
	return h, e, nil
}

// message reads an event collection.
func (d *Decoder) message() error {
	h, e, err := d.in.header()
	if err != nil {
		return err
	}
	if !e.hasPayload {
		return d.in.fail(FaultMessage, "an event collection with a payload", "one without")
	}
	d.visitor.Message(h)
	n, err := d.in.array("an array of events")
	if err != nil {
		return err
	}
	for range n {
		if h.Dialect == Released && d.plainObject() {
			d.events++
			continue
		}
		if err := d.event(h.Dialect); err != nil {
			return err
		}
		d.events++
	}
	d.in.leave(&e)
	return nil
}
