// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/backoff"
	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/internal/greys/gp"
)

// attending asks a connected server what is wanted, over one link. One goroutine owns it;
// each command that runs has another, which tells it of its end.
type attending struct {
	server  *server
	link    *link
	process *process
	// ctx is that of commands; end ends them all.
	ctx     context.Context
	end     context.CancelFunc
	details *details
	// ended are runs that have ended.
	ended chan *run
	// running is how many runs there are, and listing how many of them are of tasks that are
	// asked again and again.
	running, listing int
	// check is when the server is asked next who it is, checked when it was asked last, and
	// doubted says that a command was lost since: none is asked before it has said it.
	check, checked time.Time
	doubted        bool
	// unsaid is how often it did not say it, one time after the other.
	unsaid      int
	checkPauses *backoff.Backoff
	// resetAt is when a reset is tried at the earliest, after one that failed.
	resetAt     time.Time
	resetPauses *backoff.Backoff
	// cleaning says that all commands are ended, so that what lost ones have put into classes
	// can be taken out.
	cleaning bool
	// left are runs that were ended without the server being told, which has no way for it.
	left int
	// counted is what of the link's counts the process was told.
	counted linkStats
	// ending and resetting are those who wait for the end of a command, and for a reset.
	ending    []*ending
	resetting []*order
}

func newAttending(s *server, l *link) *attending {
	return &attending{
		server: s, link: l, ended: make(chan *run),
		checkPauses: backoff.New(s.env.config.Reconnect), resetPauses: backoff.New(s.env.config.Reconnect),
	}
}

// meet asks the server who it is. What it doesn't support, or refuses to say, stays unknown,
// and so does a version that is not understood.
func (a *attending) meet(ctx context.Context) (identity, error) {
	who := identity{protocol: a.link.protocol}
	err := a.control(ctx, greys.VersionCommand{}, func(reply greys.Reply) {
		if version, is := reply.(*greys.Version); is {
			who.version = version.Text
		}
	})
	if err != nil && !isAnswer(err) && (ctx.Err() != nil || a.loses(err)) {
		return who, err
	}
	if err = a.askSessions(ctx, &who); err != nil {
		return who, err
	}
	if remote := a.server.remote.Load(); remote != nil && isHere(*remote, who.pid) {
		who.host = a.server.env.host
	}
	return who, nil
}

// askSessions asks for the server's process, and for sessions.
func (a *attending) askSessions(ctx context.Context, who *identity) error {
	err := a.control(ctx, greys.SessionsCommand{}, func(reply greys.Reply) {
		if sessions, is := reply.(*greys.Sessions); is {
			who.pid = max(0, sessions.ProcessID)
			if a.link.protocol == ProtocolGP {
				who.sessions, who.hasSessions = len(sessions.Sessions), true
			} else if len(sessions.Sessions) == 1 {
				who.session = sessions.Sessions[0].ID
			}
		}
	})
	if err != nil && !isAnswer(err) {
		return err
	}
	return nil
}

// loses reports whether an error of asking who the server is says that it can't be asked any
// more. Others are of what it said to this question, and of its taking too long.
func (a *attending) loses(err error) bool {
	version := (*gp.VersionError)(nil)
	return a.link.isLost() || a.link.unsent(err) || errors.As(err, &version)
}

// isAnswer reports whether an error is what the server says to a command that it has
// understood.
func isAnswer(err error) bool {
	return errors.Is(err, greys.ErrUnsupported) || errors.Is(err, greys.ErrRefused)
}

// attend asks what is wanted until the link is lost or the context ends. Then it has ended
// all commands, and has left the server as it was found where that could be.
func (a *attending) attend(ctx context.Context) error {
	a.begin(ctx, 0)
	defer func() { a.count() }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			if a.link.isLost() {
				return a.abandon()
			}
			a.leave()
			return errShutdown
		case <-a.link.lost:
			return a.abandon()
		case r := <-a.ended:
			a.take(r)
		case o := <-a.server.orders:
			a.carryOut(o)
		case <-timer.C:
		}
		if ctx.Err() != nil {
			continue // nothing is begun any more
		}
		next, err := a.step(ctx)
		if err != nil && ctx.Err() == nil {
			a.halt()
			return err
		}
		timer.Reset(next.Sub(a.server.env.now()))
	}
}

var errShutdown = errors.New("the collector is shut down")

// begin makes what the runs of a process share. None is begun before a pause.
func (a *attending) begin(ctx context.Context, pause time.Duration) {
	a.process = a.server.process
	a.ctx, a.end = context.WithCancel(ctx)
	a.details = newDetails(a.ctx, a.process, a.link)
	now := a.server.env.now()
	a.check = now.Add(a.server.env.config.StateInterval)
	for _, t := range a.process.tasks {
		if t.state == taskDue && (t.every == 0 || t.due.IsZero()) {
			t.due = now.Add(pause)
		}
	}
}

// halt ends all runs, and waits for that.
func (a *attending) halt() {
	a.end()
	for a.running > 0 {
		a.take(<-a.ended)
	}
	a.forsake()
	a.details.close()
}

// abandon ends all runs of a link that is lost, and says why it is.
func (a *attending) abandon() error {
	a.drain()
	a.halt()
	return a.link.why()
}

// drainTime is how long commands may take to handle what was said last, when their process
// or the link is gone.
const drainTime = time.Second

// drain waits for the end of all runs, whose process or link is gone: their connections are
// closed, and what was said on them before is still handled.
func (a *attending) drain() {
	over := time.NewTimer(drainTime)
	defer over.Stop()
	for a.running > 0 {
		select {
		case r := <-a.ended:
			a.take(r)
		case <-over.C:
			return
		}
	}
}

