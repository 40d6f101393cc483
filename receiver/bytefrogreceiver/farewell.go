// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// farewell is the leaving of the agent of a run. Its methods are the steps of
// keeper.end, each done at most once and in that order.
type farewell struct {
	run *run
	// answered says that the agent answered suspend: it is alive.
	answered bool
}

// beginFarewell sees to it that nobody else tells the agent to suspend or to trace
// again: told so after error, it would be told by a run that is over.
func (r *run) beginFarewell() *farewell {
	r.tracing.end()
	return &farewell{run: r}
}

// isReady is step 1. Between start and its first data connection an agent makes its
// buffers. An order that it reads then ends its tracing before it has them, and nobody
// tells them: its program runs until they are full, and hangs. So it is told nothing: it
// is refused what it opens afterwards, by the listener that is closed or because its
// run is over, and that ends its tracing in time.
//
// One that is on its way with the listener's blessing has still to be told: a shutdown
// waits for the first data connection, for the end of the control connection, or until
// its time is over.
func (f *farewell) isReady() bool {
	r := f.run
	if r.ending.how == mannerSuspend {
		select {
		case <-r.data.joined:
		case <-r.control.ended:
		case <-r.env.ctx.Done():
		}
	}
	if r.data.refuseUnlessJoined() {
		r.logger.Debug("The agent is told nothing: it has not opened a data connection")
		return false
	}
	return true
}

// unpause lets the program go on, if somebody had it paused: it was running when it was
// found.
func (f *farewell) unpause() {
	if err := f.run.unpauseForGood(); err != nil {
		f.run.logger.Warn("The paused program could not be told to go on", zap.Error(err))
	}
}

// suspend is step 2. An agent that is shutting down traces no more, and would take
// suspend for an error, at which it throws away what it has still to send.
func (f *farewell) suspend() {
	r := f.run
	if r.isEnding() {
		return
	}
	if !r.awaitPrepared() {
		return
	}
	answered, err := r.suspendForGood()
	if err != nil {
		r.logger.Debug("Could not send suspend to the agent", zap.Error(err))
		return
	}
	timer := time.NewTimer(r.env.timing.farewell)
	defer timer.Stop()
	select {
	case <-answered:
		f.answered = true
	case <-r.control.ended:
	case <-timer.C:
		r.logger.Debug("The agent did not answer suspend")
	}
}

// awaitPrepared waits until the agent is prepared to be suspended, and reports false if its
// control connection ends before.
func (r *run) awaitPrepared() bool {
	timer := time.NewTimer(r.env.timing.prepared)
	defer timer.Stop()
	select {
	case <-r.tracing.prepared:
	case <-timer.C:
		r.agentPrepared()
	case <-r.control.ended:
		return false
	}
	return true
}

// readTick is how often read looks.
const readTick = 2 * time.Millisecond

// read is step 3: it waits until the agent has closed its data connections, or all
// that it sent has come, or nothing comes any more. While the pipeline refuses,
// nothing is read, so the clock stands still. When the time for handing on is over
// nothing waits for the pipeline (handover.send), so what comes is read and dropped:
// an agent whose data connection is closed with something unread may hang.
func (f *farewell) read() {
	r := f.run
	ticker := time.NewTicker(readTick)
	defer ticker.Stop()
	over, limit := r.ctx.Done(), r.env.timing.drain
	now := r.env.now()
	since, spent := now, time.Duration(0)
	for !r.data.complete() && spent < limit {
		select {
		case <-ticker.C:
		case <-r.memory.Full():
			return
		case <-over:
			over, limit = nil, r.env.timing.discard
			since, spent = r.env.now(), 0
		}
		before := now
		now = r.env.now()
		if over != nil && r.handover != nil && r.handover.Waiting() > 0 {
			since = now
			continue
		}
		spent += now.Sub(before)
		if active := r.lastActive(); active.After(since) {
			since = active
		}
		if !r.data.caughtUp() {
			since = now
		}
		if now.Sub(since) >= r.quiet() {
			return
		}
	}
}

// quiet is how long nothing has to come for all to have come. It is short when an
// agent that was told to suspend has said how many numbers it gave out, and they came.
func (r *run) quiet() time.Duration {
	at, ok := r.tracing.brokenAt()
	if ok && r.ending.how == mannerSuspend && r.stream.Received() >= at {
		return r.env.timing.complete
	}
	return r.env.timing.quiet
}

// tell is step 4. The agent closes its connections after its heartbeat interval, its
// program runs on, and at its end nobody waits for what was not sent.
func (f *farewell) tell() {
	if err := f.run.control.send(bytefrog.ErrorMessage{Text: f.run.ending.Error()}); err != nil {
		f.run.logger.Debug("The agent could not be told why it is left", zap.Error(err))
	}
}

// part is step 5. Whoever reads a connection of the run stops, though it be held up by
// the pipeline: the agent must not wait for that. The run's ID is given to others as
// late as can be: a data connection of the agent might still come.
func (f *farewell) part() {
	r := f.run
	r.env.registry.linger(r.id)
	r.env.lingering.add(lingerer{
		data: r.data.part(), control: r.control.in.takeAway(), answered: f.answered,
		gone: func() { r.env.registry.gone(r.id) },
	})
}
