// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
)

// liveReceiver is a viewer of a relay daemon: one for each component ID, however many
// signals have a pipeline.
type liveReceiver struct {
	env      *environment
	settings receiver.Settings

	started bool

	watcher *watcher
	// cancelReading and cancel cancel env.reading and env.ctx.
	cancelReading, cancel context.CancelFunc
}

// environment is what all sessions share.
type environment struct {
	config    *Config
	id        component.ID
	build     component.BuildInfo
	logger    *zap.Logger
	telemetry *telemetry
	observer  *receiverhelper.ObsReport
	// traces and logs are nil where no pipeline takes them.
	traces  consumer.Traces
	logs    *logSink
	metrics *metricsLoop
	// files are the symbol tables of object files; nil without traces.
	files     *symbols.Files
	positions *positions
	// health is the component's, of the relay daemon and of sessions.
	health *serverhealth.Health
	// memory has the accounts of sessions, and accounts are those of what they share.
	memory   *budget.Group
	accounts []*budget.Account
	// stopping is closed when the shutdown begins. reading is cancelled some time
	// after it, for requests that are not answered; ctx when the time of the shutdown
	// is over.
	stopping     chan struct{}
	reading, ctx context.Context
	lines        sharedLines
	// unpaired warns once that no stack_pairing follows; nil: expect_pairing is off.
	unpaired func()
	hooks
}

// hooks are what tests set.
type hooks struct {
	now  func() time.Time
	dial func(ctx context.Context) (net.Conn, error)
	// held is called when more or less packets of a session wait; nil: nobody listens.
	held func(*buffers)
}

func newReceiver(settings receiver.Settings, config *Config) (*liveReceiver, error) {
	health := serverhealth.New()
	telemetry, err := newTelemetry(ownmetrics.Of(component.KindReceiver, settings.ID, settings.TelemetrySettings), health)
	if err != nil {
		return nil, err
	}
	observer, err := handover.NewObserver(settings, "tcp")
	if err != nil {
		return nil, err
	}
	r := &liveReceiver{
		settings: settings,
		env: &environment{
			config:    config,
			id:        settings.ID,
			build:     settings.BuildInfo,
			logger:    settings.Logger,
			telemetry: telemetry,
			observer:  observer,
			health:    health,
			positions: newPositions(),
			stopping:  make(chan struct{}),
			hooks:     hooks{now: time.Now, dial: config.TCPAddrConfig.Dial},
		},
	}
	if config.ExpectPairing {
		r.env.unpaired = handover.WarnUnpaired(settings.Logger)
	}
	r.env.memory = budget.Of(nil).Group(settings.ID.String()) // until it is started
	r.env.lines.ordinary()
	return r, nil
}

// Start begins to look for sessions. That no relay daemon can be reached is no error:
// it is tried again.
func (r *liveReceiver) Start(ctx context.Context, host component.Host, next sharedreceiver.Signals) error {
	env := r.env
	env.memory = budget.Of(host).Group(r.settings.ID.String())
	if next.Traces != nil {
		settings := symbols.DefaultSettings()
		settings.Paths = env.config.SymbolPaths
		settings.Report = env.saidNoNames
		tables := env.shared()
		settings.Hold = tables.Set
		files, err := symbols.NewFiles(settings)
		if err != nil {
			return fmt.Errorf("symbol_paths: %w", err)
		}
		env.files = files
	}
	env.positions.memory = env.shared()
	if err := env.positions.open(ctx, host, env); err != nil {
		env.closeShared()
		return err
	}
	// The context of Start is over before the receiver is.
	env.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	env.reading, r.cancelReading = context.WithCancel(env.ctx)
	env.traces = next.Traces
	if next.Logs != nil {
		env.logs = newLogSink(env, next.Logs)
	}
	r.watcher = newWatcher(env)
	env.metrics = newMetricsLoop(env, r.settings, next.Metrics, r.watcher.active)
	r.started = true
	env.health.Start(host)
	env.logger.Info("Looking for LTTng sessions", zap.String("endpoint", env.config.Endpoint), zap.Strings("sessions", env.config.Sessions))
	r.watcher.start()
	return nil
}

const (
	// answerTime is how long a request that is under way at the shutdown has to be
	// answered, so that the session can be detached.
	answerTime = time.Second
	// overtime is how much longer than shutdown_timeout a shutdown may take for what
	// doesn't depend on the pipeline.
	overtime = 2 * time.Second
)

// Shutdown detaches all sessions and hands on what is in memory, for at most
// shutdown_timeout; then what is left is dropped and counted.
func (r *liveReceiver) Shutdown(ctx context.Context) error {
	defer r.env.telemetry.shutdown()
	defer r.env.closeShared()
	r.env.health.Stop()
	close(r.env.stopping)
	if !r.started {
		return nil
	}
	late := time.AfterFunc(min(answerTime, r.env.config.ShutdownTimeout/2), r.cancelReading)
	defer late.Stop()
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.watcher.wait()
		r.env.metrics.Close()
		if r.env.logs != nil {
			r.env.logs.Close()
		}
	}()
	var err error
	if !handover.Finish(ctx, over, r.env.config.ShutdownTimeout, overtime, r.cancel) {
		err = fmt.Errorf("the pipeline has not returned from a hand-over %v after shutdown_timeout", overtime)
	}
	return errors.Join(err, r.env.positions.close(ctx))
}

func (e *environment) isStopping() bool {
	select {
	case <-e.stopping:
		return true
	default:
		return false
	}
}

// pause waits, and reports whether the receiver is not to be shut down meanwhile.
func (e *environment) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.stopping:
		return false
	}
}
