// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import "encoding/binary"

// Event is one call event as it was sent: a method entry, a method exit, an exception (thrown in the method), or an
// exception bubble (it ended the method).
type Event struct {
	// Time is in milliseconds since start arrived at the agent. It wraps after
	// 49.7 days.
	Time uint32
	// Sequence counts the call events and markers of a run in the order of occurrence, over all threads and
	// connections. It wraps.
	Sequence uint32
	// Method is the ID of a signature; a MapMethod message has both.
	Method uint32
	// Exception is the ID of a class; a MapException message has both. It is 0 in events without one.
	Exception uint32
	// Line is the source line at which the method returned or threw. It is 0 or 65535 if the agent does not know it,
	// and 0 in events without one.
	Line uint16
	// Thread is the ID of a thread; a MapThreadName message has its name.
	Thread uint16
	// Type is one of the four types of call events.
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

// EventSize returns the number of bytes of a call event of type t, or 0 if t is
// no call event.
func EventSize(t MessageType) int {
	switch t {
	case TypeMethodEntry:
		return MethodEntrySize
	case TypeMethodExit:
		return MethodExitSize
	case TypeException:
		return ExceptionSize
	case TypeExceptionBubble:
		return ExceptionBubbleSize
	default:
		return 0
	}
}

// Offsets of the fields of a call event. The first fields are the same for all types; the fields from tailOffset depend
// on the type.
const (
	timeOffset     = 1
	sequenceOffset = 5
	methodOffset   = 9
	tailOffset     = 13

	entryThreadOffset     = tailOffset
	exitLineOffset        = tailOffset
	exitThreadOffset      = tailOffset + 2
	exceptionOffset       = tailOffset // of exceptions and bubbles
	exceptionLineOffset   = tailOffset + 4
	exceptionThreadOffset = tailOffset + 6
	bubbleThreadOffset    = tailOffset + 4
)

// DecodeEvents decodes call events from the front of b into dst until dst is full, b ends inside an event, or the next
// message is not a call event. It returns the number of events and their bytes. It keeps no reference to b and
// allocates nothing.
func DecodeEvents(dst []Event, b []byte) (events, consumed int) {
	events, consumed = decodeUnchecked(dst, b)
	rest := b[consumed:]
	if events == len(dst) || len(rest) == 0 || len(rest) >= MaxEventSize {
		return events, consumed
	}
	// The rest is too short for more than one event.
	size := EventSize(MessageType(rest[0]))
	if size == 0 || size > len(rest) {
		return events, consumed
	}
	var padded [MaxEventSize]byte
	copy(padded[:], rest[:size])
	decodeUnchecked(dst[events:events+1], padded[:])
	return events + 1, consumed + size
}

// decodeUnchecked is DecodeEvents for events with at least MaxEventSize bytes from their beginning. So one comparison
// covers the bounds of all fields.
//
// A branch for each type is faster than a table of sizes and shifts. Real calls have a pattern, so the processor
// predicts the size of an event and decodes the next one meanwhile. With a table it would wait. For the captured Maven
// build it needs 2.3 ns an event instead of 4.0; for random types 8.4 instead of 4.0.
func decodeUnchecked(dst []Event, b []byte) (events, consumed int) {
	at := 0
	for events < len(dst) && len(b)-at >= MaxEventSize {
		m := (*[MaxEventSize]byte)(b[at:])
		e := &dst[events]
		t := MessageType(m[0])
		switch t {
		case TypeMethodEntry:
			e.Exception, e.Line = 0, 0
			e.Thread = binary.BigEndian.Uint16(m[entryThreadOffset:])
			at += MethodEntrySize
		case TypeMethodExit:
			e.Exception = 0
			e.Line = binary.BigEndian.Uint16(m[exitLineOffset:])
			e.Thread = binary.BigEndian.Uint16(m[exitThreadOffset:])
			at += MethodExitSize
		case TypeException:
			e.Exception = binary.BigEndian.Uint32(m[exceptionOffset:])
			e.Line = binary.BigEndian.Uint16(m[exceptionLineOffset:])
			e.Thread = binary.BigEndian.Uint16(m[exceptionThreadOffset:])
			at += ExceptionSize
		case TypeExceptionBubble:
			e.Exception = binary.BigEndian.Uint32(m[exceptionOffset:])
			e.Line = 0
			e.Thread = binary.BigEndian.Uint16(m[bubbleThreadOffset:])
			at += ExceptionBubbleSize
		default:
			return events, at
		}
		e.Type = t
		e.Time = binary.BigEndian.Uint32(m[timeOffset:])
		e.Sequence = binary.BigEndian.Uint32(m[sequenceOffset:])
		e.Method = binary.BigEndian.Uint32(m[methodOffset:])
		events++
	}
	return events, at
}

// AppendEvent appends e as an agent sends it. It omits fields that events of its type do not have. It panics if e.Type
// is not a call event.
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
