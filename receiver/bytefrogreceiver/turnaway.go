// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"io"
	"net"
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

// turnAway refuses an agent that has said hello, and closes its connection after it
// did so itself, or did not in time.
func (r *bytefrogReceiver) turnAway(in *input, version uint8, reason, text string) {
	r.env.telemetry.refused(reason)
	defer in.conn.Close()
	send := func(m bytefrog.Message) error { return writeMessage(in.conn, m) }
	err := startForNothing(send, version)
	if err == nil {
		r.awaitReady(in)
		err = send(bytefrog.ErrorMessage{Text: text})
	}
	if err != nil {
		r.env.logger.Debug("The agent could not be told why it is refused", zap.Error(err))
		return
	}
	if in.conn.SetReadDeadline(time.Now().Add(r.env.timing.parting)) != nil {
		return
	}
	defer context.AfterFunc(r.env.ctx, func() { expire(in.conn) })()
	_, _ = io.Copy(io.Discard, in.conn)
}

// expire ends a read.
func expire(conn net.Conn) { _ = conn.SetReadDeadline(time.Now()) }

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

// turnAway is the farewell to an agent that was not started.
func (r *run) turnAway(text string) error {
	if err := startForNothing(r.control.send, r.version); err != nil {
		return err
	}
	r.awaitClose(r.env.timing.ready)
	if err := r.control.send(bytefrog.ErrorMessage{Text: text}); err != nil {
		return err
	}
	r.awaitClose(r.env.timing.parting)
	return nil
}

// awaitClose waits for the end of the control connection, at most so long and not
// longer than the shutdown.
func (r *run) awaitClose(atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-r.control.ended:
	case <-timer.C:
	case <-r.env.ctx.Done():
	}
}
