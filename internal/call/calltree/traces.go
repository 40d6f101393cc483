// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "time"

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

// summedSpan is the part of a span for a summary.
type summedSpan struct {
	trace               TraceID
	function            string
	start, end          int64
	failed, isOfService bool
}

// summary is a trace while it is summarized.
type summary struct {
	TraceSummary
	first, last int64
	isOfService bool
}

// summarize summarizes the traces with a span of the service.
func summarize(spans []summedSpan, dropped map[TraceID]int) (all []TraceSummary) {
	found := map[TraceID]*summary{}
	var at *summary
	for i := range spans {
		span := &spans[i]
		if at == nil || at.ID != span.trace {
			if at = found[span.trace]; at == nil {
				at = &summary{TraceSummary: TraceSummary{ID: span.trace, Dropped: dropped[span.trace]}}
				found[span.trace] = at
			}
		}
		at.add(span)
	}
	for _, f := range found {
		if f.isOfService {
			all = append(all, f.TraceSummary)
		}
	}
	return all
}

func (s *summary) add(span *summedSpan) {
	s.Spans++
	if span.failed {
		s.Errors++
	}
	s.isOfService = s.isOfService || span.isOfService
	if s.Spans == 1 || span.start < s.first {
		s.first, s.Root, s.Start = span.start, span.function, time.Unix(0, span.start)
	}
	if s.Spans == 1 || span.end > s.last {
		s.last, s.End = span.end, time.Unix(0, span.end)
	}
}
