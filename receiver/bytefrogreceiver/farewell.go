// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
)

// farewell is the steps in which the receiver leaves the agent of a run. Its methods are the
// steps of leave.go, each done at most once and in that order.
type farewell struct {
	run *run
	// answered says that the agent answered suspend: it is alive.
	answered bool
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
		r.logger.Debug("No command is sent to the agent: it has not opened a data connection")
		return false
	}
	return true
}

// suspend is step 2. An agent that is shutting down traces no more. It would take suspend for an
// error, and throw away what it has still to send.
func (f *farewell) suspend() {
	r := f.run
	if r.agent.Status().State == hq.Ended || !r.awaitPrepared() {
		return
	}
	f.answered = r.agent.SuspendForGood(r.control.ended, r.env.timing.farewell).Broken
	if !f.answered {
		r.logger.Debug("The agent did not answer suspend")
	}
}

// awaitPrepared waits until the agent obeys commands, and reports false if its control
// connection ends before.
func (r *run) awaitPrepared() bool {
	timer := time.NewTimer(r.env.timing.prepared)
	defer timer.Stop()
	select {
	case <-r.agent.Prepared():
	case <-timer.C:
		r.agent.SetPrepared()
	case <-r.control.ended:
		return false
	}
	return true
}

// read is step 3: it waits until the rest has arrived. While the pipeline refuses, nothing is
// read, so that time does not count. When the time of the shutdown is over nothing waits for
// the pipeline (handover.Send), so data that arrives is read and dropped: an agent whose data
// connection is closed with something unread may hang.
func (f *farewell) read() {
	r := f.run
	full, times := r.stream.memory.full, r.restTimes()
	if r.agent.AwaitRest(&rest{run: r, mayBeHeld: true}, times, r.ctx.Done(), full) || r.stream.memory.isFull() {
		return
	}
	times.Limit = r.env.timing.discard
	r.agent.AwaitRest(&rest{run: r}, times, nil, full)
}

// restTimes are the times of step 3. Only an agent that was sent suspend says how many numbers it
// gave out.
func (r *run) restTimes() hq.RestTimes {
	t := &r.env.timing
	times := hq.RestTimes{Quiet: t.quiet, Complete: t.complete, Limit: t.drain}
	if r.ending.how != mannerSuspend {
		times.Complete = times.Quiet
	}
	return times
}

// rest is the data connections of a run in step 3.
type rest struct {
	run *run
	// mayBeHeld says that readers may wait for the pipeline.
	mayBeHeld bool
}

// Arrivals returns what has arrived till now.
func (a *rest) Arrivals() hq.Arrivals {
	r := a.run
	return hq.Arrivals{
		Numbered: r.stream.received.Load(), Bytes: r.bytes.Load(), Ended: r.data.complete(),
		Held: a.mayBeHeld && r.handover != nil && r.handover.Waiting() > 0, Behind: !r.data.caughtUp(),
	}
}

// NextArrival returns a channel that is closed when data arrives or a connection ends.
func (a *rest) NextArrival() <-chan struct{} { return a.run.data.changed.Next() }

// tell is step 4. The agent closes its connections after its heartbeat interval, its
// program runs on, and at its end nobody waits for what was not sent.
func (f *farewell) tell() {
	f.run.agent.Release()
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
