// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

// Stats count what came over a connection.
type Stats struct {
	// Frames are replies, and Bytes those of theirs, headers included.
	Frames, Bytes uint64
	// Tolerated are replies whose data was no JSON, and was understood.
	Tolerated uint64
	// Dropped are replies whose data was not understood, or too long. They were given up alone.
	Dropped uint64
	// LastDropped says why the last of them was: it wraps a *ProtocolError with its place in the
	// data, or that of a length.
	LastDropped error
	// Unasked are replies to requests that are not known: never sent, or ended.
	Unasked uint64
	// Late are replies to requests that nobody waits for any more.
	Late uint64
	// Gaps are how often resp_id was not the next number.
	Gaps uint64
	// Heartbeats were sent, and Unanswered are those without an answer yet.
	Heartbeats, Unanswered uint64
}
