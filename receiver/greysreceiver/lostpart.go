// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/greys"
)

// A part that is lost is asked again alone: the other parts of its run go on, and so do their
// sums. As with whole commands, the server says who it is first, and there is a pause.

// lostPart is a part that has ended as none should. It waits until it may be asked again.
type lostPart struct {
	run  *run
	part *part
	err  error
	// due is when it is asked again.
	due time.Time
	// again is told whether it is asked again in this run. It has room for one.
	again chan bool
}

// isAlone reports whether the error of a part says nothing about the others.
func isAlone(err error) bool { return !isAnswer(err) && !errors.Is(err, errPoisoned) }

// awaitAgain waits until a lost part may be asked again, and reports whether it may.
func (r *run) awaitAgain(p *part, err error) bool {
	if r.ctx.Err() != nil {
		return false
	}
	l := &lostPart{run: r, part: p, err: err, again: make(chan bool, 1)}
	select {
	case r.attending.lostParts <- l:
	case <-r.ctx.Done():
		return false
	}
	select {
	case again := <-l.again:
		return again
	case <-r.ctx.Done():
		return false
	}
}

// partLost is told of a part that was lost.
func (a *attending) partLost(l *lostPart) {
	t, p, env := l.run.task, l.part, a.server.env
	now := env.now()
	how := outcomeOf(l.err)
	env.telemetry.commandEnded(how)
	a.process.reconnected()
	if how == outcomeTimedOut {
		env.saidTimedOut(a.process.origin, t)
	}
	if p.pauses == nil {
		p.pauses = backoff.New(env.config.Reconnect)
	}
	if now.Sub(p.asked) > env.config.Reconnect.MaxInterval {
		p.pauses.Reset()
	}
	pause := p.pauses.Pause()
	l.due = now.Add(pause)
	if p.lost++; p.lost > maxLayers {
		// Each time there is one thing over the other in its class: all is taken out.
		a.process.layers = len(a.process.tasks) + maxLayers + 1
	}
	a.doubt()
	a.process.owe(t.classes)
	a.waiting = append(a.waiting, l)
	if since, say := t.failing.Say(now); say {
		a.server.logger.Warn("A command of a pattern was lost: it is asked again, and the others go on",
			append(t.fields(), zap.String("method", p.name), zap.Error(l.err), zap.Duration("pause", pause), zap.Int("times_since_last_line", since))...)
	}
}

// askWaiting has lost parts asked again whose time has come, and says when the next has.
func (a *attending) askWaiting(now, next time.Time) time.Time {
	waiting := a.waiting[:0]
	for _, l := range a.waiting {
		switch {
		case l.run.ctx.Err() != nil:
		case a.doubted || l.due.After(now):
			waiting = append(waiting, l)
			if !a.doubted {
				next = earlier(next, l.due)
			}
		default:
			l.again <- true
		}
	}
	clear(a.waiting[len(waiting):])
	a.waiting = waiting
	return next
}

// giveUpWaiting has no lost part asked again: the process, or the link, is gone.
func (a *attending) giveUpWaiting() {
	for _, l := range a.waiting {
		l.again <- false
	}
	a.waiting = nil
}

// commandAgain is the command of a part with what is left of the limit.
func (r *run) commandAgain(p *part) greys.Command {
	if r.task.limit <= 0 {
		return p.command
	}
	r.process.mu.Lock()
	defer r.process.mu.Unlock()
	return r.task.commandOf(p.target, max(1, r.task.limit-greys.Limit(r.total())))
}
