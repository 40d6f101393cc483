// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

// keep is the life of an agent that has said hello.
func (s *session) keep() {
	ctx, cancel := context.WithCancel(s.guard.stopping)
	defer cancel()
	context.AfterFunc(ctx, s.wake)
	k := &keeper{session: s, ctx: ctx, retry: backoff.New(s.guard.options.Retry), from: -1}
	l, err := k.first()
	if err != nil {
		s.turnAway(err.Error())
		return
	}
	s.guard.serving.Add(1)
	go func() {
		defer s.guard.serving.Done()
		defer cancel()
		s.readControl()
	}()
	k.run(l)
}

// keeper keeps a link to a collector. It is for one goroutine.
type keeper struct {
	session *session
	// ctx is over when the agent has gone or the guard ends.
	ctx context.Context
	// retry has the pauses between tries to reach a collector.
	retry *backoff.Backoff
	// attended is since when there is the link, or was the last; lostAt when that was lost;
	// absent since when there was none that stayed.
	attended, lostAt, absent time.Time
	// tooSoon says that the last link was lost before it had stayed.
	tooSoon bool
	// from is which collector is tried first; less than 0: the one that was reached last.
	from    int
	failing logline.Burst
	// givenUp says that no collector could be reached for too long.
	givenUp bool
}

// run keeps a link until the agent goes, or is to be left. l is the first link.
func (k *keeper) run(l *link) {
	s := k.session
	for l != nil {
		k.attend(l)
		if k.ctx.Err() != nil {
			break
		}
		k.lost(l)
		l = k.again()
	}
	if !isClosed(s.gone) {
		(&farewell{s}).leave(k.givenUp)
		return
	}
	(&farewell{s}).passRest()
}

// first finds a collector for a new agent, passes its configuration on, and start. The
// error says why the agent has to be turned away.
func (k *keeper) first() (*link, error) {
	s := k.session
	ctx, cancel := context.WithTimeout(k.ctx, s.guard.options.StartTimeout)
	defer cancel()
	l, err := k.reach(ctx)
	for why := err; err != nil; {
		if s.guard.pause(ctx, k.retry.Pause()); ctx.Err() != nil {
			return nil, k.noCollector(why)
		}
		if l, err = k.reach(ctx); err != nil && ctx.Err() == nil {
			why = err // and not that the time was over
		}
	}
	s.run = s.register(l.configuration.RunID)
	s.logger = s.logger.With(zap.Uint8("run", s.run))
	if err := s.configure(l); err != nil {
		l.discard()
		return nil, err
	}
	// Before the agent is started, or what it sends at once would go nowhere.
	s.install(l)
	l.begin(s.obey)
	if err := s.start(); err != nil {
		s.logger.Debug("The agent could not be told to start", zap.Error(err))
	}
	k.found(l)
	return l, nil
}

// noCollector says why there is no collector for a new agent.
func (k *keeper) noCollector(err error) error {
	if k.ctx.Err() != nil {
		return errors.New("the guard is ending")
	}
	return fmt.Errorf("no collector takes the agent within %v (--start-timeout): %w", k.session.guard.options.StartTimeout, err)
}

// found notes that a collector was reached.
func (k *keeper) found(l *link) {
	s := k.session
	s.guard.counts.Runs.Add(1)
	k.failing.Over()
	s.logger.Info("A run begins at a collector", zap.String("collector", l.address), zap.Uint8("collector_run", l.configuration.RunID))
}

// reach tries the collectors one after the other, and gives a link to the first that
// takes the agent and says start.
func (k *keeper) reach(ctx context.Context) (*link, error) {
	s := k.session
	g := s.guard
	addresses := g.options.Collectors
	var failed []error
	from := k.from
	if from < 0 {
		from = int(g.best.Load())
	}
	for i := range addresses {
		at := (from + i) % len(addresses)
		l := s.newLink(ctx, at)
		if until, ok := ctx.Deadline(); ok {
			// Some time is left for those behind one that doesn't answer.
			l.timeout = min(l.timeout, time.Until(until)/time.Duration(len(addresses)-i))
		}
		err := l.hello()
		if err == nil {
			err = l.awaitStart()
		}
		if err == nil {
			l.stayAfter(g.options.ConnectTimeout)
			g.best.Store(int32(at))
			k.from = -1
			return l, nil
		}
		l.discard()
		failed = append(failed, &unreachable{addresses[at], err})
		if ctx.Err() != nil {
			break
		}
	}
	err := errors.Join(failed...)
	if since, say := k.failing.Say(time.Now()); say {
		s.logger.Warn("No collector takes the agent", zap.Error(err), zap.Int("since_last_line", since))
	}
	return nil, err
}

