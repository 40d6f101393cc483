// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import "github.com/callbraid/callbraid/internal/call/callevent"

// Link says how a frame whose parent is in another trace came to be the root
// of its own.
type Link uint8

const (
	// LinkNone: the parent, if there is one, is in the same trace.
	LinkNone Link = iota
	// LinkContinuation: the parent's trace was full.
	LinkContinuation
	// LinkTraceRoot: the function starts a new trace.
	LinkTraceRoot
)

// NoParent stands for the sequence number of the parent of a frame without one.
const NoParent = ^uint64(0)

// LeftOut sums up the calls below a frame that were left out.
type LeftOut struct {
	Calls, Errors uint64
	// Time is in nanoseconds, without calls inside other calls that were left out.
	Time int64
}

// Span is one finished call.
type Span struct {
	Function *callevent.Function
	Lane     uint64
	LaneName string
	// Start and End are Unix nanoseconds; Start < End.
	Start, End int64
	// Sequence is the number of the entry, which identifies the span in its
	// stream; Parent that of the entry of the frame below, or NoParent.
	Sequence, Parent uint64
	// Trace is the number of the entry that began the trace. Where Link is not
	// LinkNone, LinkTrace is the parent's trace.
	Trace, LinkTrace uint64
	Link             Link
	// Truncated is the cause, or 0 for a call that returned or was left by an
	// exception.
	Truncated callevent.Cause
	// Unwound: an exception left the function; ErrorType is its type, empty
	// where it is not known.
	Unwound   bool
	ErrorType string
	// Line is where it returned; 0: not known.
	Line    uint32
	LeftOut LeftOut
	// DroppedThrows is how many exceptions were beyond Settings.MaxThrows.
	DroppedThrows uint32
	// Throws and Attributes are ranges of the Output's slices.
	Throws, Attributes Range
}

// Range is a part of a slice.
type Range struct{ From, To int32 }

// Throw is an exception that was thrown in, or left, a frame.
type Throw struct {
	Time int64
	Type string
	Line uint32
}

// Attribute is an optional attribute of an event, which its frame takes over.
type Attribute struct {
	Key   string
	Value callevent.Value
}

// Output collects finished calls and what was counted. It is reused: Reset
// keeps the memory.
type Output struct {
	Spans      []Span
	Throws     []Throw
	Attributes []Attribute
	Counters   Counters

	// Full is called when there are MaxSpans spans; it takes them and calls
	// Taken. A gap that closes can finish a million calls at once.
	Full     func()
	MaxSpans int

	// chunk is where events of a batch are decoded, values are its values.
	chunk  [256]callevent.Event
	values []*sharedValue
}

// Taken empties the output of calls.
func (o *Output) Taken() {
	clear(o.Spans)
	clear(o.Throws)
	clear(o.Attributes)
	o.Spans, o.Throws, o.Attributes = o.Spans[:0], o.Throws[:0], o.Attributes[:0]
}

// Reset empties the output.
func (o *Output) Reset() {
	o.Taken()
	o.Counters = Counters{}
}

// Counters count what happened to events and frames.
type Counters struct {
	// Events were taken out of batches, whatever became of them.
	Events uint64
	// Spans were finished, LeftOut left out by MinDuration or MaxDepth.
	Spans, LeftOut uint64
	// Orphans are exits and throws of functions that are not on the stack.
	Orphans uint64
	// Late numbers came after they had been given up, Duplicates a second time.
	Late, Duplicates uint64
	// InBreak are events inside a break that is an interval; they are not paired.
	InBreak uint64
	// Missing is how many numbers were given up, of a gap at most 2^32. Those from
	// before a stream was joined were never ours to miss.
	Missing uint64
	// DroppedThrows is how many exceptions were beyond MaxThrows,
	// DroppedAttributes how many attributes beyond what a frame takes, or of
	// orphans.
	DroppedThrows, DroppedAttributes uint64
	// DroppedRenames were forgotten though events may come that they are for, because
	// a lane had too many. Those have no lane name.
	DroppedRenames uint64
	// BelowResolution: MinDuration is below the resolution of a stream's clock.
	BelowResolution bool
	// Truncated counts frames, Breaks counts breaks, each by cause.
	Truncated, Breaks [callevent.CauseCount]uint64
}

// Returned reports whether calls ended with an event of their own.
func (c *Counters) Returned() bool {
	truncated := uint64(0)
	for _, n := range c.Truncated {
		truncated += n
	}
	return c.Spans+c.LeftOut > truncated
}
