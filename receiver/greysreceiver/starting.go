// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/greys"
)

// starting is an order to start something whose command has not begun yet.
type starting struct {
	order *order
	task  *task
	// undo makes it as if nobody had wanted it.
	undo func()
}

// begun says that the command has begun.
func (s *starting) begun(m matched) {
	details := []agentcontrol.Detail{{Name: argumentTask, Value: strconv.Itoa(s.task.number)}}
	if m.known {
		details = append(details, agentcontrol.Detail{Name: "matching classes", Value: strconv.FormatInt(m.classes, 10)},
			agentcontrol.Detail{Name: "matching methods", Value: strconv.FormatInt(m.methods, 10)})
	}
	s.order.done("it is started", details...)
}

// failed says that the command has not begun, and that it will not be asked again.
func (s *starting) failed(why *agentcontrol.Error) {
	s.undo()
	s.order.failed(why)
}

// startTask begins to start what somebody wants, unless it is there.
func (a *attending) startTask(o *order) {
	there := a.find(func(t *task) bool { return t.kind == o.ask.kind && t.pattern == o.ask.pattern })
	switch {
	case there == nil || there.state == taskOver:
	case there.ended:
		o.failed(agentcontrol.Errorf(agentcontrol.NotNow, "task %d is just being ended: start it when it has", there.number))
		return
	case there.limit == o.ask.limit && there.cycle == o.ask.cycle:
		o.done("that is asked for already", agentcontrol.Detail{Name: argumentTask, Value: strconv.Itoa(there.number)})
		return
	default:
		o.failed(agentcontrol.Errorf(agentcontrol.NotNow, "task %d has the same patterns, and another cycle or limit: end it first", there.number))
		return
	}
	if most := a.server.env.config.Limits.MaxCommands; a.commandsBeside(there) >= most {
		o.failed(agentcontrol.Errorf(agentcontrol.NotNow, "%d commands are asked for (limits.max_commands), with those whose limit is reached: end one first", most))
		return
	}
	s := a.want(o, there)
	waited := s.task
	if o.ask.kind == askRecords {
		list := a.recordList()
		if a.link.protocol == ProtocolGP {
			waited = list
		}
	}
	if waited.state == taskOver {
		s.failed(agentcontrol.Errorf(agentcontrol.Refused, "%w", greys.ErrUnsupported))
		return
	}
	waited.starting = append(waited.starting, s)
	if waited.state == taskDue {
		waited.due = a.server.env.now()
	}
}

// want has a task for what somebody wants: one that is over, or another one.
func (a *attending) want(o *order, over *task) *starting {
	p := a.process
	p.mu.Lock()
	defer p.mu.Unlock()
	if over == nil {
		t := a.add(&want{ask: o.ask, started: true})
		return &starting{order: o, task: t, undo: func() { a.forget(t) }}
	}
	before := *over.want
	over.ask, over.ended = o.ask, false
	over.state, over.due, over.answered, over.taken = taskDue, time.Time{}, 0, 0
	return &starting{order: o, task: over, undo: func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		*over.want, over.state, over.matched = before, taskOver, matched{}
	}}
}

// add has the server asked for something more. The lock is held.
func (a *attending) add(w *want) *task {
	a.server.numbered++
	w.number = a.server.numbered
	a.server.wants = append(a.server.wants, w)
	t := newTask(a.server.env, w)
	a.process.tasks = append(a.process.tasks, t)
	return t
}

// forget has the server not be asked any more for what somebody has had started.
func (a *attending) forget(t *task) {
	p := a.process
	p.mu.Lock()
	defer p.mu.Unlock()
	t.state = taskOver
	a.server.wants = slices.DeleteFunc(a.server.wants, func(w *want) bool { return w == t.want })
	p.tasks = slices.DeleteFunc(p.tasks, func(other *task) bool { return other == t })
	p.calls.release(t.number)
}

// recordList is the task that lists recorded calls, by GP, for all who want some.
func (a *attending) recordList() *task {
	if list := a.find(func(t *task) bool { return t.kind == askRecordList }); list != nil {
		return list
	}
	a.process.mu.Lock()
	defer a.process.mu.Unlock()
	return a.add(&want{ask: a.server.env.config.recordList()})
}

// find is the task that is meant, or nil.
func (a *attending) find(isMeant func(*task) bool) *task {
	if i := slices.IndexFunc(a.process.tasks, isMeant); i >= 0 {
		return a.process.tasks[i]
	}
	return nil
}

// commandsBeside is how many there are beside one that limits.max_commands is for, with those
// that are over: the next process is asked for them again.
func (a *attending) commandsBeside(one *task) (n int) {
	for _, t := range a.process.tasks {
		if t != one && t.kind.enhances() && !t.ended && a.server.env.wants(t.kind) {
			n++
		}
	}
	return n
}

