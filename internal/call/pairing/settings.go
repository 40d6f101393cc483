// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"time"

	"github.com/callbraid/callbraid/internal/call/callsum"
)

// Settings are the bounds and choices of pairing. All streams share them.
type Settings struct {
	// MaxEvents bounds the numbers between the lowest and the highest waiting event of a
	// stream.
	MaxEvents int
	// MaxWait is the longest wait for missing numbers, from the first later number on.
	MaxWait time.Duration
	// MaxClockJump is the largest distance, in nanoseconds, of an event's time ahead of the
	// receive time of its batch, or behind the event before it.
	MaxClockJump int64
	// MaxFrames bounds the open frames of a lane, MaxLanes the lanes of a stream, and
	// MaxNameBytes the memory of its names.
	MaxFrames, MaxLanes, MaxNameBytes int
	// MaxThrows bounds the exceptions of a frame.
	MaxThrows int
	// MaxSpansPerTrace bounds the frames of a trace; 0: no limit.
	MaxSpansPerTrace int
	// TraceRoot reports whether the function with this qualified name starts a new trace;
	// nil: none does. It is called once for each function of a stream.
	TraceRoot func(qualified string) bool
	// MinDuration is in nanoseconds: shorter calls are left out; 0: none.
	MinDuration int64
	// MaxDepth bounds the depth of frames; deeper ones are left out; 0: no bound.
	MaxDepth int
	// DropTruncated leaves truncated frames out. Sums leave them out too, but their time is
	// never their caller's own. The criteria of Keep apply to them.
	DropTruncated bool
	// Sums are the settings of sums of calls; nil: a stream has no sums.
	Sums *callsum.Settings
	// SumsOnly: finished calls are counted, and not written to outputs.
	SumsOnly bool
	// Keep selects traces; nil: all calls are written to outputs as soon as they end.
	Keep *Keep
}
