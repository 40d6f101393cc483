// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// What a session has in memory is in an account of the process's memory budget. Where the
// budget asks for it the session is detached, in these steps:
//
//  1. The session is not read any further. A request that is under way has answerTime.
//  2. Its memory is freed: packets that wait, metadata, names, objects and call events that
//     wait for names. How far it was handed on is remembered.
//  3. It is detached.
//  4. The batches that were being packed, with the ends of call streams, are handed on for
//     at most shutdown_timeout. Then they are dropped and counted.
//  5. It is attached again after a pause, and read on from there.

const (
	// bytesOfSession is what a session takes that has nothing, about: its connection,
	// goroutine and remembered texts. bytesOfTrace, bytesOfProcess and bytesOfStream are
	// what these take beside what is counted of them.
	bytesOfSession = 256 * kib
	bytesOfTrace   = 16 * kib
	bytesOfProcess = 2 * kib
	bytesOfStream  = kib
	bytesOfPacket  = 200
	bytesOfWaiting = 48
	// bytesOfEnded is what a stream takes that has ended, beside its key, and bytesOfPlan
	// and bytesOfColumn what is worked out for an event class and a field of it.
	bytesOfEnded  = 300
	bytesOfPlan   = kib
	bytesOfColumn = 300
	// uncounted is how many bytes of names and objects may be remembered before the account
	// is asked again.
	uncounted = 256 * kib
)

// account is what a session holds in the memory budget. It is for the goroutine of its
// session, but leave.
type account struct {
	*budget.Account
	// asked is closed when the session has to be detached.
	asked chan struct{}
	// reading ends some time after that, for requests that are not answered, and delivering
	// when the time is over in which batches are handed on.
	reading, delivering context.Context
	close               context.CancelFunc
	// leave says that the session has to be detached. The time for that begins with it.
	leave func()
}

// openAccount begins a time in which the session may hold memory.
func (f *follower) openAccount() {
	a := &account{asked: make(chan struct{})}
	reading, endReading := context.WithCancel(f.env.reading)
	delivering, endDelivering := context.WithCancelCause(f.env.ctx)
	a.reading, a.delivering = reading, delivering
	answer, timeout := min(answerTime, f.env.config.ShutdownTimeout/2), f.env.config.ShutdownTimeout
	late := make(chan []*time.Timer, 1)
	a.leave = sync.OnceFunc(func() {
		late <- []*time.Timer{
			time.AfterFunc(answer, endReading),
			time.AfterFunc(timeout, func() { endDelivering(errMemoryTime) }),
		}
		close(a.asked)
	})
	a.Account = f.env.memory.Open(budget.Settings{Leave: func(*budget.Error) { a.leave() }})
	a.close = func() {
		a.Close()
		select {
		case timers := <-late:
			for _, t := range timers {
				t.Stop()
			}
		default:
		}
		endReading()
		endDelivering(context.Canceled)
	}
	f.account, f.noMemory = a, nil
	f.handover = newHandover(a.delivering, f.env, f.logger)
}

// shared opens an account of what all sessions share. It gives way when it is asked how much
// it holds: tables of functions and positions are, each time they grow and each time sessions
// are listed.
func (e *environment) shared() *budget.Account {
	a := e.memory.Open(budget.Settings{Shrink: func(int64) {}})
	e.accounts = append(e.accounts, a)
	return a
}

// closeShared closes the accounts of what all sessions share.
func (e *environment) closeShared() {
	for _, a := range e.accounts {
		a.Close()
	}
}

// fit gives back what the budget asks for of what all sessions share.
func (e *environment) fit() {
	if e.files != nil {
		e.files.Fit()
	}
	e.positions.fit()
}

// errMemoryTime: the time is over in which a session that was detached hands on.
var errMemoryTime = errors.New("the time to hand on what a session had is over")

// isAsked reports whether the session has to be detached.
func (a *account) isAsked() bool {
	select {
	case <-a.asked:
		return true
	default:
		return false
	}
}

// isShed reports whether the session has to be detached.
func (f *follower) isShed() bool {
	return f.noMemory != nil || f.account != nil && f.account.isAsked()
}

// why is why the session has to be detached.
func (f *follower) why() error {
	if f.noMemory == nil {
		f.noMemory = f.account.Err()
	}
	return f.noMemory
}

