// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"errors"
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

// ending is an order to end something.
type ending struct {
	order *order
	task  *task
}

var errOrdered = errors.New("somebody else has had it ended meanwhile")

// endTask begins to end a task.
func (a *attending) endTask(o *order) {
	t := a.find(func(t *task) bool { return t.number == o.task && t.kind.enhances() })
	if t == nil {
		o.failed(agentcontrol.Errorf(agentcontrol.BadArgument, "no task has the number %d that can be ended: see %s", o.task, orderList))
		return
	}
	a.ending = append(a.ending, &ending{o, t})
	for _, s := range a.process.endNow(t) {
		s.order.failed(agentcontrol.Errorf(agentcontrol.Lost, "%w", errOrdered))
	}
	if t.run != nil {
		return
	}
	t.state = taskOver
	if t.started {
		a.forget(t)
	}
}

// endNow has a task be wanted no longer, and gives those who waited for it to begin. A row of its
// run is handled before its methods are left to others, or not at all.
func (p *process) endNow(t *task) (waited []*starting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.ended, t.matched = true, matched{}
	if t.run != nil {
		t.run.end(errOrdered)
	}
	p.calls.release(t.number)
	ours := func(s *starting) bool {
		if s.task == t {
			waited = append(waited, s)
		}
		return s.task == t
	}
	for _, of := range p.tasks {
		of.starting = slices.DeleteFunc(of.starting, ours)
		if of.run != nil {
			of.run.starting = slices.DeleteFunc(of.run.starting, ours)
		}
	}
	return waited
}

// sayEnded says what became of orders to end something.
func (a *attending) sayEnded() {
	a.ending = slices.DeleteFunc(a.ending, func(e *ending) bool {
		switch {
		case e.task.run != nil:
			return false
		case slices.Contains(a.process.owed, e.task.classes):
			e.order.done("it has ended; what it has put into classes is taken out when no other command needs it, or by reset")
		default:
			e.order.done("it has ended")
		}
		return true
	})
}

// resetNow begins to take out of classes what is there.
func (a *attending) resetNow(o *order) {
	a.process.owe(o.classes)
	a.resetting = append(a.resetting, o)
	a.resetAt = time.Time{}
	a.endForCleaning()
}

// sayReset says what became of orders to reset: err is what a reset has given. Where it
// failed, what is to run is asked again all the same.
func (a *attending) sayReset(err error) {
	if len(a.resetting) == 0 || len(a.busy()) > 0 {
		return
	}
	for _, o := range a.resetting {
		switch {
		case err == nil:
			o.done("what commands have put into classes is taken out")
		case isAnswer(err):
			o.failed(agentcontrol.Errorf(agentcontrol.Refused, "%w", err))
		default:
			o.failed(agentcontrol.Errorf(agentcontrol.NoAnswer, "the server has not said that it is done; it is asked again: %w", err))
		}
	}
	a.resetting = nil
	a.cleaning = a.cleaning && err == nil
}
