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
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
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
	s.refuseFurtherData()
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
		s.reading.Wait()
		close(ended)
		s.arrived.Notify()
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

// leave disconnects an agent whose program runs, because the guard ends or has no collector
// for too long, in the steps of package hq:
//
//  1. An agent without a data connection gets no command, unless the guard has given up.
//  2. The agent gets suspend, and the guard waits for the answer.
//  3. The guard reads the rest, and passes it on.
//  4. The collector learns that the agent shuts down, and its connections are closed
//     meanwhile. The agent gets an error message with the reason.
//  5. The guard reads the agent's connections until the agent closes them.
func (s *session) leave(k *keeper) {
	why := "bytefrog-guard is ending"
	if k.givenUp {
		why = "bytefrog-guard could reach no collector for too long (--give-up)"
	}
	s.logger.Info("Disconnecting from the agent: its program runs on untraced", zap.String("why", why))
	if !k.givenUp && s.refuseData() {
		s.part(false)
		if l := s.current(); l != nil {
			s.install(nil)
			s.finish(l)
		}
		return
	}
	status := s.agent.SuspendForGood(s.gone, s.guard.timing.farewell)
	answered := (status.State == hq.Suspended || status.State == hq.Ended) && !isClosed(s.gone)
	s.readRest()
	s.agent.End()
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
		s.logger.Debug("Could not send the reason to the agent", zap.Error(err))
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

// readRest is step 3.
func (s *session) readRest() {
	t := s.guard.timing
	in := &rest{session: s, ended: s.dataEnded()}
	s.agent.AwaitRest(in, hq.RestTimes{Quiet: t.quiet, Complete: t.complete, Limit: t.drain}, s.guard.ctx.Done(), nil)
}

// rest is the agent's data connections in step 3.
type rest struct {
	session *session
	ended   <-chan struct{}
}

// Arrivals returns how many numbered messages have arrived.
func (r *rest) Arrivals() hq.Arrivals {
	return hq.Arrivals{Numbered: r.session.received.Load(), Ended: isClosed(r.ended)}
}

// NextArrival returns a channel that is closed when data arrives or a connection ends.
func (r *rest) NextArrival() <-chan struct{} { return r.session.arrived.Next() }

// part is step 5. Where the guard has to close connections itself, and the agent has not
// answered, the agent counts as cut off.
func (s *session) part(answered bool) {
	g := s.guard
	hq.Parting{
		Stopping: g.stopping.Done(), Cut: g.ctx.Done(), Answered: answered, Control: g.timing.control,
		Grace: func() time.Duration { return max(s.configuration.HeartbeatInterval, time.Second) + g.timing.parting },
	}.Await(&parting{session: s, answered: answered, dataGone: s.dataEnded()})
	s.refuseFurtherData()
	_ = s.in.conn.Close()
	<-s.gone
}

// parting is the agent's connections in step 5.
type parting struct {
	session  *session
	answered bool
	dataGone <-chan struct{}
}

// Gone returns what is closed when the agent has closed its connections.
func (p *parting) Gone() (data []<-chan struct{}, control <-chan struct{}) {
	return []<-chan struct{}{p.dataGone}, p.session.gone
}

// CloseData closes the data connections, and waits for their readers.
func (p *parting) CloseData() {
	s := p.session
	// A peer that has sent nothing since it was started is no agent, as far as the guard knows.
	if !p.answered && !isClosed(s.gone) && s.wasHeard() {
		s.guard.cutOff.Add(1)
	}
	s.refuseFurtherData()
	s.closeData()
	s.reading.Wait()
}

func (p *parting) CloseControl() { _ = p.session.in.conn.Close() }

// refuseFurtherData has the session accept no data connection from now on.
func (s *session) refuseFurtherData() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// turnAway refuses an agent that was not started.
func (s *session) turnAway(why string) {
	s.guard.counts.TurnedAway.Add(1)
	s.guard.warn(s.guard.lines.turnedAway, s.logger, "An agent is turned away: its program runs on untraced", zap.String("why", why))
	if err := hq.TurnAway(unstarted{s}, s.version, "bytefrog-guard: "+why, s.guard.timing.ready); err != nil {
		s.logger.Debug("Could not send the reason to an agent that is turned away", zap.Error(err))
		return
	}
	s.guard.linger(s.in.conn)
}

// unstarted is the control connection of an agent that was not started.
type unstarted struct{ session *session }

func (u unstarted) Send(m bytefrog.Message) error { return u.session.send(m) }

func (u unstarted) Next(until time.Time) (bytefrog.Message, error) {
	m, _, err := u.session.in.next(fromAgent, until)
	return m, err
}

// linger reads a connection of an agent that was told that it is over, and closes it itself:
// it must not find it closed before.
func (g *Guard) linger(conn net.Conn) {
	defer context.AfterFunc(g.ctx, func() { _ = conn.Close() })()
	_ = conn.SetReadDeadline(time.Now().Add(g.timing.linger))
	discard(conn, maxDiscarded)
}

// maxDiscarded is how much of a connection that is no use any more is read: far more than
// an agent can send until it reads what it was told, as long as it runs.
const maxDiscarded = 1 << 30

// discard reads a connection to its end.
func discard(conn net.Conn, most int64) {
	_, _ = io.Copy(io.Discard, io.LimitReader(conn, most))
}
