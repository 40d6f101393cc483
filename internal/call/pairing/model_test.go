// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"slices"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// happened is a call event of the traced program.
type happened struct {
	sequence uint64
	// time in Unix nanoseconds by the source's clock; received is when the
	// batch that carries it was closed.
	time, received int64
	kind           callevent.Kind
	lane           callevent.Lane
	function       *callevent.Function
	// caller is that of KindEnterFrom.
	caller     *callevent.Function
	exception  string
	line       uint32
	attributes []Attribute
}

// call is a call in the model. The model forgets no call, and computes each answer again from all calls.
type call struct {
	entry happened
	// name is the name of the lane at entry.
	name       string
	parent     *call
	children   []*call
	start, end int64
	open       bool
	tooDeep    bool
	truncated  callevent.Cause
	unwound    bool
	errorType  string
	line       uint32
	throws     []Throw
	lastThrow  int64
	dropped    uint32
	// lastDropped is the type of the last throw that was dropped.
	lastDropped string
	attributes  []Attribute
	// trace is the number of the entry that began it.
	trace uint64
	link  Link
	// linkTrace is the parent's trace, if link is not LinkNone.
	linkTrace uint64
}

// calls is the model of rules 2 to 10: the calls of events in sequence order, with breaks between them.
type calls struct {
	settings *Settings
	all      []*call
	stacks   map[uint64][]*call
	// continuation is the trace of a lane's frames whose parents are in full traces.
	continuation map[uint64]uint64
	// renames are all renames so far.
	renames  []callevent.Rename
	last     int64
	begun    bool
	offset   int64
	counters Counters
	paired   uint64
}

func newCalls(settings *Settings) *calls {
	return &calls{settings: settings, stacks: map[uint64][]*call{}, continuation: map[uint64]uint64{}}
}

// event handles the next event.
func (m *calls) event(e happened) {
	m.paired++
	if e.kind == callevent.KindSkip {
		return
	}
	t := m.clock(e)
	stack := m.stacks[e.lane.ID]
	switch e.kind {
	case callevent.KindEnter:
		m.enter(e, t)
	case callevent.KindEnterOutermost:
		m.truncate(e.lane.ID, 0, callevent.CauseMismatch, t)
		m.enter(e, t)
	case callevent.KindEnterFrom:
		for i := len(stack) - 1; i >= 0; i-- {
			if *stack[i].entry.function == *e.caller {
				m.truncate(e.lane.ID, i+1, callevent.CauseLongjmp, t)
				break
			}
		}
		m.enter(e, t)
	case callevent.KindExitTop:
		if len(stack) == 0 {
			m.orphan(e)
			return
		}
		m.close(e, t)
	default:
		// Rule 3.
		nearest := -1
		for i, c := range stack {
			if *c.entry.function == *e.function {
				nearest = i
			}
		}
		if nearest < 0 {
			m.orphan(e)
			return
		}
		m.truncate(e.lane.ID, nearest+1, callevent.CauseMismatch, t)
		switch top := stack[nearest]; e.kind {
		case callevent.KindThrow:
			m.addThrow(top, Throw{Time: t, Type: e.exception, Line: e.line})
			top.attributes = append(top.attributes, e.attributes...)
		case callevent.KindUnwind:
			known := slices.ContainsFunc(top.throws, func(t Throw) bool { return t.Type == e.exception })
			if !known && !(top.dropped > 0 && top.lastDropped == e.exception) {
				m.addThrow(top, Throw{Time: t, Type: e.exception, Line: e.line})
			}
			top.unwound, top.errorType = true, e.exception
			e.line = 0
			m.close(e, t)
		case callevent.KindFail:
			top.unwound, top.errorType = true, e.exception
			m.close(e, t)
		default:
			m.close(e, t)
		}
	}
}

func (m *calls) orphan(e happened) {
	m.counters.Orphans++
	m.counters.DroppedAttributes += uint64(len(e.attributes))
}

// clock is rule 7.
func (m *calls) clock(e happened) int64 {
	jump := m.settings.MaxClockJump
	own := max(e.time, 0)
	t := own + m.offset
	ahead := t-e.received > jump
	behind := m.begun && t < m.last-jump
	if ahead || behind {
		m.counters.Breaks[callevent.CauseClock]++
		m.breakNow(callevent.CauseClock)
		m.offset = 0
		if own-e.received > jump {
			m.offset = e.received - own
		}
		t = own + m.offset
	} else if m.begun && t <= m.last {
		t = m.last + 1
	}
	m.begun, m.last = true, t
	return t
}

func (m *calls) addThrow(c *call, t Throw) {
	c.lastThrow = t.Time
	if len(c.throws) == m.settings.MaxThrows {
		c.dropped++
		c.lastDropped = t.Type
		m.counters.DroppedThrows++
		return
	}
	c.throws = append(c.throws, t)
}

