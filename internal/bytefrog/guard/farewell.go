// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
)

// farewell ends a session. It belongs to the keeper's goroutine.
type farewell struct{ session *session }

// passRest ends the session of an agent that has closed its control connection: the guard passes
// on the rest of its data, and then closes the collector's connections as the agent closed its own.
func (f *farewell) passRest() {
	s := f.session
	s.logger.Info("The agent has closed its connection")
	f.awaitData()
	if l := s.current(); l != nil {
		f.finish(l)
	}
}

// awaitData waits for the end of the agent's data connections. If the agent closed its control connection first, they
// are read as long as data arrives.
func (f *farewell) awaitData() {
	s := f.session
	s.data.refuse()
	ended := s.data.ended()
	for received := uint64(1); ; {
		select {
		case <-ended:
			return
		case <-s.env.ctx.Done():
		case <-time.After(s.env.timing.orphan):
			if now := s.Received() + 1; now != received {
				received = now
				continue
			}
		}
		s.data.close()
		f.awaitReaders(ended)
		return
	}
}

// awaitReaders waits for the readers of data connections that are closed: for the collector to
// read their data, unless it reads nothing, or the guard's time is over.
func (f *farewell) awaitReaders(ended <-chan struct{}) {
	s := f.session
	ticker := time.NewTicker(s.env.timing.tick)
	defer ticker.Stop()
	over := s.env.ctx.Done()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
			if l := s.current(); l != nil && l.isSilent(f.silence()) {
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

// finish writes all data that waits for a collector. Then it closes the data connections, and at
// last the control connection, as an agent does. It ends when the link is lost, or the guard's
// time is over.
func (f *farewell) finish(l *link) {
	s := f.session
	outlets := l.outlets()
	for _, o := range outlets[1:] {
		o.close()
	}
	for _, o := range append(outlets[1:], outlets[0]) {
		if o == outlets[0] {
			o.close()
		}
		if !f.awaitOutlet(l, o) {
			break
		}
	}
	l.discard()
	if lost := l.lostBytes.Load(); lost > 0 {
		s.env.counts.LostBytes.Add(uint64(lost))
		s.logger.Warn("The collector did not read the rest of the agent's data", zap.String("collector", l.address), zap.Int64("lost_bytes", lost))
	}
}

// awaitOutlet waits until a connection was closed, and reports false when the link is lost.
func (f *farewell) awaitOutlet(l *link, o *outlet) bool {
	s := f.session
	ticker := time.NewTicker(s.env.timing.tick)
	defer ticker.Stop()
	for {
		select {
		case <-o.ended:
			return true
		case <-l.lost:
			return false
		case <-s.env.ctx.Done():
			return false
		case <-ticker.C:
			if l.isSilent(f.silence()) {
				return false
			}
		}
	}
}

// silence is how long a collector may read nothing, though data waits, when its agent is gone or
// the guard disconnects from it.
func (f *farewell) silence() time.Duration {
	s := f.session
	if s.env.stopping.Err() != nil {
		return min(s.env.options.Silence, s.env.timing.lastSilence)
	}
	return s.env.options.Silence
}

// leave disconnects from an agent whose program runs, because the guard ends or has no collector
// for too long, in the steps of package hq:
//
//  1. An agent without a data connection gets no command, unless the guard has given up.
//  2. The agent gets suspend, and the guard waits for the answer.
//  3. The guard reads the rest, and passes it on.
//  4. The collector learns that the agent shuts down, and its connections are closed
//     meanwhile. The agent gets an error message with the reason.
//  5. The guard reads the agent's connections until the agent closes them.
func (f *farewell) leave(givenUp bool) {
	s := f.session
	reason := "bytefrog-guard is ending"
	if givenUp {
		reason = "bytefrog-guard could reach no collector for too long (--give-up)"
	}
	s.logger.Info("Disconnecting from the agent: its program runs on untraced", zap.String("reason", reason))
	if !givenUp && s.data.refuseUnlessAttached() {
		f.part(false)
		if l := s.current(); l != nil {
			s.install(nil)
			f.finish(l)
		}
		return
	}
	status := s.agent.SuspendForGood(s.gone, s.env.timing.farewell)
	answered := (status.State == hq.Suspended || status.State == hq.Ended) && !isClosed(s.gone)
	f.readRest()
	s.agent.End()
	l := s.current()
	s.install(nil)
	if l != nil {
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			l.control.send(bytefrog.Heartbeat{Mode: bytefrog.ModeShuttingDown}.AppendTo(nil))
			f.finish(l)
		}()
		defer func() { <-finished }()
	}
	if err := s.send(bytefrog.ErrorMessage{Text: reason}); err != nil {
		s.logger.Debug("Could not send the reason to the agent", zap.Error(err))
	}
	f.part(answered)
}

// readRest is step 3.
func (f *farewell) readRest() {
	s := f.session
	t := s.env.timing
	in := &rest{session: s, ended: s.data.ended()}
	s.agent.AwaitRest(in, hq.RestTimes{Quiet: t.quiet, Complete: t.complete, Limit: t.drain}, s.env.ctx.Done(), nil)
}

// rest is the agent's data connections in step 3.
type rest struct {
	session *session
	ended   <-chan struct{}
}

// Arrivals returns how many numbered messages have arrived.
func (r *rest) Arrivals() hq.Arrivals {
	return hq.Arrivals{Numbered: r.session.Received(), Ended: isClosed(r.ended)}
}

// NextArrival returns a channel that is closed when data arrives or a connection ends.
func (r *rest) NextArrival() <-chan struct{} { return r.session.data.changed.Next() }

// part is step 5. Where the guard has to close connections itself, and the agent has not
// answered, the agent counts as cut off.
func (f *farewell) part(answered bool) {
	s := f.session
	g := s.env
	hq.Parting{
		Stopping: g.stopping.Done(), Cut: g.ctx.Done(), Answered: answered, Control: g.timing.control,
		Grace: func() time.Duration { return max(s.configuration.HeartbeatInterval, time.Second) + g.timing.parting },
	}.Await(&parting{session: s, answered: answered, dataGone: s.data.ended()})
	s.data.refuse()
	_ = s.in.Conn().Close()
	<-s.gone
}

// parting is the agent's connections in step 5.
type parting struct {
	session  *session
	answered bool
	dataGone <-chan struct{}
}

// Gone returns channels that are closed when the agent has closed its connections.
func (p *parting) Gone() (data []<-chan struct{}, control <-chan struct{}) {
	return []<-chan struct{}{p.dataGone}, p.session.gone
}

// CloseData closes the data connections, and waits for their readers.
func (p *parting) CloseData() {
	s := p.session
	// A peer that has sent nothing since its start does not count as an agent.
	if !p.answered && !isClosed(s.gone) && s.wasHeard() {
		s.env.cutOff.Add(1)
	}
	s.data.refuse()
	s.data.close()
	s.data.reading.Wait()
}

func (p *parting) CloseControl() { _ = p.session.in.Conn().Close() }
