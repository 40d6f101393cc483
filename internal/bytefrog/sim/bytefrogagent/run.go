// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

import (
	"context"
	"errors"
	"fmt"
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

// play executes the whole run.
func (r *run) play(ctx context.Context) Result {
	conn, err := dial(ctx, r.options)
	if err != nil {
		if ctx.Err() != nil {
			r.change(func(l *life) { l.kill() })
		} else {
			r.change(func(l *life) {
				l.end(Untraced, fmt.Sprintf("no HQ answered within %v", r.options.ConnectTimeout))
			})
			r.noteError(err)
		}
		return r.result()
	}
	r.control = conn
	stopKill := context.AfterFunc(ctx, func() { r.change(func(l *life) { l.kill() }) })
	defer stopKill()
	r.background.Add(1)
	go r.closeAtEnd(ctx)

	if r.handshake() {
		r.trace()
	}
	r.background.Wait()
	return r.result()
}

// closeAtEnd closes the remaining connections in the final state, the control connection last. For a hung program it
// waits for the hang timeout before.
func (r *run) closeAtEnd(ctx context.Context) {
	defer r.background.Done()
	<-r.final
	r.waitHang(ctx)
	r.closeAll()
}

// waitHang waits for the hang timeout if the program hangs.
func (r *run) waitHang(ctx context.Context) {
	r.mu.Lock()
	isHung := r.life.state == hung
	r.mu.Unlock()
	if !isHung || r.options.HangTimeout <= 0 {
		return
	}
	patience := time.NewTimer(r.options.HangTimeout)
	defer patience.Stop()
	select {
	case <-patience.C:
	case <-ctx.Done():
	}
}

func (r *run) closeAll() {
	r.mu.Lock()
	data := r.data
	r.mu.Unlock()
	for _, conn := range data {
		conn.Close() // the peer may have closed it already
	}
	r.control.Close() // the peer may have closed it already
}

func (r *run) result() Result {
	stats := r.statistics()
	r.mu.Lock()
	defer r.mu.Unlock()
	return Result{
		Outcome:       r.life.outcome,
		Reason:        r.life.reason,
		Err:           r.firstErr,
		Configuration: r.configuration,
		Stats:         stats,
	}
}

// trace opens the data connections, runs the program, and closes them.
func (r *run) trace() {
	if r.options.Prepare != nil {
		r.options.Prepare()
	}
	r.change(func(l *life) { l.prepared() })
	if r.isIdle() {
		// It reports for a class that it ignores the class.
		r.writeControl(bytefrog.ClassReport{Result: bytefrog.TypeClassIgnored, Class: "demo/Main"})
	}
	if !r.openData() {
		<-r.final
		return
	}
	r.startSenders()
	r.change(func(l *life) { l.listens() })
	err := r.program.Run(&Tracer{run: r})
	if err != nil && !errors.Is(err, ErrUntraced) && !errors.Is(err, ErrHung) && !errors.Is(err, ErrSuspended) {
		r.noteError(err)
		r.fail("the program failed: " + err.Error())
	}
	r.change(func(l *life) { l.programEnded() })
	r.sendHeartbeat() // mode X
	close(r.queue)
	r.awaitSenders()
	r.change(func(l *life) { l.allSent() })
	// The state is not final if a connection was lost and the meaning of the loss is not known yet.
	<-r.final
}
