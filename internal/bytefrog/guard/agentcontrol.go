// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
)

// readControl reads the agent's control connection to its end, which is also the end of the agent.
func (s *session) readControl() {
	defer s.wake()
	defer close(s.gone)
	s.in.SetMessageTimeout(s.env.timing.rest)
	for {
		m, raw, err := s.in.Next(fromAgent, s.heardBy())
		if err != nil {
			s.controlEnded(err)
			return
		}
		s.setHeard()
		s.forward(m, raw)
	}
}

// heardBy returns until when an agent has to send a message. A peer without a data connection may not be an agent, and
// uses the place of one. An agent that traces may be silent for as long as a debugger holds its program.
func (s *session) heardBy() time.Time {
	if isClosed(s.data.joined) {
		return time.Time{}
	}
	return time.Now().Add(s.env.timing.linger)
}

// controlEnded ends the agent's tracing. Where the connection ended for bad data, the collector and
// the agent get an error message, as a collector would send it.
func (s *session) controlEnded(err error) {
	s.agent.End()
	var bad *connreader.BadData
	if !errors.As(err, &bad) {
		s.logger.Debug("The agent has closed its control connection", zap.Error(err))
		return
	}
	s.giveUpBadData("control", err)
}

// forward forwards a message, and notes its content for the guard.
func (s *session) forward(m bytefrog.Message, raw []byte) {
	switch m := m.(type) {
	case bytefrog.DataBreak:
		s.dataBreak(m)
		return
	case bytefrog.Heartbeat:
		s.mu.Lock()
		s.heartbeat = m
		s.mu.Unlock()
		s.agent.Heartbeat(m.Mode)
	case bytefrog.ErrorMessage:
		if s.agent.Status().State != hq.Ended { // or it repeats the guard's own error
			s.env.warn(s.env.lines.failed, s.logger, "The agent reports an error", zap.String("text", m.Text))
		}
		s.agent.End()
	case bytefrog.ClassReport:
		s.agent.SetPrepared()
	}
	if _, ofClass := m.(bytefrog.ClassReport); !s.sendToCollector(raw) && ofClass {
		s.env.counts.ClassReports.Add(1)
	}
}

// dataBreak forwards a data break, with the collector's number.
func (s *session) dataBreak(m bytefrog.DataBreak) {
	at := unwrap(s.Next(), m.Sequence)
	s.sendBreak(at)
	s.agent.DataBreak(at)
}

// sendBreak sends the collector a data break before a number.
func (s *session) sendBreak(at uint64) {
	if l := s.current(); l != nil {
		l.control.send(bytefrog.DataBreak{Sequence: l.number(at)}.AppendTo(nil))
		s.bound(l)
	}
}

// obey obeys a message of the collector. It returns a loss if the collector has given up the run, or sent no command.
func (s *session) obey(m bytefrog.Message) *loss {
	switch m := m.(type) {
	case bytefrog.ErrorMessage:
		return &loss{lostByError, errors.New("error from the collector: " + m.Text)}
	case bytefrog.Command:
		s.command(m.Of)
		return nil
	default:
		return &loss{lostBadData, errors.New("expected a command from the collector, got " + m.Type().String())}
	}
}

func (s *session) command(of bytefrog.MessageType) {
	switch of {
	case bytefrog.TypeSuspend:
		// A suspended agent does not answer again, so the guard repeats its answer.
		if before := s.agent.Suspend(hq.Operator); before.State == hq.Suspended {
			s.sendBreak(before.BreakAt)
		}
	case bytefrog.TypeUnsuspend:
		s.agent.Resume(hq.Operator)
	case bytefrog.TypePause, bytefrog.TypeUnpause:
		s.agent.Pause(of == bytefrog.TypePause)
	case bytefrog.TypeStop:
		s.agent.Stop()
	}
}
