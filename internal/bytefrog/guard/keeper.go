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

// live serves an agent that has sent hello, to its end.
func (s *session) live() {
	ctx, cancel := context.WithCancel(s.env.stopping)
	defer cancel()
	context.AfterFunc(ctx, s.wake)
	k := &keeper{session: s, ctx: ctx, retry: backoff.New(s.env.options.Retry), from: -1}
	l, err := k.first()
	if err != nil {
		s.turnAway(err.Error())
		return
	}
	s.env.serving.Add(1)
	go func() {
		defer s.env.serving.Done()
		defer cancel()
		s.readControl()
	}()
	k.run(l)
}

// keeper keeps a link to a collector. It belongs to one goroutine.
type keeper struct {
	session *session
	// ctx is over when the agent has gone or the guard ends.
	ctx context.Context
	// retry has the pauses between tries to reach a collector.
	retry *backoff.Backoff
	// linked is when the last link began, and lostAt when it was lost. absent is the time since which there was no link
	// that lasted.
	linked, lostAt, absent time.Time
	// tooSoon: the last link was lost early.
	tooSoon bool
	// from is the collector to try first. Less than 0: the one that accepted an agent last.
	from    int
	failing logline.Burst
	// givenUp: no collector accepted the agent for too long.
	givenUp bool
}

// run keeps a link until the agent closes its connections, or the guard leaves it. l is the first
// link.
func (k *keeper) run(l *link) {
	s := k.session
	for l != nil {
		k.watch(l)
		if k.ctx.Err() != nil {
			break
		}
		k.endLost(l)
		l = k.reconnect()
	}
	if !isClosed(s.gone) {
		(&farewell{s}).leave(k.givenUp)
		return
	}
	(&farewell{s}).passRest()
}

// first finds a collector for a new agent, and forwards its configuration and start. The error is the reason to refuse
// the agent.
func (k *keeper) first() (*link, error) {
	s := k.session
	ctx, cancel := context.WithTimeout(k.ctx, s.env.options.StartTimeout)
	defer cancel()
	l, err := k.reach(ctx)
	for why := err; err != nil; {
		if s.env.pause(ctx, k.retry.Pause()); ctx.Err() != nil {
			return nil, k.noCollector(why)
		}
		if l, err = k.reach(ctx); err != nil && ctx.Err() == nil {
			why = err // not the end of the time
		}
	}
	s.run = s.register(l.configuration.RunID)
	s.logger = s.logger.With(zap.Uint8("run", s.run))
	if err := s.configure(l); err != nil {
		l.discard()
		return nil, err
	}
	// Before the agent starts, because its first data needs a link.
	s.install(l)
	l.begin(s.obey)
	if err := s.start(); err != nil {
		s.logger.Debug("Could not start the agent", zap.Error(err))
	}
	k.runStarted(l)
	return l, nil
}

// noCollector returns the reason why there is no collector for a new agent.
func (k *keeper) noCollector(err error) error {
	if k.ctx.Err() != nil {
		return errors.New("the guard is ending")
	}
	return fmt.Errorf("no collector accepted the agent within %v (--start-timeout): %w", k.session.env.options.StartTimeout, err)
}

// runStarted notes that a collector accepted the agent.
func (k *keeper) runStarted(l *link) {
	s := k.session
	s.env.counts.Runs.Add(1)
	k.failing.Over()
	s.logger.Info("Run started at a collector", zap.String("collector", l.address), zap.Uint8("collector_run", l.configuration.RunID))
}

// reach tries the collectors one after the other, and returns a link to the first that accepts the
// agent and sends start.
func (k *keeper) reach(ctx context.Context) (*link, error) {
	s := k.session
	g := s.env
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
			// A collector that does not answer leaves time for the next ones.
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
	if since, due := k.failing.Count(time.Now()); due {
		s.logger.Warn("No collector accepts the agent", zap.Error(err), zap.Int("since_last_line", since))
	}
	return nil, err
}

// unreachable: a collector could not be reached, or refuses the agent.
type unreachable struct {
	address string
	err     error
}

func (u *unreachable) Error() string { return u.address + ": " + u.err.Error() }
func (u *unreachable) Unwrap() error { return u.err }

// watch watches a link until it is lost, the agent has gone, or the guard ends.
func (k *keeper) watch(l *link) {
	k.linked = time.Now()
	for k.ctx.Err() == nil && !l.isLost() {
		s := k.session
		now := time.Now()
		k.resumeIfDrained(l)
		if l.isRest() {
			l.wakeAll()
		}
		if s.free(l, s.setHeld(l)); l.isLost() {
			break
		}
		if l.isSilent(s.env.options.Silence) {
			l.lose(loss{lostSilence, errors.New("the collector reads nothing (--silence)")})
			break
		}
		k.repeatHeartbeat(l, now)
		k.wait(k.untilNext(l))
	}
}

// noteLoss decides when and where the next try is. A collector that accepts agents and loses them soon is no better
// than one that refuses them. So it is tried after a pause and after the others, and the time for --give-up continues.
func (k *keeper) noteLoss(l *link, lost time.Time) {
	stayed := lost.Sub(k.linked)
	k.lostAt = lost
	if k.absent.IsZero() || stayed >= min(k.session.env.timing.steady, k.session.env.options.GiveUp) {
		k.absent = lost
	}
	k.tooSoon = stayed < k.session.env.timing.steady
	if k.tooSoon {
		k.from = l.index + 1
		return
	}
	k.retry.Reset()
}