// enter is rules 2 and 9.
func (m *calls) enter(e happened, t int64) {
	id := e.lane.ID
	if len(m.stacks[id]) == m.settings.MaxFrames {
		m.truncate(id, 0, callevent.CauseLimit, t)
	}
	depth := len(m.stacks[id])
	c := &call{entry: e, name: e.lane.Name, start: t, open: true, attributes: slices.Clone(e.attributes)}
	if depth > 0 {
		c.parent = m.stacks[id][depth-1]
		c.parent.children = append(c.parent.children, c)
	}
	c.tooDeep = m.settings.MaxDepth > 0 && depth >= m.settings.MaxDepth || c.parent != nil && c.parent.tooDeep
	root := m.settings.TraceRoot != nil && m.settings.TraceRoot(e.function.Qualified)
	switch {
	case c.tooDeep:
	case c.parent == nil:
		c.trace = e.sequence
	case root:
		c.trace, c.link, c.linkTrace = e.sequence, LinkTraceRoot, c.parent.trace
	case !m.full(c.parent.trace):
		c.trace = c.parent.trace
	default:
		continuation, ok := m.continuation[id]
		if !ok || m.full(continuation) {
			continuation = e.sequence
			m.continuation[id] = continuation
		}
		c.trace, c.link, c.linkTrace = continuation, LinkContinuation, c.parent.trace
	}
	if r := nameAt(m.renames, id, max(e.time, 0)); r != nil {
		c.name = r.Name
	}
	m.all = append(m.all, c)
	m.stacks[id] = append(m.stacks[id], c)
}

// full: open plus emitted frames.
func (m *calls) full(trace uint64) bool {
	if m.settings.MaxSpansPerTrace == 0 {
		return false
	}
	frames := 0
	for _, c := range m.all {
		if !c.tooDeep && c.trace == trace && (c.open || m.emitted(c)) {
			frames++
		}
	}
	return frames >= m.settings.MaxSpansPerTrace
}

// emitted reports whether the call, which has ended, is a span.
func (m *calls) emitted(c *call) bool {
	return !m.leftOut(c) && (c.truncated == 0 || !m.settings.DropTruncated)
}

// leftOut is rule 10. The length of a truncated call is not known, so it is not short.
func (m *calls) leftOut(c *call) bool {
	short := c.truncated == 0 && c.end-c.start < m.settings.MinDuration
	return c.tooDeep || short && !m.keptBelow(c)
}

func (m *calls) keptBelow(c *call) bool {
	return slices.ContainsFunc(c.children, func(child *call) bool { return m.emitted(child) || m.keptBelow(child) })
}

func (m *calls) sums(c *call) (sums LeftOut) {
	for _, child := range c.children {
		if !m.leftOut(child) {
			continue
		}
		below := m.sums(child)
		sums.Calls += 1 + below.Calls
		sums.Errors += below.Errors
		sums.Time += child.end - child.start
		if child.unwound {
			sums.Errors++
		}
	}
	return sums
}

// close ends the top call of the event's lane.
func (m *calls) close(e happened, t int64) {
	stack := m.stacks[e.lane.ID]
	c := stack[len(stack)-1]
	c.line = e.line
	c.attributes = append(c.attributes, e.attributes...)
	m.stacks[e.lane.ID] = stack[:len(stack)-1]
	c.end, c.open = t, false
}

// truncate ends the calls of a lane from number keep on.
func (m *calls) truncate(lane uint64, keep int, cause callevent.Cause, end int64) {
	for _, c := range m.stacks[lane][keep:] {
		c.end, c.open, c.truncated = end, false, cause
		m.counters.Truncated[cause]++
	}
	m.stacks[lane] = m.stacks[lane][:keep]
}

// breakNow truncates all open calls 1 ns after the last event.
func (m *calls) breakNow(cause callevent.Cause) {
	for lane := range m.stacks {
		m.truncate(lane, 0, cause, m.last+1)
	}
}

// breakLate truncates the calls that were entered before the number at, though later events were handled already.
// Each ends with the last event inside it.
func (m *calls) breakLate(at uint64, cause callevent.Cause) {
	for lane, stack := range m.stacks {
		cut := 0
		for cut < len(stack) && stack[cut].entry.sequence < at {
			cut++
		}
		if cut < len(stack) && cut > 0 {
			above := stack[cut]
			above.parent.children = slices.DeleteFunc(above.parent.children, func(c *call) bool { return c == above })
			above.parent = nil
		}
		for i := cut - 1; i >= 0; i-- {
			c := stack[i]
			c.end = max(c.start+1, c.lastThrow)
			for _, child := range c.children {
				c.end = max(c.end, child.end)
			}
			c.open, c.truncated = false, cause
			m.counters.Truncated[cause]++
		}
		m.stacks[lane] = stack[cut:]
	}
}

// spans are the calls that have ended and are not left out. It updates the counters.
func (m *calls) spans() []finished {
	var spans []finished
	m.counters.Finished, m.counters.LeftOut = 0, 0
	for _, c := range m.all {
		switch {
		case c.open:
		case m.leftOut(c):
			m.counters.LeftOut++
		case m.emitted(c):
			m.counters.Finished++
			spans = append(spans, m.span(c))
		}
	}
	return spans
}

func (m *calls) span(c *call) finished {
	f := finished{
		Function: *c.entry.function, Lane: c.entry.lane.ID, LaneName: c.name,
		Start: c.start, End: c.end, Sequence: c.entry.sequence, Parent: NoParent, Trace: c.trace,
		Truncated: c.truncated, Unwound: c.unwound, ErrorType: c.errorType, Line: c.line,
		LeftOut: m.sums(c), DroppedThrows: c.dropped, Throws: c.throws, Attributes: c.attributes,
	}
	if c.parent != nil {
		f.Parent, f.Link, f.LinkTrace = c.parent.entry.sequence, c.link, c.linkTrace
	}
	return f
}
