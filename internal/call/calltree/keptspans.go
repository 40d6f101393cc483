// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"slices"
	"unsafe"
)

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

// keptSpans are the latest spans as they arrived, in a ring.
type keptSpans struct {
	spans []keptSpan
	most  int
	// next is the place of the next span, once the ring is full.
	next int
	// traces are those with kept spans. newest and oldest are the last ones that were looked
	// up, for a new span and for a dropped one. Spans of a trace mostly arrive together.
	traces         map[TraceID]*keptTrace
	newest, oldest *keptTrace
	// dropped is the number of spans that made room for others, and gone that of traces without
	// any kept span left.
	dropped, gone uint64
	forest        *forest
}

// keptSpan is a kept span. tree is that of its service. function and instance are numbers of
// its functions.
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
	// kept is the number of kept spans, and dropped of those that made room for others.
	kept, dropped int
}

func newKeptSpans(most int, f *forest) keptSpans {
	return keptSpans{most: most, traces: map[TraceID]*keptTrace{}, forest: f}
}

// appendTo returns the place for a span of a trace. The place may hold an earlier span.
func (r *keptSpans) appendTo(trace *TraceID) (span *keptSpan) {
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

// dropOldest drops the oldest spans.
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

// keep keeps a span of a service as it arrived, and notes its thread.
func (r *keptSpans) keep(sv *service, span *Span, function, now uint32) {
	thread := uint32(0)
	if span.HasThread {
		thread = sv.threads.number(span.Thread, span.ThreadName, now)
	}
	if r.most == 0 {
		return
	}
	sv.calls.functions.ref(function)
	sv.calls.functions.ref(sv.instance)
	sv.threads.known[thread].kept++
	kept := r.appendTo(&span.Trace)
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

// release releases the names and the thread of a span.
func (r *keptSpans) release(span *keptSpan) {
	t, sv := r.forest.trees[span.tree], r.forest.owners[span.tree]
	t.functions.unref(span.function)
	t.functions.unref(span.instance)
	sv.threads.known[span.threadNumber].kept--
}

// moveFunctions replaces the numbers of functions after trees were compacted.
func (r *keptSpans) moveFunctions(functions [][]uint32) {
	for i := range r.spans {
		if span := &r.spans[i]; functions[span.tree] != nil {
			span.function = functions[span.tree][span.function]
			span.instance = functions[span.tree][span.instance]
		}
	}
}

// summed copies all spans for summaries, and the number of dropped spans of each trace.
// tree is that of the service.
func (r *keptSpans) summed(tree uint32) ([]summedSpan, map[TraceID]int) {
	spans := make([]summedSpan, len(r.spans))
	for i := range spans {
		from, to := &r.spans[i], &spans[i]
		to.trace, to.start, to.end, to.failed = from.trace, from.start, from.end, from.failed
		to.function = r.forest.trees[from.tree].functions.all[from.function].name
		to.isOfService = from.tree == tree
	}
	dropped := map[TraceID]int{}
	for id, trace := range r.traces {
		if trace.dropped > 0 {
			dropped[id] = trace.dropped
		}
	}
	return spans, dropped
}

// ofTrace copies the spans of a trace.
func (r *keptSpans) ofTrace(id TraceID) (spans []KeptSpan) {
	for i := range r.spans {
		if span := &r.spans[i]; span.trace == id {
			spans = append(spans, r.copy(span))
		}
	}
	return spans
}

func (r *keptSpans) copy(span *keptSpan) KeptSpan {
	t, sv := r.forest.trees[span.tree], r.forest.owners[span.tree]
	f := &t.functions.all[span.function]
	return KeptSpan{
		ID: span.id, Parent: span.parent, Service: sv.name, Instance: t.functions.all[span.instance].name,
		Function: f.name, File: f.file, Line: f.line,
		Thread: span.thread, ThreadName: sv.threads.known[span.threadNumber].name,
		Start: span.start, End: span.end, Error: span.failed, Truncated: span.truncated,
	}
}

// keptTraceBytes is about the memory of a trace in the map.
const keptTraceBytes = 100

func (r *keptSpans) bytes() int64 {
	return int64(cap(r.spans))*int64(unsafe.Sizeof(keptSpan{})) + int64(len(r.traces))*keptTraceBytes
}
