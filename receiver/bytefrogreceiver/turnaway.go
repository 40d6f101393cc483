// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// An agent that is not wanted can't be told so at once: error, or a close, in front
// of start ends its program before main. So it is started, with a configuration by
// which it traces nothing and opens no data connection, and told error when it runs.
// The program goes on untraced, and the agent's log says why.

// tracingNothing is that configuration.
func tracingNothing(version uint8) (bytefrog.Message, error) {
	return bytefrog.AgentConfiguration{
		// No run has the ID 0.
		HeartbeatInterval:  100 * time.Millisecond,
		Exclusions:         []string{""},
		Inclusions:         []string{},
		BufferMemoryBudget: 64 << 10,
		QueueRetryCount:    1,
	}.Message(version)
}

// startForNothing starts an agent that is to be told error when it is ready for it.
func startForNothing(send func(bytefrog.Message) error, version uint8) error {
	configuration, err := tracingNothing(version)
	if err != nil {
		return err
	}
	if err := send(configuration); err != nil {
		return err
	}
	return send(bytefrog.Command{Of: bytefrog.TypeStart})
}

// turnAway refuses an agent that has said hello and was not started.
func (r *bytefrogReceiver) turnAway(in *input, version uint8, why error) {
	reason := reasonOf(why)
	r.env.telemetry.refused(reason)
	r.env.logger.Warn("An agent is turned away: its program runs on untraced", zap.Error(why),
		zap.String("reason", reason), zap.Stringer("peer", in.conn.RemoteAddr()))
	send := func(m bytefrog.Message) error { return writeMessage(in.conn, m) }
	err := startForNothing(send, version)
	if err == nil {
		r.awaitReady(in)
		err = send(bytefrog.ErrorMessage{Text: why.Error()})
	}
	if err != nil {
		r.env.logger.Debug("The agent could not be told why it is turned away", zap.Error(err))
	}
	r.env.lingering.add(lingerer{control: in.takeAway(), answered: true})
}

// awaitReady waits for the first class report, which only an agent that takes error
// sends, for the end of the connection, or until it must be ready.
func (r *bytefrogReceiver) awaitReady(in *input) {
	until := time.Now().Add(r.env.timing.ready)
	for {
		m, n, err := bytefrog.DecodeControl(in.bytes(), r.env.config.Limits.MaxMessageSize)
		if err != nil {
			in.begin, in.end, n = 0, 0, 0 // What it says is of no interest any more.
		}
		if _, ok := m.(bytefrog.ClassReport); ok && n > 0 {
			return
		}
		in.take(n)
		if n > 0 {
			continue
		}
		if _, err := in.read(time.Now(), until); err != nil {
			return
		}
	}
}
