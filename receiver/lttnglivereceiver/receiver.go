// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/lttng/position"
	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/telemetry"
)

// liveReceiver is a viewer of the relay daemon of one configuration, for all signals.
type liveReceiver struct {
	kit       *receiverkit.Kit
	config    *Config
	telemetry *telemetry.Telemetry
	// env is shared by all sessions.
	env *session.Environment

	// The fields below are set by Start. accounts are the memory accounts of shared data.
	accounts []*budget.Account
	watcher  *watcher
	metrics  *handover.Metrics[session.State]
}

func newReceiver(settings receiver.Settings, config *Config) (*receiverkit.Receiver, error) {
	kit, err := receiverkit.New(settings, &config.Config, receiverkit.Names{Format: "lttng", Scope: metadata.ScopeName})
	if err != nil {
		return nil, err
	}
	counters, err := telemetry.New(kit.Telemetry, kit.Health)
	if err != nil {
		return nil, err
	}
	r := &liveReceiver{kit: kit, config: config, telemetry: counters}
	now := func() time.Time { return kit.Now() }
	r.env = &session.Environment{
		Settings: config.sessionSettings(),
		Process:  session.ProcessSettings(&config.MappingConfig, &config.Limits.LimitsConfig, &config.Config, &config.BatchesConfig, config.Storage != nil, now),
		Logger:   kit.Logger, Telemetry: counters,
		Health: kit.Health, Now: now, Dial: config.TCPAddrConfig.Dial,
		Ended: func(s session.State) { r.metrics.Ended(s) },
	}
	r.env.Process.Telemetry = counters
	r.env.Prepare()
	kit.PeerTime = r.env.AnswerTime()
	return &receiverkit.Receiver{Kit: kit, Protocol: r}, nil
}

// Start begins to look for sessions. It returns no error for a relay daemon that cannot be reached: the
// receiver tries again.
func (r *liveReceiver) Start(ctx context.Context, run *receiverkit.Run) error {
	env := r.env
	env.Memory = run.Memory
	env.Stopping, env.Reading, env.Context = run.Serving.Done(), run.Leaving, run.Delivering
	if run.Next.Traces != nil {
		files, err := r.config.OpenFiles(run.Leaving, env.Logger, r.openAccount().Set, r.telemetry.SymbolFileRefused)
		if err != nil {
			return err
		}
		env.Process.Traces, env.Process.Files = true, files
	}
	env.Positions = position.NewStore(env.Logger, r.openAccount())
	if id := r.config.Storage; id != nil {
		if err := env.Positions.Open(ctx, run.Collector, *id, r.kit.Settings.ID); err != nil {
			return err
		}
	}
	env.NewBatches = batches(run, r.config, r.telemetry)
	openLogs(env, run, r.config, r.telemetry)
	r.watcher = newWatcher(env, r.config, r.shrink, run.Go)
	r.metrics = openMetrics(run, r.config, r.telemetry, r.watcher.states)
	env.Logger.Info("Looking for LTTng sessions", zap.String("endpoint", r.config.Endpoint), zap.Strings("sessions", r.config.Sessions))
	run.Go(r.watcher.run)
	return nil
}

// openAccount opens a memory account of something that sessions share. Its size is set when it grows and
// after each list of sessions, and then it shrinks if the budget needs memory.
func (r *liveReceiver) openAccount() *budget.Account {
	a := r.env.Memory.Open(budget.Settings{Shrink: func(int64) {}})
	r.accounts = append(r.accounts, a)
	return a
}

// shrink frees memory of shared data, if the budget needs it.
func (r *liveReceiver) shrink() {
	if files := r.env.Process.Files; files != nil {
		files.Fit()
	}
	r.env.Positions.Shrink()
}

// Stop does nothing: each session detaches in its own goroutine.
func (*liveReceiver) Stop() {}

// Close closes the shared parts of sessions.
func (r *liveReceiver) Close(ctx context.Context) error {
	defer r.telemetry.Shutdown()
	for _, a := range r.accounts {
		a.Close()
	}
	if r.env.Positions == nil {
		return nil
	}
	return r.env.Positions.Close(ctx)
}