// unreachable: a collector could not be reached, or doesn't take the agent.
type unreachable struct {
	address string
	err     error
}

func (u *unreachable) Error() string { return u.address + ": " + u.err.Error() }
func (u *unreachable) Unwrap() error { return u.err }

// attend sees to a link until it is lost, the agent has gone, or the guard ends.
func (k *keeper) attend(l *link) {
	k.attended = time.Now()
	for k.ctx.Err() == nil && !l.isLost() {
		s := k.session
		now := time.Now()
		k.mayGoOn(l)
		if s.giveWay(l, s.weigh(l)); l.isLost() {
			break
		}
		if l.isSilent(s.guard.options.Silence) {
			l.lose(loss{lostSilence, errors.New("the collector takes nothing (--silence)")})
			break
		}
		k.beat(l, now)
		k.wait(k.untilNext(l))
	}
}

// judge says what the loss of a link means for those to come. A collector that takes agents
// and loses them soon is no better than one that doesn't take them: it is not tried at once,
// nor before the others, and doesn't count as one that was there.
func (k *keeper) judge(l *link, lost time.Time) {
	stayed := lost.Sub(k.attended)
	k.lostAt = lost
	if k.absent.IsZero() || stayed >= min(k.session.guard.timing.steady, k.session.guard.options.GiveUp) {
		k.absent = lost
	}
	k.tooSoon = stayed < k.session.guard.timing.steady
	if k.tooSoon {
		k.from = l.index + 1
		return
	}
	k.retry.Reset()
}

// untilNext is how long there is nothing to do if nothing happens.
func (k *keeper) untilNext(l *link) time.Duration {
	tick := k.session.guard.timing.tick
	if interval := l.configuration.HeartbeatInterval; interval > 0 {
		tick = min(tick, interval)
	}
	return tick
}

// wait waits for something to happen, or for the time to pass.
func (k *keeper) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-k.session.awake:
	case <-timer.C:
	}
}

// stall says that a collector takes nothing, or too little: the agent is suspended, and what it sends
// waits here.
func (s *session) stall(l *link) {
	s.passing.RLock()
	defer s.passing.RUnlock()
	if s.link != l || l.isLost() || !l.held.CompareAndSwap(false, true) {
		return
	}
	l.wakeAll()
	s.guard.counts.Stalls.Add(1)
	s.agent.Suspend(hq.Overload)
	s.guard.warn(s.guard.lines.stalled, s.logger, "The collector takes too little: the agent is suspended until all that waits was taken",
		zap.String("collector", l.address), zap.Duration("took_nothing_for", time.Since(l.lastProgress())), zap.Int64("waiting_bytes", l.waiting.Load()),
		zap.Int64("most_waiting_bytes", l.flood), zap.Duration("max_wait", s.guard.options.MaxWait), zap.Duration("max_wait_per_second", s.guard.options.MaxWaitPerSecond))
	s.wake()
}

// mayGoOn tells the agent to trace again when the collector has taken all that waited. There
// is no pause: what it has taken is as much as makes the agent be suspended, so that the next
// suspension comes the later the slower it is.
func (k *keeper) mayGoOn(l *link) {
	s := k.session
	if !l.held.Load() || !l.drained() {
		return
	}
	l.held.Store(false)
	if since, say := s.guard.lines.goesOn.Say(time.Now()); say {
		s.logger.Info("The collector has taken all: the agent may go on", zap.String("collector", l.address), zap.Int("since_last_line", since))
	}
	s.agent.Resume(hq.Overload | hq.Absence)
}

// missedBeats is after how many of its heartbeats that didn't come an agent is not said to
// be alive.
const missedBeats = 3