// idle is how long nothing may happen until the link's counts are looked at.
const idle = time.Second

// maxLeft is how many commands may go on at a server for nobody: the connection is ended, and
// they with it, long before there is no room for others.
const maxLeft = gp.DefaultMaxRequests / 2

var errLeft = fmt.Errorf("%d commands go on for nobody, most of which match nothing: they end with the connection", maxLeft)

// step does what is due, and says when it is called again at the latest. An error says that
// the server is lost.
func (a *attending) step(ctx context.Context) (next time.Time, err error) {
	now := a.server.env.now()
	a.count()
	if a.left >= maxLeft {
		return now, errLeft
	}
	if !now.Before(a.check) {
		if err := a.checkProcess(ctx); err != nil {
			return now, err
		}
		now = a.server.env.now()
	}
	a.clean(ctx, now)
	a.sayEnded()
	next = now.Add(idle)
	for _, t := range a.process.tasks {
		if !a.isAsked(t) || a.cleaning || a.doubted || ctx.Err() != nil {
			continue
		}
		if t.due.After(now) {
			next = earlier(next, t.due)
		} else if t.every == 0 || a.listing == 0 {
			a.start(t)
		}
	}
	return earlier(next, a.check), nil
}

// isAsked reports whether a task is one to be asked when its time has come.
func (a *attending) isAsked(t *task) bool {
	switch {
	case t.state != taskDue, t.only != "" && t.only != a.link.protocol:
		return false
	case t.kind == askRecordList:
		return a.process.takesRecords()
	default:
		return true
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// maxUnsaid is how often a server may not say who it is, one time after the other, until it is
// taken for lost.
const maxUnsaid = 3

// checkProcess asks the server who it is, and says when it is asked again. Where it doesn't
// say it that is soon, and the commands that run are not disturbed.
func (a *attending) checkProcess(ctx context.Context) error {
	err := a.compare(ctx)
	a.checked = a.server.env.now()
	if err == nil {
		a.unsaid, a.doubted = 0, false
		a.checkPauses.Reset()
		a.check = a.checked.Add(a.server.env.config.StateInterval)
		return nil
	}
	if a.unsaid++; a.unsaid >= maxUnsaid || a.loses(err) {
		return err
	}
	a.check = a.checked.Add(a.checkPauses.Pause())
	return nil
}

// compare asks the server who it is, and begins anew if it is another one.
func (a *attending) compare(ctx context.Context) error {
	if a.link.lost != nil && a.server.who.pid == 0 {
		return nil // it doesn't say it, and a link that is lost is heard of
	}
	who := identity{protocol: a.link.protocol, host: a.server.who.host}
	if err := a.askSessions(ctx, &who); err != nil {
		return err
	}
	a.process.setSessions(who)
	if !a.server.who.isOther(who) {
		a.server.saw(who)
		return nil
	}
	who, err := a.meet(ctx)
	if err != nil {
		return err
	}
	a.drain()
	a.halt()
	pause := a.server.restartPause()
	a.server.mu.Lock()
	a.server.begin(who)
	a.server.mu.Unlock()
	a.begin(ctx, pause)
	return nil
}

// start asks for a task.
func (a *attending) start(t *task) {
	a.process.runs++
	r := &run{task: t, attending: a, process: a.process, link: a.link, details: a.details, number: a.process.runs}
	r.ctx, r.end = context.WithCancelCause(a.ctx)
	t.state, t.run, t.due = taskRunning, r, a.server.env.now()
	r.starting, t.starting = t.starting, nil
	if a.link.protocol == ProtocolGP {
		r.awaitSilence()
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
		if since, say := t.refusing.Say(now); say && !r.isTry() {
			a.server.logger.Warn("The server could not carry out a command: it is asked again", append(t.fields(), zap.Error(r.ended), zap.Int("times_since_last_line", since))...)
		}
	case outcomeLost, outcomeTimedOut:
		a.lost(r, how, now)
	case outcomeStopped:
		if t.every > 0 {
			t.due = now.Add(t.every)
		}
	}
}

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
	a.doubted = true
	a.check = earlier(a.check, a.checked.Add(env.config.Reconnect.InitialInterval))
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
	if since, say := t.failing.Say(now); say && !r.isTry() {
		a.server.logger.Warn("A command was given up: it is asked again",
			append(t.fields(), zap.Error(why), zap.Duration("pause", pause), zap.Int("times_since_last_line", since))...)
	}
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

// count tells the process, and the operator, what the link has counted.
func (a *attending) count() {
	all := a.link.stats()
	since := all.since(a.counted)
	a.counted = all
	p := a.process
	p.mu.Lock()
	p.bad += int64(since.bad)
	p.missing += int64(since.missing)
	p.env.telemetry.tell(p)
	p.mu.Unlock()
	p.env.telemetry.linkCounted(since)
	a.sayBad(since, all.bad)
}

// sayBad says that answers were not understood, if that is said by nothing else.
func (a *attending) sayBad(since linkStats, all uint64) {
	if since.bad == 0 {
		a.server.garbled.Over()
		return
	}
	if since.lastBad == nil {
		return // its command is over, which is said
	}
	if times, say := a.server.garbled.Say(a.server.env.now()); say {
		a.server.logger.Warn("An answer was not understood, and is left out", zap.Error(since.lastBad),
			zap.Uint64("bad_replies_of_connection", all), zap.Int("times_since_last_line", times))
	}
}
