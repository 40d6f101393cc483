// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"math"
	"slices"
	"sort"
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

const (
	frameBytes = int(unsafe.Sizeof(frame{}))
	throwBytes = int(unsafe.Sizeof(Throw{}))
	laneBytes  = int(unsafe.Sizeof(lane{}))

	// keptStack is the memory that an empty lane keeps for its next calls, in bytes. A pool
	// has hundreds of threads that were deep once, which would keep megabytes.
	keptStack = 32 << 10
)

// noTime is later than the time of every event.
const noTime = math.MaxInt64

// noTrace stands for no trace.
const noTrace = ^uint32(0)

// frame is an open call. It has 88 bytes and no pointers, because a stack is written at
// every event.
type frame struct {
	sequence uint64
	start    int64
	// inner is the time of the last event inside the frame.
	inner          int64
	leftOut        LeftOut
	function, name uint32
	// callees is the time of the callees that ended, and path the call path, if there are sums.
	callees int64
	path    uint32
	// trace is noTrace for a frame that is too deep for a trace.
	trace uint32
	// throws and attributes are the numbers of the lane's that belong to the frame.
	throws, droppedThrows uint32
	// dropped is the last dropped exception, if droppedThrows is not 0.
	dropped    uint32
	attributes uint8
	link       Link
	// kept: a call below the frame was not left out, so neither is the frame.
	kept bool
}

// lane has one stack.
type lane struct {
	id     uint64
	frames []frame
	// throws are the exceptions of all open frames, in the frames' order, and attributes
	// their attributes.
	throws     []Throw
	attributes []attribute
	// continuation is the trace for frames whose parents are in full traces, or noTrace.
	continuation uint32
	// path is that of the lane in the sums, or 0.
	path uint32
	// Frames that are entered at the time from or later, on the source's clock, have the name. Before it the
	// history knows the name, or the event if there is no history. from is then noTime.
	from    int64
	name    uint32
	history *history
	// counts are the open frames of each function on a deep stack, after the first search without a result; nil: not
	// counted. They need much less memory than the frames.
	counts map[uint32]int32
	// reuse is nil while the lane has had one thread only.
	reuse *reuse
	// cut: a break truncated open calls, so the thread may still be inside them. forgotten: the call paths of the lane and its
	// frames are not known.
	cut, forgotten bool
}

// isShared reports whether calls of several threads are on the lane.
func (l *lane) isShared() bool { return l.reuse != nil && l.reuse.shared }

// isTop reports whether the top frame is the function's.
func (l *lane) isTop(function uint32) bool {
	n := len(l.frames)
	return n > 0 && l.frames[n-1].function == function
}

// follow links the lane to its history, which may be nil.
func (l *lane) follow(h *history) {
	if h == nil {
		return
	}
	last := &h.renames[len(h.renames)-1]
	l.history, l.from, l.name = h, last.time, last.name
}

// renameFrames gives the open frames the names of new renames. A frame's time by the source's clock is at most
// its start less the offset. The difference is less than the clock's resolution unless the clock went back or
// stood longer.
func (l *lane) renameFrames(offset int64) {
	h := l.history
	firstNew := slices.IndexFunc(h.renames, func(r rename) bool { return r.isNew })
	if firstNew < 0 {
		// The history has forgotten them to make room.
		return
	}
	for depth := len(l.frames) - 1; depth >= 0; depth-- {
		f := &l.frames[depth]
		i := h.indexAt(f.start - offset)
		if i < firstNew {
			// No frame below was entered later.
			return
		}
		if h.renames[i].isNew {
			f.name = h.renames[i].name
		}
	}
}

// belongings are a frame's part of the lane's throws and attributes.
type belongings struct {
	throws     []Throw
	attributes []attribute
}

// belongings returns the frame's, which end before the given throw and attribute.
func (l *lane) belongings(f *frame, throws, attributes int) belongings {
	return belongings{
		throws:     l.throws[throws-int(f.throws) : throws],
		attributes: l.attributes[attributes-int(f.attributes) : attributes],
	}
}

// outcome is the way in which a frame ends.
type outcome struct {
	end        int64
	truncated  callevent.Cause
	unwound    bool
	exception  uint32
	line       uint32
	attributes []attribute
}

// parentOf is the frame below number depth, or nil. On a shared lane no frame has a parent.
func (l *lane) parentOf(depth int) *frame {
	if depth == 0 || l.isShared() {
		return nil
	}
	return &l.frames[depth-1]
}

// traceOf is the trace of an open frame. A frame that is too deep for one has that of the highest frame below it with a trace.
// If there is none, it is noTrace. Frames with a trace are below all others.
func (l *lane) traceOf(f *frame) uint32 {
	if f.trace != noTrace {
		return f.trace
	}
	with := sort.Search(len(l.frames), func(i int) bool { return l.frames[i].trace == noTrace })
	if with == 0 {
		return noTrace
	}
	return l.frames[with-1].trace
}

// removeTop removes the belongings of the top frame.
func (l *lane) removeTop(own *belongings) {
	l.throws = l.throws[:len(l.throws)-len(own.throws)]
	clear(own.attributes)
	l.attributes = l.attributes[:len(l.attributes)-len(own.attributes)]
}

// belongingsBelow are the numbers of throws and attributes of the lowest frames.
func (l *lane) belongingsBelow(frames int) (throws, attributes int) {
	for _, f := range l.frames[:frames] {
		throws += int(f.throws)
		attributes += int(f.attributes)
	}
	return throws, attributes
}

// removeLowest removes the lowest frames and their belongings.
func (l *lane) removeLowest(frames, throws, attributes int) {
	l.throws = l.throws[:copy(l.throws, l.throws[throws:])]
	kept := copy(l.attributes, l.attributes[attributes:])
	clear(l.attributes[kept:])
	l.attributes = l.attributes[:kept]
	l.frames = l.frames[:copy(l.frames, l.frames[frames:])]
}

// countedStack is the depth from which a stack is not searched for every orphan: one batch
// can have 50,000 of them.
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

// uncount removes a closed frame from the counts. A stack that is no longer deep has none.
func (l *lane) uncount(f *frame) {
	switch l.counts[f.function]--; {
	case len(l.frames) <= countedStack/2:
		l.counts = nil
	case l.counts[f.function] == 0:
		delete(l.counts, f.function)
	}
}

// bytes is the memory of the lane's stack.
func (l *lane) bytes() int {
	return cap(l.frames)*frameBytes + cap(l.throws)*throwBytes + cap(l.attributes)*attributeBytes
}
