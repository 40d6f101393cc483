// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"time"

	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/metadata"
)

// Config is the configuration of the receiver.
type Config struct {
	// TCPAddrConfig has the endpoint to listen on, host:port.
	confignet.TCPAddrConfig `mapstructure:",squash"`
	// TLS, when set, is what agents have to speak.
	TLS configoptional.Optional[configtls.ServerConfig] `mapstructure:"tls"`

	// ServiceName is the resource attribute service.name of everything that the
	// receiver hands on.
	ServiceName string `mapstructure:"service_name"`
	// Config has the settings of every receiver. ShutdownTimeout is the time of deliveries;
	// disconnecting agents can take farewellTime more.
	receiverkit.Config `mapstructure:",squash"`

	// Agent is what agents are told.
	Agent AgentConfig `mapstructure:"agent"`
	// Start is whether agents trace from their start on.
	Start StartPolicy `mapstructure:"start"`
	// MissedHeartbeats is after how many heartbeat intervals of silence an agent
	// counts as lost.
	MissedHeartbeats int `mapstructure:"missed_heartbeats"`
	// OnOverload says what happens while the pipeline refuses.
	OnOverload OverloadPolicy `mapstructure:"on_overload"`
	// MaxBlock is how long the traced program may wait for a pipeline that accepts nothing,
	// before the agent is told to suspend. 0: as long as it takes.
	MaxBlock time.Duration `mapstructure:"max_block"`

	// BatchesConfig has the settings of batches of call events.
	receiverkit.BatchesConfig `mapstructure:",squash"`
	// NameWait is how long call events wait for names that come late or on
	// another connection. Always less than what the processor waits for events
	// (its reorder.max_wait).
	NameWait time.Duration `mapstructure:"name_wait"`
	// Limits bound what agents can make the receiver hold.
	Limits LimitsConfig `mapstructure:"limits"`
	// EndTimeout is how long the last data of a run that is over is handed on. Where the
	// run had to leave because it holds too much memory, ShutdownTimeout bounds it too.
	EndTimeout time.Duration `mapstructure:"end_timeout"`
	// WarnEventsPerSecond is the rate of one run that is worth a warning in the
	// log; 0: none.
	WarnEventsPerSecond int `mapstructure:"warn_events_per_second"`

	// MetricsBuilderConfig says which metrics.
	metadata.MetricsBuilderConfig `mapstructure:",squash"`
	// LogsBuilderConfig says which log records.
	metadata.LogsBuilderConfig `mapstructure:",squash"`
}

// AgentConfig is what agents are told when they say hello.
type AgentConfig struct {
	// Inclusions and Exclusions are Java regular expressions that are matched at
	// the start of a class name with slashes. A class is traced unless an
	// exclusion matches; an inclusion that matches wins over every exclusion.
	Inclusions []string `mapstructure:"inclusions"`
	Exclusions []string `mapstructure:"exclusions"`
	// HeartbeatInterval is how often the agent says that it is alive.
	HeartbeatInterval time.Duration `mapstructure:"heartbeat_interval"`
	// BufferMemory is how many bytes of send buffers the agent has. The more, the
	// further out of order events come, and the larger the processor's reorder
	// has to be. Each data connection needs 1280.
	BufferMemory int `mapstructure:"buffer_memory"`
	// QueueRetryCount is how often the agent tries to get a buffer before it
	// gives up tracing.
	QueueRetryCount int `mapstructure:"queue_retry_count"`
	// DataConnections is how many connections the agent spreads its events over.
	DataConnections int `mapstructure:"data_connections"`
}

// StartPolicy is what agents do when they are started.
type StartPolicy string

const (
	// StartTracing: they trace.
	StartTracing StartPolicy = "tracing"
	// StartSuspended: they trace when somebody says so, with the extension agent_control.
	StartSuspended StartPolicy = "suspended"
)

// OverloadPolicy is what happens while the pipeline refuses.
type OverloadPolicy string

const (
	// OverloadBlock: data is not read, the agent's buffers fill, and the traced
	// program waits, and cannot exit, until the pipeline accepts. Nothing is lost. After
	// Config.MaxBlock it is as OverloadSuspend.
	OverloadBlock OverloadPolicy = "block"
	// OverloadSuspend: the agent is told to suspend tracing. The traced program
	// keeps its speed, and a break is in the data.
	OverloadSuspend OverloadPolicy = "suspend"
)

