// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
)

// leave decides that the run ends. Only the first decision counts; the keeper
// carries it out. It returns at once, or as soon as the agent was told to start. One
// that is left before then is turned away by whoever would have started it.
func (r *run) leave(e ending) {
	r.deciding.Lock()
	defer r.deciding.Unlock()
	if r.isLeaving() {
		return
	}
	r.ending = e
	close(r.leaving)
}

// end is the one way in which a run ends, so that the traced program lives. An agent
// is left in steps (farewell.go), as many as the manner of leaving it needs:
//
//  1. Ready: an agent that has not opened a data connection is told nothing. A shutdown
//     waits until it has, or has ended.
//     A program that somebody had paused is let go on.
//  2. Suspend: it is told to trace no more, and its answer is waited for.
//  3. Read: what it had sent till then is read and handed on; when the time of the
//     shutdown is over, read and dropped.
//  4. Tell: it is told error, and why. Nothing in its program waits for us then.
//  5. Part: its connections are taken from those who read them, and linger until it
//     closes them (linger.go).
//
// Whatever the agent does, the run goes on to its end:
//
//  6. Finish: what is in memory is handed on, then the end, and the ID is given back.
//
// At any step, memory that is full is freed first, and handing on has a time limit
// (bound).
func (k *keeper) end() {
	r := k.run
	defer r.bound()()
	if r.isStarted() {
		r.takeLeave()
	}
	<-r.control.ended
	r.logEnding()
	k.finish()
}

// droppedLate is why something is dropped that was not accepted in the time that the end
// of a run has for it.
const droppedLate = handover.Late("end_timeout")

// bound bounds the end of a run:
//
//  1. When its memory is full, or becomes so meanwhile, its names are dropped. The
//     readers of its connections do the same with what waits for names, and batches that
//     the pipeline refuses are not tried again.
//  2. What the pipeline has not accepted after end_timeout, or after shutdown_timeout
//     where the memory is full, is dropped.
//
// It returns what ends it.
func (r *run) bound() (stop func()) {
	full, limit := r.memory.Full(), r.env.config.EndTimeout
	if r.memory.IsFull() {
		r.shed()
		full, limit = nil, min(limit, r.env.config.ShutdownTimeout)
	}
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		timer := time.NewTimer(limit)
		defer timer.Stop()
		for {
			select {
			case <-full:
				r.shed()
				full = nil
				timer.Reset(min(limit, r.env.config.ShutdownTimeout))
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

// shed frees what the run can be without, because its memory is full.
func (r *run) shed() {
	m := r.memory
	r.stream.DropNames()
	r.env.telemetry.runShed(memoryReason(m))
	if r.ending.cause != callevent.CauseLimit {
		r.logger.Warn("The run gives its memory back before its last data was handed on", zap.Error(m.Reason()))
	}
}

// takeLeave is steps 1 to 5.
func (r *run) takeLeave() {
	f := r.beginFarewell()
	defer f.part()
	if !f.isReady() {
		return
	}
	f.unpause()
	switch r.ending.how {
	case mannerSuspend:
		f.suspend()
		f.read()
		f.tell()
	case mannerError:
		f.tell()
	case mannerNone:
		f.read()
	}
}

// logEnding says that the run ends, and what it was.
func (r *run) logEnding() {
	var breaks uint64
	s := r.state()
	for _, n := range s.breaks {
		breaks += n
	}
	r.logger.Log(r.ending.level(), "The run ends: "+r.ending.text,
		zap.Stringer("cause", r.ending.cause), zap.Error(r.ending.err),
		zap.Uint64("events", s.events), zap.Uint64("bytes", s.bytes), zap.Uint64("breaks", breaks),
		zap.Duration("duration", r.env.now().Sub(r.opened).Round(time.Millisecond)))
	r.failed.log(r.logger, r.env.now(), true)
	if r.ending.cause == callevent.CauseEnded {
		r.warnIfUntraced()
	}
	r.logs.ended(r.ending)
}

// finish is step 6. Nobody reads any more; the connections of the agent are none of
// its business.
func (k *keeper) finish() {
	r := k.run
	r.data.finished.Wait()
	r.stream.DropNames()
	if k.announcing != nil {
		k.missed = false
		k.announced(<-k.announcing)
	}
	if r.handover != nil {
		r.handover.Wait()
		k.handOnEnd()
		r.handover.Wait()
	}
	r.giveUp(nil)
	r.memory.Close()
	r.env.telemetry.runEnded(r.ending.cause)
	r.env.telemetry.runs(-1)
	r.env.metrics.ended(r.state())
	r.env.registry.close(r)
	close(r.over)
}

// handOnEnd is the last of step 6: an empty batch that says that the run is over.
func (k *keeper) handOnEnd() {
	r := k.run
	if !r.isStarted() {
		return
	}
	r.breakAt(callevent.End(r.stream.Next(), r.ending.cause))
	batch, err := k.empty.Batch(r.stream.NewBarriers())
	if err != nil {
		r.logger.Error("The end of the run could not be handed on", zap.Error(err))
		return
	}
	r.send(batch)
}
