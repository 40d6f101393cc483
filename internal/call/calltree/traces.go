// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"cmp"
	"slices"
	"time"
)

// Traces tells of the traces of which spans of the service are kept, the latest first.
func (s *Store) Traces(service string) []TraceSummary {
	spans, dropped := s.copySummed(service)
	all := summarize(spans, dropped)
	slices.SortFunc(all, func(a, b TraceSummary) int {
		return cmp.Or(b.End.Compare(a.End), slices.Compare(a.ID[:], b.ID[:]))
	})
	return all
}

// summedSpan is what a summary needs of a span.
type summedSpan struct {
	trace               TraceID
	function            string
	start, end          int64
	failed, isOfService bool
}

// copySummed is what summaries need of all spans, and how many were dropped of each trace
// that some were of. There are none where there is no such service.
func (s *Store) copySummed(service string) ([]summedSpan, map[TraceID]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sv, ok := s.services[service]
	if !ok {
		return nil, nil
	}
	spans := make([]summedSpan, len(s.kept.spans))
	for i := range spans {
		from, to := &s.kept.spans[i], &spans[i]
		to.trace, to.start, to.end, to.failed = from.trace, from.start, from.end, from.failed
		to.function = s.trees[from.tree].functions.all[from.function].name
		to.isOfService = from.tree == sv.calls.number
	}
	dropped := map[TraceID]int{}
	for id, trace := range s.kept.traces {
		if trace.dropped > 0 {
			dropped[id] = trace.dropped
		}
	}
	return spans, dropped
}

// summary is a trace that is being summed up.
type summary struct {
	TraceSummary
	first, last int64
	isOfService bool
}

// summarize sums up the traces that have a span of the service.
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

// Trace gives the spans of a trace that are kept, in the order of their starts; callers
// before what they call, where both start at once and the caller took longer.
func (s *Store) Trace(id TraceID) ([]KeptSpan, bool) {
	spans := s.copyTrace(id)
	slices.SortStableFunc(spans, func(a, b KeptSpan) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	return spans, len(spans) > 0
}

func (s *Store) copyTrace(id TraceID) (spans []KeptSpan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.kept.spans {
		if span := &s.kept.spans[i]; span.trace == id {
			spans = append(spans, s.tellKept(span))
		}
	}
	return spans
}

func (s *Store) tellKept(span *keptSpan) KeptSpan {
	t := s.trees[span.tree]
	f := &t.functions.all[span.function]
	return KeptSpan{
		ID: span.id, Parent: span.parent, Service: t.owner.name, Instance: t.functions.all[span.instance].name,
		Function: f.name, File: f.file, Line: f.line,
		Thread: span.thread, ThreadName: t.owner.threads.known[span.threadNumber].name,
		Start: span.start, End: span.end, Error: span.failed, Truncated: span.truncated,
	}
}
