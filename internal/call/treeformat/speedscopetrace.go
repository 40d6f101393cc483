// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"bufio"
	"encoding/hex"
	"io"
	"math"
	"slices"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// WriteSpeedscopeTrace writes a trace as a file of speedscope. It has a profile for each thread,
// with all spans in the order of time. All profiles have the same times: nanoseconds since the
// trace's start.
//
// A profile needs spans that are nested or do not overlap. Other spans of a thread, such as
// concurrent calls without a thread, are in further profiles of the same name. If a thread needs
// more than [mostLanes] profiles, the last one has all further spans, and they end with the span
// around them. WriteSpeedscopeTrace sorts spans.
func WriteSpeedscopeTrace(w io.Writer, id calltree.TraceID, spans []calltree.KeptSpan) error {
	sortForNesting(spans)
	f := speedscopeFile{out: bufio.NewWriter(w), frames: map[place]int{}}
	f.begin("trace " + hex.EncodeToString(id[:]))
	for i := range spans {
		if f.failed() {
			break
		}
		node := nodeOfSpan(&spans[i])
		f.writeFrame(&node)
	}
	f.text(`]},"profiles":[`)
	f.writeLanes(spans)
	f.text("]}\n")
	return f.out.Flush() // Flush returns all errors of writing
}

// nodeOfSpan is a node with the names of a span.
func nodeOfSpan(s *calltree.KeptSpan) calltree.Node {
	n := calltree.Node{Function: s.Function, File: s.File, Line: s.Line}
	if s.Truncated {
		n.Mark = calltree.Truncated
	}
	return n
}

// writeLanes writes a profile for each lane of the trace.
func (f *speedscopeFile) writeLanes(spans []calltree.KeptSpan) {
	var all lanes
	var ofLane [][]int32 // spans of each lane
	var end int64        // of the trace, since its start
	for i := range spans {
		s := &spans[i]
		ended := max(s.End, s.Start)
		l, isNew := all.of(s, ended)
		if isNew {
			ofLane = append(ofLane, nil)
		}
		ofLane[l.id-1] = append(ofLane[l.id-1], int32(i))
		end = max(end, since(spans[0].Start, ended))
	}
	for i, of := range ofLane {
		if f.failed() {
			return
		}
		if i > 0 {
			f.text(",")
		}
		first := &spans[of[0]]
		name := processName(process{first.Service, first.Instance}) + ": " + threadName(first)
		f.beginProfile(name, unitNanoseconds, end)
		f.writeSpans(spans, of)
		f.text("]}")
	}
}

// since is the time from the start of a trace, without a sign and within the range.
func since(start, at int64) int64 {
	if at <= start {
		return 0
	}
	return addSigned(at, -max(start, -math.MaxInt64)) // the smallest number has no negative
}

// writeSpans writes the spans of a lane as they open and close.
func (f *speedscopeFile) writeSpans(spans []calltree.KeptSpan, of []int32) {
	type open struct {
		frame int
		end   int64
	}
	var stack []open
	closeUntil := func(at int64) {
		for len(stack) > 0 && stack[len(stack)-1].end <= at {
			last := stack[len(stack)-1]
			f.event("C", last.frame, last.end)
			stack = stack[:len(stack)-1]
		}
	}
	for _, i := range of {
		if f.failed() {
			return
		}
		s := &spans[i]
		begin, end := since(spans[0].Start, s.Start), since(spans[0].Start, max(s.End, s.Start))
		closeUntil(begin)
		if len(stack) > 0 {
			end = min(end, stack[len(stack)-1].end)
		}
		node := nodeOfSpan(s)
		frame := f.frames[placeOf(&node)]
		f.event("O", frame, begin)
		stack = append(stack, open{frame, end})
	}
	for _, last := range slices.Backward(stack) {
		f.event("C", last.frame, last.end)
	}
}
