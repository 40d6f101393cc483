// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "slices"

// keptSpans are the spans that came last, as they came, in a ring.
type keptSpans struct {
	spans []keptSpan
	most  int
	// next is where the next one goes, once the ring is full.
	next int
	// traces are those of which spans are kept. newest and oldest were looked up last, for
	// what is kept and for what makes room: spans of a trace mostly come together.
	traces         map[TraceID]*keptTrace
	newest, oldest *keptTrace
	// dropped is how many spans made room for others, and gone the traces of which none is
	// kept any more.
	dropped, gone uint64
	// release is called with what makes room.
	release func(*keptSpan)
}

// keptSpan is one of them. The tree is that of its service; function and instance are
// numbers of its functions.
type keptSpan struct {
	trace                                  TraceID
	id, parent                             SpanID
	start, end                             int64
	thread                                 int64
	tree, function, instance, threadNumber uint32
	failed, truncated                      bool
}

type keptTrace struct {
	id TraceID
	// kept is how many spans are kept, and dropped how many made room for others.
	kept, dropped int
}

func newKeptSpans(most int, release func(*keptSpan)) keptSpans {
	return keptSpans{most: most, traces: map[TraceID]*keptTrace{}, release: release}
}

// add gives the place for a span of a trace, which may hold what was there before.
func (r *keptSpans) add(trace *TraceID) (span *keptSpan) {
	if len(r.spans) < r.most {
		r.spans = append(r.spans, keptSpan{})
		span = &r.spans[len(r.spans)-1]
	} else {
		span = &r.spans[r.next]
		r.drop(span)
		if r.next++; r.next == r.most {
			r.next = 0
		}
	}
	if r.newest == nil || r.newest.id != *trace {
		r.newest = r.traces[*trace]
		if r.newest == nil {
			r.newest = &keptTrace{id: *trace}
			r.traces[*trace] = r.newest
		}
	}
	r.newest.kept++
	return span
}

func (r *keptSpans) drop(span *keptSpan) {
	r.release(span)
	r.dropped++
	if r.oldest == nil || r.oldest.id != span.trace {
		r.oldest = r.traces[span.trace]
	}
	r.oldest.kept--
	r.oldest.dropped++
	if r.oldest.kept > 0 {
		return
	}
	r.gone++
	delete(r.traces, span.trace)
	if r.newest == r.oldest {
		r.newest = nil
	}
	r.oldest = nil
}

// dropOldest drops so many spans.
func (r *keptSpans) dropOldest(number int) {
	rest := make([]keptSpan, 0, len(r.spans)-number)
	for i := range r.spans {
		if span := &r.spans[(r.next+i)%len(r.spans)]; i < number {
			r.drop(span)
		} else {
			rest = append(rest, *span)
		}
	}
	r.spans, r.next = rest, 0
}

// dropOf drops all spans of a tree.
func (r *keptSpans) dropOf(tree uint32) {
	if !slices.ContainsFunc(r.spans, func(span keptSpan) bool { return span.tree == tree }) {
		return
	}
	rest := make([]keptSpan, 0, len(r.spans))
	for i := range r.spans {
		// The oldest first.
		if span := &r.spans[(r.next+i)%len(r.spans)]; span.tree == tree {
			r.drop(span)
		} else {
			rest = append(rest, *span)
		}
	}
	r.spans, r.next = rest, 0
}

// keep keeps a span as it came.
func (s *Store) keep(sv *service, span *Span, function, now uint32) {
	thread := uint32(0)
	if span.HasThread {
		thread = sv.threads.number(span.Thread, span.ThreadName, now)
	}
	if s.settings.MaxKeptSpans == 0 {
		return
	}
	sv.calls.functions.ref(function)
	sv.calls.functions.ref(sv.instance)
	sv.threads.known[thread].kept++
	kept := s.kept.add(&span.Trace)
	kept.trace, kept.id, kept.parent = span.Trace, span.ID, SpanID{}
	if span.ParentTrace == span.Trace {
		kept.parent = span.Parent
	}
	kept.start = clamp(span.Start)
	kept.end = plus(kept.start, span.duration())
	kept.thread, kept.threadNumber = span.Thread, thread
	kept.tree, kept.function, kept.instance = sv.calls.number, function, sv.instance
	kept.failed, kept.truncated = span.Error, span.Truncated
}

func (s *Store) releaseKept(span *keptSpan) {
	t := s.trees[span.tree]
	t.functions.unref(span.function)
	t.functions.unref(span.instance)
	t.owner.threads.known[span.threadNumber].kept--
}
