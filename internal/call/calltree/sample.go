// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

// Sample is a stack, and what was found of it.
type Sample struct {
	// Frames are from the outermost on.
	Frames []Frame
	// IsCut says that there were more, above the first.
	IsCut bool
	// Count is how many samples there were, and Value what they were of, all together.
	Count uint64
	Value int64
}

// Thread is a thread that was sampled.
type Thread struct {
	ID   int64
	Name string
}

// Frame is a place in a stack.
type Frame struct {
	Function, File string
	Line           int64
}
