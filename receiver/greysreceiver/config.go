// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"time"

	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"

	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/internal/javamethods/task"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/metadata"
)

// Config is the configuration of the receiver. It contains only patterns of names. It contains no expressions, because
// servers would run them inside the program.
type Config struct {
	// Servers are the servers to connect to.
	Servers []ServerConfig `mapstructure:"servers"`
	// Protocol is the protocol of all servers.
	Protocol Protocol `mapstructure:"protocol"`

	// Monitors count calls, by class and method.
	Monitors []MonitorConfig `mapstructure:"monitors"`
	// Traces, Stacks and Records report single calls.
	Traces  []CallsConfig `mapstructure:"traces"`
	Stacks  []CallsConfig `mapstructure:"stacks"`
	Records []CallsConfig `mapstructure:"tt"`
	// Classes and Methods are listed every InventoryInterval.
	Classes           []ClassesConfig `mapstructure:"classes"`
	Methods           []MethodsConfig `mapstructure:"methods"`
	InventoryInterval time.Duration   `mapstructure:"inventory_interval"`
	// PerMethod sends one console command for each method of a pattern, so that times are true. It omits constructors,
	// lambdas and generated classes.
	PerMethod bool `mapstructure:"per_method"`
	// RecursionCheck is the number of calls of a method, with PerMethod, whose stacks the receiver examines before it
	// reports the method's times: times of methods that call themselves are false. 0 means no check.
	RecursionCheck int `mapstructure:"recursion_check"`
	// StateInterval is the interval of identity checks.
	StateInterval time.Duration `mapstructure:"state_interval"`
	// RecordDetails requests the details of recorded calls.
	RecordDetails bool `mapstructure:"tt_details"`

	// GP has the settings that the document of that protocol leaves open.
	GP GPConfig `mapstructure:"gp"`
	// Timezone is the time zone of servers, which send times without a zone: a name, UTC, or Local for the zone of this
	// machine.
	Timezone string `mapstructure:"timezone"`

	// ServiceName is the resource attribute service.name of servers without a name of their own.
	ServiceName string `mapstructure:"service_name"`

	// Timeout limits the time to connect and the time to send a command.
	Timeout time.Duration `mapstructure:"timeout"`
	// AnswerTimeout limits the time for an expected answer: the server instruments classes before it answers.
	AnswerTimeout time.Duration `mapstructure:"answer_timeout"`
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

// ServerConfig configures one server.
type ServerConfig struct {
	// Endpoint is the server's address, host:port.
	Endpoint string `mapstructure:"endpoint"`
	// ServiceName is the server's service.name; empty means the receiver's.
	ServiceName string `mapstructure:"service_name"`
	// TLS configures the connection to a proxy before the server: servers do not support TLS.
	TLS configoptional.Optional[configtls.ClientConfig] `mapstructure:"tls"`
}

// Protocol is the protocol of a server.
type Protocol = greys.Protocol

const (
	// ProtocolAuto sends the version command by GP first. The reply decides which protocol follows.
	ProtocolAuto = greys.ProtocolAuto
	// ProtocolGP is the binary protocol of the document.
	ProtocolGP = greys.ProtocolGP
	// ProtocolConsole is the text console of the released servers.
	ProtocolConsole = greys.ProtocolConsole
)

// TargetConfig selects methods of classes.
type TargetConfig = task.TargetConfig

// MonitorConfig counts calls of methods.
type MonitorConfig = task.MonitorConfig

// CallsConfig reports single calls of methods.
type CallsConfig = task.CallsConfig

// ClassesConfig lists classes.
type ClassesConfig struct {
	Class  string `mapstructure:"class"`
	Regexp bool   `mapstructure:"regexp"`
	// Fields lists the fields of the classes too. The server then initialises classes and runs code of the program.
	Fields bool `mapstructure:"fields"`
	// Limit is the maximum length of the list; 0 means 1000, -1 no limit.
	Limit int `mapstructure:"limit"`
}

// MethodsConfig lists methods.
type MethodsConfig struct {
	TargetConfig `mapstructure:",squash"`
	// Limit is the maximum length of the list; 0 means 1000, -1 no limit.
	Limit int `mapstructure:"limit"`
}

// GPConfig has the settings that the document of GP leaves open.
type GPConfig struct {
	// Version is the protocol version in requests.
	Version int `mapstructure:"version"`
	// Codes are the codes of requests without a documented code. The receiver does not send requests with code 0.
	Codes GPCodesConfig `mapstructure:"codes"`
	// MaxFrameBytes limits the data of an answer. The receiver skips a longer one, and sends its command again.
	MaxFrameBytes int `mapstructure:"max_frame_bytes"`
	// Heartbeat is the interval of heartbeats to the server. MaxUnanswered is the number of unanswered heartbeats after
	// which the connection ends.
	Heartbeat     time.Duration `mapstructure:"heartbeat"`
	MaxUnanswered int           `mapstructure:"max_unanswered"`
	// ProbeTimeout limits the time that protocol auto waits for an answer.
	ProbeTimeout time.Duration `mapstructure:"probe_timeout"`
	// RecordsInterval is the interval in which recorded calls are listed.
	RecordsInterval time.Duration `mapstructure:"tt_interval"`
}

// GPCodesConfig has the codes of requests.
type GPCodesConfig struct {
	Session  int `mapstructure:"session"`
	Stack    int `mapstructure:"stack"`
	TTList   int `mapstructure:"tt_list"`
	TTDetail int `mapstructure:"tt_detail"`
}

// LimitsConfig limits the memory and the data of servers. MaxMetricPoints and the queues are for all servers together;
// the other limits are for each server.
type LimitsConfig struct {
	// MaxMetricPoints limits the metric points of methods of all servers together. Each server has an equal part.
	MaxMetricPoints int `mapstructure:"max_metric_points"`
	// MaxServerMemory limits the memory of a server in bytes. It includes everything that the other limits count,
	// except the queues. Beyond it the receiver disconnects the server for a while.
	MaxServerMemory int `mapstructure:"max_server_memory"`
	// MaxReplyBytes limits an answer of the console.
	MaxReplyBytes int `mapstructure:"max_reply_bytes"`
	// MaxCommands limits the number of monitors, traces, stacks and records. Each of them is a running command. The
	// console has one connection for each command, and at most six more.
	MaxCommands int `mapstructure:"max_commands"`
	// MaxPatternCommands limits the commands of a pattern with PerMethod. Each uses a connection and two threads of the
	// program.
	MaxPatternCommands int `mapstructure:"max_pattern_commands"`
	// MaxMethods limits the methods with sums of their own.
	MaxMethods int `mapstructure:"max_methods"`
	// MaxInventory limits the remembered classes and methods. The receiver remembers them in order to report only
	// changes.
	MaxInventory int `mapstructure:"max_inventory"`
	// MaxTreeNodes limits the calls of a forwarded call tree.
	MaxTreeNodes int `mapstructure:"max_tree_nodes"`
	// MaxDetails limits the recorded calls that wait for their details.
	MaxDetails int `mapstructure:"max_details"`
	// The limits of the queues.
	receiverkit.LogLimits  `mapstructure:",squash"`
	receiverkit.SpanLimits `mapstructure:",squash"`
}

// RetryConfig configures the back-off between attempts.
type RetryConfig = receiverkit.RetryConfig

const (
	// localTimezone is the zone of this machine. A Java process here uses it by default. In containers both sides use
	// UTC.
	localTimezone = "Local"

	// defaultEndpoint is the default address of servers.
	defaultEndpoint = "localhost:3658"

	defaultInventory = 1000

	mib = 1 << 20
)

func createDefaultConfig() *Config {
	return &Config{
		Protocol:          ProtocolAuto,
		InventoryInterval: 10 * time.Minute,
		StateInterval:     30 * time.Second,
		RecordDetails:     true,
		PerMethod:         true,
		RecursionCheck:    20,
		GP: GPConfig{
			Version: gp.DefaultVersion, MaxFrameBytes: gp.DefaultMaxFrame,
			Heartbeat: gp.DefaultHeartbeat, MaxUnanswered: gp.DefaultMaxUnanswered,
			ProbeTimeout: gp.DefaultProbeTimeout, RecordsInterval: 10 * time.Second,
		},
		Timezone:      localTimezone,
		Timeout:       5 * time.Second,
		AnswerTimeout: 30 * time.Second,
		Reconnect:     receiverkit.DefaultReconnect(),
		Limits: LimitsConfig{
			MaxMetricPoints:    50_000,
			MaxServerMemory:    256 * mib,
			MaxReplyBytes:      16 * mib,
			MaxCommands:        32,
			MaxPatternCommands: 100,
			MaxMethods:         2000,
			MaxInventory:       100_000,
			MaxTreeNodes:       10_000,
			MaxDetails:         100,
			LogLimits:          receiverkit.LogLimits{MaxQueuedLogs: 100_000, MaxQueuedLogBytes: 64 * mib},
			SpanLimits:         receiverkit.SpanLimits{MaxQueuedSpans: 100_000, MaxQueuedSpanBytes: 64 * mib},
		},
		Config:               receiverkit.DefaultConfig(),
		MetricsBuilderConfig: metadata.NewDefaultMetricsBuilderConfig(),
		LogsBuilderConfig:    metadata.DefaultLogsBuilderConfig(),
	}
}
