// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/web"
	"github.com/callbraid/callbraid/internal/componentkit/openlistener"
	"github.com/callbraid/callbraid/internal/componentkit/slots"
)

// stopTimeout is the time for requests under way at a shutdown.
const stopTimeout = 5 * time.Second

// server serves the pages.
type server struct {
	http    *http.Server
	slots   *slots.HTTP
	handler atomic.Pointer[web.Handler]
	address net.Addr
	// end ends requests that wait, for example for the end of a window.
	end    context.CancelFunc
	served sync.WaitGroup
}

// serve listens and starts to serve.
func (g *flameGraph) serve(ctx context.Context, host component.Host) error {
	listener, err := g.config.ToListener(ctx)
	if err != nil {
		return fmt.Errorf("serve flame graphs: %w", err)
	}
	handler := web.New(g.trees(), web.Options{
		WriteTimeout: g.config.WriteTimeout,
		Address:      listener.Addr(),
		AllowedHosts: g.config.AllowedHosts,
		Logger:       g.set.Logger,

		MaxKeptWindows:     g.config.MaxKeptWindows,
		MaxKeptWindowNodes: g.config.MaxKeptWindowNodes,
		TraceFiles:         g.config.TraceFiles,

		Reserve: g.forPage,
		Kept:    g.memory.ask,
		History: g.windows(),
	})
	g.server.handler.Store(handler)
	server, err := g.config.ToServer(ctx, host.GetExtensions(), g.set.TelemetrySettings, handler, confighttp.WithErrorHandler(refuse))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	slots.WarnIfShort(g.set.Logger, settingMaxConnections, g.config.MaxConnections)
	g.server.slots, listener = slots.Serve(server, listener, slots.Options{
		Max: g.config.MaxConnections, Setting: settingMaxConnections, Closed: g.connectionClosed, Logger: g.set.Logger,
	})
	requests, end := context.WithCancel(context.Background())
	server.BaseContext = func(net.Listener) context.Context { return requests }
	g.server.http, g.server.address, g.server.end = server, listener.Addr(), end
	openlistener.Listener{
		Component: g.set.ID.String(), Address: g.server.address, TLS: g.config.TLS.Get(), Authenticated: g.config.Auth.HasValue(),
		Remedy: "set auth, or tls with a client_ca_file, or set endpoint to localhost",
	}.Warn(g.set.Logger)
	g.set.Logger.Info("Flame graphs are served", zap.Stringer("endpoint", g.server.address))
	g.server.served.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	return nil
}

func (g *flameGraph) connectionClosed(reason slots.Reason) {
	g.telemetry.ExporterFlameGraphConnectionsClosed.Add(context.Background(), 1, metric.WithAttributes(attribute.String("reason", string(reason))))
}

// refuse answers a request that does not reach the pages. A browser shows its form for name and
// password only on this header.
func refuse(w http.ResponseWriter, _ *http.Request, text string, status int) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="flame graphs", charset="UTF-8"`)
	}
	http.Error(w, text, status)
}

// stop accepts no more requests, and ends those under way.
func (s *server) stop(ctx context.Context) error {
	if s.http == nil {
		return nil // it was not started
	}
	s.end()
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	// The server waits for new connections.
	s.slots.Shut()
	err := s.http.Shutdown(ctx)
	if err != nil { // a client reads too slowly
		err = s.http.Close()
	}
	s.served.Wait()
	return err
}
