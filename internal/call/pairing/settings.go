// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import "time"

// Settings are the bounds and choices of pairing. All streams share them.
type Settings struct {
	// MaxEvents bounds the numbers between the lowest and the highest event of a
	// stream that wait for missing ones.
	MaxEvents int
	// MaxWait is how long missing numbers are waited for after the first later
	// one was known.
	MaxWait time.Duration
	// MaxClockJump is how far, in nanoseconds, an event's time may be ahead of
	// the time its batch was received, or behind the event before it.
	MaxClockJump int64
	// MaxFrames bounds the open frames of a lane, MaxLanes the lanes of a
	// stream, MaxNameBytes the names it remembers.
	MaxFrames, MaxLanes, MaxNameBytes int
	// MaxThrows bounds the exceptions that are remembered for a frame.
	MaxThrows int
	// MaxSpansPerTrace is how many frames a trace takes; 0: no limit.
	MaxSpansPerTrace int
	// TraceRoot says whether the function with this qualified name starts a new
	// trace; nil: none does. It is asked once for each function of a stream.
	TraceRoot func(qualified string) bool
	// MinDuration in nanoseconds: shorter calls are left out; 0: none.
	MinDuration int64
	// MaxDepth: frames above this many are left out; 0: none.
	MaxDepth int
	// DropTruncated leaves truncated frames out.
	DropTruncated bool
}
