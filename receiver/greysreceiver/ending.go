// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

// ending is an order to end something.
type ending struct {
	order *order
	task  *task
	// run is the one that ends; nil: none did run. over is when it had ended; zero: not yet.
	run  *run
	over time.Time
}

var errOrdered = errors.New("somebody else has had it ended meanwhile")

// endTask begins to end a task.
func (a *attending) endTask(o *order) {
	t := a.find(func(t *task) bool { return t.number == o.task && t.kind.enhances() })
	if t == nil {
		o.failed(agentcontrol.Errorf(agentcontrol.BadArgument, "no task has the number %d that can be ended: see %s", o.task, orderList))
		return
	}
	a.ending = append(a.ending, &ending{order: o, task: t, run: t.run})
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
	return p.withdraw(t)
}

// withdraw has nobody wait any more for a task to begin, and gives those who did. The lock is
// held.
func (p *process) withdraw(t *task) (waited []*starting) {
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

// sayEnded says what became of orders to end something. What was put into classes may be taken
// out first, if that is asked for and doesn't take long.
func (a *attending) sayEnded(now time.Time) {
	a.ending = slices.DeleteFunc(a.ending, func(e *ending) bool {
		if e.run != nil && e.task.run == e.run {
			return false
		}
		if e.over.IsZero() {
			e.over = now
		}
		asked := a.round != nil && slices.Contains(a.round.of, e.task.classes)
		switch {
		case asked && now.Before(e.over.Add(silence)):
			return false
		case asked:
			e.order.done("it has ended; what it has put into classes is being taken out")
		case slices.Contains(a.process.owed, e.task.classes):
			e.order.done("it has ended; what it has put into classes is taken out when no other command needs it, or by reset")
		default:
			e.order.done("it has ended")
		}
		return true
	})
}

// sayStays says to those who have ended something that a reset of it has failed.
func (a *attending) sayStays(of []classes, failed []error) {
	a.ending = slices.DeleteFunc(a.ending, func(e *ending) bool {
		i := slices.Index(of, e.task.classes)
		if e.over.IsZero() || i < 0 || failed[i] == nil {
			return false
		}
		e.order.done(fmt.Sprintf("it has ended; what it has put into classes could not be taken out: %v", failed[i]))
		return true
	})
}

// resetNow begins to take out of classes what is there. What was wanted before, and nobody waits
// for, is left out.
func (a *attending) resetNow(o *order) {
	a.resetting = append(slices.DeleteFunc(a.resetting, (*order).isGivenUp), o)
	a.resetAt = time.Time{}
	a.endForCleaning()
}

// say says what became of orders to reset. Where one failed it is not tried again for who wanted it.
func (r *round) say(failed []error) {
	for _, o := range r.orders {
		err := failed[slices.Index(r.of, o.classes)]
		switch {
		case err == nil:
			o.done("what commands have put into classes is taken out")
		case isAnswer(err):
			o.failed(agentcontrol.Errorf(agentcontrol.Refused, "%w", err))
		default:
			o.failed(agentcontrol.Errorf(agentcontrol.NoAnswer, "the server has not said that it is done: %w", err))
		}
	}
}
