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
	// TLS, if it is set, is required of agents.
	TLS configoptional.Optional[configtls.ServerConfig] `mapstructure:"tls"`

	// ServiceName is the resource attribute service.name of all output.
	ServiceName string `mapstructure:"service_name"`
	// Config has the settings of every receiver. ShutdownTimeout is the time of deliveries;
	// disconnecting agents can take farewellTime more.
	receiverkit.Config `mapstructure:",squash"`

	// Agent is the configuration of agents.
	Agent AgentConfig `mapstructure:"agent"`
	// Start says whether agents trace from their start on.
	Start StartPolicy `mapstructure:"start"`
	// MissedHeartbeats is the number of silent heartbeat intervals after which an agent counts as
	// lost.
	MissedHeartbeats int `mapstructure:"missed_heartbeats"`
	// OnOverload is the behaviour while the pipeline refuses.
	OnOverload OverloadPolicy `mapstructure:"on_overload"`
	// MaxBlock is how long the traced program may wait for a pipeline that accepts nothing, before
	// the agent is suspended. 0: without a limit.
	MaxBlock time.Duration `mapstructure:"max_block"`

	// BatchesConfig has the settings of batches of call events.
	receiverkit.BatchesConfig `mapstructure:",squash"`
	// NameWait is how long call events wait for names that arrive late or on another connection. It is
	// less than the processor's wait for events, reorder.max_wait.
	NameWait time.Duration `mapstructure:"name_wait"`
	// Limits bound connections, runs, and the memory for agents.
	Limits LimitsConfig `mapstructure:"limits"`
	// EndTimeout is how long the last data of an ended run may take to be delivered. ShutdownTimeout
	// bounds it too for a run whose memory is full.
	EndTimeout time.Duration `mapstructure:"end_timeout"`
	// WarnEventsPerSecond is the call rate of a run for which the log warns; 0: none.
	WarnEventsPerSecond int `mapstructure:"warn_events_per_second"`

	// MetricsBuilderConfig enables metrics.
	metadata.MetricsBuilderConfig `mapstructure:",squash"`
	// LogsBuilderConfig enables log records.
	metadata.LogsBuilderConfig `mapstructure:",squash"`
}

// AgentConfig is the configuration that agents receive after their hello.
type AgentConfig struct {
	// Inclusions and Exclusions are Java regular expressions for the start of a class name with
	// slashes. A class is traced unless an exclusion matches. An inclusion that matches overrides all
	// exclusions.
	Inclusions []string `mapstructure:"inclusions"`
	Exclusions []string `mapstructure:"exclusions"`
	// HeartbeatInterval is the interval of the agent's heartbeats.
	HeartbeatInterval time.Duration `mapstructure:"heartbeat_interval"`
	// BufferMemory is the number of bytes of the agent's send buffers. With more of them, events arrive
	// further out of order, and the processor needs a larger reorder.max_events. Each data connection
	// needs 1280.
	BufferMemory int `mapstructure:"buffer_memory"`
	// QueueRetryCount is how often the agent tries to get a buffer before it ends its tracing.
	QueueRetryCount int `mapstructure:"queue_retry_count"`
	// DataConnections is the number of connections over which the agent spreads its events.
	DataConnections int `mapstructure:"data_connections"`
}

// StartPolicy is the behaviour of agents at their start.
type StartPolicy string

const (
	// StartTracing: agents trace.
	StartTracing StartPolicy = "tracing"
	// StartSuspended: agents trace after an operator's unsuspend, with the extension agent_control.
	StartSuspended StartPolicy = "suspended"
)

// OverloadPolicy is the behaviour while the pipeline refuses.
type OverloadPolicy string

const (
	// OverloadBlock: data is not read, the agent's buffers fill, and the traced program waits until
	// the pipeline accepts. It cannot exit meanwhile. Nothing is lost. After Config.MaxBlock the
	// behaviour is OverloadSuspend.
	OverloadBlock OverloadPolicy = "block"
	// OverloadSuspend: the agent is suspended. The traced program keeps its speed, and the data has a
	// break.
	OverloadSuspend OverloadPolicy = "suspend"
)

// LimitsConfig bounds connections, runs, and the memory for agents.
type LimitsConfig struct {
	// MaxConnections is the maximum number of open connections. Those of disconnected agents that have
	// not closed them count too.
	MaxConnections int `mapstructure:"max_connections"`
	// MaxConnectionsPerAddress is the same for one address. An IPv6 /64 network counts as one address.
	// 0: no limit.
	MaxConnectionsPerAddress int `mapstructure:"max_connections_per_address"`
	// MaxRuns is the maximum number of agents at the same time, at most 255.
	MaxRuns int `mapstructure:"max_runs"`
	// MaxMessageSize bounds each string of a message, in bytes, at most 65535.
	MaxMessageSize int `mapstructure:"max_message_size"`
	// MaxRunMemory is the maximum number of bytes of names, waiting events and held batches of a run,
	// without the fixed buffers of its connections. The extension memory_budget bounds the memory of
	// all runs together, with these buffers.
	MaxRunMemory int `mapstructure:"max_run_memory"`
	// MaxConnectionLead is how many sequence numbers below the events of a data
	// connection may be missing before the connection waits for the others, 1 to
	// 1,000,000,000. It has to be below reorder.max_events of stack_pairing.
	MaxConnectionLead int `mapstructure:"max_connection_lead"`
	// LogLimits bound the log records that wait for the pipeline.
	receiverkit.LogLimits `mapstructure:",squash"`
	// HandshakeTimeout is how long a new connection has for its first message.
	HandshakeTimeout time.Duration `mapstructure:"handshake_timeout"`
	// MessageTimeout is how long a message may take from its first to its last byte.
	MessageTimeout time.Duration `mapstructure:"message_timeout"`
}

const (
	defaultEndpoint    = "localhost:8765"
	defaultServiceName = "unknown_service:java"

	kib, mib = 1 << 10, 1 << 20

	// maxDataConnections bounds the threads and sockets of an agent.
	maxDataConnections = 64
	// minBufferMemory is the least memory of a data connection: ten of the agent's smallest buffers.
	// With fewer of them the agent ends its tracing.
	minBufferMemory = 10 * 128
	// maxConnectionLead is far below half of the protocol's numbers: more would not show which of two
	// numbers is ahead.
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
