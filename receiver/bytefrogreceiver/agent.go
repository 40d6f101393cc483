// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/call/callevent"
)

// suspensions is what a run notes when its agent is sent suspend and unsuspend.
type suspensions struct {
	// forEnd says that the last suspend was sent because the run ends.
	forEnd atomic.Bool
	// heartbeats and events are how many had arrived when the agent was sent unsuspend last.
	heartbeats, events atomic.Uint64
	// owed is the break of an agent that has not answered suspend.
	owed owedBreak
}

// newAgent returns the agent of a run. A program that is paused makes no calls, so its agent is
// suspended for overload only when the program goes on.
func (r *run) newAgent() *hq.Agent {
	t := &r.env.timing
	a := hq.NewAgent(hq.Settings{Send: r.sendCommand, Answer: t.answer, Prepared: t.prepared, Yielding: hq.Overload})
	if r.env.config.Start == StartSuspended {
		a.Suspend(hq.Operator) // it gets suspend when it is prepared
	}
	return a
}

// sendCommand sends a command to the agent, and notes before what its answer will mean.
func (r *run) sendCommand(c hq.Command) error {
	switch c.Of {
	case bytefrog.TypeSuspend:
		r.suspending(c.Reasons)
	case bytefrog.TypeUnsuspend:
		r.unsuspending(c.From)
	}
	err := r.control.send(bytefrog.Command{Of: c.Of})
	switch {
	case err != nil && r.isLeaving():
		r.logger.Debug("Could not send a command to the agent", zap.Stringer("command", c.Of), zap.Error(err))
	case err != nil:
		r.logger.Warn("Could not send a command to the agent", zap.Stringer("command", c.Of), zap.Error(err))
	case c.Of == bytefrog.TypeUnsuspend:
		r.logger.Info("The agent resumes tracing")
	}
	return err
}

// suspending notes that the agent is sent suspend.
func (r *run) suspending(reasons hq.Reason) {
	r.suspensions.forEnd.Store(reasons&hq.Leaving != 0)
	if reasons&hq.Overload == 0 || reasons&hq.Leaving != 0 {
		return
	}
	r.env.telemetry.suspended()
	r.logger.Warn("Suspending the agent until the pipeline has accepted the batches that are held",
		zap.String("on_overload", string(r.env.config.OnOverload)), zap.Duration("max_block", r.env.config.MaxBlock))
}

// unsuspending notes that the agent is sent unsuspend. If it has not answered suspend, the break
// is owed: from the first number that is missing to the first that arrives.
func (r *run) unsuspending(from hq.State) {
	s := &r.suspensions
	if from != hq.Suspended {
		s.owed.owe(r.stream.next.Load())
		r.logger.Warn("The agent did not answer suspend: the length of the break is known only when it sends events again")
	}
	s.heartbeats.Store(r.control.heartbeats.Load())
	s.events.Store(r.stream.received.Load())
}

// suspendForOverload suspends the agent, because the pipeline refuses batches.
func (r *run) suspendForOverload() { r.agent.Suspend(hq.Overload) }

// resumeAfterOverload ends an overload when the pipeline has accepted all batches that were held.
// A refusal that comes at the same time is seen, because nothing else happens to the agent
// meanwhile.
func (r *run) resumeAfterOverload() {
	_ = r.agent.Do(func(m *hq.Machine) ([]hq.Command, error) {
		if m.Status().Reasons&hq.Overload == 0 || r.isLeaving() || r.handover.Holds() || r.handover.Waiting() > 0 {
			return nil, nil
		}
		return m.Resume(hq.Overload), nil
	})
}

// causeOfBreak is why the data breaks where the agent says so: it was sent suspend for the end of
// its run, or for a while.
func (r *run) causeOfBreak() callevent.Cause {
	if r.suspensions.forEnd.Load() {
		return r.ending.cause
	}
	return callevent.CauseSuspended
}

// owedBreak is a break of which only the beginning is known. It ends with the first number that
// is received afterwards.
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
	from := r.suspensions.owed.from.Load()
	if from == 0 {
		return
	}
	reference := r.stream.next.Load()
	first, any := uint64(0), false
	for _, e := range events {
		if n := unwrapSequence(reference, e.Sequence); n >= from-1 && (!any || n < first) {
			first, any = n, true
		}
	}
	if any {
		r.suspensions.owed.settle(r, first)
	}
}
