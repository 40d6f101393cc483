// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
)

// turnAway refuses an agent that was not started.
func (s *session) turnAway(reason string) {
	s.env.counts.TurnedAway.Add(1)
	s.env.warn(s.env.lines.turnedAway, s.logger, "An agent is refused: its program runs on untraced", zap.String("reason", reason))
	if err := hq.TurnAway(unstarted{s}, s.version, "bytefrog-guard: "+reason, s.env.timing.ready); err != nil {
		s.logger.Debug("Could not send the reason to a refused agent", zap.Error(err))
		return
	}
	s.env.linger(s.in.Conn())
}

// unstarted is the control connection of an agent that was not started.
type unstarted struct{ session *session }

func (u unstarted) Send(m bytefrog.Message) error { return u.session.send(m) }

func (u unstarted) Next(until time.Time) (bytefrog.Message, error) {
	return u.session.in.NextReadable(fromAgent, until)
}
