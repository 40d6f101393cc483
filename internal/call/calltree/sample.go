// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

// Sample is a stack with its values.
type Sample struct {
	// Frames begin with the outermost.
	Frames []Frame
	// IsCut: frames above the first are missing.
	IsCut bool
	// Count is the number of samples, and Value their sum.
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
