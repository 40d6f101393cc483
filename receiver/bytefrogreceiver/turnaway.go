// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
)

// turnAway refuses an agent that has said hello and was not started.
func (r *bytefrogReceiver) turnAway(in *input, version uint8, why error) {
	reason := reasonOf(why)
	r.env.telemetry.refused(reason)
	r.env.Logger.Warn("An agent is turned away: its program runs on untraced", zap.Error(why),
		zap.String("reason", reason), zap.Stringer("peer", in.conn.RemoteAddr()))
	agent := unstarted{in: in, maxString: r.env.config.Limits.MaxMessageSize}
	if err := hq.TurnAway(agent, version, why.Error(), r.env.timing.ready); err != nil {
		r.env.Logger.Debug("Could not send the reason to an agent that is turned away", zap.Error(err))
	}
	r.env.lingering.begin(lingerer{control: in.takeAway(), answered: true})
}

// unstarted is the control connection of an agent that was not started.
type unstarted struct {
	in        *input
	maxString int
}

// Send sends a message to the agent.
func (u unstarted) Send(m bytefrog.Message) error { return hq.Write(u.in.conn, m) }

// Next returns the agent's next message. Bytes that cannot be read are skipped: the agent is
// turned away whatever it sends.
func (u unstarted) Next(until time.Time) (bytefrog.Message, error) {
	in := u.in
	for {
		m, n, err := bytefrog.DecodeControl(in.bytes(), u.maxString)
		switch {
		case err != nil:
			in.begin, in.end = 0, 0
		case n > 0:
			in.take(n)
			return m, nil
		}
		if _, err := in.read(time.Now(), until); err != nil {
			return nil, err
		}
	}
}
