// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/greys"
)

// watch is a command that sees calls. The life's lock guards it.
type watch struct {
	// sees says which methods' calls.
	sees []bool
	// affected is how many of them the command's patterns matched.
	affected greys.Affected
	// records says that it has calls recorded.
	records bool
	// cycle are the calls since it was taken last, in the order in which methods were first
	// called; nil: nobody wants them.
	cycle *cycle
	// events are calls, each by itself; nil: nobody wants them.
	events chan event
	// oneBegin says that there is one begin for each thread, which that of a call replaces which
	// a call that is seen makes, as in the released server.
	oneBegin bool
	// left is how many there are to come; below 0: no end.
	left int64
}

// event is a call that was seen.
type event struct {
	call call
	// stack is from where it was called, itself first. The released server tells the last one of
	// the thread: that of a call which the call has made, where that is seen, too.
	stack  []method
	thread greys.Thread
	record greys.Record
	// last says that no more follow.
	last bool
}

// maxEvents is how many may wait for a client, as in the released server.
const maxEvents = 2048

// watch begins to watch the methods of a target.
func (l *life) watch(target greys.Target, w *watch) error {
	classes, err := matcher(target.Class, target.Regexp)
	if err != nil {
		return err
	}
	methods, err := matcher(target.Method, target.Regexp)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	w.sees = make([]bool, l.options.methods())
	for m := range w.sees {
		name, class := l.options.nameOf(method(m)), l.options.classOf(method(m))
		if classes.MatchString(name.Class) && methods.MatchString(name.Method) {
			w.sees[m] = true
			w.affected.Methods++
			l.enhanced[class] = true
		}
	}
	seen := slices.Collect(slices.Chunk(w.sees, l.options.Methods))
	w.affected.Classes = int64(len(slices.DeleteFunc(seen, func(of []bool) bool { return !slices.Contains(of, true) })))
	l.watches[w] = struct{}{}
	return nil
}

// unwatch ends watching. Classes stay as they are.
func (l *life) unwatch(w *watch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.watches, w)
}

// begin is that of a call, as the server keeps it.
func (w *watch) begin(c call) time.Duration {
	begin := c.start
	for _, callee := range c.callees {
		if w.oneBegin && w.sees[callee.method] {
			begin = callee.start
		}
	}
	return begin
}

// see says that more is wanted. The lock is held.
func (w *watch) see(l *life, c call, callers []method, count Count, of greys.Thread, r *record) (more bool) {
	if w.cycle != nil {
		w.cycle.add(c, count)
	}
	if w.events == nil {
		return true
	}
	e := event{call: c, thread: of, stack: append([]method{c.method}, callers...)}
	for _, callee := range c.callees {
		if w.oneBegin && w.sees[callee.method] {
			e.stack = append([]method{callee.method, c.method}, callers...)
		}
	}
	if r != nil {
		e.record = r.Record
	}
	e.last = w.left == 1
	select {
	case w.events <- e:
	default:
		l.truth.Missed++
	}
	if w.left > 0 {
		w.left--
	}
	if w.left == 0 {
		close(w.events)
	}
	return w.left != 0
}

// cycle counts the calls of a cycle.
type cycle struct {
	methods []method
	byID    map[method]*counted
}

// counted are calls of one method in one cycle.
type counted struct {
	Count
	min, max time.Duration
}

func newCycle() *cycle { return &cycle{byID: map[method]*counted{}} }

func (c *cycle) add(of call, count Count) {
	m := c.byID[of.method]
	if m == nil {
		m = &counted{}
		c.byID[of.method] = m
		c.methods = append(c.methods, of.method)
	}
	took := of.end - of.start
	if m.Calls == 0 || took < m.min {
		m.min = took
	}
	m.max = max(m.max, took)
	m.Count.add(count)
}

// cycleOf is what a client is told of a cycle.
type cycleOf struct {
	greys.Statistics
	// counts are those of its methods.
	counts []Count
}

// takeCycle gives what was counted, and begins anew. A method that was called once stays.
func (l *life) takeCycle(w *watch, at time.Time) (s cycleOf) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range w.cycle.methods {
		name, of := l.options.nameOf(m), w.cycle.byID[m]
		row := greys.MethodStatistics{
			Time: at, Class: name.Class, Method: name.Method,
			Calls: of.Calls, Succeeded: of.Calls - of.Failed, Failed: of.Failed,
		}
		if of.Calls > 0 {
			row.Mean, row.HasMean = of.Time/time.Duration(of.Calls), true
			row.Min, row.Max, row.HasRange = of.min, of.max, true
		}
		s.Methods = append(s.Methods, row)
		s.counts = append(s.counts, of.Count)
		*of = counted{}
	}
	return s
}

// toldCycle says that a client was told of a cycle.
func (l *life) toldCycle(s cycleOf) {
	l.note(func(t *Truth) {
		for i, m := range s.Methods {
			t.Told.add(MethodName{m.Class, m.Method}, s.counts[i])
		}
	})
}
