// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/task"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
)

// Session runs the Work of one process over one link. One goroutine owns it.
type Session struct {
	*Work
	link   *Link
	inputs Inputs
	// ctx is the context of commands; end cancels it.
	ctx     context.Context
	end     context.CancelFunc
	details *details
	check   identityCheck
	// ended receives runs that have ended, reset the results of resets, and lost the lost parts. waiting are lost parts
	// that wait to be sent again.
	ended   chan *run
	reset   chan []error
	lost    chan *lostPart
	waiting []*lostPart
	// running is the number of runs, lists the number of runs that are lists.
	running, lists int
}

// Inputs are the events of a session, beside those of its link.
type Inputs struct {
	// Orders are the orders of operators; nil means that there are none.
	Orders <-chan *Order
	// Full signals that the server uses too much of Memory.
	Full   <-chan servermemory.Shortage
	Memory *servermemory.Memory
}

// New returns a session for a process that has just identified itself.
func New(l *Link, w *Work, inputs Inputs) *Session {
	return &Session{
		Work: w, link: l, inputs: inputs, check: newIdentityCheck(w.Settings),
		ended: make(chan *run), reset: make(chan []error), lost: make(chan *lostPart),
	}
}

// OtherProcess is the error of a session when another process has identified itself.
type OtherProcess struct{ Who Identity }

func (*OtherProcess) Error() string { return "the server is another process" }

func isOther(err error) bool {
	other := (*OtherProcess)(nil)
	return errors.As(err, &other)
}

// OutOfMemory is the error of a session whose server uses too much memory.
type OutOfMemory struct{ servermemory.Shortage }

func (m *OutOfMemory) Error() string { return m.Why.Error() }

// Run starts the work after a pause. It returns when the link is lost, the server is another process or uses too much
// memory, or ctx ends. All commands have then ended. At the end of ctx it also sends the owed resets.
func (s *Session) Run(ctx context.Context, pause time.Duration) error {
	s.begin(ctx, pause)
	defer s.countLink()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			if s.link.IsLost() {
				return s.abandon()
			}
			s.halt()
			s.resets.askLast(s.LastAsking, s.link)
			return ErrShutdown
		case <-s.link.Lost:
			return s.abandon()
		case short := <-s.inputs.Full:
			if !s.inputs.Memory.IsCurrent(short) {
				continue // the memory has been freed since
			}
			s.halt()
			return &OutOfMemory{short}
		case r := <-s.ended:
			s.runEnded(r)
		case l := <-s.lost:
			s.partLost(l)
		case failed := <-s.reset:
			s.resetsEnded(failed)
		case o := <-s.inputs.Orders:
			s.carryOut(o, s.link)
		case <-timer.C:
		}
		if ctx.Err() != nil {
			continue // no new work after the end of ctx
		}
		next, err := s.step(ctx)
		if err != nil && (ctx.Err() == nil || isOther(err)) {
			s.halt()
			return err
		}
		timer.Reset(next.Sub(s.Now()))
	}
}

// begin prepares the session. No command begins before the pause is over.
func (s *Session) begin(ctx context.Context, pause time.Duration) {
	s.ctx, s.end = context.WithCancel(ctx)
	s.details = newDetails(s.ctx, s.Settings, s.link, s.process, s.events)
	s.resets.connected()
	s.foreign.since = time.Time{}
	due := s.Now().Add(pause)
	for _, j := range s.jobs {
		if j.state == jobDue && (!j.isList() || j.due.IsZero()) {
			j.due = due
		}
	}
}

// halt ends all runs and resets, and waits for them.
func (s *Session) halt() {
	s.end()
	for s.running > 0 {
		s.runEnded(<-s.ended)
	}
	s.waiting = nil // their runs have ended
	if s.resets.round != nil {
		s.resetsEnded(<-s.reset)
	}
	s.failOrders()
	s.details.close()
}

// abandon ends all runs of a lost link, and returns the reason of the loss.
func (s *Session) abandon() error {
	s.drain()
	s.halt()
	return s.link.Why()
}

