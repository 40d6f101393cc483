// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"

	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/componentkit/openlistener"
	"github.com/callbraid/callbraid/internal/componentkit/slots"
	"github.com/callbraid/callbraid/internal/componentkit/socket"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/telemetry"
)

// bytefrogReceiver is the HQ of the agents of one configuration, for all signals.
type bytefrogReceiver struct {
	env        *environment
	listener   net.Listener
	handshakes handshakes
	slots      *slots.Slots
	// unread counts connections that are closed before they are read.
	unread logline.Seldom
}

func newReceiver(settings receiver.Settings, config *Config) (*receiverkit.Receiver, error) {
	kit, err := receiverkit.New(settings, &config.Config, receiverkit.Names{Format: "bytefrog", Scope: metadata.ScopeName})
	if err != nil {
		return nil, err
	}
	kit.Overtime = farewellTime
	own, err := telemetry.New(kit.Telemetry)
	if err != nil {
		return nil, err
	}
	r := &bytefrogReceiver{env: &environment{
		Kit: kit, config: config, telemetry: own, registry: &registry{max: config.Limits.MaxRuns}, hooks: defaultHooks(),
	}}
	kit.StillOpen = r.stillOpen
	return &receiverkit.Receiver{Kit: kit, Protocol: r}, nil
}

// Start listens.
func (r *bytefrogReceiver) Start(ctx context.Context, run *receiverkit.Run) error {
	config := r.env.config
	listener, err := r.listen(ctx)
	if err != nil {
		return fmt.Errorf("listening for Bytefrog agents on endpoint %s: %w", config.Endpoint, err)
	}
	r.listener = listener
	r.env.open(run)
	if config.Start == StartSuspended && len(run.Agents) == 0 {
		r.env.Logger.Warn("Agents begin suspended, and no operator can resume them: configure the extension agent_control, or remove start: suspended")
	}
	r.warnIfOpen(listener.Addr())
	r.env.Logger.Info("Listening for Bytefrog agents", zap.Stringer("address", listener.Addr()))
	slots.WarnIfShort(r.env.Logger, settingMaxConnections, config.Limits.MaxConnections)
	r.slots = newSlots(r.env)
	run.Go(func() { r.accept(r.slots.Listen(listener)) })
	return nil
}

// open opens the outputs, and what runs share.
func (e *environment) open(run *receiverkit.Run) {
	e.receiver = run
	e.sessions = &session.Environment{Receiver: run, Telemetry: e.telemetry, Settings: e.config.sessionSettings(), Timing: &e.timing.Timing}
	e.connections = newConnectionMemory(run.Memory)
	e.lingering = newLingering(run, e.telemetry, &e.timing, e.connections)
	e.logs = newLogSink(run, e.config, e.telemetry)
	e.metrics = newMetricsLoop(run, e.config, e.telemetry, e.registry.states)
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

// warnIfOpen warns if clients that TLS does not authenticate can send call events.
func (r *bytefrogReceiver) warnIfOpen(address net.Addr) {
	openlistener.Listener{
		Component: r.env.ID, Address: address, TLS: r.env.config.TLS.Get(),
		Remedy: "set tls with a client_ca_file, or set endpoint to localhost",
	}.Warn(r.env.Logger)
}

// Stop closes the listener, and begins to disconnect all agents.
func (r *bytefrogReceiver) Stop() {
	_ = r.listener.Close()
	r.handshakes.shortenDeadlines(time.Now().Add(r.env.timing.hello))
	for _, run := range r.env.registry.shut() {
		run.Leave(session.ShuttingDown())
	}
}

// stillOpen describes what a shutdown waits for.
func (r *bytefrogReceiver) stillOpen() string {
	var open []string
	add := func(n int, what string) {
		if n > 0 {
			open = append(open, fmt.Sprintf("%s (%d)", what, n))
		}
	}
	runs, handovers := r.env.registry.states(), 0
	for i := range runs {
		handovers += runs[i].Calls
	}
	add(len(runs), "runs")
	add(handovers, "calls to the pipeline that have not returned")
	add(r.slots.Open(), "connections")
	add(r.handshakes.len(), "connections without a first message")
	add(r.env.lingering.len(), "connections of agents that were disconnected")
	if r.env.logs != nil {
		add(r.env.logs.Bytes(), "bytes of log records")
	}
	if len(open) == 0 {
		return "the last metrics"
	}
	return strings.Join(open, ", ")
}

// Close frees the memory account of connections and the receiver's own metrics.
func (r *bytefrogReceiver) Close(context.Context) error {
	if r.env.connections != nil {
		r.env.connections.close()
	}
	r.env.telemetry.Shutdown()
	return nil
}
