// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // time zones, where the machine has none

	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/javamethods/server"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/eventswitch"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/metadata"
)

// greysReceiver runs the servers of one configuration, for all signals.
type greysReceiver struct {
	env     *environment
	servers []*server.Server
	// unregister removes the servers from the extensions.
	unregister []func()
}

func newReceiver(settings receiver.Settings, config *Config) (*receiverkit.Receiver, error) {
	kit, err := receiverkit.New(settings, &config.Config, receiverkit.Names{Format: "greys", Scope: metadata.ScopeName})
	if err != nil {
		return nil, err
	}
	// The other half is for delivery, even if a server hangs.
	kit.PeerTime = config.ShutdownTimeout / 2
	own, err := counters.New(kit.Telemetry, kit.Health)
	if err != nil {
		return nil, err
	}
	zone, err := time.LoadLocation(config.Timezone)
	if err != nil {
		return nil, fmt.Errorf("timezone: %w", err)
	}
	return &receiverkit.Receiver{Kit: kit, Protocol: &greysReceiver{env: &environment{
		Kit: kit, config: config, counters: own, zone: zone,
		hooks: hooks{connect: connect, repeatAfter: server.UsualRepeatAfter, silentAfter: server.UsualSilentAfter},
	}}}, nil
}

// Start starts the goroutines of all servers. A server that cannot be reached is tried again. A configuration without
// tasks is an error, unless operators can start tasks.
func (r *greysReceiver) Start(ctx context.Context, run *receiverkit.Run) error {
	config := r.env.config
	if len(run.Agents) == 0 && config.asksNothing() {
		return errNothing
	}
	secure := make([]*tls.Config, len(config.Servers))
	for i := range config.Servers {
		settings := config.Servers[i].TLS.Get()
		if settings == nil {
			continue
		}
		var err error
		if secure[i], err = settings.LoadTLSConfig(ctx); err != nil {
			return fmt.Errorf("servers[%d].tls: %w", i, err)
		}
	}
	r.open(run, secure)
	for _, s := range r.servers {
		if unregister := s.Register(); unregister != nil {
			r.unregister = append(r.unregister, unregister)
		}
		run.Logger.Info("Following a Greys server", zap.String("endpoint", s.Endpoint))
		run.Go(func() { s.Follow(run.Serving) })
	}
	return nil
}

var errNothing = errors.New("monitors, traces, stacks, tt, classes and methods are empty: set one of them, or configure the extension agent_control, so that operators can start tasks")

// open opens the outputs, and creates the servers.
func (r *greysReceiver) open(run *receiverkit.Run, secure []*tls.Config) {
	env := r.env
	env.run = run
	env.spans = signals.NewSpans(run, metadata.Type.String(), env.config.Limits.SpanLimits, env.counters.SpansDropped)
	env.logs = signals.NewLogs(run, metadata.Type.String(), eventswitch.Off(env.config.Events), env.config.Limits.LogLimits, env.counters.LogRecordsDropped)
	for i := range env.config.Servers {
		r.servers = append(r.servers, env.newServer(&env.config.Servers[i], secure[i]))
	}
	env.metrics = newMetricsLoop(run, env.config, env.counters, r.living)
}

// living returns the states of all processes that are connected, or were connected since the last call.
func (r *greysReceiver) living() (states []processState) {
	for _, s := range r.servers {
		if state, ok := s.State(); ok {
			states = append(states, state)
		}
	}
	return states
}

// Stop removes the servers from the extensions. The goroutine of each server sends the owed resets.
func (r *greysReceiver) Stop() {
	for _, unregister := range r.unregister {
		unregister()
	}
}

// Close ends the receiver's own metrics.
func (r *greysReceiver) Close(context.Context) error {
	r.env.counters.Shutdown()
	return nil
}
