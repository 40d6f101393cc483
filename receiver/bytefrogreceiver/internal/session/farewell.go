// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
)

// farewell ends a run, in the only way that lets the traced program live. Its methods are the steps that
// disconnect the agent, of which some endings need only a part, and the end of the run. They are for
// the goroutine of live.
type farewell struct {
	run       *run
	keepAlive *keepAlive
	// answered: the agent has answered suspend, so it is alive.
	answered bool
}

// end ends a run:
//
//  1. Ready: an agent that has not opened a data connection gets no command. A shutdown waits
//     until it has, or has ended.
//  2. Suspend: the agent gets suspend, and the receiver waits for its answer. A paused program
//     resumes before that.
//  3. Read: the rest of the agent's data is read and sent to the pipeline. When the time of the
//     shutdown is over, it is read and dropped.
//  4. Error: the agent gets an error message with the reason. Nothing in its program waits for the
//     receiver then.
//  5. Part: the agent's connections linger until the agent closes them (Options.Linger).
//  6. Finish: everything in memory is sent to the pipeline, then the end, and the ID is free.
//
// At any step, memory that is full is freed first, and delivery has a time limit (bound).
func (f *farewell) end() {
	r := f.run
	defer f.bound()()
	if r.life.isStarted() {
		f.disconnect()
	}
	<-r.control.ended
	f.logEnding()
	f.finish()
}

// disconnect is steps 1 to 5.
func (f *farewell) disconnect() {
	r := f.run
	defer f.part()
	if !f.isReady() {
		r.agent.End()
		return
	}
	switch r.life.ending.how {
	case mannerSuspend:
		f.suspend()
		f.read()
		f.sendError()
	case mannerError:
		f.sendError()
	case mannerNone:
		r.agent.Release()
		f.read()
	}
}

// isReady is step 1. Between start and its first data connection an agent makes its buffers. A
// command that ends its tracing then hangs its program when the buffers are full. So the agent
// gets no command. The connections that it opens afterwards are refused, because the listener is
// closed or its run is over, and that ends its tracing in time.
//
// An agent whose first data connection was accepted, and has sent no data hello, needs the command. So
// a shutdown waits for the first data connection, for the end of the control connection, or until
// its time is over.
func (f *farewell) isReady() bool {
	r := f.run
	if r.life.ending.how == mannerSuspend {
		select {
		case <-r.data.joined:
		case <-r.control.ended:
		case <-r.env.Receiver.Delivering.Done():
		}
	}
	if r.data.refuseUnlessJoined() {
		r.logger.Debug("No command is sent to the agent: it has not opened a data connection")
		return false
	}
	return true
}

// suspend is step 2. An agent that is shutting down has ended its tracing. It treats suspend as an
// error, and discards its unsent data.
func (f *farewell) suspend() {
	r := f.run
	if r.agent.Status().State == hq.Ended || !f.awaitPrepared() {
		return
	}
	f.answered = r.agent.SuspendForGood(r.control.ended, r.env.Timing.Farewell).Broken
	if !f.answered {
		r.logger.Debug("The agent did not answer suspend")
	}
}

