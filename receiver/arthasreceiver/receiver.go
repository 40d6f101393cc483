// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"context"
	"fmt"
	"net/http"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/eventswitch"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/remembered"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/session"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/task"
)

// arthasReceiver runs the servers of one configuration, for all signals.
type arthasReceiver struct {
	env     *environment
	outputs []*output
	// clients and stored are closed at the end.
	clients []*http.Client
	stored  storage.Client
}

// environment is the shared state of all servers.
type environment struct {
	*receiverkit.Kit
	config   *Config
	counters *counters.Counters

	// The fields below exist from the start on. spans is nil if no pipeline accepts spans.
	run     *receiverkit.Run
	spans   *signals.Spans
	logs    *signals.Logs
	metrics *metricsLoop
}

func newReceiver(settings receiver.Settings, config *Config) (*receiverkit.Receiver, error) {
	kit, err := receiverkit.New(settings, &config.Config, receiverkit.Names{Format: "arthas", Scope: metadata.ScopeName})
	if err != nil {
		return nil, err
	}
	// The rest is for delivery, even if a server hangs.
	kit.PeerTime = config.ShutdownTimeout / 4 * 3
	own, err := counters.New(kit.Telemetry, kit.Health)
	if err != nil {
		return nil, err
	}
	return &receiverkit.Receiver{Kit: kit, Protocol: &arthasReceiver{env: &environment{Kit: kit, config: config, counters: own}}}, nil
}

// Start starts the goroutines of all servers. A server that cannot be reached is tried again.
func (r *arthasReceiver) Start(ctx context.Context, run *receiverkit.Run) error {
	env, config := r.env, r.env.config
	env.run = run
	if config.Storage != nil {
		var err error
		if r.stored, err = remembered.Open(ctx, run.Collector, *config.Storage, env.Settings.ID); err != nil {
			return err
		}
	}
	tasks, err := config.tasks()
	if err != nil {
		return err
	}
	var servers []*session.Server
	for i := range config.Servers {
		s, err := r.newServer(ctx, &config.Servers[i], tasks)
		if err != nil {
			return fmt.Errorf("servers[%d]: %w", i, err)
		}
		servers = append(servers, s)
	}
	env.spans = signals.NewSpans(run, metadata.Type.String(), config.Limits.SpanLimits, env.counters.SpansDropped)
	env.logs = signals.NewLogs(run, metadata.Type.String(), eventswitch.Off(config.Events), config.Limits.LogLimits, env.counters.LogRecordsDropped)
	env.metrics = newMetricsLoop(run, config, env.counters, r.living)
	for i, s := range servers {
		run.Logger.Info("Following an Arthas server", zap.String("endpoint", config.Servers[i].Endpoint))
		run.Go(func() { s.Run(run.Serving) })
	}
	return nil
}

// newServer returns a server with those tasks whose results a pipeline accepts.
func (r *arthasReceiver) newServer(ctx context.Context, config *ServerConfig, tasks []*task.Task) (*session.Server, error) {
	env := r.env
	settings := config.ClientConfig
	timeout := settings.Timeout
	settings.Timeout = 0 // the client has a timeout for each request, beyond the time that the server waits
	transport, err := settings.ToClient(ctx, env.run.Collector.GetExtensions(), env.Settings.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	r.clients = append(r.clients, transport)
	if config.Username != "" {
		transport.Transport = &basicAuth{transport.Transport, config.Username, string(config.Password)}
	}
	client, err := arthas.NewClient(transport, config.Endpoint, arthas.Settings{
		MaxAnswer: int64(env.config.Limits.MaxAnswerBytes), Timeout: timeout, Pulls: env.config.MaxPolls, UserID: "callbraid",
	})
	if err != nil {
		return nil, err
	}
	logger := env.Logger.With(zap.String("server", config.Endpoint))
	store, err := remembered.New(ctx, r.stored, config.Endpoint, func(err error) {
		logger.Warn("The storage extension did not store the open sessions: a killed collector would leave them open", zap.Error(err))
	})
	if err != nil {
		return nil, err
	}
	out := newOutput(env, config, logger)
	r.outputs = append(r.outputs, out)
	interval := env.config.JVM.Interval
	if env.run.Next.Metrics == nil {
		interval = 0
	}
	var wanted []*task.Task
	for _, t := range tasks {
		if env.forwards(t.Kind) {
			wanted = append(wanted, t)
		}
	}
	return session.New(session.Settings{
		Client: client, Tasks: wanted, JVMInterval: interval, PollInterval: env.config.PollInterval, StateInterval: env.config.StateInterval, Reconnect: env.config.Reconnect,
		Store: store, Leaving: env.run.Leaving, Output: out, Logger: logger, Now: env.Now,
	}), nil
}

// forwards reports whether a pipeline accepts the results of a kind of task. Without one the receiver does not
// instrument the program.
func (e *environment) forwards(kind task.Kind) bool {
	switch next := &e.run.Next; kind {
	case task.Monitor:
		return next.Metrics != nil
	case task.Trace:
		return next.Traces != nil
	default:
		return next.Logs != nil
	}
}

// basicAuth adds a user and a password to requests.
type basicAuth struct {
	next           http.RoundTripper
	user, password string
}

// RoundTrip sends a copy of the request with the header.
func (b *basicAuth) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.SetBasicAuth(b.user, b.password)
	return b.next.RoundTrip(r)
}

// CloseIdleConnections closes those of the next one.
func (b *basicAuth) CloseIdleConnections() {
	if closer, is := b.next.(interface{ CloseIdleConnections() }); is {
		closer.CloseIdleConnections()
	}
}

// living returns the states of all processes that are connected, or were connected since the last call.
func (r *arthasReceiver) living() (states []processState) {
	for _, o := range r.outputs {
		if state, ok := o.state(); ok {
			states = append(states, state)
		}
	}
	return states
}

// Stop does nothing: the goroutine of each server ends its sessions.
func (r *arthasReceiver) Stop() {}

// Close closes idle connections and the storage, and ends the receiver's own metrics.
func (r *arthasReceiver) Close(ctx context.Context) error {
	for _, client := range r.clients {
		client.CloseIdleConnections()
	}
	r.env.counters.Shutdown()
	if r.stored == nil {
		return nil
	}
	return r.stored.Close(ctx)
}
