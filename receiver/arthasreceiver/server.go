// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/server"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/javamethods/task"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/link"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/profiling"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/remembered"
)

// arthasServer is a configured server with the state of its JVM.
type arthasServer struct {
	*server.Server
	jvm *jvm
	// profiler is nil if no pipeline accepts profiles, or none are configured. current is the process of its profiles.
	profiler *profiling.Profiler
	current  atomic.Pointer[signals.Origin]
}

// newServer returns a configured server.
func (r *arthasReceiver) newServer(ctx context.Context, config *ServerConfig, tasks []*task.Task) (*arthasServer, error) {
	env, c := r.env, r.env.config
	transport, err := r.newTransport(ctx, config)
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
	memory := servermemory.New(env.run.Memory, c.Limits.MaxServerMemory)
	timeout := cmp.Or(config.Timeout, arthas.DefaultTimeout)
	dialer := &link.Dialer{Settings: link.Settings{
		NewClient: func(reserve func(more int) error) (*arthas.Client, error) {
			return arthas.NewClient(transport, config.Endpoint, arthas.Settings{
				MaxAnswer: int64(c.Limits.MaxAnswerBytes), Timeout: timeout, Pulls: c.MaxPolls, Reserve: reserve, UserID: "callbraid",
			})
		},
		Store: store, PollInterval: c.PollInterval, IdlePollInterval: c.IdlePollInterval, Context: env.run.Leaving, Pulling: env.pulling, Memory: memory, Count: env.counters.Count, Now: env.Now,
	}}
	state := &jvm{dialer: dialer, interval: c.JVM.Interval, counters: env.counters}
	if env.run.Next.Metrics == nil {
		state.interval = 0
	}
	of := &arthasServer{jvm: state}
	// The profiler's answers have their own limit, limits.max_profile_bytes.
	profilerClient, err := arthas.NewClient(transport, config.Endpoint, arthas.Settings{MaxAnswer: int64(c.Limits.MaxAnswerBytes), Timeout: timeout, UserID: "callbraid"})
	if err != nil {
		return nil, err
	}
	of.profiler = env.newProfiler(profilerClient, config, r.stored, logger, of.current.Load)
	methods, methodsSetting := signals.MethodsOfServer(c.Limits.MaxMetricPoints, len(c.Servers), c.Limits.MaxMethods)
	of.Server = server.New(server.Settings{
		Tracer: metadata.Type.String(), Endpoint: addressOf(config.Endpoint), ServiceName: cmp.Or(config.ServiceName, c.ServiceName), Resource: c.Resource,
		Run: env.run, Spans: env.spans, Logs: env.logs, Ended: func(last server.State) { env.metrics.Ended(processState{State: last}) },
		Counters: env.counters, Health: env.Health.Server(config.Endpoint), Logger: logger, Memory: memory,
		Tasks: tasks,
		Session: session.Settings{
			StateInterval: c.StateInterval, Timeout: timeout, AnswerTimeout: timeout, Reconnect: c.Reconnect, MaxCommands: c.Limits.MaxCommands,
			IsForwarded: env.forwards, OwnSessions: func() (least, most int64) { return 0, 0 },
		},
		Process: process.Settings{MaxMethods: methods, MethodsSetting: methodsSetting, MaxTreeNodes: c.Limits.MaxTreeNodes, MaxCommands: c.Limits.MaxCommands},
		Connect: func(context.Context, string) (*session.Link, error) { return dialer.Connect() },
		Beside:  of.beside, RecordsAsLogs: true,
		Starts: starts(), Reset: reset,
		RepeatAfter: server.UsualRepeatAfter, SilentAfter: max(server.UsualSilentAfter, timeout),
	})
	return of, nil
}

// beside requests the state of the JVM and runs the profiler, until ctx ends.
func (s *arthasServer) beside(ctx context.Context, who session.Identity, of *server.Output) {
	s.current.Store(of.Origin)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { s.jvm.follow(ctx, who, of) })
	if s.profiler == nil {
		return
	}
	all.Go(func() {
		process := fmt.Sprint(who.PID, who.Host, who.Started)
		for s.profiler.Run(s.Run.Serving, ctx, process) != nil && pause(ctx, s.Session.Reconnect.MaxInterval) {
		}
	})
}

// newTransport returns the HTTP client of a server. The receiver closes it at the end.
func (r *arthasReceiver) newTransport(ctx context.Context, config *ServerConfig) (*http.Client, error) {
	settings := config.ClientConfig
	settings.Timeout = 0 // the client has a timeout for each request, beyond the time that the server waits
	transport, err := settings.ToClient(ctx, r.env.run.Collector.GetExtensions(), r.env.Settings.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	r.clients = append(r.clients, transport)
	if config.Username != "" {
		transport.Transport = &basicAuth{transport.Transport, config.Username, string(config.Password)}
	}
	return transport, nil
}

// addressOf returns the host and port of an endpoint.
func addressOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint // Validate has checked it
	}
	return u.Host
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

// pause waits until ctx ends, and reports false, or for a time.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
