// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/callevent"
)

// ending is why and how a run ends. Its makers below are all there are.
type ending struct {
	cause callevent.Cause
	how   farewell
	// text is what the log says, and with farewellError the agent.
	text string
	err  error
}

// farewell is what an agent is told before its connections are closed.
type farewell uint8

const (
	// farewellSuspend: suspend, after which it sends what it has and its threads
	// need no more buffers.
	farewellSuspend farewell = iota
	// farewellError: error, after which it ends tracing at once.
	farewellError
	// farewellTurnAway: the agent was not started. It is, to trace nothing, and told
	// error then.
	farewellTurnAway
	// farewellNone: it has closed, or is closing, its connections itself.
	farewellNone
)

func endedByAgent() ending {
	return ending{cause: callevent.CauseEnded, how: farewellNone, text: "the agent ended the run"}
}

func disconnected(err error) ending {
	return ending{cause: callevent.CauseDisconnected, how: farewellNone, text: "the control connection was lost", err: err}
}

func failedInAgent(text string) ending {
	return ending{cause: callevent.CauseDisconnected, how: farewellNone, text: "the agent reported an error: " + text}
}

func shutdown() ending {
	return ending{cause: callevent.CauseShutdown, how: farewellSuspend, text: "the receiver is shutting down"}
}

func startFailed(err error) ending {
	return ending{cause: callevent.CauseDisconnected, how: farewellError, text: "the agent could not be started", err: err}
}

func unresponsive(silence time.Duration) ending {
	return ending{
		cause: callevent.CauseUnresponsive, how: farewellError,
		text: fmt.Sprintf("no heartbeat for %v (missed_heartbeats times agent.heartbeat_interval)", silence),
	}
}

func givenUpForBadData(connection string, err error) ending {
	return ending{
		cause: callevent.CauseBadData, how: farewellError,
		text: "what came on a " + connection + " connection could not be read", err: err,
	}
}

func dataLost(err error) ending {
	return ending{cause: callevent.CauseDisconnected, how: farewellError, text: "a data connection was lost", err: err}
}

func outOfMemory(limit int) ending {
	e := &limitError{setting: "limits.max_run_memory", limit: limit}
	return ending{cause: callevent.CauseLimit, how: farewellError, text: e.Error()}
}

// leave decides that the run ends. Only the first decision counts; the keeper
// carries it out. It returns at once, or as soon as the agent was told to start. One
// that is left before has nothing to suspend: it is turned away.
func (r *run) leave(e ending) {
	r.deciding.Lock()
	defer r.deciding.Unlock()
	if r.isLeaving() {
		return
	}
	if !r.isStarted() && e.how == farewellSuspend {
		e.how = farewellTurnAway
	}
	r.ending = e
	close(r.leaving)
	r.cancel()
}

// timing are the times of leaving and suspending that the agent's behaviour asks
// for.
type timing struct {
	// farewell is how long the answer to the last suspend is waited for.
	farewell time.Duration
	// quiet is how long nothing has to come for all to have come.
	quiet time.Duration
	// complete is the same where the counts say that all has come.
	complete time.Duration
	// afterError and drain bound the reading of what comes after error, and
	// otherwise. Time in which the pipeline refuses doesn't count.
	afterError, drain time.Duration
	// control is how long the control connection outlives the data connections: an
	// agent whose control connection is closed before or together with them may
	// hang its program for ever.
	control time.Duration
	// answer is how long the answer to a suspend for overload is waited for.
	answer time.Duration
	// ready is how long after start an agent is told error that is turned away, unless
	// it was ready before; parting how long it has to close its connection then.
	ready, parting time.Duration
}

func defaultTiming() timing {
	return timing{
		farewell:   time.Second,
		quiet:      time.Second,
		complete:   20 * time.Millisecond,
		afterError: 2 * time.Second,
		drain:      time.Minute,
		control:    300 * time.Millisecond,
		answer:     5 * time.Second,
		ready:      500 * time.Millisecond,
		parting:    5 * time.Second,
	}
}

