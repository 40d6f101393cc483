// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"encoding/binary"
	"iter"
	"time"
)

// The keys of messages (document, "Message fields"). 18 is missing there.
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
	fieldObjects     = 11 // "complete_message_count", which it is not
	fieldMethod      = 12
	fieldLabel       = 13
	fieldSingleton   = 14
	fieldThread      = 15
	fieldStacks      = 16
	fieldCount       = 17
	fieldAllocations = 18
)

// Time is milliseconds since 1970, by the server's clock when something was packed. It
// may step back.
type Time int64

// Time is the same as a time.
func (t Time) Time() time.Time { return time.UnixMilli(int64(t)).UTC() }

// Object has the properties of an object. Texts point into the message.
type Object struct {
	ID    uint64
	Class []byte // nil: hidden. Anonymous classes have an address, so there is no end of them
	// The others are of dumped objects.
	References References // to objects, which needn't be there
	File       []byte     // where it was made; nil: unknown
	Line       uint64
	Size       uint64 // bytes
	Sized      bool   // there is a size
}

// References is a list of IDs of objects.
type References struct{ list }

// All are the IDs, in the order of the message.
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

// Part says what the part of an object space dump is that stands before its objects.
type Part struct {
	Correlation uint64 // is the same for all parts of a dump
	Objects     uint64 // of all parts, if Counted
	Counted     bool   // it says how many
	Here        int    // objects that this part announces, as far as they can be there
}

// Frame is a frame of a stack. Texts lie in the message.
type Frame struct {
	Method    []byte // nil: none, as for the main program
	Label     []byte // with class and block, as Class#method; nil in allocation snapshots
	File      []byte // "<cfunc>" for what is written in C, whose line means nothing
	Line      uint64 // the first of the method
	Singleton bool
	Thread    uint64 // a Ruby object's ID; 0 in the documented dialect, which has none
	// Told is what was sent of it but for the thread: where it is the same, so is all of
	// that. nil: it is written in another way than usual.
	Told []byte
}

// Frames is a stack, leaf first.
type Frames struct{ list }

// Told is the stack as it was sent: where it is the same, so are all frames.
func (f Frames) Told() []byte { return f.raw }

// All are the frames, leaf first.
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

// All are the names, which lie in the message, and their numbers. What this Ruby doesn't
// have is left out.
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

// Number is a number as it was sent.
type Number struct {
	Integer int64
	Float   float64 // if IsFloat
	IsFloat bool    // also for what is above the largest int64
}

// Snapshot is what was allocated since the one before. What was freed is not subtracted.
type Snapshot struct{ stacks, allocations list }

// Size is how many bytes of the message it has.
func (s Snapshot) Size() int { return len(s.stacks.raw) + len(s.allocations.raw) }

// Files is how many files something was allocated in.
func (s Snapshot) Files() int { return s.allocations.n }

// AllStacks are the stacks by their ID, which holds in this snapshot only.
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

// AllAllocations are the allocations, file by file.
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

// Allocation is what was allocated of one class and size at one place. Texts lie in the
// message.
type Allocation struct {
	File   []byte
	Line   uint64
	Class  []byte // nil: hidden
	Size   uint64 // bytes of each, without what it points to
	Count  uint64
	Stacks StackCounts // by which stacks; empty: unknown
}

// StackCounts is how often something was allocated by which stack.
type StackCounts struct{ list }

// All are the IDs of stacks, and how often.
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

// list is n elements that were checked, and lie in the message.
type list struct {
	n   int
	raw []byte
}

// Len is how many elements there are.
func (l list) Len() int { return l.n }
