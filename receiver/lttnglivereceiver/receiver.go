// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/symbols"
)

// liveReceiver is a viewer of a relay daemon: one for each component ID, however many
// signals have a pipeline.
type liveReceiver struct {
	env      *environment
	settings receiver.Settings

	starting   sync.Once
	startError error
	stopOnce   sync.Once
	stopError  error
	started    bool

	// The consumers of signals that a pipeline uses; set before Start.
	traces  consumer.Traces
	logs    consumer.Logs
	metrics consumer.Metrics

	watcher *watcher
	// forget takes the receiver out of the factory's map.
	forget func()
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
	// stopping is closed when the shutdown begins. reading is cancelled some time
	// after it, for requests that are not answered; ctx when the time of the shutdown
	// is over.
	stopping     chan struct{}
	reading, ctx context.Context
	hooks
}

// hooks are what tests set.
type hooks struct {
	now  func() time.Time
	dial func(ctx context.Context) (net.Conn, error)
}

func newReceiver(settings receiver.Settings, config *Config) (*liveReceiver, error) {
	telemetry, err := newTelemetry(settings.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	observer, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID:             settings.ID,
		Transport:              "tcp",
		LongLivedCtx:           true,
		ReceiverCreateSettings: settings,
	})
	if err != nil {
		return nil, err
	}
	return &liveReceiver{
		settings: settings,
		forget:   func() {},
		env: &environment{
			config:    config,
			id:        settings.ID,
			build:     settings.BuildInfo,
			logger:    settings.Logger,
			telemetry: telemetry,
			observer:  observer,
			positions: newPositions(),
			stopping:  make(chan struct{}),
			hooks:     hooks{now: time.Now, dial: config.TCPAddrConfig.Dial},
		},
	}, nil
}

// Start begins to look for sessions. That no relay daemon can be reached is no error:
// it is tried again.
func (r *liveReceiver) Start(ctx context.Context, host component.Host) error {
	r.starting.Do(func() { r.startError = r.start(ctx, host) })
	return r.startError
}

func (r *liveReceiver) start(ctx context.Context, host component.Host) error {
	env := r.env
	if r.traces != nil {
		settings := symbols.DefaultSettings()
		settings.Paths = env.config.SymbolPaths
		settings.Report = func(object string, err error) {
			env.logger.Info("Functions of an object have no names", zap.String("object", object), zap.Error(err))
		}
		files, err := symbols.NewFiles(settings)
		if err != nil {
			return fmt.Errorf("symbol_paths: %w", err)
		}
		env.files = files
	}
	if err := env.positions.open(ctx, host, env); err != nil {
		return err
	}
	// The context of Start is over before the receiver is.
	env.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	env.reading, r.cancelReading = context.WithCancel(env.ctx)
	env.traces = r.traces
	if r.logs != nil {
		env.logs = newLogSink(env, r.logs)
	}
	r.watcher = newWatcher(env)
	env.metrics = newMetricsLoop(env, r.settings, r.metrics, r.watcher.active)
	r.started = true
	env.logger.Info("Looking for LTTng sessions", zap.String("endpoint", env.config.Endpoint), zap.Strings("sessions", env.config.Sessions))
	r.watcher.start()
	return nil
}

// Shutdown detaches all sessions and hands on what is in memory, for at most
// shutdown_timeout; then what is left is dropped and counted.
func (r *liveReceiver) Shutdown(ctx context.Context) error {
	r.stopOnce.Do(func() { r.stopError = r.shutdown(ctx) })
	return r.stopError
}

const (
	// answerTime is how long a request that is under way at the shutdown has to be
	// answered, so that the session can be detached.
	answerTime = time.Second
	// overtime is how much longer than shutdown_timeout a shutdown may take for what
	// doesn't depend on the pipeline.
	overtime = 2 * time.Second
)

func (r *liveReceiver) shutdown(ctx context.Context) error {
	defer r.forget()
	defer r.env.telemetry.shutdown()
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
		r.env.metrics.stop()
		if r.env.logs != nil {
			r.env.logs.stop()
		}
	}()
	err := r.awaitOver(ctx, over)
	return errors.Join(err, r.env.positions.close(ctx))
}

// awaitOver waits for the end of everything, and drops what is left when the time
// is over.
func (r *liveReceiver) awaitOver(ctx context.Context, over <-chan struct{}) error {
	defer r.cancel()
	timer := time.NewTimer(r.env.config.ShutdownTimeout)
	defer timer.Stop()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
	case <-timer.C:
	}
	r.cancel()
	timer.Reset(overtime)
	select {
	case <-over:
		return nil
	case <-timer.C:
		return fmt.Errorf("the pipeline has not returned from a hand-over %v after shutdown_timeout", overtime)
	}
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
