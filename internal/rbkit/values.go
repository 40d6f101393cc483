// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import "iter"

// Stat is a number of the garbage collector's statistics.
type Stat struct {
	Key []byte
	// Value is the number, if Known: servers give a text for what their Ruby lacks.
	Value int64
	Known bool
}

// DumpPart is what a part of a dump says of itself.
type DumpPart struct {
	// Correlation is the number of the dump, the same in all its parts.
	Correlation uint64
	// Complete is how many objects all parts have together.
	Complete uint64
	// Objects is how many objects this part announces.
	Objects uint32
}

// DumpedObject is an object of a dump. File and Line are where it was created, nil and 0
// where that is not known.
type DumpedObject struct {
	ID         uint64
	Class      []byte // nil for objects that Ruby hides
	References References
	File       []byte
	Line       uint64
	HasLine    bool
	Size       uint64 // bytes
	HasSize    bool
}

// References are the IDs of objects that an object refers to. They stay as they were sent
// until they are ranged over.
type References struct {
	packed []byte
	n      uint32
}

// Len is how many they are.
func (r References) Len() int { return int(r.n) }

// All are the IDs.
func (r References) All() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		in := newReader(r.packed)
		for range r.n {
			// They were read once, when the object was.
			id, _ := in.uint("")
			if !yield(id) {
				return
			}
		}
	}
}

// Frame is a method of a stack.
type Frame struct {
	// Method and Label are its name, and the name with what it is of, such as
	// "block in Shop#buy"; nil where there is none. Frames of snapshots have no label.
	Method, Label []byte
	// File is "<cfunc>" where the method is written in C.
	File []byte
	// Line is the first line of the method, not the one that runs.
	Line uint64
	// Singleton says that it is a method of one object, such as a class.
	Singleton bool
	// Thread is the object ID of the thread, if HasThread.
	Thread    uint64
	HasThread bool
}

// Allocation is objects of one class and size that were allocated in one line, since the
// last snapshot.
type Allocation struct {
	File  []byte
	Line  uint64
	Class []byte // nil for objects that Ruby hides
	Size  uint64 // bytes of each
	Count uint64
	// Stacks are by which stacks they were allocated, as far as that was recorded.
	Stacks StackCounts
}

// StackCounts are how many objects were allocated by which stack. They stay as they were
// sent until they are ranged over.
type StackCounts struct {
	packed []byte
	n      uint32
}

// Len is how many stacks there are.
func (s StackCounts) Len() int { return int(s.n) }

// All are the IDs of stacks in the snapshot, and counts.
func (s StackCounts) All() iter.Seq2[uint64, uint64] {
	return func(yield func(stack, count uint64) bool) {
		in := newReader(s.packed)
		for range s.n {
			// They were read once, when the allocation was.
			id, _ := in.uint("")
			count, _ := in.uint("")
			if !yield(id, count) {
				return
			}
		}
	}
}
