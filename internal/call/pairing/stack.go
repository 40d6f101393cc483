// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"slices"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// frame is an open call. It holds no pointers: a stack is written at every
// event. 80 bytes.
type frame struct {
	sequence uint64
	start    int64
	// inner is the time of the last event inside the frame.
	inner          int64
	leftOut        LeftOut
	function, name uint32
	// trace is noTrace for a frame that is too deep to be kept.
	trace uint32
	// throws and attributes are how many of the lane's are the frame's.
	throws, droppedThrows, attributes uint32
	// dropped is the exception that was dropped last, if droppedThrows is not 0.
	dropped uint32
	link    Link
	// kept: a call below it is kept, so it has to be too.
	kept bool
}

// enter opens a frame: rule 2. Its trace is found by rule 9.
func (s *Stream) enter(l *lane, e *event, sequence uint64, attributes []attribute) {
	if len(l.frames) >= s.settings.MaxFrames {
		s.truncate(l, 0, callevent.CauseLimit, s.last)
	}
	depth := len(l.frames)
	if depth == cap(l.frames) {
		s.stackBytes -= l.bytes()
		l.frames = slices.Grow(l.frames, 1)
		s.stackBytes += l.bytes()
	}
	l.frames = l.frames[:depth+1]
	f := &l.frames[depth]
	// Field by field: a literal is built aside and copied.
	*f = frame{}
	f.sequence, f.start, f.inner = sequence, s.last, s.last
	f.function, f.name = e.function, l.name
	if sequence < l.from {
		f.name = s.nameBefore(l, e, sequence)
	}
	if l.isShared() {
		depth, f.name = 0, s.names.laneName(callevent.Lane{ID: l.id})
	}
	s.chooseTrace(l, f, depth)
	s.names.functions[e.function].open++
	s.open++
	if l.counts != nil {
		l.counts[e.function]++
	}
	if len(attributes) > 0 {
		s.giveAttributes(l, f, attributes)
	}
}

// chooseTrace puts the frame, which is the top of l, into a trace.
func (s *Stream) chooseTrace(l *lane, f *frame, depth int) {
	tooDeep := s.settings.MaxDepth > 0 && depth >= s.settings.MaxDepth
	if tooDeep || depth > 0 && l.frames[depth-1].trace == noTrace {
		f.trace = noTrace
		return
	}
	switch {
	case depth == 0:
		f.trace = s.traces.begin(f.sequence)
	case s.names.functions[f.function].root:
		f.trace, f.link = s.traces.begin(f.sequence), LinkTraceRoot
	case !s.full(l.frames[depth-1].trace):
		f.trace = l.frames[depth-1].trace
		s.traces.refer(f.trace)
	default:
		if l.continuation == noTrace || s.full(l.continuation) {
			s.traces.release(l.continuation)
			l.continuation = s.traces.begin(f.sequence)
		}
		f.trace, f.link = l.continuation, LinkContinuation
		s.traces.refer(f.trace)
	}
	s.traces.all[f.trace].frames++
}

func (s *Stream) full(trace uint32) bool {
	return s.settings.MaxSpansPerTrace > 0 && s.traces.all[trace].frames >= s.settings.MaxSpansPerTrace
}

// find makes the nearest frame of the function the top of the stack: rule 3.
// What was above it is truncated. It reports false for an orphan.
func (s *Stream) find(l *lane, function uint32) bool {
	top := len(l.frames) - 1
	if top >= 0 && l.frames[top].function == function {
		return true
	}
	if s.names.functions[function].open > 0 && (l.counts == nil || l.counts[function] > 0) {
		for i := top - 1; i >= 0; i-- {
			if l.frames[i].function == function {
				s.truncate(l, i+1, callevent.CauseMismatch, s.last)
				return true
			}
		}
		l.count()
	}
	return false
}

// countedStack is from how many frames on a stack is not walked through for
// every orphan: one batch can have 50,000 of them.
const countedStack = 256

// count counts the frames of each function on a deep stack.
func (l *lane) count() {
	if l.counts != nil || len(l.frames) < countedStack {
		return
	}
	l.counts = map[uint32]int32{}
	for i := range l.frames {
		l.counts[l.frames[i].function]++
	}
}

// uncount takes a frame that is closed out of the counts, which a stack that is
// no longer deep does without.
func (l *lane) uncount(f *frame) {
	switch l.counts[f.function]--; {
	case len(l.frames) <= countedStack/2:
		l.counts = nil
	case l.counts[f.function] == 0:
		delete(l.counts, f.function)
	}
}

// orphan counts an event without a frame, and its attributes.
func (s *Stream) orphan(attributes []attribute) {
	s.out.Counters.Orphans++
	s.out.Counters.DroppedAttributes += uint64(len(attributes))
}

// throw notes an exception in a frame. Whatever was above the frame has been
// left by then.
func (s *Stream) throw(l *lane, e *event, attributes []attribute) {
	if !s.find(l, e.function) {
		s.orphan(attributes)
		return
	}
	f := &l.frames[len(l.frames)-1]
	f.inner = s.last
	if len(attributes) > 0 {
		s.giveAttributes(l, f, attributes)
	}
	s.addThrow(l, f, e)
}

func (s *Stream) addThrow(l *lane, f *frame, e *event) {
	if int(f.throws) >= s.settings.MaxThrows {
		f.droppedThrows++
		f.dropped = e.exception
		s.out.Counters.DroppedThrows++
		return
	}
	f.throws++
	s.stackBytes -= l.bytes()
	l.throws = append(l.throws, Throw{Time: s.last, Type: s.names.exceptions[e.exception], Line: e.line})
	s.stackBytes += l.bytes()
}

// exit closes the frame of the function: it returned.
func (s *Stream) exit(l *lane, e *event, attributes []attribute) {
	if !s.find(l, e.function) {
		s.orphan(attributes)
		return
	}
	s.close(l, &outcome{end: s.last, line: e.line, attributes: attributes})
}

// exitTop closes the top frame, whatever it is.
func (s *Stream) exitTop(l *lane, e *event, attributes []attribute) {
	if len(l.frames) == 0 {
		s.orphan(attributes)
		return
	}
	s.close(l, &outcome{end: s.last, line: e.line, attributes: attributes})
}

// unwind closes the frame of the function: an exception left it.
func (s *Stream) unwind(l *lane, e *event, attributes []attribute) {
	if !s.find(l, e.function) {
		s.orphan(attributes)
		return
	}
	f := &l.frames[len(l.frames)-1]
	exception := s.names.exceptions[e.exception]
	// One that was dropped has been counted.
	thrown := f.droppedThrows > 0 && s.names.exceptions[f.dropped] == exception
	for _, t := range l.throws[len(l.throws)-int(f.throws):] {
		thrown = thrown || t.Type == exception
	}
	if !thrown {
		s.addThrow(l, f, e)
	}
	s.close(l, &outcome{end: s.last, unwound: true, errorType: exception, attributes: attributes})
}

// truncate closes the frames from number keep on, top first.
func (s *Stream) truncate(l *lane, keep int, cause callevent.Cause, end int64) {
	for len(l.frames) > keep {
		s.close(l, &outcome{end: end, truncated: cause})
	}
}
