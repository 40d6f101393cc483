// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/receiver"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/lttng/position"
	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/ctffilereceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/ctffilereceiver/internal/telemetry"
)

// fileReceiver reads the traces of one configuration, for all signals.
type fileReceiver struct {
	kit       *receiverkit.Kit
	config    *Config
	telemetry *telemetry.Telemetry
	// env is shared by all sessions.
	env    *session.Environment
	reader *reader

	// The fields below are set by Start. accounts are the memory accounts of shared data.
	accounts []*budget.Account
	metrics  *handover.Metrics[session.State]
}

// common is shared by all receivers of a factory, and so of a process.
type common struct {
	// unread is the number of receivers with at_end: stop_collector that still read. They all end the same process: the
	// last one does.
	unread  atomic.Int32
	ballast ballast
}

// newReceiver returns a receiver.
func newReceiver(settings receiver.Settings, config *Config, common *common) (*receiverkit.Receiver, error) {
	kit, err := receiverkit.New(settings, &config.Config, receiverkit.Names{Format: "ctf", Scope: metadata.ScopeName})
	if err != nil {
		return nil, err
	}
	r := &fileReceiver{kit: kit, config: config}
	if r.reader, err = newReader(config, common); err != nil {
		return nil, err
	}
	if r.telemetry, err = telemetry.New(kit.Telemetry, r.reader.progress); err != nil {
		return nil, err
	}
	now := func() time.Time { return kit.Now() }
	r.env = &session.Environment{
		Settings: config.sessionSettings(),
		Process:  session.ProcessSettings(&config.MappingConfig, &config.Limits.LimitsConfig, &config.Config, &config.BatchesConfig, config.Storage != nil, now),
		Logger:   kit.Logger, Telemetry: r.telemetry, Health: kit.Health, Now: now,
		Ended: func(s session.State) { r.metrics.Ended(s) },
	}
	r.env.Process.Telemetry = r.telemetry
	r.env.Prepare()
	kit.PeerTime = r.env.AnswerTime()
	return &receiverkit.Receiver{Kit: kit, Protocol: r}, nil
}

// Start begins to look for traces.
func (r *fileReceiver) Start(ctx context.Context, run *receiverkit.Run) error {
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
	// Files do not go away, so reading waits for a slow pipeline.
	env.OpenLogs(run, &r.config.MappingConfig, &r.config.Limits.LimitsConfig, &r.config.BatchesConfig, metadata.ScopeName, handover.OverflowWait, r.telemetry.LogRecordsDropped)
	r.metrics = openMetrics(run, r.config, r.telemetry, r.reader.states)
	r.reader.open(env, r.telemetry, run, r.shrink)
	run.Go(r.reader.run)
	return nil
}

// openAccount opens a memory account of something that sessions share. Its size is set when it grows and
// after each search, and then it shrinks if the budget needs memory.
func (r *fileReceiver) openAccount() *budget.Account {
	a := r.env.Memory.Open(budget.Settings{Shrink: func(int64) {}})
	r.accounts = append(r.accounts, a)
	return a
}

// shrink frees memory of shared data, if the budget needs it.
func (r *fileReceiver) shrink() {
	if files := r.env.Process.Files; files != nil {
		files.Fit()
	}
	r.env.Positions.Shrink()
}

// Stop does nothing: each session stops in its own goroutine.
func (*fileReceiver) Stop() {}

// Close closes the shared parts of sessions.
func (r *fileReceiver) Close(ctx context.Context) error {
	defer r.telemetry.Shutdown()
	for _, a := range r.accounts {
		a.Close()
	}
	if r.env.Positions == nil {
		return nil
	}
	return r.env.Positions.Close(ctx)
}
