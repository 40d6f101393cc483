// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"

	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

// liveReceiver is a viewer of the relay daemon of one configuration, for all signals.
type liveReceiver struct {
	kit       *receiverkit.Kit
	config    *Config
	telemetry *telemetry
	// env is shared by all sessions.
	env *session.Environment

	// The fields below are set by Start.
	watcher *watcher
	metrics *handover.Metrics[session.State]
}

func newReceiver(settings receiver.Settings, config *Config) (*receiverkit.Receiver, error) {
	kit, err := receiverkit.New(settings, &config.Config, receiverkit.Names{Format: "lttng", Scope: metadata.ScopeName})
	if err != nil {
		return nil, err
	}
	r := &liveReceiver{kit: kit, config: config}
	if r.telemetry, err = newTelemetry(kit); err != nil {
		return nil, err
	}
	r.env = session.NewEnvironment(kit, config.forSessions(), r.telemetry)
	r.env.Dial = config.TCPAddrConfig.Dial
	r.env.Ended = func(s session.State) { r.metrics.Ended(s) }
	return &receiverkit.Receiver{Kit: kit, Protocol: r}, nil
}

// Start begins to look for sessions. It returns no error for a relay daemon that cannot be reached: the
// receiver tries again.
//
// While the logs pipeline refuses records and their queue is full, they are dropped, so that spans do not wait for them.
// While it accepts them, or if there is no traces pipeline, a session waits for room: it reads a recording as fast as both
// pipelines accept it, and the relay daemon keeps the rest.
func (r *liveReceiver) Start(ctx context.Context, run *receiverkit.Run) error {
	overflow := handover.OverflowDropWhileRefused
	if run.Next.Traces == nil {
		overflow = handover.OverflowWait
	}
	err := r.env.Open(ctx, run, session.Delivery{
		Scope: metadata.ScopeName, WhileRefused: "the session is not read until it accepts them", Overflow: overflow,
	})
	if err != nil {
		return err
	}
	r.watcher = newWatcher(r.env, r.config, run.Go)
	r.metrics = openMetrics(run, r.config, r.telemetry, r.watcher.states)
	r.env.Logger.Info("Looking for LTTng sessions", zap.String("endpoint", r.config.Endpoint), zap.Strings("sessions", r.config.Sessions))
	run.Go(r.watcher.run)
	return nil
}

// Stop does nothing: each session detaches in its own goroutine.
func (*liveReceiver) Stop() {}

// Close closes the shared parts of sessions.
func (r *liveReceiver) Close(ctx context.Context) error {
	defer r.telemetry.Shutdown()
	return r.env.Close(ctx)
}
