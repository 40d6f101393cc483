// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"context"

	"go.opentelemetry.io/collector/receiver"

	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/ctffilereceiver/internal/metadata"
)

// fileReceiver reads the traces of one configuration, for all signals.
type fileReceiver struct {
	kit       *receiverkit.Kit
	config    *Config
	telemetry *telemetry
	// env is shared by all sessions.
	env    *session.Environment
	reader *reader
	// metrics is set by Start.
	metrics *handover.Metrics[session.State]
}

// newReceiver returns a receiver.
func newReceiver(settings receiver.Settings, config *Config, common *common) (*receiverkit.Receiver, error) {
	kit, err := receiverkit.New(settings, &config.Config, receiverkit.Names{Format: "ctf", Scope: metadata.ScopeName, Transport: "file"})
	if err != nil {
		return nil, err
	}
	r := &fileReceiver{kit: kit, config: config}
	if r.reader, err = newReader(config, common); err != nil {
		return nil, err
	}
	if r.telemetry, err = newTelemetry(kit, r.reader.progress); err != nil {
		return nil, err
	}
	r.env = session.NewEnvironment(kit, config.forSessions(), r.telemetry)
	r.env.Ended = func(s session.State) { r.metrics.Ended(s) }
	return &receiverkit.Receiver{Kit: kit, Protocol: r}, nil
}

// Start begins to look for traces. Files do not go away, so reading waits for a slow pipeline.
func (r *fileReceiver) Start(ctx context.Context, run *receiverkit.Run) error {
	err := r.env.Open(ctx, run, session.Delivery{
		Scope: metadata.ScopeName, WhileRefused: "the trace is not read until it accepts them", Overflow: handover.OverflowWait,
	})
	if err != nil {
		return err
	}
	r.metrics = openMetrics(run, r.config, r.telemetry, r.reader.states)
	r.reader.open(r.env, r.telemetry, run)
	run.Go(r.reader.run)
	return nil
}

// Stop does nothing: each session stops in its own goroutine.
func (*fileReceiver) Stop() {}

// Close closes the shared parts of sessions.
func (r *fileReceiver) Close(ctx context.Context) error {
	defer r.telemetry.Shutdown()
	return r.env.Close(ctx)
}
