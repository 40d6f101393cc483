// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// watch is a command that observes calls. The life's lock guards it.
type watch struct {
	// sees marks the observed methods.
	sees []bool
	// affected is the number of methods that the command's patterns matched.
	affected javamethods.Affected
	// records means that the command records calls.
	records bool
	// cycle counts the calls of the current cycle, in the order of the first calls; nil means no counting.
	cycle *cycle
	// events are single calls; nil means that the command needs none.
	events chan event
	// oneBegin keeps one begin time for each thread, as the released server does: an observed callee overwrites the
	// begin of its caller.
	oneBegin bool
	// remaining is the number of events until the limit; negative means no limit.
	remaining int64
}

// event is an observed call.
type event struct {
	call call
	// stack is the stack of the call, the call first. The released server reports the thread's last stack: the stack of
	// an observed callee, if there is one.
	stack  []method
	thread javamethods.Thread
	record javamethods.Record
	// last means that no more events follow.
	last bool
}

// maxEvents is the number of events that may wait for a client, as in the released server.
const maxEvents = 2048

// watch starts to observe the methods of a target.
func (l *life) watch(target javamethods.Target, w *watch) error {
	classes, methods, err := matchers(target)
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

// unwatch stops observing. The classes stay instrumented.
func (l *life) unwatch(w *watch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.watches, w)
}

// begin returns the begin of a call as the server records it.
func (w *watch) begin(c call) time.Duration {
	begin := c.start
	for _, callee := range c.callees {
		if w.oneBegin && w.sees[callee.method] {
			begin = callee.start
		}
	}
	return begin
}

// add adds a call and reports whether more calls are needed. The caller holds the lock.
func (w *watch) add(l *life, c call, callers []method, count Count, of javamethods.Thread, r *record) (more bool) {
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
	e.last = w.remaining == 1
	select {
	case w.events <- e:
	default:
		l.truth.Missed++
	}
	if w.remaining > 0 {
		w.remaining--
	}
	if w.remaining == 0 {
		close(w.events)
	}
	return w.remaining != 0
}

// cycle counts the calls of a cycle.
type cycle struct {
	methods []method
	byID    map[method]*counted
}

// counted sums the calls of one method in one cycle.
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

// cycleOf is the statistics of a cycle with their counts.
type cycleOf struct {
	javamethods.Statistics
	// counts are the counts of the methods.
	counts []Count
}

// takeCycle returns the counts and resets them. A method stays in the list after its first call.
func (l *life) takeCycle(w *watch, at time.Time) (s cycleOf) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range w.cycle.methods {
		name, of := l.options.nameOf(m), w.cycle.byID[m]
		row := javamethods.MethodStatistics{
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

// countCycle adds a cycle that was reported to a client.
func (l *life) countCycle(s cycleOf) {
	l.update(func(t *Truth) {
		for i, m := range s.Methods {
			t.Reported.add(MethodName{m.Class, m.Method}, s.counts[i])
		}
	})
}