// drainTime is the time in which commands may handle their last replies after the loss of their process or link.
const drainTime = time.Second

// drain waits for the end of all runs, whose connections are closed. Replies that have arrived still count.
func (s *Session) drain() {
	over := time.NewTimer(drainTime)
	defer over.Stop()
	for _, l := range s.waiting {
		l.again <- false
	}
	s.waiting = nil
	for s.running > 0 {
		select {
		case l := <-s.lost:
			l.again <- false
		case r := <-s.ended:
			s.runEnded(r)
		case <-over.C:
			return
		}
	}
}

// idle is the longest time between two steps.
const idle = time.Second

// step does everything that is due, and returns the time of the next step. An error means that the server is lost, or
// another process.
func (s *Session) step(ctx context.Context) (next time.Time, err error) {
	now := s.Now()
	s.countLink()
	if most := s.link.MaxAbandoned; s.link.Abandoned >= most && !s.link.Aborts {
		return now, fmt.Errorf("%d abandoned commands still run at the server, because they match nothing, failed or were ended: a new connection ends them", most)
	}
	if !now.Before(s.check.due) {
		if err := s.checkIdentity(ctx); err != nil {
			s.drain()
			return now, err
		}
		now = s.Now()
	}
	s.askSilencedAgain(now)
	s.startResets(now)
	s.finishEnds(now)
	next = s.askLostAgain(now, now.Add(idle))
	for _, j := range s.jobs {
		if !s.isAskable(j, s.link) || s.resets.isWaiting() || s.check.doubted || ctx.Err() != nil {
			continue
		}
		if j.due.After(now) {
			next = earlier(next, j.due)
		} else if !j.isList() || s.lists == 0 {
			s.start(j)
		}
	}
	return earlier(next, s.check.due), nil
}

// countLink counts and logs the new counts of the link, and exceeded limits.
func (s *Session) countLink() {
	since, total := s.link.NewStats()
	s.process.Undecoded(since.Bad, since.Missing)
	s.Counters.Link(since)
	s.process.LogLimits()
	switch {
	case since.Bad == 0:
		s.garbled.Over()
		return
	case since.LastBad == nil:
		return // the end of the command is logged
	}
	if times, due := s.garbled.Count(s.Now()); due {
		s.Logger.Warn("A reply could not be decoded, and is dropped", zap.Error(since.LastBad),
			zap.Uint64("bad_replies_of_connection", total.Bad), zap.Int("times_since_last_line", times))
	}
}

// checkIdentity checks the server's identity. An error means that the server is lost, or another process.
func (s *Session) checkIdentity(ctx context.Context) error {
	err := s.compareIdentity(ctx)
	if isOther(err) || s.check.checked(err) || err != nil && s.link.endsBy(err) {
		return err
	}
	return nil
}

func (s *Session) compareIdentity(ctx context.Context) error {
	if s.link.IsOneConnection() && s.who.PID == 0 {
		return nil // the server never sends its identity, and the loss of the link is noticed
	}
	if !s.check.doubted && s.link.IsSame != nil && s.link.IsSame(s.check.last) {
		return nil
	}
	who := Identity{Protocol: s.link.Protocol}
	least, _ := s.OwnSessions()
	if err := s.askSessions(ctx, s.link, &who); err != nil {
		return err
	}
	if s.who.IsOther(who) {
		who, err := s.Identify(ctx, s.link)
		if err != nil {
			return err
		}
		return &OtherProcess{who}
	}
	s.Identified(who)
	if s.link.NumbersSessions {
		_, most := s.OwnSessions()
		if others := s.foreign.compare(who.Session, least, most); others > 0 {
			s.Counters.ForeignSessions(others)
			s.foreign.suspect(s.Now())
		}
	}
	return nil
}

// askSilencedAgain ends and restarts commands whose instrumentation another client seems to have removed.
func (s *Session) askSilencedAgain(now time.Time) {
	silenced := s.silenced(now)
	if len(silenced) == 0 {
		return
	}
	s.Counters.ForeignReset()
	s.Logger.Warn("Another client has connected to the server, and since then no command reports calls: a reset may have removed their code. The receiver sends all commands again; do not share a server",
		zap.Int("commands", len(silenced)))
	for _, r := range silenced {
		r.end(errForeignReset)
	}
}

