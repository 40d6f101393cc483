// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// tracing is what an agent was made to do:
//
//	waiting ──ready──► tracing ──want──► suspending ──answer──► suspended
//	                      ▲                  │                      │
//	                      └──── no want ─────┴─── (after 5 s) ──────┘
//	any of them ──end──► ending
//
// Reasons to suspend are wanted and unwanted; the agent is told when the first comes and
// when the last has gone. It must not be told to trace again before it has answered with
// its data break, unless it never does; and nothing before it has its buffers, or when its
// tracing ends. The lock is held while it is told, so that orders leave in the order in
// which they were decided.
//
// A paused agent ends its tracing at the order suspend, and a suspended agent at the order
// pause. So suspension wins: the guard unpauses an agent before it suspends it, and pauses it
// again after unsuspend.
type tracing struct {
	// tell sends an order to the agent.
	tell func(of bytefrog.MessageType)
	// patience is how long the answer is waited for, and news is called when something
	// has changed.
	patience time.Duration
	news     func()
	// untraced counts for how long the agent was suspended for reasons of the guard's own, in
	// nanoseconds; nil: nobody counts.
	untraced *atomic.Int64

	mu      sync.Mutex
	state   tracingState
	wants   reason
	askedAt time.Time
	// at is the number before which the data broke last.
	at uint64
	// since is up to when untraced is counted; zero: the guard has no reason to suspend.
	since time.Time
	// paused and stopped are what the collector ordered.
	paused, stopped bool
	// halted says that the agent was told to pause, and not to go on since. It is only true
	// in the state tracing.
	halted bool
}

type tracingState uint8

const (
	stateWaiting    tracingState = iota // it is not prepared yet, and takes no orders
	stateTracing                        // it traces, or is on its way to
	stateSuspending                     // it was told to suspend
	stateSuspended                      // it has answered
	stateEnding                         // it was told, or has said, that tracing is over
)

// reason is a set of reasons to suspend an agent.
type reason uint8

const (
	wantedByCollector reason = 1 << iota // the collector has said so
	wantedForStall                       // the collector takes nothing
	wantedForAbsence                     // there is no collector
	wantedForLeave                       // the agent is being left
)

// ready says that the agent takes orders.
func (t *tracing) ready() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != stateWaiting {
		return
	}
	t.state = stateTracing
	if t.stopped {
		t.stop()
		return
	}
	t.settle()
}

// want adds a reason. It reports whether the agent had been suspended before, and the
// number before which the data broke then.
func (t *tracing) want(r reason) (at uint64, suspended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	suspended = t.state == stateSuspended
	t.wants |= r
	t.settle()
	return t.at, suspended
}

// unwant takes reasons away.
func (t *tracing) unwant(r reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wants &^= r
	t.settle()
}

// answer says that a data break before a number has come.
func (t *tracing) answer(at uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at = at
	if t.state == stateSuspending {
		t.state = stateSuspended
		t.settle()
		t.news()
	}
}

// pause is what the collector ordered: that the program stands still, or goes on.
func (t *tracing) pause(paused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused = paused
	t.settle()
}

// orderStop is what the collector ordered: that tracing ends.
func (t *tracing) orderStop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	if t.state != stateWaiting && t.state != stateEnding {
		t.stop()
	}
}

// stop tells the agent that tracing ends.
func (t *tracing) stop() {
	t.tell(bytefrog.TypeStop)
	t.state, t.halted = stateEnding, false
	t.tally(time.Now())
	t.news()
}

// leave suspends the agent for good. Its program goes on first: it was running when it was
// found, and has to answer. From then on nobody pauses it.
func (t *tracing) leave() { t.want(wantedForLeave) }

// release says that the agent is told nothing more, but that its program goes on.
func (t *tracing) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.halt(false)
	t.isEnding()
}

// lose takes back what a collector that is lost had ordered, but for what has become of it: an
// agent whose tracing has ended can't begin again.
func (t *tracing) lose() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused, t.stopped = false, false
	t.wants &^= wantedByCollector | wantedForStall
	t.settle()
}

// end says that the agent is told nothing more.
func (t *tracing) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isEnding()
}

// isEnding is end for who holds the lock.
func (t *tracing) isEnding() {
	if t.state != stateEnding {
		t.state, t.halted = stateEnding, false
		t.tally(time.Now())
		t.news()
	}
}

// count brings the counter of untraced time up to now.
func (t *tracing) count() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tally(time.Now())
}

// tally is count for who holds the lock, when the reasons or the state may have changed.
func (t *tracing) tally(now time.Time) {
	if !t.since.IsZero() && t.untraced != nil {
		t.untraced.Add(int64(now.Sub(t.since)))
	}
	t.since = time.Time{}
	if t.wants&(wantedForStall|wantedForAbsence) != 0 && t.state != stateEnding {
		t.since = now
	}
}

// settle tells the agent what it has to be told. The caller holds the lock.
func (t *tracing) settle() {
	t.tally(time.Now())
	switch t.state {
	case stateTracing:
		t.halt(t.paused && t.wants == 0)
		if t.wants != 0 {
			t.state, t.askedAt = stateSuspending, time.Now()
			t.tell(bytefrog.TypeSuspend)
			time.AfterFunc(t.patience, t.overdue)
		}
	case stateSuspended, stateSuspending:
		answered := t.state == stateSuspended || time.Since(t.askedAt) >= t.patience
		if t.wants == 0 && answered {
			t.state = stateTracing
			t.tell(bytefrog.TypeUnsuspend)
			t.halt(t.paused)
		}
	case stateWaiting, stateEnding:
	}
}

// halt has the program of an agent that traces stand still, or go on. The caller holds the lock.
func (t *tracing) halt(halted bool) {
	if t.halted == halted {
		return
	}
	t.halted = halted
	if halted {
		t.tell(bytefrog.TypePause)
	} else {
		t.tell(bytefrog.TypeUnpause)
	}
}

// overdue says that the time to answer is over.
func (t *tracing) overdue() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == stateSuspending && time.Since(t.askedAt) >= t.patience {
		t.settle()
		t.news()
	}
}

// quiet reports whether the agent traces nothing that a collector could miss: it has
// answered suspend, or not for too long. broken says that it has said before which number
// the data breaks, which is at.
func (t *tracing) quiet() (at uint64, broken, quiet bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	answered := t.state == stateSuspended
	late := t.state == stateSuspending && time.Since(t.askedAt) >= t.patience
	return t.at, answered, answered || late
}

// is reports whether the agent is in a state.
func (t *tracing) is(s tracingState) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state == s
}