// untilNext returns when the link needs the next check.
func (k *keeper) untilNext(l *link) time.Duration {
	tick := k.session.env.timing.tick
	if interval := l.configuration.HeartbeatInterval; interval > 0 {
		tick = min(tick, interval)
	}
	return tick
}

// wait waits until the keeper is woken, or the time is over.
func (k *keeper) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-k.session.awake:
	case <-timer.C:
	}
}

// resumeIfDrained lets the agent trace again when the collector has read all waiting data. There is
// no pause: the slower the collector, the longer it reads the data of one suspension, so
// suspensions are never closer than it can bear.
func (k *keeper) resumeIfDrained(l *link) {
	s := k.session
	if !l.held.Load() || !l.isDrained() {
		return
	}
	l.held.Store(false)
	if since, due := s.env.lines.goesOn.Count(time.Now()); due {
		s.logger.Info("The collector has read all waiting data: the agent resumes", zap.String("collector", l.address), zap.Int("since_last_line", since))
	}
	s.agent.Resume(hq.Overload | hq.Absence)
}

// missedBeats: after this many missing heartbeats the guard no longer reports an agent as alive.
const missedBeats = 3

// repeatHeartbeat sends the collector the last heartbeat of a living agent, if the collector expects heartbeats more
// often than the agent sends them.
func (k *keeper) repeatHeartbeat(l *link, now time.Time) {
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
		s.sendToCollector(last.AppendTo(nil))
	}
}

// endLost ends a link that was lost. The agent is suspended first.
func (k *keeper) endLost(l *link) {
	s := k.session
	k.noteLoss(l, time.Now())
	s.agent.Suspend(hq.Absence)
	s.install(nil)
	s.env.counts.Losses.Add(1)
	s.logger.Warn("Lost the collector: the agent is suspended until another accepts it", zap.String("collector", l.address),
		zap.String("cause", string(l.loss.cause)), zap.Error(l.loss.err))
	l.discard()
	s.env.counts.LostBytes.Add(uint64(l.lostBytes.Load()))
	s.setHeld(nil)
	s.agent.Withdraw(hq.Operator | hq.Overload)
}

// reconnect finds a collector for an agent that runs. It returns nil when the agent has gone, the
// guard ends, or no collector accepted the agent for too long.
func (k *keeper) reconnect() *link {
	s := k.session
	if k.tooSoon {
		s.env.pause(k.ctx, k.retry.Pause())
	}
	failed := k.tooSoon
	for k.ctx.Err() == nil {
		s.free(nil, s.setHeld(nil))
		if !s.isReadyForCollector(k.lostAt) {
			k.awaitAgent()
			continue
		}
		if most := s.env.options.GiveUp; failed && most > 0 && time.Since(k.absent) >= most {
			k.givenUp = true
			return nil
		}
		l, err := k.reach(k.ctx)
		if err == nil {
			k.startAgain(l)
			return l
		}
		failed = true
		s.env.pause(k.ctx, k.retry.Pause())
	}
	return nil
}

// awaitAgent waits for a message of the agent. No collector is tried meanwhile, so the time does
// not count for --give-up.
func (k *keeper) awaitAgent() {
	began := time.Now()
	k.wait(k.session.env.timing.tick)
	k.absent = k.absent.Add(time.Since(began))
}

// isReadyForCollector reports whether an agent can have a new run. It has sent a message since the loss of the last
// collector, it can trace, and it has answered suspend or its time is over.
func (s *session) isReadyForCollector(since time.Time) bool {
	state := s.agent.Status().State
	quiet := state == hq.Suspended || state == hq.Unanswered
	return quiet && (s.configuration.HeartbeatInterval <= 0 || s.lastHeard().After(since))
}

// startAgain starts a run of an agent that was traced before, at another collector or after a restart of the same. The
// agent is suspended. The collector first gets the agent's heartbeat, the data break and all names. When it has read
// them, the agent resumes.
func (k *keeper) startAgain(l *link) {
	s := k.session
	status := s.agent.Status()
	at := status.BreakAt
	l.begin(s.obey)
	l.held.Store(true)
	s.passing.Lock()
	if !status.Broken {
		at = s.Next()
	}
	l.translation = translation{since: at, ticks: uint64(max(0, l.began.Sub(s.startedAt).Milliseconds())), needed: true}
	for i := range l.data {
		l.openData(i)
	}
	s.names.sendAll(l.translation, l.data[0].send)
	s.link = l
	s.passing.Unlock()
	s.mu.Lock()
	heartbeat := s.heartbeat
	s.mu.Unlock()
	s.sendToCollector(heartbeat.AppendTo(nil))
	s.sendBreak(at)
	k.runStarted(l)
	if l.configuration.HeartbeatInterval != s.configuration.HeartbeatInterval || !sameFilters(l.configuration, s.configuration) {
		s.logger.Info("The agent keeps its first configuration, which differs from this collector's")
	}
}

func sameFilters(a, b bytefrog.AgentConfiguration) bool {
	return slices.Equal(a.Inclusions, b.Inclusions) && slices.Equal(a.Exclusions, b.Exclusions)
}
