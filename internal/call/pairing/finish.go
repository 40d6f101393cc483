// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import "github.com/callbraid/callbraid/internal/call/callevent"

// outcome is how a frame ends.
type outcome struct {
	end        int64
	truncated  callevent.Cause
	unwound    bool
	errorType  string
	line       uint32
	attributes []attribute
}

// belongings are what a lane keeps for one of its frames.
type belongings struct {
	throws     []Throw
	attributes []attribute
}

// belongings of the frame are those of the lane's that end before the given
// throw and the given attribute.
func (l *lane) belongings(f *frame, throws, attributes int) belongings {
	return belongings{
		throws:     l.throws[throws-int(f.throws) : throws],
		attributes: l.attributes[attributes-int(f.attributes) : attributes],
	}
}

// close takes the top frame off the stack, and makes a span of it or leaves it
// out.
func (s *Stream) close(l *lane, o *outcome) {
	depth := len(l.frames) - 1
	f := &l.frames[depth]
	var own belongings
	if f.throws|f.attributes != 0 {
		own = l.belongings(f, len(l.throws), len(l.attributes))
	}
	var parent *frame
	if depth > 0 && !l.isShared() {
		parent = &l.frames[depth-1]
	}
	s.conclude(l, f, parent, &own, o)
	if f.throws|f.attributes != 0 {
		l.throws = l.throws[:len(l.throws)-len(own.throws)]
		clear(own.attributes)
		l.attributes = l.attributes[:len(l.attributes)-len(own.attributes)]
	}
	l.frames = l.frames[:depth]
	if depth == 0 {
		s.slim(l)
	}
}

// conclude makes a span of the frame, which is about to leave the stack, or
// leaves it out.
func (s *Stream) conclude(l *lane, f, parent *frame, own *belongings, o *outcome) {
	s.open--
	s.names.functions[f.function].open--
	if l.counts != nil {
		l.uncount(f)
	}
	if len(own.attributes) > 0 {
		s.release(own.attributes)
	}
	if parent != nil {
		parent.inner = max(parent.inner, o.end)
	}
	if o.truncated != 0 {
		s.out.Counters.Truncated[o.truncated]++
	}
	if s.leaveOut(f, parent, o) {
		return
	}
	emitted := o.truncated == 0 || !s.settings.DropTruncated
	if emitted {
		s.emit(l, f, parent, own, o)
	} else {
		s.traces.all[f.trace].frames--
	}
	if parent != nil {
		parent.kept = parent.kept || f.kept || emitted
	}
	s.traces.release(f.trace)
}

// leaveOut leaves the frame out, if rule 10 says so, and reports whether it did.
// The length of a truncated frame is not known, so it is not short.
func (s *Stream) leaveOut(f, parent *frame, o *outcome) bool {
	tooDeep := f.trace == noTrace
	short := o.end-f.start < s.settings.MinDuration && o.truncated == 0
	if !tooDeep && (!short || f.kept) {
		return false
	}
	s.out.Counters.LeftOut++
	if !tooDeep {
		s.traces.all[f.trace].frames--
		s.traces.release(f.trace)
	}
	if parent == nil {
		return true
	}
	parent.leftOut.Calls += f.leftOut.Calls + 1
	parent.leftOut.Errors += f.leftOut.Errors
	parent.leftOut.Time += o.end - f.start
	if o.unwound {
		parent.leftOut.Errors++
	}
	return true
}

func (s *Stream) emit(l *lane, f, parent *frame, own *belongings, o *outcome) {
	out := s.out
	if len(out.Spans) == out.MaxSpans && out.Full != nil {
		out.Full()
	}
	out.Counters.Spans++
	out.Spans = append(out.Spans, Span{})
	span := &out.Spans[len(out.Spans)-1]
	span.Function = s.names.functions[f.function].name
	span.Lane, span.LaneName = l.id, s.names.laneNames[f.name].name
	span.Start, span.End = f.start, o.end
	span.Sequence, span.Parent = f.sequence, NoParent
	span.Trace = s.traces.all[f.trace].root
	span.Truncated, span.Unwound, span.ErrorType, span.Line = o.truncated, o.unwound, o.errorType, o.line
	span.LeftOut, span.DroppedThrows = f.leftOut, f.droppedThrows
	if parent != nil {
		span.Parent = parent.sequence
		if f.link != LinkNone {
			span.Link, span.LinkTrace = f.link, s.traces.all[parent.trace].root
		}
	}
	if len(own.throws) > 0 {
		from := len(out.Throws)
		out.Throws = append(out.Throws, own.throws...)
		span.Throws = Range{int32(from), int32(len(out.Throws))}
	}
	if len(own.attributes)+len(o.attributes) > 0 {
		from := len(out.Attributes)
		last := min(len(o.attributes), maxAttributes-len(own.attributes))
		out.Counters.DroppedAttributes += uint64(len(o.attributes) - last)
		out.tell(own.attributes)
		out.tell(o.attributes[:last])
		span.Attributes = Range{int32(from), int32(len(out.Attributes))}
	}
}

// truncateBefore ends all frames that were entered before the number at. Where
// everything before it, and nothing else, has been paired, that is 1 ns after
// the last event. A break that is heard of late ends them with the last that is
// known to have happened inside; frames that were entered after it stay, and
// have no parent from then on.
func (s *Stream) truncateBefore(at uint64, cause callevent.Cause) {
	s.breaks++
	if s.open == 0 {
		return
	}
	for i := range s.lanes {
		l := &s.lanes[i]
		l.cut = l.cut || len(l.frames) > 0
		if at >= s.next {
			s.truncate(l, 0, cause, s.last+1)
			continue
		}
		old := 0
		for old < len(l.frames) && l.frames[old].sequence < at {
			old++
		}
		s.cutBelow(l, old, cause)
	}
}

// cutBelow ends the lowest frames of the lane.
func (s *Stream) cutBelow(l *lane, cut int, cause callevent.Cause) {
	throws, attributes := 0, 0
	for _, f := range l.frames[:cut] {
		throws += int(f.throws)
		attributes += int(f.attributes)
	}
	restThrows, restAttributes := l.throws[throws:], l.attributes[attributes:]
	for i := cut - 1; i >= 0; i-- {
		f := &l.frames[i]
		var parent *frame
		end := max(f.inner, f.start+1)
		if i > 0 && !l.isShared() {
			parent = &l.frames[i-1]
		}
		own := l.belongings(f, throws, attributes)
		throws -= int(f.throws)
		attributes -= int(f.attributes)
		s.conclude(l, f, parent, &own, &outcome{end: end, truncated: cause})
	}
	l.throws = l.throws[:copy(l.throws, restThrows)]
	kept := copy(l.attributes, restAttributes)
	clear(l.attributes[kept:])
	l.attributes = l.attributes[:kept]
	left := copy(l.frames, l.frames[cut:])
	l.frames = l.frames[:left]
	if left == 0 {
		s.slim(l)
	}
}
