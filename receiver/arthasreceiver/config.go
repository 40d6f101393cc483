// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods/task"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/metadata"
)

// Config is the configuration of the receiver.
type Config struct {
	// Servers are the servers to query.
	Servers []ServerConfig `mapstructure:"servers"`

	// Monitors count calls, by class and method.
	Monitors []MonitorConfig `mapstructure:"monitors"`
	// Traces report calls with their callees, and Stacks with their callers.
	Traces []TraceConfig `mapstructure:"traces"`
	Stacks []CallsConfig `mapstructure:"stacks"`
	// Watches report parameters and results of calls, or the value of an expression.
	Watches []WatchConfig `mapstructure:"watches"`
	// Records report recorded calls.
	Records []RecordsConfig `mapstructure:"records"`
	// JVM requests the state of the JVM.
	JVM JVMConfig `mapstructure:"jvm"`
	// Profiles runs the program's profiler.
	Profiles ProfilesConfig `mapstructure:"profiles"`

	// ServiceName is the resource attribute service.name of servers without a name of their own.
	ServiceName string `mapstructure:"service_name"`
	// PollInterval is the pause before the next poll of a command without waiting results.
	PollInterval time.Duration `mapstructure:"poll_interval"`
	// IdlePollInterval is the shortest time between two polls of idle commands of a server, on average. The pause of a command
	// doubles with each poll without results, until all idle commands together have one poll in this time.
	IdlePollInterval time.Duration `mapstructure:"idle_poll_interval"`
	// StateInterval is the interval at which the receiver requests the identity of the process, unless polls were answered
	// meanwhile.
	StateInterval time.Duration `mapstructure:"state_interval"`
	// MaxPolls is the number of open polls of a server. Each blocks a thread that serves all its clients.
	MaxPolls int `mapstructure:"max_polls"`
	// Storage is the extension that stores the open sessions, so that those of a killed collector are ended. If it is nil,
	// the receiver knows them while the collector runs.
	Storage *component.ID `mapstructure:"storage"`
	// Reconnect are the pauses before the receiver tries a server or a command again.
	Reconnect RetryConfig `mapstructure:"reconnect"`
	// Limits limit the memory and the data of servers.
	Limits LimitsConfig `mapstructure:"limits"`
	// Config has the settings that all receivers share.
	receiverkit.Config `mapstructure:",squash"`
	// MetricsBuilderConfig selects the metrics.
	metadata.MetricsBuilderConfig `mapstructure:",squash"`
	// LogsBuilderConfig selects the log records.
	metadata.LogsBuilderConfig `mapstructure:",squash"`
}

// ServerConfig configures one server, with the settings of an HTTP client.
type ServerConfig struct {
	// ClientConfig has the endpoint, such as http://localhost:8563. Its timeout limits the time of a request, beyond the
	// time that the server waits by itself; 0 means 15s.
	confighttp.ClientConfig `mapstructure:",squash"`
	// Username and Password are for Basic authentication.
	Username string              `mapstructure:"username"`
	Password configopaque.String `mapstructure:"password"`
	// ServiceName is the server's service.name; empty means the receiver's.
	ServiceName string `mapstructure:"service_name"`
}

// TargetConfig selects methods of classes.
type TargetConfig struct {
	// TargetConfig has the patterns. <init> is the name of constructors.
	task.TargetConfig `mapstructure:",squash"`
	// Exclude matches names of classes that are left out; empty means none.
	Exclude string `mapstructure:"exclude"`
	// MaxClasses is the maximum number of matching classes; 0 means the server's 50. If more match, the server
	// instruments none.
	MaxClasses int `mapstructure:"max_classes"`
	// LongerThan selects calls that took longer; 0 means all.
	LongerThan time.Duration `mapstructure:"longer_than"`
}

// MonitorConfig counts calls of methods.
type MonitorConfig struct {
	TargetConfig `mapstructure:",squash"`
	// Cycle is the length of a cycle in whole seconds; 0 means 10s.
	Cycle time.Duration `mapstructure:"cycle"`
}

// CallsConfig reports single calls of methods.
type CallsConfig struct {
	TargetConfig `mapstructure:",squash"`
	// Limit is the number of calls after which the command ends, for the life of the process; 0 means 100, -1 no limit.
	Limit int `mapstructure:"limit"`
}

// TraceConfig reports calls with their callees.
type TraceConfig struct {
	CallsConfig `mapstructure:",squash"`
	// JDKMethods includes calls of methods of Java itself.
	JDKMethods bool `mapstructure:"jdk_methods"`
}

// RecordsConfig reports recorded calls.
type RecordsConfig struct {
	CallsConfig `mapstructure:",squash"`
	// Keep leaves the objects of the calls in the memory of the program. Otherwise the receiver deletes each call there
	// after its receipt.
	Keep bool `mapstructure:"keep"`
}

