// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/stream"
)

// tracing says whether the agent is to trace. Its lock is held while what was
// decided is sent, so that suspend and unsuspend leave in the order in which they
// were decided.
type tracing struct {
	mu sync.Mutex
	suspension
	// prepared is closed when the agent holds events back if it is suspended, see
	// agentPrepared. No suspend is sent before.
	prepared chan struct{}
	// overloaded: it was asked to suspend because the pipeline refuses. ordered: somebody
	// wants it suspended.
	overloaded, ordered bool
	// beats and events are how many heartbeats and events had come when it was released last.
	beats, events uint64
	// paused: its program was told to pause, and not to go on since. It is never both paused
	// and asked to suspend: the agent would end its tracing. steered: it was told either, so
	// what its last heartbeat said may be of before. stopped: it was told to end tracing.
	paused, steered, stopped bool
	// over: the agent is being left, and told nothing more for overload. farewell: it
	// was tracing when it was told to suspend for good.
	over, farewell bool
}

// end says that the agent is being left: for overload it is told nothing from now on.
func (t *tracing) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
}

// suspendForOverload tells the agent to suspend, because the pipeline refuses. One that
// is shutting down traces no more, and would take it for an error.
func (r *run) suspendForOverload() {
	t := &r.tracing
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.overloaded || r.tracesNoMore() {
		return
	}
	t.overloaded = true
	r.signs.give()
	r.sendSuspend()
}

// suspendOverloaded sends the suspend that waited until the program is not paused any more.
func (r *run) suspendOverloaded() {
	t := &r.tracing
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.overloaded && !t.over && !r.tracesNoMore() {
		r.sendSuspend()
	}
}

// sendSuspend sends suspend if the agent is prepared for it, and was not sent one before. One
// that is paused gets it after unpause: until then its program makes no calls, and the agent
// would end its tracing. The lock is held.
func (r *run) sendSuspend() {
	t := &r.tracing
	if !isClosed(t.prepared) || t.paused {
		return
	}
	if _, first := t.ask(r.env.now()); !first {
		return
	}
	t.steered = true
	if t.overloaded {
		r.env.telemetry.suspended()
		r.logger.Warn("Suspending the agent until the pipeline has accepted the batches that are held",
			zap.String("on_overload", string(r.env.config.OnOverload)), zap.Duration("max_block", r.env.config.MaxBlock))
	}
	if err := r.control.send(bytefrog.Command{Of: bytefrog.TypeSuspend}); err != nil {
		r.logger.Warn("Could not send suspend to the agent", zap.Error(err))
	}
}

// agentPrepared says that the agent is prepared to be suspended: it holds events back when it
// is. Java's agent is as soon as its buffers listen to its mode, which is after it has opened
// its data connections. A suspend that it reads before then only changes the mode that its
// heartbeats show, its events flow on, and the next suspend is an error, at which it ends
// tracing for good. The first sign that it is prepared is a class report or an event.
//
// Somebody may have wanted it suspended before.
func (r *run) agentPrepared() {
	t := &r.tracing
	t.mu.Lock()
	defer t.mu.Unlock()
	if isClosed(t.prepared) {
		return
	}
	close(t.prepared)
	if t.over || r.tracesNoMore() || !t.ordered && !t.overloaded {
		return
	}
	r.sendSuspend()
}

// tracesNoMore reports whether the agent ends its run. The lock is held.
func (r *run) tracesNoMore() bool {
	return r.tracing.stopped || r.control.lastMode() == bytefrog.ModeShuttingDown
}

// isEnding is tracesNoMore for those who don't hold the lock.
func (r *run) isEnding() bool {
	r.tracing.mu.Lock()
	defer r.tracing.mu.Unlock()
	return r.tracesNoMore()
}

