// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/componentkit/openlistener"
	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
	"github.com/callbraid/callbraid/internal/componentkit/slots"
)

// stopTimeout is how long requests that are served have when the extension is shut down.
const stopTimeout = 5 * time.Second

// agentControl is the extension.
type agentControl struct {
	id        string
	config    *Config
	settings  component.TelemetrySettings
	logger    *zap.Logger
	telemetry *telemetry
	*directory
	whole
	refusals refusals
	queue    queue

	server      *http.Server
	address     net.Addr
	connections *slots.HTTP
	// end ends requests that wait for agents.
	end    context.CancelFunc
	served sync.WaitGroup
}

var (
	_ extension.Extension                         = (*agentControl)(nil)
	_ agentcontrol.Directory                      = (*agentControl)(nil)
	_ extensioncapabilities.ConfigSnapshotWatcher = (*agentControl)(nil)
	_ componentstatus.Watcher                     = (*agentControl)(nil)
)

func newAgentControl(settings extension.Settings, config *Config) (*agentControl, error) {
	telemetry, err := newTelemetry(ownmetrics.Of(component.KindExtension, settings.ID, settings.TelemetrySettings))
	if err != nil {
		return nil, err
	}
	return &agentControl{
		id: settings.ID.String(), config: config, settings: settings.TelemetrySettings, logger: settings.Logger, telemetry: telemetry,
		directory: newDirectory(config, telemetry, settings.Logger), refusals: newRefusals(),
		queue: queue{most: config.Limits.MaxWaiting, places: make(chan struct{}, config.Limits.MaxRequests)},
	}, nil
}

// Start serves the API and the page.
func (x *agentControl) Start(ctx context.Context, host component.Host) error {
	listener, err := x.config.ToListener(ctx)
	if err != nil {
		return fmt.Errorf("serve agent_control on endpoint %s: %w", x.config.NetAddr.Endpoint, err)
	}
	server, err := x.config.ToServer(ctx, host.GetExtensions(), x.settings, newSite(x, listener.Addr()), confighttp.WithErrorHandler(x.answerBefore))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	const setting = "limits.max_connections"
	slots.WarnIfShort(x.logger, setting, x.config.Limits.MaxConnections)
	x.connections, listener = slots.Serve(server, listener, slots.Options{
		Max: x.config.Limits.MaxConnections, Setting: setting, Closed: x.telemetry.connectionClosed, Logger: x.logger,
	})
	server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxStreams}
	requests, end := context.WithCancelCause(context.Background())
	server.BaseContext = func(net.Listener) context.Context { return requests }
	x.server, x.address = server, listener.Addr()
	x.end = func() { end(errShutdown) }
	x.warnIfOpen(listener.Addr())
	x.logger.Info("Serving the page and the API of agent_control", zap.Stringer("endpoint", x.address), zap.Bool("allow_disruptive", x.config.AllowDisruptive))
	x.served.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	return nil
}

// maxStreams is the number of concurrent requests of an HTTP/2 connection.
const maxStreams = 8

var errShutdown = errors.New("the collector is shut down")

// warnIfOpen warns if clients without authentication can send commands to agents.
func (x *agentControl) warnIfOpen(address net.Addr) {
	openlistener.Listener{
		Component: x.id, Address: address, TLS: x.config.TLS.Get(), Authenticated: x.config.Auth.HasValue(),
		Remedy: "set auth, or tls with a client_ca_file, or set endpoint to localhost",
	}.Warn(x.logger)
}

// Shutdown ends the server. Agents that are registered afterwards are not shown.
func (x *agentControl) Shutdown(ctx context.Context) error {
	defer x.telemetry.shutdown()
	x.directory.close()
	if x.server == nil {
		return nil // it was not started
	}
	x.end()
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	// The server waits for new connections.
	x.connections.Shut()
	err := x.server.Shutdown(ctx)
	if err != nil { // a client reads too slowly
		err = x.server.Close()
	}
	x.served.Wait()
	return err
}