// WatchConfig reports values at calls of methods.
type WatchConfig struct {
	CallsConfig `mapstructure:",squash"`
	// Points are the points of a call: before, success, exception, finish. Empty means finish.
	Points []string `mapstructure:"points"`
	// Expression is an OGNL expression, which the server runs inside the program at each call. Empty means the
	// parameters, the object and the result.
	Expression string `mapstructure:"expression"`
	// TraceID and SpanID are OGNL expressions too: the IDs of W3C of the trace and the span of the call, in hexadecimal
	// digits. Empty means none.
	TraceID string `mapstructure:"trace_id"`
	SpanID  string `mapstructure:"span_id"`
	// Depth is the depth to which objects are written; 0 means 1.
	Depth int `mapstructure:"depth"`
}

// JVMConfig requests the state of the JVM.
type JVMConfig struct {
	// Interval is the time between two requests; 0 means no requests.
	Interval time.Duration `mapstructure:"interval"`
}

// ProfilesConfig runs the program's profiler in periods.
type ProfilesConfig struct {
	// Period is the length of a profile in whole seconds; 0 means no profiles.
	Period time.Duration `mapstructure:"period"`
	// Event is the sampled event: cpu, wall, alloc or lock.
	Event string `mapstructure:"event"`
	// Interval is the time between samples of cpu and wall; 0 means the profiler's.
	Interval time.Duration `mapstructure:"interval"`
}

func (c *ProfilesConfig) event() arthas.ProfilerEvent { return arthas.ProfilerEvent(c.Event) }

// LimitsConfig limits the memory and the data of servers. MaxMetricPoints and the queues are for all servers together; the
// other limits are for each server.
type LimitsConfig struct {
	// MaxMetricPoints limits the metric points of methods of all servers together. Each server has an equal part.
	MaxMetricPoints int `mapstructure:"max_metric_points"`
	// MaxServerMemory limits the memory of a server in bytes: its answers, and the sums of its methods. Beyond it the
	// receiver disconnects the server for a while.
	MaxServerMemory int `mapstructure:"max_server_memory"`
	// MaxAnswerBytes limits an answer. A longer one is lost.
	MaxAnswerBytes int `mapstructure:"max_answer_bytes"`
	// MaxCommands limits the commands. Each has a session, with a thread in the program.
	MaxCommands int `mapstructure:"max_commands"`
	// MaxMethods limits the methods with sums of their own.
	MaxMethods int `mapstructure:"max_methods"`
	// MaxTreeNodes limits the calls of a forwarded call tree.
	MaxTreeNodes int `mapstructure:"max_tree_nodes"`
	// MaxProfileBytes limits the text of a profile. The stacks beyond it are lost.
	MaxProfileBytes int `mapstructure:"max_profile_bytes"`
	// MaxProfileStacks limits the different stacks of a profile. The others are summed without their frames.
	MaxProfileStacks int `mapstructure:"max_profile_stacks"`
	// The limits of the queues.
	receiverkit.LogLimits    `mapstructure:",squash"`
	receiverkit.SpanLimits   `mapstructure:",squash"`
	receiverkit.SampleLimits `mapstructure:",squash"`
}

// RetryConfig configures the back-off between attempts.
type RetryConfig = receiverkit.RetryConfig

const (
	// maxRecords limits recorded calls: they stay in the memory of the program.
	maxRecords = 1000
	maxDepth   = 4

	mib = 1 << 20
)

func createDefaultConfig() *Config {
	return &Config{
		PollInterval:     500 * time.Millisecond,
		IdlePollInterval: 5 * time.Second,
		StateInterval:    30 * time.Second,
		MaxPolls:         arthas.DefaultPulls,
		Profiles:         ProfilesConfig{Event: string(arthas.ProfileCPU)},
		Reconnect:        receiverkit.DefaultReconnect(),
		Limits: LimitsConfig{
			MaxMetricPoints:  50_000,
			MaxServerMemory:  256 * mib,
			MaxAnswerBytes:   arthas.DefaultMaxAnswer,
			MaxCommands:      16,
			MaxMethods:       2000,
			MaxTreeNodes:     10_000,
			MaxProfileBytes:  8 * mib,
			MaxProfileStacks: 10_000,
			LogLimits:        receiverkit.LogLimits{MaxQueuedLogs: 100_000, MaxQueuedLogBytes: 64 * mib},
			SpanLimits:       receiverkit.SpanLimits{MaxQueuedSpans: 100_000, MaxQueuedSpanBytes: 64 * mib},
			SampleLimits:     receiverkit.SampleLimits{MaxQueuedSamples: 1_000_000, MaxQueuedSampleBytes: 64 * mib},
		},
		Config:               receiverkit.DefaultConfig(),
		MetricsBuilderConfig: metadata.NewDefaultMetricsBuilderConfig(),
		LogsBuilderConfig:    metadata.DefaultLogsBuilderConfig(),
	}
}
