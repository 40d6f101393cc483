// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"context"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/greys"
)

// life is one of the process: the program, and what commands have put into its classes.
type life struct {
	options ProgramOptions
	began   time.Time
	// over is done when the life is.
	over context.Context

	mu    sync.Mutex
	truth Truth
	// calls is how many were made.
	calls int64
	// poisoned says of each class that what a command has put into it has failed: others that
	// match it fail, too, until a reset.
	poisoned []bool
	// enhanced says of each class that a command has put something into it.
	enhanced []bool
	watches  map[*watch]struct{}
	// records are the last of the recorded calls, the oldest first.
	records  []record
	sessions map[int64]session
	// lastSession is the ID of the last one.
	lastSession int64
}

// record is a recorded call.
type record struct {
	greys.Record
	thread greys.Thread
	throws string
}

// session is a connection to the server.
type session struct{ from, to string }

// Bounds of what a life keeps, and where its numbers begin.
const (
	maxRecords  = 10_000
	firstRecord = 1001
	// step is how often the program goes on.
	step = 5 * time.Millisecond
	// A call's end has its time, and then its index: each so many calls the thread is held up
	// between them, and calls of lower indexes have ended later.
	heldUpEvery, heldUp = 7, time.Second
)

func newLife(over context.Context, o ProgramOptions, processID int64) *life {
	return &life{
		options: o, began: time.Now(), over: over,
		truth:    Truth{ProcessID: processID, Made: Counts{}, Told: Counts{}},
		enhanced: make([]bool, o.Classes), poisoned: make([]bool, o.Classes), watches: map[*watch]struct{}{}, sessions: map[int64]session{},
	}
}

// run has the program go on until the life is over, or it has made all its calls.
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
				l.note(func(t *Truth) { t.Rests = true })
				return
			}
		}
	}
}

// happened has whoever watches see a call, and those within it.
func (l *life) happened(c call, of greys.Thread, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, callee := range c.callees {
		l.seen(callee, []method{c.method}, of, at)
	}
	l.seen(c, nil, of, at)
}

// seen has whoever watches see one call. The lock is held.
func (l *life) seen(c call, callers []method, of greys.Thread, at time.Time) {
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
		if !w.see(l, c, callers, seen, of, recorded) {
			delete(l.watches, w)
		}
	}
}

// record records a call. The lock is held.
func (l *life) record(c call, of greys.Thread, at time.Time) *record {
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
		Record: greys.Record{
			Index: index, Process: index, Time: at.Truncate(time.Second), Cost: c.end - c.start, Returned: c.throws == "", Threw: c.throws != "",
			Object: identity(l.options.classOf(c.method)), Class: name.Class, Method: name.Method,
		},
		thread: of, throws: c.throws,
	})
	return &l.records[len(l.records)-1]
}

// recorded gives the recorded calls, or the one of an index, where it is not below 0.
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

// reset takes out of classes what was put there: whoever watches doesn't see them any more.
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

// note changes what is known to have happened.
func (l *life) note(change func(*Truth)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.truth)
}

// Truth is what happened until now.
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
