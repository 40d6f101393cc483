// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
	"github.com/callbraid/callbraid/internal/lttng/position"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/session"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/telemetry"
)

// liveReceiver is a viewer of a relay daemon. There is one for each component ID, for all signals.
type liveReceiver struct {
	settings  receiver.Settings
	config    *Config
	telemetry *telemetry.Telemetry
	observer  *receiverhelper.ObsReport
	next      sharedreceiver.Signals
	// env is what all sessions share.
	env *session.Environment
	// accounts are the memory accounts of what sessions share.
	accounts []*budget.Account
	// stopping is closed when the shutdown begins. cancelReading and cancel end env.Reading and
	// env.Context.
	stopping              chan struct{}
	cancelReading, cancel context.CancelFunc
	// unpaired warns once that no stack_pairing follows; nil: expect_pairing is off.
	unpaired func()

	started bool
	watcher *watcher
	logs    *handover.Logs[logParcel]
	metrics *handover.Metrics[session.State]
}

func newReceiver(settings receiver.Settings, config *Config) (*liveReceiver, error) {
	health := serverhealth.New()
	counters, err := telemetry.New(ownmetrics.Of(component.KindReceiver, settings.ID, settings.TelemetrySettings), health)
	if err != nil {
		return nil, err
	}
	observer, err := handover.NewObserver(settings, "tcp")
	if err != nil {
		return nil, err
	}
	r := &liveReceiver{settings: settings, config: config, telemetry: counters, observer: observer, stopping: make(chan struct{})}
	if config.ExpectPairing {
		r.unpaired = handover.WarnUnpaired(settings.Logger)
	}
	r.env = &session.Environment{
		Settings: config.sessionSettings(), Process: config.processSettings(), Logger: settings.Logger, Telemetry: counters,
		Health: health, Memory: budget.Of(nil).Group(settings.ID.String()), // until the receiver starts
		DeliverLogs: func(logs plog.Logs, records, bytes int) { r.logs.Add(logParcel{logs, records, bytes}) },
		NewBatches:  r.newBatches, Ended: func(s session.State) { r.metrics.Ended(s) },
		Stopping: r.stopping, Now: time.Now, Dial: config.TCPAddrConfig.Dial,
	}
	r.env.Process.Telemetry = counters
	r.env.Prepare()
	return r, nil
}

// Start begins to look for sessions. It returns no error for a relay daemon that cannot be reached: the
// receiver tries again.
func (r *liveReceiver) Start(ctx context.Context, host component.Host, next sharedreceiver.Signals) error {
	env := r.env
	r.next = next
	env.Memory = budget.Of(host).Group(r.settings.ID.String())
	env.Process.Now = env.Now
	env.Process.Calls.Now = env.Now
	if next.Traces != nil {
		if err := r.openFiles(); err != nil {
			return err
		}
	}
	env.Positions = position.NewStore(env.Logger, r.openAccount())
	if id := r.config.Storage; id != nil {
		if err := env.Positions.Open(ctx, host, *id, r.settings.ID); err != nil {
			r.closeAccounts()
			return err
		}
	}
	// The context of Start ends before the receiver.
	env.Context, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	env.Reading, r.cancelReading = context.WithCancel(env.Context)
	if next.Logs != nil {
		r.logs, env.Logs = r.newLogQueue(next.Logs), r.logSettings()
	}
	r.watcher = newWatcher(env, r.config, r.shrink)
	r.metrics = r.newMetrics()
	r.started = true
	env.Health.Start(host)
	env.Logger.Info("Looking for LTTng sessions", zap.String("endpoint", r.config.Endpoint), zap.Strings("sessions", r.config.Sessions))
	r.watcher.start()
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
		r.closeAccounts()
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
	r.settings.Logger.Info(message, zap.String("object", object), zap.Error(err))
}

// openAccount opens a memory account of something that sessions share. Its size is set when it grows and
// after each list of sessions, and then it shrinks if the budget needs memory.
func (r *liveReceiver) openAccount() *budget.Account {
	a := r.env.Memory.Open(budget.Settings{Shrink: func(int64) {}})
	r.accounts = append(r.accounts, a)
	return a
}

func (r *liveReceiver) closeAccounts() {
	for _, a := range r.accounts {
		a.Close()
	}
}

// shrink returns memory of what sessions share, if the budget needs it.
func (r *liveReceiver) shrink() {
	if files := r.env.Process.Files; files != nil {
		files.Fit()
	}
	r.env.Positions.Shrink()
}

// handoverSettings are the settings of the deliveries of all signals.
func (r *liveReceiver) handoverSettings(logger *zap.Logger) handover.Settings {
	return handover.Settings{
		Context: r.env.Context, Observer: r.observer, Format: "lttng", Logger: logger,
		Retry: r.config.Retry, Now: r.env.Now, Memory: r.env.Memory,
	}
}

// overtime is how much longer than shutdown_timeout a shutdown may take for work that does not depend on
// the pipeline.
const overtime = 2 * time.Second

// Shutdown detaches all sessions and delivers the data in memory, for at most shutdown_timeout. Then the
// rest is dropped and counted.
func (r *liveReceiver) Shutdown(ctx context.Context) error {
	defer r.telemetry.Shutdown()
	defer r.closeAccounts()
	r.env.Health.Stop()
	close(r.stopping)
	if !r.started {
		return nil
	}
	late := time.AfterFunc(r.env.AnswerTime(), r.cancelReading)
	defer late.Stop()
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.watcher.wait()
		r.metrics.Close()
		if r.logs != nil {
			r.logs.Close()
		}
	}()
	var err error
	if !handover.Finish(ctx, over, r.config.ShutdownTimeout, overtime, r.cancel) {
		err = fmt.Errorf("the pipeline has not returned from a hand-over %v after shutdown_timeout", overtime)
	}
	return errors.Join(err, r.env.Positions.Close(ctx))
}
