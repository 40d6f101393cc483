// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"context"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// life is one run of the process: the program, and the instrumentation of its classes.
type life struct {
	options ProgramOptions
	began   time.Time
	// over ends with the life.
	over context.Context

	mu    sync.Mutex
	truth Truth
	// calls is the number of calls so far.
	calls int64
	// poisoned marks classes whose instrumentation has failed. Other commands on them fail too, until a reset.
	poisoned []bool
	// enhanced marks instrumented classes.
	enhanced []bool
	watches  map[*watch]struct{}
	// records are the last recorded calls, the oldest first.
	records  []record
	sessions map[int64]session
	// lastSession is the ID of the newest session.
	lastSession int64
}

// record is a recorded call.
type record struct {
	javamethods.Record
	thread javamethods.Thread
	throws string
}

// session is a connection to the server.
type session struct{ from, to string }

// Limits of a life, and the first numbers.
const (
	maxRecords  = 10_000
	firstRecord = 1001
	// step is the interval in which the program makes calls.
	step = 5 * time.Millisecond
	// A call is given its end time first and then its index. Every heldUpEvery calls the thread pauses between both, so
	// that calls with lower indexes end later.
	heldUpEvery, heldUp = 7, time.Second
)

func newLife(over context.Context, o ProgramOptions, processID int64) *life {
	return &life{
		options: o, began: time.Now(), over: over,
		truth:    Truth{ProcessID: processID, Made: Counts{}, Reported: Counts{}},
		enhanced: make([]bool, o.Classes), poisoned: make([]bool, o.Classes), watches: map[*watch]struct{}{}, sessions: map[int64]session{},
	}
}

// run makes calls until the life is over or all calls are made.
func (l *life) run() {
	p := newProgram(l.options)
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	for {
		select {
		case <-l.over.Done():
			return
		case now := <-ticker.C:
			due := int64(now.Sub(l.began).Seconds() * l.options.Rate)
			if l.options.Calls > 0 {
				due = min(due, l.options.Calls)
			}
			for p.made < due && l.over.Err() == nil {
				c, of := p.next()
				l.happened(c, thread(of), now)
			}
			if l.options.Calls > 0 && p.made == l.options.Calls {
				l.update(func(t *Truth) { t.Rests = true })
				return
			}
		}
	}
}

// happened reports a call and its callees to all watches.
func (l *life) happened(c call, of javamethods.Thread, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, callee := range c.callees {
		l.report(callee, []method{c.method}, of, at)
	}
	l.report(c, nil, of, at)
}

// report reports one call to all watches. The caller holds the lock.
func (l *life) report(c call, callers []method, of javamethods.Thread, at time.Time) {
	count := Count{Calls: 1, Time: c.end - c.start}
	if c.throws != "" {
		count.Failed = 1
	}
	l.truth.Made.add(l.options.nameOf(c.method), count)
	l.calls++
	var recorded *record
	if every := l.options.RecordEvery; every > 0 && l.calls%every == 0 {
		recorded = l.record(c, of, at)
	}
	for w := range l.watches {
		if !w.sees[c.method] {
			continue
		}
		if w.records && recorded == nil {
			recorded = l.record(c, of, at)
		}
		seen := count
		seen.Time = c.end - w.begin(c)
		if !w.add(l, c, callers, seen, of, recorded) {
			delete(l.watches, w)
		}
	}
}

// record records a call. The caller holds the lock.
func (l *life) record(c call, of javamethods.Thread, at time.Time) *record {
	name := l.options.nameOf(c.method)
	index := firstRecord + l.truth.Recorded
	l.truth.Recorded++
	if index%heldUpEvery == 0 {
		at = at.Add(-heldUp)
	}
	if len(l.records) == maxRecords {
		l.records = append(l.records[:0], l.records[maxRecords/2:]...)
	}
	l.records = append(l.records, record{
		Record: javamethods.Record{
			Index: index, Process: index, Time: at.Truncate(time.Second), Cost: c.end - c.start, Returned: c.throws == "", Threw: c.throws != "",
			Object: identity(l.options.classOf(c.method)), Class: name.Class, Method: name.Method,
		},
		thread: of, throws: c.throws,
	})
	return &l.records[len(l.records)-1]
}

// recorded returns the recorded calls: all, or the one of a non-negative index.
func (l *life) recorded(index int64) (records []record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.records {
		if index < 0 || r.Index == index {
			records = append(records, r)
		}
	}
	return records
}

// reset removes the instrumentation from classes: watches no longer see their calls.
func (l *life) reset(matches func(class string) bool) (classes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.poisoned)
	for class := range l.enhanced {
		if !l.enhanced[class] || !matches(className(class)) {
			continue
		}
		classes++
		l.enhanced[class] = false
		for w := range l.watches {
			clear(w.sees[class*l.options.Methods : (class+1)*l.options.Methods])
		}
	}
	l.truth.Resets += classes
	return classes
}

// update changes the truth.
func (l *life) update(change func(*Truth)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.truth)
}

// Truth returns the counts so far.
func (l *life) Truth() Truth {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.truth.clone()
	for _, enhanced := range l.enhanced {
		if enhanced {
			t.Enhanced++
		}
	}
	return t
}
