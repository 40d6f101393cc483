// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "time"

// TraceID and SpanID are those of OpenTelemetry.
type (
	TraceID [16]byte
	SpanID  [8]byte
)

// TraceSummary summarizes a trace with kept spans.
type TraceSummary struct {
	ID TraceID
	// Root is the function of the earliest kept span.
	Root string
	// Spans and Errors are kept, of all services. Dropped spans arrived and are no longer kept.
	Spans, Errors, Dropped int
	// Start is that of the earliest span, and End that of the latest.
	Start, End time.Time
}

// KeptSpan is a span as it arrived.
type KeptSpan struct {
	ID, Parent SpanID // Parent is zero for a root
	Service    string
	Instance   string // of the service; empty if not known
	Function   string
	File       string
	Line       int64
	// Thread is the ID of the thread, and ThreadName its name; 0 and empty if not known.
	Thread     int64
	ThreadName string
	Start, End int64 // nanoseconds since 1970
	Error      bool
	Truncated  bool
}