// startResets starts the resets that are due and possible. Together they have the time of one.
func (s *Session) startResets(now time.Time) {
	r := &s.resets
	if s.check.doubted || !r.isDue(now) {
		return
	}
	if !s.link.OneLayer && r.needsCleaning(len(s.jobs)) {
		r.cleaning = true
		s.endForReset()
	}
	next := r.startRound(s.busyClasses(), s.link.ResetsAll)
	if next == nil {
		return
	}
	ctx, end := context.WithTimeoutCause(s.ctx, s.ControlTimeout(), ErrSlow)
	go func() {
		defer end()
		s.reset <- s.askResets(ctx, s.link, next.of)
	}()
}

// resetsEnded handles the results of the current resets.
func (s *Session) resetsEnded(failed []error) {
	done := s.resets.endRound(failed, s.ctx.Err() != nil)
	s.reportFailedReset(done.of, failed)
}

// start starts a run of a job.
func (s *Session) start(j *job) {
	s.runs++
	r := &run{job: j, work: s.Work, link: s.link, details: s.details, number: s.runs, began: s.Now()}
	r.ctx, r.end = context.WithCancelCause(s.ctx)
	s.mu.Lock()
	j.started(r)
	s.mu.Unlock()
	if s.link.Unconfirmed {
		r.presumeBegun()
	}
	s.countRun(r, 1)
	go func() {
		if r.isInParts() {
			r.err = (&partsRun{run: r, lost: s.lost}).askInParts()
		} else {
			r.err = r.ask()
		}
		s.ended <- r
	}()
}

// countRun counts the begin (1) or the end (-1) of a run.
func (s *Session) countRun(r *run, change int) {
	s.running += change
	s.commands.Add(int64(change))
	if r.job.isList() {
		s.lists += change
	}
}

// runEnded handles the end of a run, and decides when its job begins again.
func (s *Session) runEnded(r *run) {
	j, how, now := r.job, r.outcome(), s.Now()
	if r.ctx.Err() != nil && !s.link.Aborts {
		s.link.Abandoned++
	}
	r.end(nil)
	s.countRun(r, -1)
	s.mu.Lock()
	r.over = true
	j.stopped(now)
	s.mu.Unlock()
	if !j.isList() {
		j.replies += r.replies
	}
	if r.mayHaveInstrumented() && how != outcomeUnsupported {
		s.resets.owe(j.Classes())
		s.resets.layers++
	}
	if now.Sub(r.began) > s.Reconnect.MaxInterval {
		j.pauses.Reset()
	}
	if j.Kind == task.RecordList {
		s.process.RecordsListed(how == outcomeEnded)
	}
	s.Counters.CommandEnded(how.String())
	s.schedule(r, how, now)
	s.settle(r, how)
}

// refusedPause is the pause after a refusal that only a reset can undo.
const refusedPause = 10 * time.Minute

// schedule decides when the job of an ended run begins again, and reports the cause of the end.
func (s *Session) schedule(r *run, how outcome, now time.Time) {
	j := r.job
	switch how {
	case outcomeEnded:
		s.finished(r, now)
	case outcomeUnsupported:
		j.finish()
		s.Logger.Warn("The server does not support a command: the receiver does not send it again", append(j.LogFields(), zap.Error(r.err))...)
		s.events.Problem(Unsupported, j.Task, r.err)
	case outcomeUnmatched:
		j.due = now.Add(s.Reconnect.MaxInterval)
		if errors.Is(r.err, javamethods.ErrUnmatched) && !r.isStarting() {
			s.reportUnmatched(j)
		}
	case outcomeRefused:
		j.due = now.Add(j.pauses.Pause())
		message := "The server could not carry out a command: the receiver sends it again"
		if r.isInParts() { // each try ends all other commands for a reset
			j.due = now.Add(refusedPause)
			message = "The server could not carry out a command: a reset undoes it, and the receiver sends it again after ten minutes. The program's standard output has the reason; constructors and lambdas cannot be watched"
		}
		if since, due := j.refusing.Count(now); due && !r.isStarting() {
			s.Logger.Warn(message, append(j.LogFields(), zap.Error(r.err), zap.Int("times_since_last_line", since))...)
			s.events.Problem(Refused, j.Task, r.err)
		}
	case outcomeLost, outcomeTimedOut:
		pause := j.pauses.Pause()
		j.due = now.Add(pause)
		s.commandLost(j, how, !s.link.IsOneConnection())
		if since, due := j.failing.Count(now); due && (!r.isStarting() || r.presumed) {
			s.Logger.Warn("A command was lost: the receiver sends it again",
				append(j.LogFields(), zap.Error(orEarly(r.err)), zap.Duration("pause", pause), zap.Int("times_since_last_line", since))...)
		}
	case outcomeStopped:
		j.due = now.Add(j.Every)
	}
}

