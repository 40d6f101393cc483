// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import "encoding/hex"

// StreamID identifies a call stream: the call events of one traced process in
// one run, totally ordered by their sequence numbers. It is never all zero.
// After the end of its call stream it is not used again.
type StreamID [16]byte

// IsZero reports whether id is the invalid ID.
func (id StreamID) IsZero() bool { return id == StreamID{} }

// String returns id as 32 hexadecimal digits.
func (id StreamID) String() string { return hex.EncodeToString(id[:]) }

// Kind is the kind of a call event.
type Kind uint8

const (
	// KindEnter: a function was entered.
	KindEnter Kind = 1 + iota
	// KindExit: a function returned.
	KindExit
	// KindExitTop: the function on top of the lane's stack returned, whichever it is. The event's
	// function has no meaning.
	KindExitTop
	// KindThrow: an exception was thrown in a function, which continues.
	KindThrow
	// KindUnwind: an exception left a function.
	KindUnwind
	// KindSkip: the tracer used the sequence number for something other than a call. The other
	// fields of the event have no meaning.
	KindSkip
	// KindEnterFrom: a function was entered, and the caller was already on the stack. The calls above
	// the caller's nearest one have ended without an exit, for example by longjmp. Exception is the
	// caller's index in the table of functions.
	KindEnterFrom
	// KindEnterOutermost: a function was entered, and no other call of the lane can be open. Calls
	// that are open end there, truncated: their ends were not traced.
	KindEnterOutermost
	// KindFail: a function returned an error, which is the event's exception.
	KindFail

	kindEnd
)

var kindNames = [kindEnd]string{"none", "enter", "exit", "exit top", "throw", "unwind", "skip", "enter from", "enter outermost", "fail"}

func (k Kind) String() string {
	if k < kindEnd {
		return kindNames[k]
	}
	return "unknown"
}

// Event is one call event of a batch.
type Event struct {
	// Sequence is the event's place in its call stream. The first is 0: the processor waits for
	// missing numbers, also for those before the first.
	Sequence uint64
	// Time is in Unix nanoseconds in an unpacked batch, and in ticks of the stream's clock for a
	// Packer. Times of one call stream, of all its lanes, have the order of the sequence numbers:
	// pairing changes those that go back.
	Time int64
	// Line is the line of the event in the source; 0: not known.
	Line uint32
	// Lane and Function are indexes into the batch's tables.
	Lane, Function uint16
	// Exception is 0 if there is none or it is not known. Otherwise it is an index into the batch's
	// table, plus one. Only throw, unwind and fail have one. An enter from a caller has the caller here.
	Exception uint16
	Kind      Kind
}

// Function is a function as the tracer reports it.
type Function struct {
	// Qualified is the fully qualified name, the convention's
	// code.function.name; Display is short, to name a span with.
	Qualified, Display string
	// Text is the function as the tracer sent it.
	Text string
	// File and Line are the place of its definition; empty and 0: not known.
	File string
	Line uint32
}

// Lane is the owner of one call stack, with its name where no Rename applies. A batch can contain
// one lane ID several times, with different names.
type Lane struct {
	ID   uint64
	Name string
}

// Bits of a lane's ID distinguish lanes of one call stream that have the same number otherwise.
// Without these bits a lane is a thread of the operating system, or has the tracer's own number.
const (
	// LaneManaged: the rest is the number of the thread in a runtime such as the JVM.
	LaneManaged uint64 = 1 << 62
	// LaneKey: events are paired by a key, from any thread.
	LaneKey uint64 = 1 << 63
)

// ThreadID returns the number of a lane's thread. It reports false if the lane is no thread.
func ThreadID(lane uint64) (id int64, is bool) {
	return int64(lane &^ LaneManaged), lane&LaneKey == 0
}
