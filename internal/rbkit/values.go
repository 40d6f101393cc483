// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"encoding/binary"
	"iter"
	"time"
)

// The keys of messages (document, "Message fields"). The document lacks 18.
const (
	fieldType        = 0
	fieldTime        = 1
	fieldPayload     = 2
	fieldID          = 3
	fieldClass       = 4
	fieldReferences  = 5
	fieldFile        = 6
	fieldLine        = 7
	fieldSize        = 8
	fieldCounter     = 9
	fieldCorrelation = 10
	fieldObjects     = 11 // "complete_message_count" in the document, but it counts objects
	fieldMethod      = 12
	fieldLabel       = 13
	fieldSingleton   = 14
	fieldThread      = 15
	fieldStacks      = 16
	fieldCount       = 17
	fieldAllocations = 18
)

// Time is the time of the server's clock when it encoded an event, in milliseconds since 1970. It
// may step back.
type Time int64

// Time returns the time as a time.Time.
func (t Time) Time() time.Time { return time.UnixMilli(int64(t)).UTC() }

// Object has the properties of an object. Texts point into the message.
type Object struct {
	ID    uint64
	Class []byte // nil: hidden. Names of anonymous classes have an address, so their number is unbounded
	// Only dumped objects have the following properties.
	References References // to objects, which may be missing
	File       []byte     // the place of its creation; nil: unknown
	Line       uint64
	Size       uint64 // bytes
	Sized      bool   // there is a size
}

// References is a list of IDs of objects.
type References struct{ list }

// All returns the IDs, in the order of the message.
func (r References) All() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for raw := r.raw; len(raw) > 0; {
			var id uint64
			if len(raw) >= sizeUint32 && raw[0] == firstUint32 {
				id = uint64(binary.BigEndian.Uint32(raw[1:sizeUint32]))
				raw = raw[sizeUint32:]
			} else {
				c := newCursor(raw)
				id = c.number(expectedID)
				raw = c.rest()
			}
			if !yield(id) {
				return
			}
		}
	}
}

// Part is the head of a part of an object space dump, before its objects.
type Part struct {
	Correlation uint64 // the same for all parts of a dump
	Objects     uint64 // of all parts, if Counted
	Counted     bool   // the number of all objects is known
	Here        int    // announced objects of this part, at most the number of bytes that follow
}

// Frame is a frame of a stack. Texts point into the message.
type Frame struct {
	Method    []byte // nil: none, as for the main program
	Label     []byte // with class and block, as Class#method; nil in allocation snapshots
	File      []byte // "<cfunc>" for a method in C, whose line is invalid
	Line      uint64 // the first of the method
	Singleton bool
	Thread    uint64 // a Ruby object's ID; 0 in the documented dialect, which has none
	// Encoded has all received bytes of the frame without the thread. Equal bytes are equal frames.
	// nil: the frame has an unusual encoding.
	Encoded []byte
}

// Frames is a stack, leaf first.
type Frames struct{ list }

// Encoded returns the received bytes of the stack. Equal bytes are equal stacks.
func (f Frames) Encoded() []byte { return f.raw }

// All returns the frames, leaf first.
func (f Frames) All() iter.Seq[Frame] {
	return func(yield func(Frame) bool) {
		c := newCursor(f.raw)
		for range f.n {
			if !yield(c.frame()) {
				return
			}
		}
	}
}

// Stats is the result of GC.stat: names and numbers.
type Stats struct{ list }

// All returns the names, which point into the message, and their numbers, without statistics that
// this Ruby doesn't have.
func (s Stats) All() iter.Seq2[[]byte, Number] {
	return func(yield func([]byte, Number) bool) {
		c := newCursor(s.raw)
		for range s.n {
			name, number, ok := c.stat()
			if ok && !yield(name, number) {
				return
			}
		}
	}
}

// Number is a number as received.
type Number struct {
	Integer int64
	Float   float64 // if IsFloat
	IsFloat bool    // also for numbers above the largest int64
}

// Snapshot has the allocations since the previous snapshot. It doesn't subtract freed objects.
type Snapshot struct{ stacks, allocations list }

// Size returns the number of its bytes in the message.
func (s Snapshot) Size() int { return len(s.stacks.raw) + len(s.allocations.raw) }

// Files returns the number of files with allocations.
func (s Snapshot) Files() int { return s.allocations.n }

// AllStacks returns the stacks by their IDs, which are valid only in this snapshot.
func (s Snapshot) AllStacks() iter.Seq2[uint64, Frames] {
	return func(yield func(uint64, Frames) bool) {
		c := newCursor(s.stacks.raw)
		for range s.stacks.n {
			if !yield(c.stack()) {
				return
			}
		}
	}
}

// AllAllocations returns the allocations, file by file.
func (s Snapshot) AllAllocations() iter.Seq[Allocation] {
	return func(yield func(Allocation) bool) {
		c := newCursor(s.allocations.raw)
		for range s.allocations.n {
			if !c.file(yield) {
				return
			}
		}
	}
}

// hiddenClass is the name of a hidden class in snapshots.
const hiddenClass = "(null)"

// Allocation is the objects of one class and size that were allocated at one place. Texts point
// into the message.
type Allocation struct {
	File   []byte
	Line   uint64
	Class  []byte // nil: hidden
	Size   uint64 // bytes of each object, without the objects that it refers to
	Count  uint64
	Stacks StackCounts // the stacks that allocated; empty: unknown
}

// StackCounts are the numbers of objects that stacks allocated.
type StackCounts struct{ list }

// All returns the IDs of stacks, and their numbers of objects.
func (s StackCounts) All() iter.Seq2[uint64, uint64] {
	return func(yield func(uint64, uint64) bool) {
		c := newCursor(s.raw)
		for range s.n {
			if id := c.number(expectedStack); !yield(id, c.number(expectedCount)) {
				return
			}
		}
	}
}

// list is n checked elements in the message.
type list struct {
	n   int
	raw []byte
}

// Len returns the number of elements.
func (l list) Len() int { return l.n }
