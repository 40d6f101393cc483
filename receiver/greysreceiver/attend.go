// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
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
	// ended are runs that have ended, and roundEnded tells of resets what came of each.
	ended      chan *run
	roundEnded chan []error
	// lostParts are parts of runs that were lost, and waiting those that wait to be asked again.
	lostParts chan *lostPart
	waiting   []*lostPart
	// running is how many runs there are, and listing how many of them are of tasks that are
	// asked again and again.
	running, listing int
	// check is when the server is asked next who it is, checked when it was asked last, and
	// doubted says that a command was lost since: nothing is asked of it before it has said it.
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
	// round is that of resets which are asked for now; nil: none are.
	round *round
	// suspectedAt is when it was noticed that another client has connected, whose reset may
	// have silenced commands; zero: none has.
	suspectedAt time.Time
	// ending are those who wait for the end of a command, and resetting those who wait for a
	// reset to be asked for.
	ending    []*ending
	resetting []*order
}

func newAttending(s *server, l *link) *attending {
	return &attending{
		server: s, link: l, ended: make(chan *run), roundEnded: make(chan []error), lostParts: make(chan *lostPart),
		checkPauses: backoff.New(s.env.config.Reconnect), resetPauses: backoff.New(s.env.config.Reconnect),
	}
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
		case short := <-a.server.full:
			if !a.server.memory.IsCurrent(short) {
				continue // it has been freed since
			}
			a.halt()
			a.server.free(short)
			return short.Why
		case r := <-a.ended:
			a.take(r)
		case l := <-a.lostParts:
			a.partLost(l)
		case failed := <-a.roundEnded:
			a.haveReset(failed)
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
	a.process, a.cleaning, a.suspectedAt = a.server.process, false, time.Time{}
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

// halt ends all runs and resets, and waits for that.
func (a *attending) halt() {
	a.end()
	for a.running > 0 {
		a.take(<-a.ended)
	}
	a.waiting = nil // they have ended with their runs
	if a.round != nil {
		a.haveReset(<-a.roundEnded)
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
	a.giveUpWaiting()
	for a.running > 0 {
		select {
		case l := <-a.lostParts:
			l.again <- false
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

var errLeft = fmt.Errorf("%d commands go on for nobody, which match nothing, were given up or ended: they end with the connection", maxLeft)

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
			a.drain() // what it has told before is still counted
			return now, err
		}
		now = a.server.env.now()
	}
	a.checkSuspicion(now)
	a.clean(now)
	a.sayEnded(now)
	next = a.askWaiting(now, now.Add(idle))
	for _, t := range a.process.tasks {
		if !a.isAsked(t) || a.cleaning || a.round != nil || a.doubted || ctx.Err() != nil {
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
	a.sayBounds()
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
