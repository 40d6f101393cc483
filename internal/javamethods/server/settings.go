// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package server follows one server of a receiver, over all losses of connections and all processes.
//
//   - server.go: a Server connects, and runs sessions for one process after the other. failures.go decides which failures
//     are logged.
//   - memory.go: the memory of a server in the memory budget, and how it is freed.
//   - output.go: the results of a process, to the queues of the pipelines.
//   - steering.go: orders of operators.
//   - settings.go: what differs between tracers.
package server

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/javamethods/task"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
)

// Settings are the settings of a Server.
type Settings struct {
	// Tracer is the namespace of attributes, and the name of the tracer for operators. Endpoint is the server's address,
	// host:port.
	Tracer, Endpoint string
	// ServiceName is the configured service.name, or empty. Resource returns the configured attributes.
	ServiceName string
	Resource    func() pcommon.Resource

	Run *receiverkit.Run
	// Spans is nil if no pipeline accepts spans.
	Spans *signals.Spans
	Logs  *signals.Logs
	// Ended receives the last state of a process that ends.
	Ended    func(State)
	Counters Counters
	Health   *serverhealth.Part
	Logger   *zap.Logger
	// Memory counts the memory of the server.
	Memory *servermemory.Memory

	// Tasks are the configured tasks.
	Tasks []*task.Task
	// Session has the settings of sessions, and Process those of processes. New sets their Counters, Logger, Memory and
	// Now.
	Session session.Settings
	Process process.Settings

	// Connect returns a new link. spoke is the protocol of the last link; empty means unknown.
	Connect func(ctx context.Context, spoke string) (*session.Link, error)
	// RecordsAsLogs forwards recorded calls as log records, and not as spans.
	RecordsAsLogs bool
	// Beside runs beside a session of a process, until ctx ends. Nil means nothing.
	Beside func(ctx context.Context, who session.Identity, of *Output)
	// IsLocal reports whether a process of the server runs on this machine. Nil means unknown.
	IsLocal func(pid int64) bool
	// IsHopeless reports whether another try would have the same error. Remedy then names the setting. Nil means never.
	IsHopeless func(error) bool
	Remedy     string
	// IsSilence reports whether an error is a timeout without any reply. Nil means never.
	IsSilence func(error) bool

	// Starts are the commands with which operators start tasks, and Reset the one that restores classes.
	Starts []Start
	Reset  Reset

	// RepeatAfter is the interval of log lines for lasting failures. SilentAfter is the time after which a server without
	// an identity is reported as silent.
	RepeatAfter, SilentAfter time.Duration
}

// The usual RepeatAfter and SilentAfter.
const (
	UsualRepeatAfter = 10 * time.Minute
	UsualSilentAfter = 8 * time.Second
)

// Counters counts events of servers. Several goroutines use it.
type Counters interface {
	session.Counters
	// ServersConnected changes the number of connected servers.
	ServersConnected(change int64)
	// ConnectionFailed counts a failed or lost connection to a server.
	ConnectionFailed()
	// Disconnected counts a server that is disconnected because of its memory, by the reason.
	Disconnected(reason string)
	// Restarted counts a server whose identity shows another process.
	Restarted()
}

// Reasons for which a server is disconnected.
const (
	ReasonBudget = "memory_budget"
	ReasonServer = "max_server_memory"
)
