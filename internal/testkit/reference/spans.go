// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import "strings"

// Rules are the settings that affect pairing.
type Rules struct {
	// MaxSpansPerTrace is max_spans_per_trace; 0 means no limit.
	MaxSpansPerTrace int
	// End is the cause for calls that are open at the end of the run.
	End string
}

// Span is one call.
type Span struct {
	// Function is the method's signature as it was sent.
	Function   string
	Thread     uint16
	ThreadName string
	// Sequence is the number of the entry. Parent is the number of the caller's entry, or -1.
	Sequence, Parent int64
	// Start and End are nanoseconds since the start of the agent.
	Start, End int64
	// Unwound means that an exception of type ErrorType ended the method.
	Unwound   bool
	ErrorType string
	// Truncated is the cause, or empty for a call with a known end.
	Truncated  string
	Exceptions []Exception
	// Trace is the number of the entry that began the span's trace.
	Trace int64
	// Linked means that the parent is in another trace.
	Linked bool

	trace *trace
}

// Exception is an exception that was thrown in a call, or ended it.
type Exception struct {
	Time int64
	Type string
}

// Result has the expected spans of a run.
type Result struct {
	Run *Run
	// Spans by the number of their entry.
	Spans map[int64]*Span
	// Orphans are exits and throws of methods that were not on the stack.
	Orphans int
	// Truncated counts truncated frames by cause.
	Truncated map[string]int
	Traces    int
}

type trace struct {
	root   int64
	frames int
}

// stack is the stack of a thread.
type stack struct {
	frames       []*Span
	continuation *trace
}

type pairing struct {
	run    *Run
	rules  Rules
	now    int64
	stacks map[uint16]*stack
	result *Result
}

// Spans pairs the events of a run: one pass in the order of the sequence numbers.
func Spans(run *Run, rules Rules) *Result {
	p := &pairing{
		run: run, rules: rules, now: -1, stacks: map[uint16]*stack{},
		result: &Result{Run: run, Spans: map[int64]*Span{}, Truncated: map[string]int{}},
	}
	breaks := run.Breaks
	for _, e := range run.Events {
		for len(breaks) > 0 && breaks[0] <= e.Sequence {
			p.truncateAll("suspended")
			breaks = breaks[1:]
		}
		if e.Type == marker {
			continue
		}
		// Time inside a call stream is strictly increasing.
		p.now = max(int64(e.Time)*1_000_000, p.now+1)
		if p.stacks[e.Thread] == nil {
			p.stacks[e.Thread] = &stack{}
		}
		p.step(p.stacks[e.Thread], e)
	}
	p.truncateAll(rules.End)
	return p.result
}

func (p *pairing) step(s *stack, e Event) {
	if e.Type == methodEntry {
		p.enter(s, e)
		return
	}
	// The nearest frame of the method. The exits of the frames above it are missing.
	nearest := len(s.frames) - 1
	for nearest >= 0 && s.frames[nearest].Function != e.Method {
		nearest--
	}
	if nearest < 0 {
		p.result.Orphans++
		return
	}
	p.truncate(s, nearest+1, "mismatch", p.now)
	frame := s.frames[nearest]
	switch e.Type {
	case methodExit:
		p.leave(s)
	case exception:
		frame.Exceptions = append(frame.Exceptions, Exception{p.now, e.Exception})
	case exceptionBubble:
		known := false
		for _, x := range frame.Exceptions {
			known = known || x.Type == e.Exception
		}
		if !known {
			frame.Exceptions = append(frame.Exceptions, Exception{p.now, e.Exception})
		}
		frame.Unwound, frame.ErrorType = true, e.Exception
		p.leave(s)
	}
}

func (p *pairing) enter(s *stack, e Event) {
	span := &Span{
		Function: e.Method, Thread: e.Thread, ThreadName: p.run.ThreadName(e), Sequence: int64(e.Sequence), Parent: -1, Start: p.now,
	}
	full := func(t *trace) bool { return p.rules.MaxSpansPerTrace > 0 && t.frames >= p.rules.MaxSpansPerTrace }
	begin := func() *trace {
		p.result.Traces++
		return &trace{root: span.Sequence}
	}
	if len(s.frames) == 0 {
		span.trace = begin()
	} else {
		parent := s.frames[len(s.frames)-1]
		span.Parent, span.trace = parent.Sequence, parent.trace
		if full(parent.trace) {
			if s.continuation == nil || full(s.continuation) {
				s.continuation = begin()
			}
			span.Linked, span.trace = true, s.continuation
		}
	}
	span.trace.frames++
	span.Trace = span.trace.root
	s.frames = append(s.frames, span)
}

// leave closes the top frame at the present time.
func (p *pairing) leave(s *stack) {
	top := s.frames[len(s.frames)-1]
	top.End = p.now
	p.result.Spans[top.Sequence] = top
	s.frames = s.frames[:len(s.frames)-1]
}

func (p *pairing) truncate(s *stack, keep int, cause string, at int64) {
	for len(s.frames) > keep {
		top := s.frames[len(s.frames)-1]
		p.leave(s)
		top.End, top.Truncated = at, cause
		p.result.Truncated[cause]++
	}
}

// truncateAll ends every frame 1 ns after the last event.
func (p *pairing) truncateAll(cause string) {
	for _, s := range p.stacks {
		p.truncate(s, 0, cause, p.now+1)
	}
}

// Qualified returns the fully qualified name of a signature: "demo.Shop$Order.process" for
// "demo/Shop$Order.process;0;()V".
func Qualified(signature string) string {
	class, method := split(signature)
	return strings.ReplaceAll(class, "/", ".") + "." + method
}

// Display returns the simple class and method: "Shop$Order.process".
func Display(signature string) string {
	class, method := split(signature)
	return class[strings.LastIndex(class, "/")+1:] + "." + method
}

func split(signature string) (class, method string) {
	name, _, _ := strings.Cut(signature, ";")
	dot := strings.LastIndex(name, ".")
	return name[:dot], name[dot+1:]
}
