// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/componentkit/openlistener"
	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
	"github.com/callbraid/callbraid/internal/componentkit/slots"
	"github.com/callbraid/callbraid/internal/componentkit/socket"
	"github.com/callbraid/callbraid/internal/receiverkit/eventswitch"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
)

// bytefrogReceiver is the HQ: one for each component ID, however many signals have
// a pipeline.
type bytefrogReceiver struct {
	env      *environment
	settings receiver.Settings
	// stopping is closed when the shutdown begins.
	stopping chan struct{}

	listener   net.Listener
	handshakes handshakes
	slots      *slots.Slots
	// unheard is of those that are closed at once.
	unheard logline.Seldom
	// serving are the goroutines of the listener and of all connections.
	serving sync.WaitGroup
	// cancel cancels env.ctx.
	cancel context.CancelFunc
}

func newReceiver(settings receiver.Settings, config *Config) (*bytefrogReceiver, error) {
	telemetry, err := newTelemetry(ownmetrics.Of(component.KindReceiver, settings.ID, settings.TelemetrySettings))
	if err != nil {
		return nil, err
	}
	observer, err := handover.NewObserver(settings, "tcp")
	if err != nil {
		return nil, err
	}
	r := &bytefrogReceiver{
		settings: settings,
		stopping: make(chan struct{}),
		env: &environment{
			config:    config,
			eventsOff: eventswitch.Off(config.Events),
			build:     settings.BuildInfo,
			logger:    settings.Logger,
			telemetry: telemetry,
			observer:  observer,
			registry:  &registry{max: config.Limits.MaxRuns},
			receiver:  settings.ID.String(),
			hooks:     defaultHooks(),
		},
	}
	if config.ExpectPairing {
		r.env.unpaired = handover.WarnUnpaired(settings.Logger)
	}
	r.env.lingering = &lingering{telemetry: telemetry, timing: &r.env.timing, stopping: r.stopping, most: maxDiscarded}
	return r, nil
}

// Start listens.
func (r *bytefrogReceiver) Start(ctx context.Context, host component.Host, next sharedreceiver.Signals) error {
	config := r.env.config
	listener, err := r.listen(ctx)
	if err != nil {
		return fmt.Errorf("listening for Bytefrog agents on endpoint %s: %w", config.Endpoint, err)
	}
	r.listener = listener
	// The context of Start is over before the receiver is.
	r.env.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.env.lingering.ctx = r.env.ctx
	r.env.agents = agentcontrol.Of(host)
	r.env.memory = budget.Of(host).Group(r.env.receiver)
	r.env.connections = newConnectionMemory(r.env.memory)
	r.env.lingering.connections = r.env.connections
	r.env.traces = next.Traces
	if next.Logs != nil {
		r.env.logs = newLogSink(r.env, next.Logs)
	}
	r.env.metrics = newMetricsLoop(r.env, r.settings, next.Metrics)
	if config.Start == StartSuspended && len(r.env.agents) == 0 {
		r.env.logger.Warn("Agents begin suspended, and nobody can tell them to trace: configure the extension agent_control, or take start: suspended away")
	}
	r.warnIfOpen(listener.Addr())
	r.env.logger.Info("Listening for Bytefrog agents", zap.Stringer("address", listener.Addr()))
	slots.WarnIfShort(r.env.logger, settingMaxConnections, config.Limits.MaxConnections)
	r.slots = newSlots(r.env)
	r.serving.Add(1)
	go r.accept(r.slots.Listen(listener))
	return nil
}

func (r *bytefrogReceiver) listen(ctx context.Context) (net.Listener, error) {
	config := r.env.config
	var secure *tls.Config
	if config.TLS.HasValue() {
		var err error
		if secure, err = config.TLS.Get().LoadTLSConfig(ctx); err != nil {
			return nil, err
		}
	}
	listener, err := config.TCPAddrConfig.Listen(ctx)
	if err != nil {
		return nil, err
	}
	listener = socket.Watch(listener)
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	return listener, nil
}

// warnIfOpen warns when clients that are not asked who they are can send call events.
func (r *bytefrogReceiver) warnIfOpen(address net.Addr) {
	openlistener.Listener{
		Component: r.env.receiver, Address: address, TLS: r.env.config.TLS.Get(),
		Remedy: "set tls with a client_ca_file, or set endpoint to localhost",
	}.Warn(r.env.logger)
}

func (r *bytefrogReceiver) isShuttingDown() bool { return isClosed(r.stopping) }
