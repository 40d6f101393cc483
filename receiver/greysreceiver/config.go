// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"time"

	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"

	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/metadata"
)

// Config is the configuration of the receiver. Nothing in it is an expression, which servers
// would run inside the program: there are only patterns of names.
type Config struct {
	// Servers are those that are asked.
	Servers []ServerConfig `mapstructure:"servers"`
	// Protocol is what they speak.
	Protocol Protocol `mapstructure:"protocol"`

	// Monitors have calls counted, by class and method.
	Monitors []MonitorConfig `mapstructure:"monitors"`
	// Traces, Stacks and Records have calls told, one by one.
	Traces  []CallsConfig `mapstructure:"traces"`
	Stacks  []CallsConfig `mapstructure:"stacks"`
	Records []CallsConfig `mapstructure:"tt"`
	// Classes and Methods are listed every InventoryInterval.
	Classes           []ClassesConfig `mapstructure:"classes"`
	Methods           []MethodsConfig `mapstructure:"methods"`
	InventoryInterval time.Duration   `mapstructure:"inventory_interval"`
	// PerMethod has a pattern of the console asked by a command for each method, without
	// constructors, lambdas and generated classes, so that times are true.
	PerMethod bool `mapstructure:"per_method"`
	// RecursionCheck is of how many calls of a method stacks are asked for, with PerMethod, before
	// its times are said: those of methods that call themselves are false. 0: none.
	RecursionCheck int `mapstructure:"recursion_check"`
	// StateInterval is how often a server is asked who it is.
	StateInterval time.Duration `mapstructure:"state_interval"`
	// RecordDetails has the server asked for the detail of recorded calls.
	RecordDetails bool `mapstructure:"tt_details"`

	// GP says what the document of that protocol leaves open.
	GP GPConfig `mapstructure:"gp"`
	// Timezone is that of servers, which say times without one: a name, UTC, or Local, which is
	// that of this machine.
	Timezone string `mapstructure:"timezone"`

	// ServiceName is the resource attribute service.name of servers that have no other.
	ServiceName string `mapstructure:"service_name"`

	// Timeout is how long connecting, and sending a command, may take.
	Timeout time.Duration `mapstructure:"timeout"`
	// AnswerTimeout is how long an answer that has to come may take: the server changes
	// classes before it gives one.
	AnswerTimeout time.Duration `mapstructure:"answer_timeout"`
	// Reconnect are the pauses before a server, or a command, is tried again.
	Reconnect RetryConfig `mapstructure:"reconnect"`
	// Limits bound what servers can make the receiver hold.
	Limits LimitsConfig `mapstructure:"limits"`
	// Config has the settings of every receiver.
	receiverkit.Config `mapstructure:",squash"`
	// MetricsBuilderConfig says which metrics.
	metadata.MetricsBuilderConfig `mapstructure:",squash"`
	// LogsBuilderConfig says which log records.
	metadata.LogsBuilderConfig `mapstructure:",squash"`
}

// ServerConfig is one server.
type ServerConfig struct {
	// Endpoint is its address, host:port.
	Endpoint string `mapstructure:"endpoint"`
	// ServiceName is its service.name; empty: that of the receiver.
	ServiceName string `mapstructure:"service_name"`
	// TLS is spoken where a proxy before the server does: servers themselves don't.
	TLS configoptional.Optional[configtls.ClientConfig] `mapstructure:"tls"`
}

// Protocol is what a server speaks.
type Protocol = greys.Protocol

const (
	// ProtocolAuto asks for the version by GP first. The reply decides.
	ProtocolAuto = greys.ProtocolAuto
	// ProtocolGP is the binary protocol of the document.
	ProtocolGP = greys.ProtocolGP
	// ProtocolConsole is the text console of the released servers.
	ProtocolConsole = greys.ProtocolConsole
)

// TargetConfig names methods of classes.
type TargetConfig struct {
	// Class matches the qualified names of classes, Method the simple ones of methods.
	Class  string `mapstructure:"class"`
	Method string `mapstructure:"method"`
	// Regexp says that both are Java's regular expressions.
	Regexp bool `mapstructure:"regexp"`
}

// MonitorConfig has calls of methods counted.
type MonitorConfig struct {
	TargetConfig `mapstructure:",squash"`
	// Cycle is how long is counted, in whole seconds; 0: 10s.
	Cycle time.Duration `mapstructure:"cycle"`
}

// CallsConfig has calls of methods told, one by one.
type CallsConfig struct {
	TargetConfig `mapstructure:",squash"`
	// Limit is after how many it ends, for the life of the process; 0: 100, -1: it doesn't.
	Limit int `mapstructure:"limit"`
}