// finished handles a run whose command has ended normally.
func (s *Session) finished(r *run, now time.Time) {
	j := r.job
	j.failing.Over()
	j.refusing.Over()
	if !j.isList() {
		j.finish()
		s.Logger.Info("A command has reached its limit", j.LogFields()...)
		return
	}
	j.due = now.Add(j.Every)
	if j.Kind == task.RecordList {
		return
	}
	if errors.Is(context.Cause(r.ctx), errEnough) {
		if _, due := j.shortened.Count(now); due {
			s.Logger.Warn("A list has more entries than its limit: the receiver ignores the rest, and does not notice entries that are gone. Raise limit, or set it to -1 for all",
				append(j.LogFields(), zap.Int32("limit", int32(j.Limit)))...)
		}
	} else {
		j.shortened.Over()
		for _, name := range s.process.Listed(process.List{Task: j.Number, Run: r.number}) {
			s.events.Gone(j.Task, name)
		}
	}
	if r.replies == 0 {
		s.reportUnmatched(j)
	} else {
		j.unmatched.Over()
	}
}

// commandLost makes the server identify itself before any other command is sent. reconnects means that the command had
// its own connection.
func (s *Session) commandLost(j *job, how outcome, reconnects bool) {
	s.check.doubt()
	if reconnects {
		s.process.Reconnected()
	}
	if how == outcomeTimedOut {
		s.events.Problem(TimedOut, j.Task, nil)
	}
}

// partLost handles a lost part, which waits to be sent again.
func (s *Session) partLost(l *lostPart) {
	j, p, now := l.run.job, l.part, s.Now()
	how := outcomeOf(l.err)
	s.Counters.CommandEnded(how.String())
	s.commandLost(j, how, true)
	if p.pauses == nil {
		p.pauses = backoff.New(s.Reconnect)
	}
	if now.Sub(p.asked) > s.Reconnect.MaxInterval {
		p.pauses.Reset()
	}
	pause := p.pauses.Pause()
	l.due = now.Add(pause)
	if p.lost++; p.lost > maxLayers {
		s.resets.overload(len(s.jobs)) // each time adds instrumentation to its class
	}
	s.resets.owe(j.Classes())
	s.waiting = append(s.waiting, l)
	if since, due := j.failing.Count(now); due {
		s.Logger.Warn("A command of a pattern was lost: the receiver sends it again, and the others go on",
			append(j.LogFields(), zap.String("method", p.name), zap.Error(l.err), zap.Duration("pause", pause), zap.Int("times_since_last_line", since))...)
	}
}

// askLostAgain sends lost parts again whose pause is over. It returns the earlier of next and the time of the next
// part.
func (s *Session) askLostAgain(now, next time.Time) time.Time {
	waiting := s.waiting[:0]
	for _, l := range s.waiting {
		switch {
		case l.run.ctx.Err() != nil:
		case s.check.doubted:
			waiting = append(waiting, l)
		case l.due.After(now):
			waiting = append(waiting, l)
			next = earlier(next, l.due)
		default:
			l.again <- true
		}
	}
	clear(s.waiting[len(waiting):])
	s.waiting = waiting
	return next
}