// takesRecords reports whether anybody wants recorded calls. It is for the goroutine that
// follows the server.
func (p *process) takesRecords() bool {
	return slices.ContainsFunc(p.tasks, func(t *task) bool { return t.kind == askRecords && t.state != taskOver })
}

// hasBegun reports whether an answer says that the command has begun. The lock is held.
func (r *run) hasBegun(reply greys.Reply) bool {
	switch reply := reply.(type) {
	case *greys.Affected:
		return r.matched
	case *greys.Statistics:
		return len(reply.Methods) > 0
	default:
		// A list has to be read to its end.
		return r.task.every == 0
	}
}

// isTry reports whether somebody waits for the command to begin: where it doesn't, they are
// told, and it is not asked again.
func (r *run) isTry() bool { return len(r.starting) > 0 }

// begins says that the command has begun.
func (r *run) begins() {
	for _, s := range r.starting {
		s.begun(r.task.matched)
	}
	r.starting = nil
}

// isOver is told that the run has ended.
func (r *run) isOver() {
	r.process.mu.Lock()
	defer r.process.mu.Unlock()
	r.over = true
}

// silence is how long a server may say nothing by GP, where commands need not say that they
// have begun, until that counts as a yes.
const silence = time.Second

// awaitSilence says after a while that the server has been asked and has not refused.
func (r *run) awaitSilence() {
	if len(r.starting) > 0 && r.task.every == 0 {
		time.AfterFunc(silence, r.saySilent)
	}
}

// saySilent says that the server has been asked and has not refused, to those who still wait
// for it to say more.
func (r *run) saySilent() {
	r.process.mu.Lock()
	defer r.process.mu.Unlock()
	if r.over {
		return
	}
	for _, s := range r.starting {
		r.silent = true
		s.order.done("the server was asked, and has said nothing yet", agentcontrol.Detail{Name: argumentTask, Value: strconv.Itoa(s.task.number)})
	}
}

// settle is told of a run that has ended, and of what its task has come to, where somebody
// waits for that.
func (a *attending) settle(r *run, how outcome) {
	t := r.task
	switch {
	case !r.isTry():
	case how == outcomeEnded:
		r.begins()
	case r.silent && !how.isNo():
		// It goes on as what has begun does.
	case errors.Is(context.Cause(r.ctx), errCleaning):
		t.starting = append(r.starting, t.starting...)
	default:
		a.fails(r, how)
	}
	if t.every > 0 && len(t.starting) > 0 {
		t.due = a.server.env.now()
	}
	if t.ended {
		t.state = taskOver
	}
	if t.kind == askRecordList {
		a.endTaken()
	}
	if t.started && t.state == taskOver {
		a.forget(t)
	}
}

// fails is told of a run that has not begun, and that is not asked again: where it was taken
// to have begun, all are told.
func (a *attending) fails(r *run, how outcome) {
	why := r.failure(how)
	if r.silent && how != outcomeUnsupported { // which is said
		a.server.logger.Warn("What was started has not begun after all: it is not asked any more", append(r.task.fields(), zap.Error(why))...)
		a.server.env.saidRefused(a.process.origin, r.task, why)
	}
	for _, s := range r.starting {
		s.failed(why)
	}
}

// failure is why a command that was to be started has not begun.
func (r *run) failure(how outcome) *agentcontrol.Error {
	switch how {
	case outcomeUnmatched:
		return agentcontrol.Errorf(agentcontrol.Refused, "the pattern matches no class or method that the server can change; it is not tried again")
	case outcomeUnsupported, outcomeRefused:
		return agentcontrol.Errorf(agentcontrol.Refused, "%w", r.ended)
	default:
		why := r.ended
		if why == nil {
			why = errEarly
		}
		return agentcontrol.Errorf(agentcontrol.Lost, "the command was lost before the server had said anything: %w", why)
	}
}

// endTaken ends the taking of recorded calls of which as many were listed as the limit has.
func (a *attending) endTaken() {
	for _, t := range slices.Clone(a.process.tasks) {
		waited, over := a.process.endFull(t)
		for _, s := range waited {
			s.begun(t.matched)
		}
		if !over {
			continue
		}
		a.server.logger.Info("A command has reached its limit", t.fields()...)
		if t.started {
			a.forget(t)
		}
	}
}

// endFull ends a task if as many recorded calls were listed for it as its limit has, and gives
// those who waited for it to begin.
func (p *process) endFull(t *task) (waited []*starting, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.kind != askRecords || t.state != taskDue || !t.isFull() {
		return nil, false
	}
	t.state = taskOver
	return p.withdraw(t), true
}