// ClassesConfig has classes listed.
type ClassesConfig struct {
	Class  string `mapstructure:"class"`
	Regexp bool   `mapstructure:"regexp"`
	// Fields has their fields listed, for which the server initialises classes and runs code of
	// the program.
	Fields bool `mapstructure:"fields"`
	// Limit is how many, each time; 0: 1000, -1: all.
	Limit int `mapstructure:"limit"`
}

// MethodsConfig has methods listed.
type MethodsConfig struct {
	TargetConfig `mapstructure:",squash"`
	// Limit is how many, each time; 0: 1000, -1: all.
	Limit int `mapstructure:"limit"`
}

// GPConfig says what the document of GP leaves open.
type GPConfig struct {
	// Version is what requests say.
	Version int `mapstructure:"version"`
	// Codes are those of requests that have none in the document; 0: they are not asked for.
	Codes GPCodesConfig `mapstructure:"codes"`
	// MaxFrameBytes bounds the data of an answer. A longer one is read past, and ends its
	// command, which is asked again.
	MaxFrameBytes int `mapstructure:"max_frame_bytes"`
	// Heartbeat is how often the server is told that we are there, and MaxUnanswered after
	// how many without an answer it is lost.
	Heartbeat     time.Duration `mapstructure:"heartbeat"`
	MaxUnanswered int           `mapstructure:"max_unanswered"`
	// ProbeTimeout is how long protocol auto waits for an answer.
	ProbeTimeout time.Duration `mapstructure:"probe_timeout"`
	// RecordsInterval is how often recorded calls are listed.
	RecordsInterval time.Duration `mapstructure:"tt_interval"`
}

// GPCodesConfig are codes of requests.
type GPCodesConfig struct {
	Session  int `mapstructure:"session"`
	Stack    int `mapstructure:"stack"`
	TTList   int `mapstructure:"tt_list"`
	TTDetail int `mapstructure:"tt_detail"`
}

// LimitsConfig bounds what servers can make the receiver hold. All but MaxMetricPoints and the
// queues are for each server.
type LimitsConfig struct {
	// MaxMetricPoints is how many metric points of methods all servers together may have. Each
	// server has an equal part.
	MaxMetricPoints int `mapstructure:"max_metric_points"`
	// MaxServerMemory is how many bytes a server may take in memory, with all that the other
	// limits are of but the queues. Beyond it the server is disconnected for a while.
	MaxServerMemory int `mapstructure:"max_server_memory"`
	// MaxReplyBytes bounds an answer of the console.
	MaxReplyBytes int `mapstructure:"max_reply_bytes"`
	// MaxCommands is how many monitors, traces, stacks and records may be set, each of which is
	// a command that runs. The console has a connection for each, and at most six more.
	MaxCommands int `mapstructure:"max_commands"`
	// MaxPatternCommands is how many commands a pattern may have by PerMethod, each with a
	// connection and two threads of the program.
	MaxPatternCommands int `mapstructure:"max_pattern_commands"`
	// MaxMethods is how many methods have counts of their own.
	MaxMethods int `mapstructure:"max_methods"`
	// MaxInventory is how many classes and methods are remembered, so that only what changed
	// is said.
	MaxInventory int `mapstructure:"max_inventory"`
	// MaxTreeNodes is how many calls of a call tree are handed on.
	MaxTreeNodes int `mapstructure:"max_tree_nodes"`
	// MaxDetails is how many recorded calls can wait for their detail.
	MaxDetails int `mapstructure:"max_details"`
	// The limits of the queues.
	receiverkit.LogLimits  `mapstructure:",squash"`
	receiverkit.SpanLimits `mapstructure:",squash"`
}

// pointsOfMethod is how many metric points a method has.
const pointsOfMethod = 7

// methodsOfServer is how many methods of one server have counts of their own, and the setting
// that allows no more.
func (c *Config) methodsOfServer() (methods int, setting string) {
	part := max(c.Limits.MaxMetricPoints/max(len(c.Servers), 1)/pointsOfMethod, 1)
	if part < c.Limits.MaxMethods {
		return part, "limits.max_metric_points"
	}
	return c.Limits.MaxMethods, "limits.max_methods"
}

// RetryConfig is the back-off between tries.
type RetryConfig = receiverkit.RetryConfig

const (
	// localTimezone is that of a Java process on this machine, if nobody has told it another: it
	// goes by what the collector goes by. In containers that is UTC, on both sides.
	localTimezone = "Local"

	// defaultEndpoint is where servers listen if they aren't told otherwise.
	defaultEndpoint = "localhost:3658"

	defaultCycle = 10 * time.Second
	// maxCycle is how long a cycle may be.
	maxCycle         = 24 * time.Hour
	defaultCalls     = 100
	defaultInventory = 1000
	// unlimited is a limit that is none.
	unlimited = -1

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
