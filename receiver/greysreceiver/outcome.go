// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/greys"
)

// outcome is how a run ended.
type outcome uint8

const (
	// outcomeEnded: by the limit, or because all was said.
	outcomeEnded outcome = iota
	outcomeRefused
	outcomeUnsupported
	// outcomeLost: with the connection, or for what came.
	outcomeLost
	outcomeTimedOut
	// outcomeUnmatched: no class or method is called so yet.
	outcomeUnmatched
	// outcomeStopped: by the receiver.
	outcomeStopped
)

func (o outcome) String() string {
	return [...]string{"ended", "refused", "unsupported", "lost", "timed_out", "unmatched", "stopped"}[o]
}

// isNo reports whether the server has said that it doesn't do it.
func (o outcome) isNo() bool {
	return o == outcomeRefused || o == outcomeUnsupported || o == outcomeUnmatched
}

// Why the receiver ends a run.
var (
	errUnmatched = errors.New("the pattern matches nothing yet")
	errEnough    = errors.New("the limit is reached")
	errCleaning  = errors.New("what lost commands have put into classes is taken out")
)

// outcome says how the run ended, which gave an error or none.
func (r *run) outcome(err error) outcome {
	switch {
	case errors.Is(context.Cause(r.ctx), errUnmatched):
		return outcomeUnmatched
	case errors.Is(context.Cause(r.ctx), errEnough):
		return outcomeEnded
	case r.task.every == 0 && r.isFull():
		return outcomeEnded // whatever came then: nothing is left to ask for
	case errors.Is(context.Cause(r.ctx), errPart):
		return outcomeOf(err)
	case r.ctx.Err() != nil:
		return outcomeStopped
	case isAnswer(err), errors.Is(err, greys.ErrSessionTimedOut):
		return outcomeOf(err)
	case err != nil || r.task.every == 0:
		// What goes on by itself doesn't end before its limit.
		return outcomeLost
	default:
		return outcomeEnded
	}
}

// outcomeOf is that of a command that gave an error.
func outcomeOf(err error) outcome {
	switch {
	case errors.Is(err, greys.ErrUnsupported):
		return outcomeUnsupported
	case errors.Is(err, greys.ErrSessionTimedOut):
		return outcomeTimedOut
	case errors.Is(err, greys.ErrRefused):
		return outcomeRefused
	default:
		return outcomeLost
	}
}

// start asks for a task.
func (a *attending) start(t *task) {
	a.process.runs++
	r := &run{task: t, attending: a, process: a.process, link: a.link, details: a.details, number: a.process.runs, began: a.server.env.now()}
	r.ctx, r.end = context.WithCancelCause(a.ctx)
	t.state, t.run, t.due = taskRunning, r, a.server.env.now()
	r.starting, t.starting = t.starting, nil
	if a.link.protocol == ProtocolGP {
		r.awaitSilence()
	}
	if t.kind == askTrace {
		a.process.traces(r, true)
	}
	a.running++
	a.server.running.Add(1)
	if t.every > 0 {
		a.listing++
	}
	go func() {
		r.ask()
		a.ended <- r
	}()
}

// take is told of a run that has ended, and says what is to become of its task.
func (a *attending) take(r *run) {
	t, how, now := r.task, r.outcome(r.ended), a.server.env.now()
	r.isOver()
	r.process.traces(r, false)
	began := t.due
	if r.ctx.Err() != nil && !a.link.ends {
		a.left++
	}
	r.end(nil)
	a.running--
	a.server.running.Add(-1)
	if t.every > 0 {
		a.listing--
	} else {
		t.answered += r.answers
	}
	t.state, t.run, t.due = taskDue, nil, now
	if r.mayHaveEnhanced() && how != outcomeUnsupported {
		a.process.owe(t.classes)
		a.process.layers++
	}
	if now.Sub(began) > a.server.env.config.Reconnect.MaxInterval {
		t.pauses.Reset()
	}
	if t.kind == askRecordList {
		a.process.recordsListed(how == outcomeEnded)
	}
	a.server.env.telemetry.commandEnded(how)
	a.next(r, how, now)
	a.settle(r, how)
}