// LimitsConfig bounds what agents can make the receiver hold.
type LimitsConfig struct {
	// MaxConnections is how many connections can be open, those of agents that were
	// left and have not closed them included.
	MaxConnections int `mapstructure:"max_connections"`
	// MaxConnectionsPerAddress is how many of them one address can have; an IPv6 /64
	// network counts as one address. 0: as many as there are.
	MaxConnectionsPerAddress int `mapstructure:"max_connections_per_address"`
	// MaxRuns is how many agents can be traced at once, at most 255.
	MaxRuns int `mapstructure:"max_runs"`
	// MaxMessageSize bounds every string in a message, in bytes, at most 65535.
	MaxMessageSize int `mapstructure:"max_message_size"`
	// MaxRunMemory is how many bytes of names, waiting events and held batches a
	// run can have, beside the fixed buffers of its connections. What all runs hold
	// together, with those buffers, is bounded by the extension memory_budget.
	MaxRunMemory int `mapstructure:"max_run_memory"`
	// MaxConnectionLead is how many sequence numbers below the events of a data
	// connection may be missing before the connection waits for the others, 1 to
	// 1,000,000,000. It has to be below reorder.max_events of stack_pairing.
	MaxConnectionLead int `mapstructure:"max_connection_lead"`
	// LogLimits bound the log records that wait for the pipeline.
	receiverkit.LogLimits `mapstructure:",squash"`
	// HandshakeTimeout is how long a new connection has to say what it is.
	HandshakeTimeout time.Duration `mapstructure:"handshake_timeout"`
	// MessageTimeout is how long a message can take from its first to its last byte.
	MessageTimeout time.Duration `mapstructure:"message_timeout"`
}

const (
	defaultEndpoint    = "localhost:8765"
	defaultServiceName = "unknown_service:java"

	kib, mib = 1 << 10, 1 << 20

	// maxDataConnections bounds the threads and sockets of an agent.
	maxDataConnections = 64
	// minBufferMemory is ten of the agent's smallest buffers, without which it gives
	// up: what each of its data connections needs at least.
	minBufferMemory = 10 * 128
	// maxConnectionLead is far below half of the protocol's numbers, beyond which
	// ahead and behind are the same.
	maxConnectionLead = 1_000_000_000
	// minRunMemory lets a program of some thousand methods be traced.
	minRunMemory = mib
	// maxEndTimeout bounds how long a run that is over has one of the maxRunID IDs.
	maxEndTimeout = 24 * time.Hour
)

// defaultExclusions leave out the classes of the JDK, of the agent, and those
// that the JVM makes while the program runs.
var defaultExclusions = []string{
	"^java/", "^javax/", "^jdk/", "^sun/", "^com/sun/", "^com/oracle/", "^netscape/javascript/",
	"^org/ietf/jgss/", "^org/jcp/xml/", "^org/w3c/dom/", "^org/xml/sax/",
	"^com/secdec/bytefrog/", "^org/objectweb/asm/",
}

func createDefaultConfig() *Config {
	return &Config{
		TCPAddrConfig: confignet.TCPAddrConfig{Endpoint: defaultEndpoint},
		ServiceName:   defaultServiceName,
		Agent: AgentConfig{
			Inclusions:        []string{},
			Exclusions:        append([]string{}, defaultExclusions...),
			HeartbeatInterval: time.Second,
			BufferMemory:      4 * mib,
			QueueRetryCount:   10,
			DataConnections:   2,
		},
		Start:            StartTracing,
		MissedHeartbeats: 30,
		OnOverload:       OverloadBlock,
		MaxBlock:         5 * time.Second,
		Config:           receiverkit.DefaultConfig(),
		BatchesConfig:    receiverkit.DefaultBatchesConfig(),
		NameWait:         time.Second,
		Limits: LimitsConfig{
			MaxConnections:           4096,
			MaxConnectionsPerAddress: 3072,
			MaxRuns:                  maxRunID,
			MaxMessageSize:           bytefrog.MaxString,
			MaxRunMemory:             64 * mib,
			MaxConnectionLead:        20_000,
			LogLimits:                receiverkit.LogLimits{MaxQueuedLogs: 10_000, MaxQueuedLogBytes: 16 * mib},
			HandshakeTimeout:         10 * time.Second,
			MessageTimeout:           10 * time.Second,
		},
		EndTimeout:           5 * time.Minute,
		WarnEventsPerSecond:  5_000_000,
		MetricsBuilderConfig: metadata.NewDefaultMetricsBuilderConfig(),
		LogsBuilderConfig:    metadata.DefaultLogsBuilderConfig(),
	}
}
