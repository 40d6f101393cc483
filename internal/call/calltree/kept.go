// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "time"

// TraceID and SpanID are those of OpenTelemetry.
type (
	TraceID [16]byte
	SpanID  [8]byte
)

// TraceSummary tells of a trace of which spans are kept.
type TraceSummary struct {
	ID TraceID
	// Root is the function of the first span, by its start, of those that are kept.
	Root string
	// Spans and Errors are how many are kept, of all services; Dropped is how many came
	// that are kept no more.
	Spans, Errors, Dropped int
	// Start and End are those of the earliest and of the latest span.
	Start, End time.Time
}

// KeptSpan is a span as it came.
type KeptSpan struct {
	ID, Parent SpanID // Parent is zero for a root
	Service    string
	Instance   string // of the service; empty if not told
	Function   string
	File       string
	Line       int64
	// Thread is the thread's ID, and ThreadName its name; 0 and empty if not told.
	Thread     int64
	ThreadName string
	Start, End int64 // nanoseconds since 1970
	Error      bool
	Truncated  bool
}
