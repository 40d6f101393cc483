// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
)

// readControl reads the agent's control connection to its end, which is the agent's.
func (s *session) readControl() {
	defer s.wake()
	defer close(s.gone)
	s.in.patience = s.guard.timing.rest
	for {
		m, raw, err := s.in.next(fromAgent, s.heardBy())
		if err != nil {
			s.controlEnded(err)
			return
		}
		s.hear()
		s.pass(m, raw)
	}
}

// heardBy is until when an agent has to be heard: one that has no data connection yet soon,
// or it is none. It takes the place of one. An agent that traces may be silent for as long as
// somebody looks at its program with a debugger.
func (s *session) heardBy() time.Time {
	if isClosed(s.data.joined) {
		return time.Time{}
	}
	return time.Now().Add(s.guard.timing.linger)
}

// controlEnded is the end of the control connection. Where it ended for what can't be
// read, the collector and the agent are told, as a collector would tell it.
func (s *session) controlEnded(err error) {
	s.agent.End()
	var bad *badData
	if !errors.As(err, &bad) {
		s.logger.Debug("The agent has closed its control connection", zap.Error(err))
		return
	}
	s.giveUpBadData("control", err)
}

// giveUpBadData says to both sides that the agent has sent what can't be read.
func (s *session) giveUpBadData(connection string, err error) {
	s.agent.Release()
	s.guard.counts.BadData.Add(1)
	s.guard.warn(s.guard.lines.badData, s.logger, "What came on a "+connection+" connection can't be read", zap.Error(err))
	said := bytefrog.ErrorMessage{Text: "bytefrog-guard: what came on a " + connection + " connection could not be read: " + err.Error()}
	s.tell(said.AppendTo(nil))
	_ = s.send(said) // an agent that is gone needs no word
	s.in.endBy(time.Now().Add(s.guard.timing.linger))
}

// pass passes a message on, and takes from it what the guard has to know.
func (s *session) pass(m bytefrog.Message, raw []byte) {
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
			s.guard.warn(s.guard.lines.failed, s.logger, "The agent reports an error", zap.String("text", m.Text))
		}
		s.agent.End()
	case bytefrog.ClassReport:
		s.agent.SetPrepared()
	}
	if _, ofClass := m.(bytefrog.ClassReport); !s.tell(raw) && ofClass {
		s.guard.counts.ClassReports.Add(1)
	}
}

// dataBreak passes a data break on, with the number that the run has there.
func (s *session) dataBreak(m bytefrog.DataBreak) {
	at := unwrap(s.next.Load(), m.Sequence)
	s.tellBreak(at)
	s.agent.DataBreak(at)
}

// tellBreak tells the collector that the data breaks before a number.
func (s *session) tellBreak(at uint64) {
	if l := s.current(); l != nil {
		l.control.send(bytefrog.DataBreak{Sequence: l.number(at)}.AppendTo(nil))
		s.bound(l)
	}
}

// obey does what the collector orders. The error says that it has given the run up.
func (s *session) obey(m bytefrog.Message) error {
	switch m := m.(type) {
	case bytefrog.ErrorMessage:
		return errors.New("the collector says: " + m.Text)
	case bytefrog.Command:
		s.command(m.Of)
		return nil
	default:
		return &badData{errors.New("expected an order from the collector, got " + m.Type().String())}
	}
}

func (s *session) command(of bytefrog.MessageType) {
	switch of {
	case bytefrog.TypeSuspend:
		// One that is suspended already doesn't answer again, so its answer is repeated.
		if before := s.agent.Suspend(hq.Operator); before.State == hq.Suspended {
			s.tellBreak(before.BreakAt)
		}
	case bytefrog.TypeUnsuspend:
		s.agent.Resume(hq.Operator)
	case bytefrog.TypePause, bytefrog.TypeUnpause:
		s.agent.Pause(of == bytefrog.TypePause)
	case bytefrog.TypeStop:
		s.agent.Stop()
	}
}