// beat says for an agent that lives that it does, where the collector was promised that
// sooner than the agent was.
func (k *keeper) beat(l *link, now time.Time) {
	s := k.session
	promised, told := l.configuration.HeartbeatInterval, s.configuration.HeartbeatInterval
	if promised <= 0 || told > 0 && told <= promised {
		return
	}
	s.mu.Lock()
	due := now.Sub(s.beaten) >= promised
	alive := told <= 0 || now.Sub(s.heard) <= missedBeats*told
	last := s.heartbeat
	s.mu.Unlock()
	if due && alive {
		s.tell(last.AppendTo(nil))
	}
}

// lost ends a link that was lost. The agent is suspended first.
func (k *keeper) lost(l *link) {
	s := k.session
	k.judge(l, time.Now())
	s.agent.Suspend(hq.Absence)
	s.install(nil)
	s.guard.counts.Losses.Add(1)
	s.logger.Warn("The collector is lost: the agent is suspended until there is one", zap.String("collector", l.address),
		zap.String("cause", string(l.loss.cause)), zap.Error(l.loss.err))
	l.discard()
	s.guard.counts.LostBytes.Add(uint64(l.lostBytes.Load()))
	s.weigh(nil)
	s.agent.Withdraw(hq.Operator | hq.Overload)
}

// again finds a collector for an agent that runs. It gives nil when the agent has gone, is
// to be left, or no collector could be reached for too long.
func (k *keeper) again() *link {
	s := k.session
	if k.tooSoon {
		s.guard.pause(k.ctx, k.retry.Pause())
	}
	failed := k.tooSoon
	for k.ctx.Err() == nil {
		s.giveWay(nil, s.weigh(nil))
		if !s.isReadyForCollector(k.lostAt) {
			k.awaitAgent()
			continue
		}
		if most := s.guard.options.GiveUp; failed && most > 0 && time.Since(k.absent) >= most {
			k.givenUp = true
			return nil
		}
		l, err := k.reach(k.ctx)
		if err == nil {
			k.goOn(l)
			return l
		}
		failed = true
		s.guard.pause(k.ctx, k.retry.Pause())
	}
	return nil
}

// awaitAgent waits for the agent to say something. In that time no collector is tried, so it
// is none in which there was no collector.
func (k *keeper) awaitAgent() {
	began := time.Now()
	k.wait(k.session.guard.timing.tick)
	k.absent = k.absent.Add(time.Since(began))
}

// isReadyForCollector reports whether an agent is worth a new run: it has been heard since
// it lost the last, will trace, and what it had collected before stands before a number
// that is known.
func (s *session) isReadyForCollector(since time.Time) bool {
	state := s.agent.Status().State
	quiet := state == hq.Suspended || state == hq.Unanswered
	return quiet && (s.configuration.HeartbeatInterval <= 0 || s.lastHeard().After(since))
}

// goOn lets a run of an agent that has been traced before begin at another collector, or
// another life of it. The agent is suspended. The run has what it has to know first: that
// the agent lives, that the data breaks, and all names. Only when that was taken the agent
// is told to trace again.
func (k *keeper) goOn(l *link) {
	s := k.session
	status := s.agent.Status()
	at := status.BreakAt
	l.begin(s.obey)
	l.held.Store(true)
	s.passing.Lock()
	if !status.Broken {
		at = s.next.Load()
	}
	l.translation = translation{since: at, ticks: uint64(max(0, l.began.Sub(s.startedAt).Milliseconds())), needed: true}
	for i := range l.data {
		l.openData(i)
	}
	s.names.each(l.translation, l.data[0].send)
	s.link = l
	s.passing.Unlock()
	s.mu.Lock()
	heartbeat := s.heartbeat
	s.mu.Unlock()
	s.tell(heartbeat.AppendTo(nil))
	s.tellBreak(at)
	k.found(l)
	if l.configuration.HeartbeatInterval != s.configuration.HeartbeatInterval || !sameFilters(l.configuration, s.configuration) {
		s.logger.Info("The agent keeps the configuration that it was started with, which this collector would not have given")
	}
}

func sameFilters(a, b bytefrog.AgentConfiguration) bool {
	return slices.Equal(a.Inclusions, b.Inclusions) && slices.Equal(a.Exclusions, b.Exclusions)
}
