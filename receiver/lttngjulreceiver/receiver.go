// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/openlistener"
	"github.com/callbraid/callbraid/internal/componentkit/slots"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/portfile"
)

// julReceiver is the session daemon that agents connect to, for all signals of one
// configuration.
type julReceiver struct {
	kit       *receiverkit.Kit
	config    *Config
	plan      plan
	telemetry *telemetry
	hooks

	// Start sets the following fields.
	env       *environment
	listener  net.Listener
	registrar *registrar
	portFiles *portfile.Set
}

// peerTime is the part of shutdown_timeout, in fifths, in which the receiver restores agents.
// Log records have the rest.
const peerTime = 4

func newReceiver(settings receiver.Settings, config *Config) (*receiverkit.Receiver, error) {
	plan, err := newPlan(config)
	if err != nil {
		return nil, err
	}
	kit, err := receiverkit.New(settings, &config.Config, receiverkit.Names{Format: "lttng_agent", Scope: metadata.ScopeName})
	if err != nil {
		return nil, err
	}
	kit.PeerTime = config.ShutdownTimeout * peerTime / 5
	telemetry, err := newTelemetry(kit)
	if err != nil {
		return nil, err
	}
	return &receiverkit.Receiver{
		Kit:      kit,
		Protocol: &julReceiver{kit: kit, config: config, plan: plan, telemetry: telemetry, hooks: defaultHooks},
	}, nil
}

// Start listens, and writes the port into the port files.
func (r *julReceiver) Start(ctx context.Context, run *receiverkit.Run) error {
	listener, err := r.config.TCPAddrConfig.Listen(ctx)
	if err != nil {
		return listenError(r.config.Endpoint, err)
	}
	r.env = newEnvironment(run, r.config, r.telemetry, r.hooks)
	if r.portFiles, err = r.claimPortFiles(listener.Addr()); err != nil {
		_ = listener.Close()
		return err
	}
	r.listener, r.registrar = listener, newRegistrar(r.env, r.plan)
	startMetrics(r.env, r.registrar.registry, listener.Addr())
	r.logListening()
	r.portFiles.Watch()
	run.Go(func() { r.registrar.accept(r.registrar.slots.Listen(listener)) })
	return nil
}

func (r *julReceiver) claimPortFiles(address net.Addr) (*portfile.Set, error) {
	return portfile.Claim(address, portfile.Settings{
		Run: r.env.Run, Paths: r.config.PortFiles, CheckInterval: r.env.checkPortFiles, Lost: r.telemetry.portFileLost,
	})
}

func listenError(endpoint string, err error) error {
	err = fmt.Errorf("listening for LTTng agents on endpoint %s: %w", endpoint, err)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: if lttng-sessiond runs, it uses the first free port from 5345 to 5354: set endpoint to another port", err)
	}
	return err
}

// logListening logs the address. It warns if agents can't find it, or if other machines can reach it.
func (r *julReceiver) logListening() {
	logger, address := r.env.Logger, r.listener.Addr()
	logger.Info("Listening for LTTng agents", zap.Stringer("address", address), zap.Strings("port_files", r.portFiles.Claimed()))
	if len(r.config.PortFiles) == 0 {
		logger.Warn("port_files is empty: agents find this receiver only if another file has its port, such as /var/run/lttng/agent.port")
	}
	openlistener.Listener{
		Component: r.kit.ID, Address: address, Remedy: "set endpoint to localhost: the protocol has neither TLS nor names of agents",
	}.Warn(logger)
	slots.WarnIfShort(logger, settingMaxAgents, r.config.Limits.MaxAgents)
}

// Stop removes the port files, closes the listener, and begins to restore all agents. The
// port files go first: they may name the port only as long as it is the receiver's.
func (r *julReceiver) Stop() {
	r.portFiles.Release()
	_ = r.listener.Close()
	r.registrar.registry.close(time.Now().Add(r.kit.PeerTime))
}

// Close ends the receiver's own telemetry.
func (r *julReceiver) Close(context.Context) error {
	r.telemetry.builder.Shutdown()
	return nil
}