// charge counts what the session holds, and so many bytes more. The error is why it has to
// be detached.
func (f *follower) charge(more int) error {
	if f.noMemory != nil || f.account == nil {
		return f.noMemory
	}
	f.uncounted = 0
	held := f.measured + f.buffers.held + f.buffers.bytes + f.names + f.objects + bytesOfWaiting*f.waiting + more
	if f.logs != nil {
		held += f.logs.bytes
	}
	if f.noMemory = f.account.Hold(int64(held)); f.noMemory != nil {
		f.account.leave() // the budget does not ask an account that asked it for memory
	}
	return f.noMemory
}

// remembered counts names and objects that were remembered, many at a time.
func (f *follower) remembered(bytes int) {
	if f.uncounted += bytes; f.uncounted >= uncounted {
		_ = f.charge(0) // reading ends before the next event
	}
}

// measure finds out what the session holds beside what is counted as it comes.
func (f *follower) measure() error {
	held := bytesOfSession + f.listed + bytesOfEnded*f.ended.order.Len() + f.ended.bytes
	for _, t := range f.traces {
		held += bytesOfTrace + t.planned + 8*cap(t.plans)
		if t.ctf != nil {
			held += t.ctf.Size()
		}
		for _, s := range t.streams {
			held += bytesOfStream + 2*len(s.key) + bytesOfPacket*cap(s.given) + s.in.Held()
		}
		for _, p := range t.processes {
			if held += bytesOfProcess; p.packer != nil {
				held += p.packer.Held()
			}
		}
	}
	f.measured = held
	return f.charge(0)
}

// giveUp frees the memory of the session, and remembers how far it was handed on. What the
// batches have that were being packed stays, for handOnLast.
func (f *follower) giveUp() {
	f.forgotten = f.hasRead()
	for _, t := range f.traces {
		for _, p := range t.processes {
			p.giveUp()
			f.last = append(f.last, p)
		}
		f.follow(-len(t.processes))
		clear(t.processes)
		t.last, t.record.Processes = nil, nil
		t.drop(callevent.CauseLimit)
		f.savePosition(t)
		f.ended.forget(t)
	}
	clear(f.traces)
	f.buffers.free, f.buffers.bytes = nil, 0
	f.listed, f.measured = 0, bytesOfSession
	for _, p := range f.last {
		if f.measured += bytesOfProcess; p.packer != nil {
			f.measured += p.packer.Held()
		}
	}
	f.account.Give(max(0, int(f.account.Used())-f.measured))
}

// giveUp frees the memory of a process but that of its batch.
func (p *process) giveUp() {
	p.forgetObjects()
	if waiting := p.takeWaiting(); len(waiting) > 0 {
		p.trace.env.telemetry.callEventsDropped(int64(len(waiting)), droppedMemory)
		p.breaks.add(callevent.Interval(waiting[0].sequence, p.next, callevent.CauseLimit))
	}
	p.clearNames()
	p.functions, p.lanes, p.addresses = nil, nil, addresses{}
}

// handOnLast hands on what was being packed when the session was given up.
func (f *follower) handOnLast() {
	for i, p := range f.last {
		p.end(callevent.CauseLimit)
		f.last[i] = nil
	}
	f.last = nil
}

// shed ends the time of an account, whose memory the budget wants.
func (f *follower) shed(why error) {
	f.giveUp() // where there was no connection
	f.handOnLast()
	f.account.close()
	f.account = nil
	f.env.telemetry.sessionDetached(droppedMemory)
	if since, say := f.env.lines.memory.Say(f.env.now()); say {
		f.logger.Warn("The session is detached for now: it holds more of the memory budget than it may. Calls that were open are not paired",
			zap.Error(why), zap.Int("since_last", since))
	}
	// Records that were read are held as long as the pipeline has no room for them: no more
	// than a batch of them.
	f.logs.flush()
}

// detachedPause is the pause before a session is attached again that had no memory. It
// becomes longer, unless the session was read for long.
func (f *follower) detachedPause() time.Duration {
	now := f.env.now()
	if now.Sub(f.attachedAt) > 2*f.env.config.Reconnect.MaxInterval {
		f.detached.Reset()
	}
	return f.detached.Pause()
}

// pause waits, and reports whether neither the receiver is shut down meanwhile nor the
// session has to be detached.
func (f *follower) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-f.account.asked:
		return false
	case <-f.env.stopping:
		return false
	}
}

// detachedBackoff is the back-off of sessions that have no memory.
func (e *environment) detachedBackoff() *backoff.Backoff {
	return backoff.New(RetryConfig{
		InitialInterval: min(max(e.config.Reconnect.InitialInterval, firstDetachedPause), e.config.Reconnect.MaxInterval),
		MaxInterval:     e.config.Reconnect.MaxInterval,
	})
}

// firstDetachedPause is how long a session that had no memory is left alone at first.
const firstDetachedPause = time.Second
