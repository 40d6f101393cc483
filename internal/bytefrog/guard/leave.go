// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"io"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// agentGone ends the session of an agent that has closed its control connection: what it
// had sent is passed on, and then the collector's connections are closed as the agent has
// closed its own.
func (s *session) agentGone() {
	s.logger.Info("The agent has gone")
	s.awaitData()
	if l := s.current(); l != nil {
		s.finish(l)
	}
}

// awaitData waits for the end of the agent's data connections. An agent that closes the
// control connection first still has them read, as long as something comes.
func (s *session) awaitData() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	ended := s.dataEnded()
	for received := uint64(1); ; {
		select {
		case <-ended:
			return
		case <-s.guard.ctx.Done():
		case <-time.After(s.guard.timing.orphan):
			if now := s.received.Load() + 1; now != received {
				received = now
				continue
			}
		}
		s.closeData()
		s.awaitReaders(ended)
		return
	}
}

// awaitReaders waits for who reads data connections that are closed: for the collector to take
// what they have read, unless it takes nothing, or the guard's time is over.
func (s *session) awaitReaders(ended <-chan struct{}) {
	ticker := time.NewTicker(s.guard.timing.tick)
	defer ticker.Stop()
	over := s.guard.ctx.Done()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
			if l := s.current(); l != nil && l.isSilent(s.silence()) {
				l.discard()
			}
		case <-over:
			over = nil
			if l := s.current(); l != nil {
				l.discard()
			}
		}
	}
}

// dataEnded gives a channel that is closed when all data connections have ended.
func (s *session) dataEnded() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.reading.Wait()
	}()
	return ended
}

// closeData closes the agent's data connections.
func (s *session) closeData() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.data {
		_ = conn.Close()
	}
}

// finish has all written that waits for a collector, then closes its data connections,
// then the control connection, as an agent does. It ends when the link is lost, or the
// guard's time is over.
func (s *session) finish(l *link) {
	outlets := l.outlets()
	for _, o := range outlets[1:] {
		o.close()
	}
	for _, o := range append(outlets[1:], outlets[0]) {
		if o == outlets[0] {
			o.close()
		}
		if !s.awaitOutlet(l, o) {
			break
		}
	}
	l.discard()
	if lost := l.lostBytes.Load(); lost > 0 {
		s.guard.counts.LostBytes.Add(uint64(lost))
		s.logger.Warn("The collector has not taken all that the agent had sent", zap.String("collector", l.address), zap.Int64("lost_bytes", lost))
	}
}

// awaitOutlet waits until a connection was closed, and reports false when the link is lost.
func (s *session) awaitOutlet(l *link, o *outlet) bool {
	ticker := time.NewTicker(s.guard.timing.tick)
	defer ticker.Stop()
	for {
		select {
		case <-o.ended:
			return true
		case <-l.lost:
			return false
		case <-s.guard.ctx.Done():
			return false
		case <-ticker.C:
			if l.isSilent(s.silence()) {
				return false
			}
		}
	}
}

// silence is how long a collector may take nothing of what waits when its agent has gone or
// is being left.
func (s *session) silence() time.Duration {
	if s.guard.stopping.Err() != nil {
		return min(s.guard.options.Silence, s.guard.timing.lastSilence)
	}
	return s.guard.options.Silence
}

// takeLeave leaves an agent whose program runs, because the guard ends or has no collector
// for too long, in the steps that let the program live:
//
//  1. An agent that has not opened a data connection is told nothing: it is refused what it
//     opens, and that ends its tracing.
//  2. It is told to suspend, and its answer is waited for.
//  3. What it had sent is read and passed on.
//  4. The collector is told that the agent shuts down, and its connections are closed.
//  5. The agent is told error, and why. It closes its connections itself, and is read
//     until it does.
func (s *session) takeLeave(k *keeper) {
	why := "bytefrog-guard is ending"
	if k.givenUp {
		why = "bytefrog-guard could reach no collector for too long (--give-up)"
	}
	s.logger.Info("The agent is left: its program runs on untraced", zap.String("why", why))
	if !k.givenUp && s.refuseData() {
		s.awaitGone(s.guard.ctx)
		s.cut(false)
		if l := s.current(); l != nil {
			s.install(nil)
			s.finish(l)
		}
		return
	}
	answered := s.suspendForGood()
	s.readRest()
	s.tracing.end()
	l := s.current()
	s.install(nil)
	if l != nil {
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			l.control.send(bytefrog.Heartbeat{Mode: bytefrog.ModeShuttingDown}.AppendTo(nil))
			s.finish(l)
		}()
		defer func() { <-finished }()
	}
	if err := s.send(bytefrog.ErrorMessage{Text: why}); err != nil {
		s.logger.Debug("The agent could not be told why it is left", zap.Error(err))
	}
	s.part(answered)
}

// refuseData has the agent's data connections be refused from now on, unless it has one.
func (s *session) refuseData() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = s.attached == 0
	return s.closed
}

