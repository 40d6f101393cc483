// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callsum"
)

// Link is the reason why a call and its parent are in two traces.
type Link uint8

const (
	// LinkNone: the parent, if there is one, is in the same trace.
	LinkNone Link = iota
	// LinkContinuation: the parent's trace was full.
	LinkContinuation
	// LinkTraceRoot: the function starts a new trace.
	LinkTraceRoot
)

// NoParent is the Parent of a call without one.
const NoParent = ^uint64(0)

// LeftOut is the sum of the calls below a frame that were left out.
type LeftOut struct {
	Calls, Errors uint64
	// Time is in nanoseconds. It does not include calls inside other left-out calls.
	Time int64
}

// include adds those of another frame.
func (l *LeftOut) include(o *LeftOut) {
	l.Calls, l.Errors, l.Time = l.Calls+o.Calls, l.Errors+o.Errors, l.Time+o.Time
}

// Repeated is a group of repeated calls: short calls of one function by one caller, which returned at
// one line. Other calls can be between them.
type Repeated struct {
	Calls uint64
	// Least, Greatest and Total are times of the calls in nanoseconds.
	Least, Greatest, Total int64
}

// Call is one finished call, or a group of repeated calls.
type Call struct {
	Function *callevent.Function
	Lane     uint64
	LaneName string
	// Start and End are Unix nanoseconds; Start < End.
	Start, End int64
	// Sequence is the sequence number of the entry, which identifies the call in its
	// stream. Parent is that of the caller's entry, or NoParent.
	Sequence, Parent uint64
	// Trace is the sequence number of the first entry of its trace. Where Link is not
	// LinkNone, LinkTrace is the parent's trace.
	Trace, LinkTrace uint64
	Link             Link
	// Truncated is the cause, or 0 for a call that returned or that an exception left.
	Truncated callevent.Cause
	// Unwound: an exception left the function. ErrorType is its type, or empty if it is
	// not known.
	Unwound   bool
	ErrorType string
	// Line is the line of the return; 0: not known.
	Line    uint32
	LeftOut LeftOut
	// DroppedThrows is the number of exceptions beyond Settings.MaxThrows.
	DroppedThrows uint32
	// Throws and Attributes are ranges of the Output's slices.
	Throws, Attributes Range
	// Kept is the criterion by which Settings.Keep has selected the call's trace.
	Kept Criterion
	// Repeated is the place in Output.Repeated and 1 more; 0: one call. Of a group, all but End and
	// LeftOut are those of its first call. End is that of the last one, and LeftOut the sum of all.
	Repeated int32
}

// Range is a part of a slice.
type Range struct{ From, To int32 }

// Throw is an exception that was thrown in a frame, or left it.
type Throw struct {
	Time int64
	Type string
	Line uint32
}

// Attribute is an optional attribute of an event, which becomes its call's.
type Attribute struct {
	Key   string
	Value callevent.Value
}

// public returns the attribute as it is in outputs.
func (a *attribute) public() Attribute {
	return Attribute{Key: a.key.value.Str(), Value: a.value.value}
}

// Output collects finished calls, sums and counters. It knows no spans: its reader decides what
// a call becomes. Reset keeps its memory for the next use.
type Output struct {
	Calls      []Call
	Throws     []Throw
	Attributes []Attribute
	Repeated   []Repeated
	Counters   Counters
	// Sums are the last increments of streams that ended or forgot their names.
	Sums []callsum.Increment

	// Full is called when there are MaxCalls calls. It reads them and calls ClearCalls. A
	// gap that closes can finish a million calls in one step.
	Full     func()
	MaxCalls int

	// scratch is memory for the batch that a stream is reading.
	scratch struct {
		events [256]callevent.Event
		values batchValues
	}
}

// append returns a place for one more call.
func (o *Output) append() *Call {
	if len(o.Calls) == o.MaxCalls && o.Full != nil {
		o.Full()
	}
	o.Calls = append(o.Calls, Call{})
	return &o.Calls[len(o.Calls)-1]
}

// appendThrows copies the throws of the last call.
func (o *Output) appendThrows(throws []Throw) Range {
	from := len(o.Throws)
	o.Throws = append(o.Throws, throws...)
	return Range{int32(from), int32(len(o.Throws))}
}

// appendAttributes copies the attributes of the last call: those of its frame, and those
// of the event that ended it as far as they have room.
func (o *Output) appendAttributes(ofFrame, ofEnd []attribute) Range {
	from := len(o.Attributes)
	last := min(len(ofEnd), maxAttributes-len(ofFrame))
	o.Counters.DroppedAttributes += uint64(len(ofEnd) - last)
	for _, attributes := range [...][]attribute{ofFrame, ofEnd[:last]} {
		for _, a := range attributes {
			o.Attributes = append(o.Attributes, a.public())
		}
	}
	return Range{int32(from), int32(len(o.Attributes))}
}

// appendRepeated appends the group of the last call, and returns its place and 1 more.
func (o *Output) appendRepeated(r Repeated) int32 {
	o.Repeated = append(o.Repeated, r)
	return int32(len(o.Repeated))
}

// RepeatedOf returns the group of a call, or nil for one call.
func (o *Output) RepeatedOf(c *Call) *Repeated {
	if c.Repeated == 0 {
		return nil
	}
	return &o.Repeated[c.Repeated-1]
}

// ClearCalls removes the calls, and leaves the counters.
func (o *Output) ClearCalls() {
	clear(o.Calls)
	clear(o.Throws)
	clear(o.Attributes)
	o.Calls, o.Throws, o.Attributes, o.Repeated = o.Calls[:0], o.Throws[:0], o.Attributes[:0], o.Repeated[:0]
}

// Reset empties the output.
func (o *Output) Reset() {
	o.ClearCalls()
	clear(o.Sums)
	o.Sums = o.Sums[:0]
	o.Counters = Counters{}
}

// Counters count events and frames.
type Counters struct {
	// Events were read from batches. The other counters say what became of them.
	Events uint64
	// Finished is the number of calls that ended for the output. They are in it, unless
	// Settings.Keep selects traces. LeftOut were left out by MinDuration or MaxDepth.
	Finished, LeftOut uint64
	// Orphans are exits and throws of functions that are not on the stack.
	Orphans uint64
	// Late numbers arrived after they had been given up. Duplicates arrived twice.
	Late, Duplicates uint64
	// InBreak are events inside a break that is an interval. They are not paired.
	InBreak uint64
	// Missing is the number of given-up sequence numbers, at most 2^32 for a gap. Those from
	// before the engine joined a stream do not count.
	Missing uint64
	// DroppedThrows is the number of exceptions beyond MaxThrows. DroppedAttributes is the
	// number of attributes of orphans, or beyond the bound of a frame.
	DroppedThrows, DroppedAttributes uint64
	// DroppedRenames were forgotten while later events could still need them, because a
	// lane had too many. Such events have no lane name.
	DroppedRenames uint64
	// BelowResolution: MinDuration is below the resolution of a stream's clock.
	BelowResolution bool
	// Truncated counts frames, and Breaks counts breaks, each by cause.
	Truncated, Breaks [callevent.CauseCount]uint64
	// Keep has the decisions of Settings.Keep.
	Keep KeepCounters
}

// Returned reports whether some call ended with an event of its own.
func (c *Counters) Returned() bool {
	truncated := uint64(0)
	for _, n := range c.Truncated {
		truncated += n
	}
	return c.Finished+c.LeftOut > truncated
}
