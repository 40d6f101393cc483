// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import "encoding/binary"

// Event is one call event as it was sent: a method entry, a method exit, an
// exception (thrown in the method), or an exception bubble (the method was left
// by it).
type Event struct {
	// Time is in milliseconds since the agent was told to start. It wraps after
	// 49.7 days.
	Time uint32
	// Sequence counts the call events and markers of a run, in the order in which
	// they happened, over all threads and connections. It wraps.
	Sequence uint32
	// Method is the ID that a MapMethod message gives a signature.
	Method uint32
	// Exception is the ID that a MapException message gives a class; 0 in events
	// that carry none.
	Exception uint32
	// Line is the line of the source at which the method returned or threw; 0 or
	// 65535 where the agent knows none, and 0 in events that carry none.
	Line uint16
	// Thread is the ID that a MapThreadName message gives a name.
	Thread uint16
	// Type says which of the four call events this is.
	Type MessageType
}

// Sizes of the call events in bytes, with the type byte.
const (
	MethodEntrySize     = 15
	MethodExitSize      = 17
	ExceptionSize       = 21
	ExceptionBubbleSize = 19

	// MaxEventSize is the size of the longest call event.
	MaxEventSize = ExceptionSize
)

// eventTypes is the number of types of call events.
const eventTypes = 4

// EventSize returns the number of bytes of a call event of type t, or 0 if t is
// no call event.
func EventSize(t MessageType) int {
	if !t.IsEvent() {
		return 0
	}
	return int(eventLayouts[t-TypeMethodEntry].size)
}

// Every call event begins alike: type (1 byte), time (4), sequence (4), method
// (4). What follows is at most tailSize bytes, so one load of eight bytes at
// tailOffset holds all of it, first byte in the highest bits; behind a shorter
// event those bits hold what comes next, and are not used.
const (
	timeOffset     = 1
	sequenceOffset = 5
	methodOffset   = 9
	tailOffset     = 13
	tailSize       = 8
)

// eventLayout says where in the eight bytes of the tail the rest of an event
// stands, as shifts to the right. A mask of zero means that the event has no such
// field. Reading every type in the same way, by table, leaves no branch that
// depends on the data: which event comes next cannot be predicted, and a wrong
// guess costs more than all the rest.
type eventLayout struct {
	exceptionMask uint32
	lineMask      uint16
	size          uint8
	lineShift     uint8
	threadShift   uint8
}

var eventLayouts = [eventTypes]eventLayout{
	TypeMethodEntry - TypeMethodEntry: { // thread
		size: MethodEntrySize, threadShift: 48,
	},
	TypeMethodExit - TypeMethodEntry: { // line, thread
		size: MethodExitSize, lineShift: 48, lineMask: 1<<16 - 1, threadShift: 32,
	},
	TypeException - TypeMethodEntry: { // exception, line, thread
		size: ExceptionSize, exceptionMask: 1<<32 - 1, lineShift: 16, lineMask: 1<<16 - 1, threadShift: 0,
	},
	TypeExceptionBubble - TypeMethodEntry: { // exception, thread
		size: ExceptionBubbleSize, exceptionMask: 1<<32 - 1, threadShift: 16,
	},
}

const exceptionShift = 32

// DecodeEvents decodes call events from the front of b into dst until dst is full,
// b ends inside an event, or something that is no call event stands next. It
// returns the number of events and of bytes they had. It keeps nothing of b and
// allocates nothing.
func DecodeEvents(dst []Event, b []byte) (events, consumed int) {
	at := 0
	for events < len(dst) && len(b)-at >= MaxEventSize {
		k := MessageType(b[at]) - TypeMethodEntry
		if k >= eventTypes {
			return events, at
		}
		at += decodeEvent(&dst[events], (*[MaxEventSize]byte)(b[at:]), k)
		events++
	}
	// The last bytes are shorter than the longest event: decode from a copy with
	// room behind it.
	for events < len(dst) && at < len(b) {
		size := EventSize(MessageType(b[at]))
		if size == 0 || len(b)-at < size {
			break
		}
		var padded [MaxEventSize]byte
		copy(padded[:], b[at:at+size])
		at += decodeEvent(&dst[events], &padded, MessageType(padded[0])-TypeMethodEntry)
		events++
	}
	return events, at
}

// decodeEvent decodes the event of type TypeMethodEntry+k at the front of b and
// returns its size.
func decodeEvent(e *Event, b *[MaxEventSize]byte, k MessageType) int {
	layout := &eventLayouts[k%eventTypes]
	tail := binary.BigEndian.Uint64(b[tailOffset : tailOffset+tailSize])
	e.Time = binary.BigEndian.Uint32(b[timeOffset:])
	e.Sequence = binary.BigEndian.Uint32(b[sequenceOffset:])
	e.Method = binary.BigEndian.Uint32(b[methodOffset:])
	e.Exception = uint32(tail>>exceptionShift) & layout.exceptionMask
	e.Line = uint16(tail>>(layout.lineShift&63)) & layout.lineMask
	e.Thread = uint16(tail >> (layout.threadShift & 63))
	e.Type = TypeMethodEntry + k
	return int(layout.size)
}

// AppendEvent appends e as an agent sends it. Fields that events of its type do
// not carry are left out. It panics if e.Type is no call event.
func AppendEvent(b []byte, e Event) []byte {
	b = append(b, byte(e.Type))
	b = binary.BigEndian.AppendUint32(b, e.Time)
	b = binary.BigEndian.AppendUint32(b, e.Sequence)
	b = binary.BigEndian.AppendUint32(b, e.Method)
	switch e.Type {
	case TypeMethodEntry:
	case TypeMethodExit:
		b = binary.BigEndian.AppendUint16(b, e.Line)
	case TypeException:
		b = binary.BigEndian.AppendUint32(b, e.Exception)
		b = binary.BigEndian.AppendUint16(b, e.Line)
	case TypeExceptionBubble:
		b = binary.BigEndian.AppendUint32(b, e.Exception)
	default:
		panic("bytefrog: AppendEvent: expected a call event, got " + e.Type.String())
	}
	return binary.BigEndian.AppendUint16(b, e.Thread)
}
