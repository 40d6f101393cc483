// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/call/callevent"
)

// agent is the agent of a run, with notes of the commands that it was sent. It is for many
// goroutines.
type agent struct {
	*hq.Agent
	env     *Environment
	logger  *zap.Logger
	control *control
	life    *lifetime
	breaks  *breaks
	// suspendedForEnd: the last suspend was sent because the run ends.
	suspendedForEnd atomic.Bool
	// heartbeats and events are how many had arrived when unsuspend was sent last.
	heartbeats, events atomic.Uint64
}

// newAgent returns the agent of a run. A paused program makes no calls, so an overload suspends its
// agent only after the pause.
func newAgent(env *Environment, logger *zap.Logger, c *control, l *lifetime, b *breaks) *agent {
	a := &agent{env: env, logger: logger, control: c, life: l, breaks: b}
	a.Agent = hq.NewAgent(hq.Settings{Send: a.send, Answer: env.Timing.Answer, Prepared: env.Timing.Prepared, Yielding: hq.Overload})
	if env.Settings.StartSuspended {
		a.Suspend(hq.Operator) // suspend is sent when the agent is prepared
	}
	return a
}

// send sends a command to the agent. First it notes how to interpret the agent's answer.
func (a *agent) send(c hq.Command) error {
	switch c.Of {
	case bytefrog.TypeSuspend:
		a.suspending(c.Reasons)
	case bytefrog.TypeUnsuspend:
		a.unsuspending(c.From)
	}
	err := a.control.send(bytefrog.Command{Of: c.Of})
	switch {
	case err != nil && a.life.isLeaving():
		a.logger.Debug("Could not send a command to the agent", zap.Stringer("command", c.Of), zap.Error(err))
	case err != nil:
		a.logger.Warn("Could not send a command to the agent", zap.Stringer("command", c.Of), zap.Error(err))
	case c.Of == bytefrog.TypeUnsuspend:
		a.logger.Info("The agent resumes tracing")
	}
	return err
}

// suspending notes a suspend before it is sent.
func (a *agent) suspending(reasons hq.Reason) {
	a.suspendedForEnd.Store(reasons&hq.Leaving != 0)
	if reasons&hq.Overload == 0 || reasons&hq.Leaving != 0 {
		return
	}
	a.env.Telemetry.Suspended()
	policy := "block"
	if a.env.Settings.SuspendAtOnce {
		policy = "suspend"
	}
	a.logger.Warn("Suspending the agent: its program runs on untraced until the pipeline has accepted all held batches",
		zap.String("on_overload", policy), zap.Duration("max_block", a.env.Settings.MaxBlock))
}

// unsuspending notes an unsuspend before it is sent. If the agent has not answered suspend, a break
// is owed: from the first missing number to the next that arrives.
func (a *agent) unsuspending(from hq.State) {
	if from != hq.Suspended {
		a.breaks.owe()
		a.logger.Warn("The agent did not answer suspend: the length of the break is known only when it sends events again")
	}
	a.heartbeats.Store(a.control.heartbeats.Load())
	a.events.Store(a.breaks.stream.Received())
}

// suspendForOverload suspends the agent, because the pipeline refuses batches.
func (a *agent) suspendForOverload() { a.Suspend(hq.Overload) }

// resumeAfterOverload ends an overload, unless batches are held. A refusal at the same time is not
// missed: the lock of the agent delays its suspend.
func (a *agent) resumeAfterOverload(isHolding func() bool) {
	_ = a.Do(func(m *hq.Machine) ([]hq.Command, error) {
		if m.Status().Reasons&hq.Overload == 0 || a.life.isLeaving() || isHolding() {
			return nil, nil
		}
		return m.Resume(hq.Overload), nil
	})
}

// causeOfBreak returns why the data breaks at a data break of the agent: it was suspended for the end
// of its run, or for a while.
func (a *agent) causeOfBreak() callevent.Cause {
	if a.suspendedForEnd.Load() {
		return a.life.ending.Cause
	}
	return callevent.CauseSuspended
}