// suspendForGood is step 2.
func (s *session) suspendForGood() (answered bool) {
	s.tracing.leave()
	until := time.Now().Add(s.guard.timing.farewell)
	for time.Now().Before(until) && !isClosed(s.gone) {
		if s.tracing.is(stateSuspended) || s.tracing.is(stateEnding) {
			return true
		}
		select {
		case <-s.awake:
		case <-time.After(readTick):
		}
	}
	return false
}

// readTick is how often readRest looks.
const readTick = 2 * time.Millisecond

// readRest is step 3: it waits until nothing comes any more. The wait is short when as
// many numbers have come as the agent has said that it gave out.
func (s *session) readRest() {
	t := s.guard.timing
	began, since, received := time.Now(), time.Now(), s.received.Load()
	ended := s.dataEnded()
	for time.Since(began) < t.drain && s.guard.ctx.Err() == nil && !isClosed(ended) {
		if now := s.received.Load(); now != received {
			since, received = time.Now(), now
		}
		quiet := t.quiet
		if at, broken, _ := s.tracing.quiet(); broken && received >= at {
			quiet = t.complete
		}
		if time.Since(since) >= quiet {
			return
		}
		time.Sleep(readTick)
	}
}

// part is step 5.
func (s *session) part(answered bool) {
	until := s.guard.ctx
	if answered {
		// From when the guard ends, which for one that has given up may be much later.
		var cancel context.CancelFunc
		until, cancel = context.WithCancel(until)
		defer cancel()
		stop := context.AfterFunc(s.guard.stopping, func() {
			s.guard.pause(until, max(s.configuration.HeartbeatInterval, time.Second)+s.guard.timing.parting)
			cancel()
		})
		defer stop()
	}
	s.awaitGone(until)
	s.cut(answered)
}

// awaitGone waits until the agent has closed all its connections.
func (s *session) awaitGone(ctx context.Context) {
	select {
	case <-s.gone:
	case <-ctx.Done():
		return
	}
	select {
	case <-s.dataEnded():
	case <-ctx.Done():
	}
}

// cut closes what the agent has not closed: the data connections first, because an agent
// that finds those lost, and can say so, lets its program run. One that has answered does in
// any case.
func (s *session) cut(answered bool) {
	// One that was never heard is no agent, as far as anybody knows.
	if !answered && !isClosed(s.gone) && s.wasHeard() {
		s.guard.cutOff.Add(1)
	}
	s.mu.Lock()
	s.closed = true
	open := len(s.data) > 0
	s.mu.Unlock()
	s.closeData()
	s.reading.Wait()
	if open {
		select {
		case <-s.gone:
		case <-time.After(s.guard.timing.control):
		}
	}
	_ = s.in.conn.Close()
	<-s.gone
}

// turnAway refuses an agent that was not started. Told error, or closed, in front of start
// it would end its program. So it is started, with a configuration by which it traces
// nothing and opens no data connection, and told error when it runs.
func (s *session) turnAway(why string) {
	s.guard.counts.TurnedAway.Add(1)
	s.guard.warn(s.guard.lines.turnedAway, s.logger, "An agent is turned away: its program runs on untraced", zap.String("why", why))
	configuration, err := bytefrog.AgentConfiguration{
		HeartbeatInterval:  100 * time.Millisecond,
		Exclusions:         []string{""},
		Inclusions:         []string{},
		BufferMemoryBudget: 64 * kib,
		QueueRetryCount:    1,
	}.Message(s.version)
	if err == nil {
		err = s.send(configuration)
	}
	if err == nil {
		err = s.send(bytefrog.Command{Of: bytefrog.TypeStart})
	}
	if err == nil {
		s.awaitReady()
		err = s.send(bytefrog.ErrorMessage{Text: "bytefrog-guard: " + why})
	}
	if err != nil {
		s.logger.Debug("The agent could not be told why it is turned away", zap.Error(err))
		return
	}
	s.guard.linger(s.in.conn)
}

// linger reads a connection of an agent that was told that it is over, and closes it itself:
// it must not find it closed before.
func (g *Guard) linger(conn net.Conn) {
	defer context.AfterFunc(g.ctx, func() { _ = conn.Close() })()
	_ = conn.SetReadDeadline(time.Now().Add(g.timing.linger))
	discard(conn, maxDiscarded)
}

// awaitReady waits for the first class report, which only an agent that takes error sends,
// for the end of the connection, or until it must be ready.
func (s *session) awaitReady() {
	until := time.Now().Add(s.guard.timing.ready)
	for {
		m, _, err := s.in.next(fromAgent, until)
		if err != nil {
			return
		}
		if _, ok := m.(bytefrog.ClassReport); ok {
			return
		}
	}
}

// maxDiscarded is how much of a connection that is no use any more is read: far more than
// an agent can send until it reads what it was told, as long as it runs.
const maxDiscarded = 1 << 30

// discard reads a connection to its end.
func discard(conn net.Conn, most int64) {
	_, _ = io.Copy(io.Discard, io.LimitReader(conn, most))
}
