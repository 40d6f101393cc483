// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
)

// turnAway refuses an agent that has sent hello and was not started.
func (r *bytefrogReceiver) turnAway(in *connreader.Reader, version uint8, why error) {
	reason := reasonOf(why)
	r.env.telemetry.Refused(reason)
	r.env.Logger.Warn("An agent is refused: its program runs on untraced", zap.Error(why),
		zap.String("reason", reason), zap.Stringer("peer", in.Conn().RemoteAddr()))
	agent := unstarted{in: in, maxString: r.env.config.Limits.MaxMessageSize}
	if err := hq.TurnAway(agent, version, why.Error(), r.env.timing.ready); err != nil {
		r.env.Logger.Debug("Could not send the reason to an agent that is refused", zap.Error(err))
	}
	r.env.lingering.begin(lingerer{control: in.TakeAway(), answered: true})
}

// unstarted is the control connection of an agent that was not started.
type unstarted struct {
	in        *connreader.Reader
	maxString int
}

// Send sends a message to the agent.
func (u unstarted) Send(m bytefrog.Message) error { return hq.Write(u.in.Conn(), m) }

func (u unstarted) Next(until time.Time) (bytefrog.Message, error) {
	return u.in.NextReadable(u.decode, until)
}

func (u unstarted) decode(b []byte) (bytefrog.Message, int, error) {
	return bytefrog.DecodeControl(b, u.maxString)
}