// resume tells the agent to trace again, when nobody wants it suspended any more, all that
// was held was accepted, and the agent has answered suspend with its data break. Where none
// comes, the break is owed: from the first number that is missing to the first that comes.
func (r *run) resume() {
	t := &r.tracing
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || r.tracesNoMore() || t.overloaded && (r.handover.Holds() || r.handover.Waiting() > 0) {
		return
	}
	t.overloaded = false
	if t.ordered || !t.isSuspended() {
		return
	}
	released, answered := t.release(r.env.now(), r.env.timing.answer)
	if !released {
		return
	}
	if !answered {
		r.owed.owe(r.stream.Next())
		r.logger.Warn("The agent did not answer suspend: what was missed is not known until it sends events again")
	}
	t.beats, t.events = r.control.heartbeats.Load(), r.stream.Received()
	if err := r.control.send(bytefrog.Command{Of: bytefrog.TypeUnsuspend}); err != nil {
		r.logger.Warn("The agent could not be told to go on tracing", zap.Error(err))
		return
	}
	r.signs.give()
	r.logger.Info("The agent is told to go on tracing")
}

// unpauseForGood lets a program that is paused go on, because its agent will be left.
func (r *run) unpauseForGood() error {
	t := &r.tracing
	t.mu.Lock()
	defer t.mu.Unlock()
	if !r.saysPaused() || r.tracesNoMore() {
		return nil
	}
	t.paused, t.steered = false, true
	return r.control.send(bytefrog.Command{Of: bytefrog.TypeUnpause})
}

// saysPaused reports whether the program is paused, as far as is known: it was told so, or
// its agent says so and was told nothing by this receiver. The lock is held.
func (r *run) saysPaused() bool {
	t := &r.tracing
	return t.paused || !t.steered && r.control.lastMode() == bytefrog.ModePaused
}

// suspendForGood tells the agent to suspend, because it will be left. It gives a
// channel that is closed with its answer.
func (r *run) suspendForGood() (answered <-chan struct{}, err error) {
	t := &r.tracing
	t.mu.Lock()
	defer t.mu.Unlock()
	answered, first := t.ask(r.env.now())
	if first {
		t.farewell = true
		err = r.control.send(bytefrog.Command{Of: bytefrog.TypeSuspend})
	}
	return answered, err
}

// causeOfBreak is why the data breaks where an agent says so: it was told to suspend
// for the end of its run, or for a while.
func (r *run) causeOfBreak() callevent.Cause {
	r.tracing.mu.Lock()
	defer r.tracing.mu.Unlock()
	if r.tracing.farewell {
		return r.ending.cause
	}
	return callevent.CauseSuspended
}

// owedBreak is a break of which only the begin is known: it ends with the first
// number that is received afterwards.
type owedBreak struct {
	// from is one more than the number that it begins with; 0: none is owed.
	from atomic.Uint64
}

func (o *owedBreak) owe(from uint64) { o.from.Store(from + 1) }

// settle makes the break, if one is owed and the number is not before it.
func (o *owedBreak) settle(r *run, sequence uint64) {
	from := o.from.Load()
	if from == 0 || sequence < from-1 || !o.from.CompareAndSwap(from, 0) {
		return
	}
	r.breakAt(callevent.Interval(from-1, sequence, callevent.CauseSuspended))
}

// settleBreak makes the break that is owed, before events of a chunk are packed.
func (r *run) settleBreak(events []bytefrog.Event) {
	from := r.owed.from.Load()
	if from == 0 {
		return
	}
	reference := r.stream.Next()
	first, any := uint64(0), false
	for _, e := range events {
		if n := stream.Unwrap(reference, e.Sequence); n >= from-1 && (!any || n < first) {
			first, any = n, true
		}
	}
	if any {
		r.owed.settle(r, first)
	}
}

// isOrdered reports whether somebody wants the agent to be suspended.
func (t *tracing) isOrdered() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ordered
}

// isWantedSuspended reports whether the agent is to be suspended, for whatever reason.
func (t *tracing) isWantedSuspended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ordered || t.overloaded
}

// isPaused reports whether somebody wants the program to be paused.
func (t *tracing) isPaused() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.paused
}