// awaitPrepared waits until the agent obeys commands, and reports false if its control
// connection ends before.
func (f *farewell) awaitPrepared() bool {
	r := f.run
	timer := time.NewTimer(r.env.Timing.Prepared)
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

// read is step 3: it waits until the rest has arrived. The time in which the pipeline refuses does not
// count, because no data is read then. When the time of the shutdown is over, handover does not wait
// for the pipeline, so data is read and dropped: an agent whose data connection is closed before all of
// it was read may hang.
func (f *farewell) read() {
	r := f.run
	full, times := r.Memory.Full(), f.restTimes()
	if r.agent.AwaitRest(&rest{run: r, mayBeHeld: true}, times, r.ctx.Done(), full) || r.Memory.IsFull() {
		return
	}
	times.Limit = r.env.Timing.Discard
	r.agent.AwaitRest(&rest{run: r}, times, nil, full)
}

// restTimes returns the times of step 3. Only an agent that was sent suspend reports how many numbers
// it has assigned.
func (f *farewell) restTimes() hq.RestTimes {
	t := f.run.env.Timing
	times := hq.RestTimes{Quiet: t.Quiet, Complete: t.Complete, Limit: t.Drain}
	if f.run.life.ending.how != mannerSuspend {
		times.Complete = times.Quiet
	}
	return times
}

// rest is the data connections of a run in step 3.
type rest struct {
	run *run
	// mayBeHeld: readers may wait for the pipeline.
	mayBeHeld bool
}

// Arrivals returns the data that has arrived.
func (a *rest) Arrivals() hq.Arrivals {
	r := a.run
	return hq.Arrivals{
		Numbered: r.stream.Received(), Bytes: r.traffic.bytes.Load(), Ended: r.data.complete(),
		Held: a.mayBeHeld && r.batches.waiting() > 0, Behind: !r.data.caughtUp(),
	}
}

// NextArrival returns a channel that is closed when data arrives or a connection ends.
func (a *rest) NextArrival() <-chan struct{} { return a.run.data.changed.Next() }

// sendError is step 4. The agent closes its connections after its heartbeat interval, and its program
// runs on. The end of the program does not wait for unsent data.
func (f *farewell) sendError() {
	f.run.agent.Release()
	if err := f.run.control.send(bytefrog.ErrorMessage{Text: f.run.life.ending.Error()}); err != nil {
		f.run.logger.Debug("Could not send the reason to the agent", zap.Error(err))
	}
}

// part is step 5. The readers of the run's connections stop, even those that wait for the pipeline: the
// agent must not wait for it.
func (f *farewell) part() {
	r := f.run
	data := r.data.part()
	r.pace.Changed()
	r.Linger(data, r.control.in.TakeAway(), f.answered)
}

// finish is step 6. All readers stop, and the agent's connections are no longer the run's.
func (f *farewell) finish() {
	r := f.run
	r.data.finished.Wait()
	r.stream.DropNames()
	f.keepAlive.finish()
	if r.batches.isOpen() {
		r.batches.Wait()
		f.keepAlive.sendEnd()
		r.batches.Wait()
	}
	r.giveUp(nil)
	r.agent.End()
	r.Memory.Close()
	r.env.Telemetry.RunEnded(r.life.ending.Cause)
	last := r.state()
	last.Over, last.Connections, last.SendBuffers = true, 0, 0
	r.Ended(last)
}

// droppedLate is the reason of drops at the end of a run when end_timeout is over.
const droppedLate = handover.Late("end_timeout")

// bound bounds the end of a run:
//
//  1. When its memory is full, or becomes full meanwhile, its names are dropped. The readers of its
//     connections drop events that wait for names, and a refused batch has no further try.
//  2. Data that the pipeline has not accepted after end_timeout is dropped. If the memory is full,
//     shutdown_timeout is another limit.
//
// The returned function removes the limits.
func (f *farewell) bound() (stop func()) {
	r := f.run
	full, limit := r.Memory.Full(), r.env.Settings.EndTimeout
	if r.Memory.IsFull() {
		f.freeMemory()
		full, limit = nil, min(limit, r.env.Settings.ShutdownTimeout)
	}
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		timer := time.NewTimer(limit)
		defer timer.Stop()
		for {
			select {
			case <-full:
				f.freeMemory()
				full = nil
				timer.Reset(min(limit, r.env.Settings.ShutdownTimeout))
			case <-timer.C:
				r.giveUp(droppedLate)
			case <-over:
				return
			}
		}
	}()
	return func() {
		close(over)
		<-stopped
	}
}

// freeMemory drops the names of the run, because its memory is full.
func (f *farewell) freeMemory() {
	r, m := f.run, f.run.Memory
	r.stream.DropNames()
	r.env.Telemetry.RunShed(memoryReason(m))
	if r.life.ending.Cause != callevent.CauseLimit {
		r.logger.Warn("The run drops its last data to free memory", zap.Error(m.Reason()))
	}
}

// logEnding logs that the run ends, and its sums.
func (f *farewell) logEnding() {
	r := f.run
	s := r.state()
	r.logger.Log(r.life.ending.level(), "The run ends: "+r.life.ending.Text,
		zap.Stringer("cause", r.life.ending.Cause), zap.Error(r.life.ending.Err),
		zap.Uint64("events", s.Events), zap.Uint64("bytes", s.Bytes), zap.Uint64("breaks", s.SumOfBreaks()),
		zap.Duration("duration", r.env.Receiver.Now().Sub(r.life.opened).Round(time.Millisecond)))
	r.classes.failed.log(r.logger, r.env.Receiver.Now(), true)
	if r.life.ending.Cause == callevent.CauseEnded {
		r.warnIfUntraced()
	}
	r.Records.Ended(r.life.ending)
}