// end is the one way in which a run ends, so that the traced program lives:
//
//  1. The agent is told: error when it is given up, otherwise suspend, whose
//     answer is waited for.
//  2. What was sent is read.
//  3. The data connections are closed.
//  4. A moment later the control connection is closed, unless the agent did so.
//  5. What is in memory is handed on, then the end, and the ID is given back.
//
// The shutdown's time bounds 2 and 5.
func (k *keeper) end() {
	r := k.run
	r.logEnding()
	r.sayFarewell()
	r.readToEnd()
	r.data.close()
	r.closeControl()
	r.data.finished.Wait()
	if r.handover != nil {
		r.handover.wait()
		k.handOnEnd()
		r.handover.wait()
	}
	r.env.telemetry.runEnded(r.ending.cause)
	r.env.telemetry.runs(-1)
	r.env.metrics.ended(r.state())
	r.env.registry.close(r)
}

func (r *run) logEnding() {
	level := zapcore.InfoLevel
	if r.ending.how == farewellError || r.ending.cause == callevent.CauseDisconnected {
		level = zapcore.WarnLevel
	}
	r.logger.Log(level, "The run ends: "+r.ending.text, zap.Stringer("cause", r.ending.cause), zap.Error(r.ending.err))
	r.logs.ended(r.ending)
}

// sayFarewell is step 1.
func (r *run) sayFarewell() {
	switch r.ending.how {
	case farewellNone:
	case farewellError:
		text := r.ending.text
		if r.ending.err != nil {
			text += ": " + r.ending.err.Error()
		}
		if err := r.control.send(bytefrog.ErrorMessage{Text: text}); err != nil {
			r.logger.Debug("The agent could not be told why it is given up", zap.Error(err))
		}
	case farewellTurnAway:
		if err := r.turnAway(r.ending.text); err != nil {
			r.logger.Debug("The agent could not be told why it is refused", zap.Error(err))
		}
	case farewellSuspend:
		answered, err := r.suspendForGood()
		if err != nil {
			r.logger.Debug("The agent could not be told to suspend", zap.Error(err))
			return
		}
		timer := time.NewTimer(r.env.timing.farewell)
		defer timer.Stop()
		select {
		case <-answered:
		case <-r.control.ended:
		case <-timer.C:
			r.logger.Debug("The agent did not answer suspend")
		}
	}
}

// readTick is how often readToEnd looks.
const readTick = 2 * time.Millisecond

// readToEnd is step 2: it waits until the agent has closed its data connections, or
// all that it sent has come, or nothing comes any more. While the pipeline refuses,
// nothing is read, so the clock stands still.
func (r *run) readToEnd() {
	if !r.isStarted() {
		return
	}
	t := r.env.timing
	limit := t.drain
	if r.ending.how == farewellError {
		limit = t.afterError
	}
	ticker := time.NewTicker(readTick)
	defer ticker.Stop()
	now := r.env.now()
	since, spent := now, time.Duration(0)
	for !r.data.complete() && spent < limit {
		select {
		case <-ticker.C:
		case <-r.env.ctx.Done():
			return
		}
		before := now
		now = r.env.now()
		if r.handover != nil && r.handover.waiting.Load() > 0 {
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
		quiet := t.quiet
		if r.allReceived() {
			quiet = t.complete
		}
		if now.Sub(since) >= quiet {
			return
		}
	}
}

// allReceived reports whether an agent that was told to suspend has said how many
// numbers it gave out, and all have come.
func (r *run) allReceived() bool {
	at, ok := r.tracing.brokenAt()
	return ok && r.ending.how == farewellSuspend && r.stream.received.Load() >= at
}

// closeControl is step 4.
func (r *run) closeControl() {
	timer := time.NewTimer(r.env.timing.control)
	defer timer.Stop()
	select {
	case <-r.control.ended:
	case <-timer.C:
	}
	_ = r.control.in.conn.Close()
	<-r.control.ended
}

// handOnEnd is the last of step 5: an empty batch that says that the run is over.
func (k *keeper) handOnEnd() {
	r := k.run
	if !r.isStarted() {
		return
	}
	r.breakAt(callevent.End(r.stream.next.Load(), r.ending.cause))
	batch, err := k.emptyBatch(r.stream.barriers.unannounced(nil))
	if err != nil {
		r.logger.Error("The end of the run could not be handed on", zap.Error(err))
		return
	}
	r.handover.send(batch)
}
