// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/storageclient"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/javamethods/task"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/eventswitch"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/metadata"
)

// arthasReceiver runs the servers of one configuration, for all signals.
type arthasReceiver struct {
	env     *environment
	servers []*arthasServer
	// unregister removes the servers from the extensions.
	unregister []func()
	// clients and stored are closed at the end.
	clients []*http.Client
	stored  storage.Client
}

// environment is the shared state of all servers.
type environment struct {
	*receiverkit.Kit
	config   *Config
	counters *counters.Counters

	// The fields below exist from the start on. spans and profiles are nil if no pipeline accepts them.
	run *receiverkit.Run
	// pulling ends in the middle of the servers' time for a shutdown.
	pulling  context.Context
	spans    *signals.Spans
	logs     *signals.Logs
	metrics  *metricsLoop
	profiles *handover.Profiles[profileParcel]
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

// Start starts the goroutines of all servers. A server that cannot be reached is tried again. A configuration that asks
// nothing is an error, unless operators can start tasks.
func (r *arthasReceiver) Start(ctx context.Context, run *receiverkit.Run) error {
	env, config := r.env, r.env.config
	if len(run.Agents) == 0 && config.asksNothing() {
		return errNothing
	}
	env.run = run
	var endPulls context.CancelFunc
	env.pulling, endPulls = context.WithCancel(run.Leaving)
	context.AfterFunc(run.Serving, func() { time.AfterFunc(env.PeerTime/2, endPulls) })
	if config.Storage != nil {
		var err error
		if r.stored, err = storageclient.Open(ctx, run.Collector, *config.Storage, component.KindReceiver, env.Settings.ID); err != nil {
			return err
		}
	}
	env.profiles = newProfiles(env)
	env.spans = signals.NewSpans(run, metadata.Type.String(), config.Limits.SpanLimits, env.counters.SpansDropped)
	env.logs = signals.NewLogs(run, metadata.Type.String(), eventswitch.Off(config.Events), config.Limits.LogLimits, env.counters.LogRecordsDropped)
	for i := range config.Servers {
		tasks, err := config.tasks() // each server has its own
		if err != nil {
			return err
		}
		s, err := r.newServer(ctx, &config.Servers[i], tasks)
		if err != nil {
			return fmt.Errorf("servers[%d]: %w", i, err)
		}
		r.servers = append(r.servers, s)
	}
	env.metrics = newMetricsLoop(run, config, env.counters, r.living)
	for i, s := range r.servers {
		if unregister := s.Register(); unregister != nil {
			r.unregister = append(r.unregister, unregister)
		}
		run.Logger.Info("Following an Arthas server", zap.String("endpoint", config.Servers[i].Endpoint))
		run.Go(func() { s.Follow(run.Serving) })
	}
	return nil
}

var errNothing = errors.New("monitors, traces, stacks, watches, records, jvm and profiles are empty: set one of them, or configure the extension agent_control, so that operators can start tasks")

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

// living returns the states of all processes that are connected, or were connected since the last call.
func (r *arthasReceiver) living() (states []processState) {
	for _, s := range r.servers {
		state, ok := s.State()
		if !ok {
			continue
		}
		of := processState{State: state}
		if !state.Over {
			of.jvm = s.jvm.state(state.Origin)
		}
		states = append(states, of)
	}
	return states
}

// Stop removes the servers from the extensions. The goroutine of each server ends its sessions.
func (r *arthasReceiver) Stop() {
	for _, unregister := range r.unregister {
		unregister()
	}
}

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
