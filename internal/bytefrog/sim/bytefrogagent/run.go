// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// run is the single run of an agent. mu guards the state and the pool; changed is signalled at each change of them.
// These goroutines exist:
//
//	play            the goroutine of Agent.Run: handshake, then waits for the ends of the others
//	readControl     carries out orders; only it handles the loss of the control connection
//	sendHeartbeats  sends heartbeats
//	endAfterError   closes all connections of an agent after an error
//	send, watch     one pair for each data connection: writes buffers, notices the close
//	the program     makes calls
type run struct {
	options Options
	program Program

	mu       sync.Mutex
	changed  *sync.Cond
	life     life
	pool     pool
	firstErr error
	// final is closed when life is final.
	final chan struct{}

	configuration bytefrog.AgentConfiguration
	started       time.Time

	control     net.Conn
	controlLock sync.Mutex // writes to control: messages must not mix

	data  []net.Conn
	queue chan *Buffer
	// sending is the number of running senders. dead is closed when a failing agent stops them.
	sending int
	dead    chan struct{}

	background sync.WaitGroup // readControl, sendHeartbeats, watch and timers

	// blocked is the state for Tracer.Proceed: 0 while calls are collected.
	blocked atomic.Uint32

	counters
}

// counters are the parts of Stats.
type counters struct {
	events, bytes, buffers, heartbeats, breaks, orders atomic.Uint64
	waited                                             atomic.Int64
}

func newRun(o Options, p Program) *run {
	r := &run{options: o, program: p, final: make(chan struct{}), dead: make(chan struct{})}
	r.changed = sync.NewCond(&r.mu)
	r.blocked.Store(1)
	return r
}

func (r *run) statistics() Stats {
	r.mu.Lock()
	mode := r.life.mode()
	r.mu.Unlock()
	return Stats{
		Events:     r.events.Load(),
		Bytes:      r.bytes.Load(),
		Buffers:    r.buffers.Load(),
		Heartbeats: r.heartbeats.Load(),
		Breaks:     r.breaks.Load(),
		Orders:     r.orders.Load(),
		Waited:     time.Duration(r.waited.Load()),
		Mode:       mode,
	}
}

// change applies an event to the agent's life.
func (r *run) change(event func(l *life)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changeLocked(event)
}

func (r *run) changeLocked(event func(l *life)) {
	wasFinal := r.life.final()
	event(&r.life)
	if r.life.final() && !wasFinal {
		close(r.final)
	}
	var blocked uint32
	if !r.life.collecting() {
		blocked = 1
	}
	r.blocked.Store(blocked)
	r.changed.Broadcast()
}

func (r *run) isKilled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.life.outcome == Killed
}

func (r *run) noteError(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.firstErr == nil {
		r.firstErr = err
	}
}

// isIdle reports whether the agent traces nothing.
func (r *run) isIdle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.life.idle
}

// awaitSenders waits until all senders have ended, or the run is over.
func (r *run) awaitSenders() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.sending > 0 && !r.life.final() {
		r.changed.Wait()
	}
}

// awaitThaw waits while the process is frozen.
func (r *run) awaitThaw() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.life.frozen && !r.life.final() {
		r.changed.Wait()
	}
}

// sleep waits for d, or until the run is over.
func (r *run) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.final:
	}
}
