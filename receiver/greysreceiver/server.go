// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/greys/console"
	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/server"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/javamethods/task"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/link"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/metadata"
)

// environment is the shared state of all servers.
type environment struct {
	*receiverkit.Kit
	config   *Config
	counters *counters.Counters
	// zone is the time zone of servers: they send times without a zone.
	zone *time.Location
	hooks

	// The fields below exist from the start on. spans is nil if no pipeline accepts spans.
	run     *receiverkit.Run
	spans   *signals.Spans
	logs    *signals.Logs
	metrics *metricsLoop
}

// hooks are the parts that tests replace.
type hooks struct {
	// connect returns a new link to a server. spoke is the protocol of the last link; empty means unknown.
	connect func(ctx context.Context, d *link.Dialer, spoke Protocol) (*session.Link, error)
	// repeatAfter and silentAfter are those of [server.Settings].
	repeatAfter, silentAfter time.Duration
}

// forwards reports whether a pipeline accepts the results of a kind of task. Without one the receiver does not
// instrument the program.
func (e *environment) forwards(kind task.Kind) bool {
	switch next := &e.run.Next; kind {
	case task.Monitor:
		return next.Metrics != nil
	case task.Trace, task.Records, task.RecordList:
		return next.Traces != nil
	default:
		return next.Logs != nil
	}
}

func connect(ctx context.Context, d *link.Dialer, spoke Protocol) (*session.Link, error) {
	return d.Connect(ctx, spoke)
}

// newServer returns a configured server. secure is the TLS configuration of its proxy, or nil.
func (e *environment) newServer(config *ServerConfig, secure *tls.Config) *server.Server {
	c := e.config
	tasks, err := c.tasks()
	if err != nil {
		panic(err) // Validate has checked it
	}
	memory := servermemory.New(e.run.Memory, c.Limits.MaxServerMemory)
	dialer := e.newDialer(config, secure, memory)
	methods, setting := signals.MethodsOfServer(c.Limits.MaxMetricPoints, len(c.Servers), c.Limits.MaxMethods)
	return server.New(server.Settings{
		Tracer: metadata.Type.String(), Endpoint: config.Endpoint, ServiceName: cmp.Or(config.ServiceName, c.ServiceName), Resource: c.Resource,
		Run: e.run, Spans: e.spans, Logs: e.logs, Ended: func(last processState) { e.metrics.Ended(last) },
		Counters: e.counters, Health: e.Health.Server(config.Endpoint), Logger: e.Logger.With(zap.String("server", config.Endpoint)), Memory: memory,
		Tasks: tasks,
		Session: session.Settings{
			PerMethod: c.PerMethod, RecursionCheck: c.RecursionCheck, RecordDetails: c.RecordDetails,
			StateInterval: c.StateInterval, RecordsInterval: c.GP.RecordsInterval,
			Timeout: c.Timeout, AnswerTimeout: c.AnswerTimeout, Reconnect: c.Reconnect,
			MaxCommands: c.Limits.MaxCommands, MaxPatternCommands: c.Limits.MaxPatternCommands, MaxDetails: c.Limits.MaxDetails,
			Timezone: c.Timezone, IsForwarded: e.forwards, OwnSessions: dialer.Sessions,
		},
		Process: process.Settings{
			MaxMethods: methods, MethodsSetting: setting, MaxInventory: c.Limits.MaxInventory, MaxTreeNodes: c.Limits.MaxTreeNodes,
			RecursionCheck: c.RecursionCheck, MaxCommands: c.Limits.MaxCommands * c.Limits.MaxPatternCommands,
		},
		Connect: func(ctx context.Context, spoke string) (*session.Link, error) {
			return e.connect(ctx, dialer, Protocol(spoke))
		},
		IsLocal: dialer.IsLocal, IsHopeless: isHopeless, Remedy: "set gp.version, and restart the collector", IsSilence: isSilence,
		Starts: starts(), Reset: reset,
		RepeatAfter: e.repeatAfter, SilentAfter: e.silentAfter,
	})
}

func (e *environment) newDialer(config *ServerConfig, secure *tls.Config, memory *servermemory.Memory) *link.Dialer {
	c := e.config
	return &link.Dialer{Settings: link.Settings{
		Endpoint: config.Endpoint, TLS: secure, Protocol: c.Protocol, Timeout: c.Timeout, Context: e.run.Leaving, Memory: memory,
		GP: gp.Config{
			Version: uint16(c.GP.Version), Codes: c.GP.codes(), MaxFrame: c.GP.MaxFrameBytes,
			Heartbeat: c.GP.Heartbeat, MaxUnanswered: c.GP.MaxUnanswered, ProbeTimeout: c.GP.ProbeTimeout, Provoke: c.Protocol == ProtocolGP,
			WriteTimeout: c.Timeout, Location: e.zone,
		},
		Console: console.Config{
			Zone: e.zone, MaxReplyBytes: c.Limits.MaxReplyBytes,
			ConnectTimeout: c.Timeout, WriteTimeout: c.Timeout, AnswerTimeout: c.AnswerTimeout,
			AbortTimeout: min(c.Timeout, c.ShutdownTimeout/4),
		},
	}}
}

// isHopeless reports whether a server does not know the configured version of the protocol.
func isHopeless(err error) bool {
	version := (*gp.VersionError)(nil)
	return errors.As(err, &version)
}

// isSilence reports whether a failure is a timeout without any reply.
func isSilence(why error) bool {
	return errors.Is(why, link.ErrSilent) || errors.Is(why, session.ErrSlow) || errors.Is(why, console.ErrTimeout)
}
