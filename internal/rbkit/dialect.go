// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import "fmt"

// Dialect is a numbering of events.
type Dialect uint8

// The dialects. The zero value is none.
const (
	Released   Dialect = 1 + iota // of the released servers
	Documented                    // of the document
)

func (d Dialect) String() string {
	switch d {
	case Released:
		return "released"
	case Documented:
		return "documented"
	default:
		return fmt.Sprintf("Dialect(%d)", uint8(d))
	}
}

// Kind is the kind of an event, in either dialect.
type Kind uint8

// The kinds of events. The zero value is none.
const (
	Unknown            Kind = iota // a type that the dialect doesn't have
	ObjectCreated                  // an object was created; not in the documented dialect
	ObjectDestroyed                // an object was freed; not in the documented dialect
	AllocationSnapshot             // allocations by place; not in the released dialect
	GCStart                        // a garbage collection began
	GCEndMark                      // its marking ended
	GCEndSweep                     // its sweeping ended, while the program ran
	ObjectSpaceDump                // a part of all objects
	DumpedObject                   // an object of the previous part; no event on the wire
	GCStats                        // the result of GC.stat
	CPUSample                      // the stack of a thread

	collection // a published message
	handshake  // the reply to a handshake
)

var kindNames = [...]string{
	Unknown: "unknown", ObjectCreated: "obj_created", ObjectDestroyed: "obj_destroyed",
	AllocationSnapshot: "allocation_snapshot", GCStart: "gc_start", GCEndMark: "gc_end_m",
	GCEndSweep: "gc_end_s", ObjectSpaceDump: "object_space_dump", DumpedObject: "object",
	GCStats: "gc_stats", CPUSample: "cpu_sample", collection: "event_collection", handshake: "handshake",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// The types of the most frequent events, in the released dialect.
const (
	releasedCreated   = 0
	releasedDestroyed = 1
)

// The types of events by their number (document, "Event types").
var (
	releasedTypes   = [...]Kind{releasedCreated: ObjectCreated, releasedDestroyed: ObjectDestroyed, 2: GCStart, GCEndMark, GCEndSweep, ObjectSpaceDump, GCStats, collection, handshake, CPUSample}
	documentedTypes = [...]Kind{AllocationSnapshot, GCStart, GCEndMark, GCEndSweep, ObjectSpaceDump, GCStats, collection, handshake, CPUSample}
)

// kind returns the kind of a type.
func (d Dialect) kind(eventType uint64) Kind {
	types := releasedTypes[:]
	if d == Documented {
		types = documentedTypes[:]
	}
	if eventType < uint64(len(types)) {
		return types[eventType]
	}
	return Unknown
}

// number returns the type of a kind, if the dialect has it.
func (d Dialect) number(k Kind) (eventType uint64, ok bool) {
	for eventType := range uint64(len(releasedTypes)) {
		if k != Unknown && d.kind(eventType) == k {
			return eventType, true
		}
	}
	return 0, false
}

// DialectOf returns the dialect of a published message by its type: all published messages are
// event collections. A message of another type is a *ProtocolError.
func DialectOf(published []byte) (Dialect, error) {
	c := newCursor(published)
	eventType, ok := c.messageType()
	if !ok {
		return 0, c.failure()
	}
	return dialectBy(eventType, collection)
}

// dialectBy returns the dialect in which a type means a kind.
func dialectBy(eventType uint64, k Kind) (Dialect, error) {
	for _, d := range []Dialect{Released, Documented} {
		if d.kind(eventType) == k {
			return d, nil
		}
	}
	released, _ := Released.number(k)
	documented, _ := Documented.number(k)
	return 0, &ProtocolError{
		Problem:  WrongValue,
		Expected: fmt.Sprintf("type %d or %d, %s", released, documented, k),
		Got:      fmt.Sprintf("type %d", eventType),
	}
}
