// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/lttng/position"
	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
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
	logs     *handover.Logs[logParcel]
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
		Settings: config.sessionSettings(), Process: config.processSettings(now), Logger: kit.Logger, Telemetry: counters,
		Health: kit.Health, Now: now, Dial: config.TCPAddrConfig.Dial,
		DeliverLogs: func(logs plog.Logs, records, bytes int) { r.logs.Enqueue(logParcel{logs, records, bytes}) },
		Ended:       func(s session.State) { r.metrics.Ended(s) },
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
		if err := r.openFiles(); err != nil {
			return err
		}
	}
	env.Positions = position.NewStore(env.Logger, r.openAccount())
	if id := r.config.Storage; id != nil {
		if err := env.Positions.Open(ctx, run.Collector, *id, r.kit.Settings.ID); err != nil {
			return err
		}
	}
	env.NewBatches = batches(run, r.config, r.telemetry)
	if r.logs = openLogs(run, r.config, r.telemetry); r.logs != nil {
		env.Logs = logSettings(run, r.config)
	}
	r.watcher = newWatcher(env, r.config, r.shrink, run.Go)
	r.metrics = openMetrics(run, r.config, r.telemetry, r.watcher.states)
	env.Logger.Info("Looking for LTTng sessions", zap.String("endpoint", r.config.Endpoint), zap.Strings("sessions", r.config.Sessions))
	run.Go(r.watcher.run)
	return nil
}

// openFiles opens the symbol tables of object files.
func (r *liveReceiver) openFiles() error {
	settings := symbols.DefaultSettings()
	settings.Paths = r.config.SymbolPaths
	settings.Report = r.logNoNames
	settings.Hold = r.openAccount().Set
	files, err := symbols.NewFiles(settings)
	if err != nil {
		return fmt.Errorf("symbol_paths: %w", err)
	}
	r.env.Process.Traces, r.env.Process.Files = true, files
	return nil
}

// logNoNames logs why functions of an object are named by their offsets.
func (r *liveReceiver) logNoNames(object string, err error) {
	message := "Functions of an object have no names"
	if errors.Is(err, symbols.ErrNoFile) {
		message += ": no directory of symbol_paths has its file. Add the directory that has it under that path: / where the program runs, or a copy of that machine's root"
	}
	r.kit.Logger.Info(message, zap.String("object", object), zap.Error(err))
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