// next says when the task of a run that has ended is asked again, if it is, and what of it
// is worth saying.
func (a *attending) next(r *run, how outcome, now time.Time) {
	t, env := r.task, a.server.env
	switch how {
	case outcomeEnded:
		a.finished(r, now)
	case outcomeUnsupported:
		t.state = taskOver
		a.server.logger.Warn("The server does not support a command, which is not asked any more", append(t.fields(), zap.Error(r.ended))...)
		env.saidUnsupported(a.process.origin, t, r.ended)
	case outcomeUnmatched:
		t.due = now.Add(env.config.Reconnect.MaxInterval)
	case outcomeRefused:
		t.due = now.Add(t.pauses.Pause())
		said := "The server could not carry out a command: it is asked again"
		if r.isCareful() { // each try ends all others for a reset
			t.due = now.Add(refusedPause)
			said = "The server could not carry out a command: a reset undoes it, and it is asked again after ten minutes. The program's standard output has the reason; constructors and lambdas cannot be watched"
		}
		if since, say := t.refusing.Say(now); say && !r.isTry() {
			a.server.logger.Warn(said, append(t.fields(), zap.Error(r.ended), zap.Int("times_since_last_line", since))...)
		}
	case outcomeLost, outcomeTimedOut:
		a.lost(r, how, now)
	case outcomeStopped:
		if t.every > 0 {
			t.due = now.Add(t.every)
		}
	}
}

// refusedPause is how long a command rests that the server refuses, where each try has to be
// undone.
const refusedPause = 10 * time.Minute

// finished is told of a run whose command has ended in order.
func (a *attending) finished(r *run, now time.Time) {
	t := r.task
	t.failing.Over()
	t.refusing.Over()
	if t.every == 0 {
		t.state = taskOver
		a.server.logger.Info("A command has reached its limit", t.fields()...)
		return
	}
	t.due = now.Add(t.every)
	if t.kind == askRecordList {
		return
	}
	a.sayShortened(r)
	a.process.listed(r, !errors.Is(context.Cause(r.ctx), errEnough))
	if r.answers == 0 {
		a.sayUnmatched(t, a.process)
	} else {
		t.unmatched.Over()
	}
}

// lost is told of a run that ended as none should: it is asked again, after the server was
// asked who it is.
func (a *attending) lost(r *run, how outcome, now time.Time) {
	t, env := r.task, a.server.env
	pause := t.pauses.Pause()
	t.due = now.Add(pause)
	a.doubt()
	if a.link.lost == nil { // it has a connection of its own
		a.process.reconnected()
	}
	if how == outcomeTimedOut {
		env.saidTimedOut(a.process.origin, t)
	}
	why := r.ended
	if why == nil {
		why = errEarly
	}
	if since, say := t.failing.Say(now); say && (!r.isTry() || r.silent) {
		a.server.logger.Warn("A command was given up: it is asked again",
			append(t.fields(), zap.Error(why), zap.Duration("pause", pause), zap.Int("times_since_last_line", since))...)
	}
}

// doubt has the server say who it is before it is asked for anything more.
func (a *attending) doubt() {
	a.doubted = true
	a.check = earlier(a.check, a.checked.Add(a.server.env.config.Reconnect.InitialInterval))
}

var errEarly = errors.New("the server ended the command, before its limit")

// sayUnmatched says that patterns match nothing, once until they do. It is for any
// goroutine.
func (a *attending) sayUnmatched(t *task, p *process) {
	if _, say := t.unmatched.Say(a.server.env.now()); say {
		a.server.logger.Warn("A pattern matches no class or method: it is tried again", t.fields()...)
		a.server.env.saidUnmatched(p.origin, t)
	}
}

// fields say which task it is, for the log.
func (t *task) fields() []zap.Field {
	return []zap.Field{zap.Stringer("command", t.kind), zap.String("pattern", t.pattern)}
}
