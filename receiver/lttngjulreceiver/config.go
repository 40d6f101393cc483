// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"time"

	"go.opentelemetry.io/collector/config/confignet"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/metadata"
)

// Config is the configuration of the receiver.
type Config struct {
	// TCPAddrConfig has the endpoint to listen on, host:port. Agents always connect to 127.0.0.1 of their own machine.
	confignet.TCPAddrConfig `mapstructure:",squash"`
	// PortFiles are the files from which agents read the port. Each is an absolute path, or begins with ~/. The
	// receiver writes them, and removes them at its shutdown.
	PortFiles []string `mapstructure:"port_files"`
	// Protocol is the version of the protocol.
	Protocol Protocol `mapstructure:"protocol"`

	// ServiceName is the resource attribute service.name; empty: unknown_service: and the name of the agent's program
	// or language.
	ServiceName string `mapstructure:"service_name"`
	// ProcessCommandArgs adds process.command_args to the resource, which can hold secrets.
	ProcessCommandArgs bool `mapstructure:"process_command_args"`

	// Enable and Contexts become commands for each agent that registers, in this order.
	Enable   []EnableRule  `mapstructure:"enable"`
	Contexts []ContextRule `mapstructure:"contexts"`

	// ListInterval is the time between two lists of an agent. After a registration and after changes it is shorter.
	ListInterval time.Duration `mapstructure:"list_interval"`
	// CommandTimeout bounds a command with its whole answer.
	CommandTimeout time.Duration `mapstructure:"command_timeout"`
	// Limits bound the memory that agents can use.
	Limits LimitsConfig `mapstructure:"limits"`
	// Config has the settings of every receiver. A shutdown may restore agents for four
	// fifths of shutdown_timeout.
	receiverkit.Config `mapstructure:",squash"`

	// MetricsBuilderConfig selects metrics.
	metadata.MetricsBuilderConfig `mapstructure:",squash"`
	// LogsBuilderConfig selects log records.
	metadata.LogsBuilderConfig `mapstructure:",squash"`
}

// Protocol is the version of the protocol.
type Protocol string

const (
	// Protocol2 is the protocol of LTTng's agents since 2.6.
	Protocol2 Protocol = "2.0"
	// ProtocolRFC is version 0.1, the proposal of 2013.
	ProtocolRFC Protocol = "rfc"
)

// EnableRule enables loggers of a domain.
type EnableRule struct {
	// Domain is the logging library: jul, log4j, log4j2 or python.
	Domain string `mapstructure:"domain"`
	// Logger is the name of a logger, or a pattern: * matches any text.
	Logger string `mapstructure:"logger"`
	// Level is the name or the number of a level of the domain; nil: all levels.
	Level any `mapstructure:"level"`
	// LevelType is the meaning of Level: range (this level and more severe ones, the default with a level), single, or
	// all (without a level).
	LevelType string `mapstructure:"level_type"`
	// Filter is a filter expression of LTTng, or empty.
	Filter string `mapstructure:"filter"`
}

// ContextRule adds a value of the application to each record.
type ContextRule struct {
	// Domain is the logging library: jul, log4j or log4j2; empty: all of these.
	Domain string `mapstructure:"domain"`
	// Provider and Name are the names in the application.
	Provider string `mapstructure:"provider"`
	Name     string `mapstructure:"name"`
}

// LimitsConfig bounds the memory that agents can use.
type LimitsConfig struct {
	// MaxAgents bounds the open connections, registered or not.
	MaxAgents int `mapstructure:"max_agents"`
	// MaxAgentsPerAddress bounds the connections of one address. An IPv6 /64 network counts as one address. 0: no
	// limit.
	MaxAgentsPerAddress int `mapstructure:"max_agents_per_address"`
	// RegistrationTimeout bounds the time until the registration.
	RegistrationTimeout time.Duration `mapstructure:"registration_timeout"`
	// MaxLoggers bounds the loggers of an agent, and MaxListBytes the bytes of their names.
	MaxLoggers   int `mapstructure:"max_loggers"`
	MaxListBytes int `mapstructure:"max_list_bytes"`
	// MaxInventoryBytes bounds the memory for the names of all agents.
	MaxInventoryBytes int `mapstructure:"max_inventory_bytes"`
	// The limits of the queue.
	receiverkit.LogLimits `mapstructure:",squash"`
}

// RetryConfig is the back-off between attempts.
type RetryConfig = receiverkit.RetryConfig

const (
	defaultEndpoint = "localhost:5345"

	kib, mib = 1 << 10, 1 << 20
)

func createDefaultConfig() *Config {
	return &Config{
		TCPAddrConfig:  confignet.TCPAddrConfig{Endpoint: defaultEndpoint},
		Protocol:       Protocol2,
		ListInterval:   10 * time.Second,
		CommandTimeout: 5 * time.Second,
		Limits: LimitsConfig{
			MaxAgents:           4096,
			MaxAgentsPerAddress: 3072,
			RegistrationTimeout: 5 * time.Second,
			MaxLoggers:          65_536,
			MaxListBytes:        4 * mib,
			MaxInventoryBytes:   256 * mib,
			LogLimits:           receiverkit.LogLimits{MaxQueuedLogs: 1_000_000, MaxQueuedLogBytes: 128 * mib},
		},
		Config:               receiverkit.DefaultConfig(),
		MetricsBuilderConfig: metadata.NewDefaultMetricsBuilderConfig(),
		LogsBuilderConfig:    metadata.DefaultLogsBuilderConfig(),
	}
}

// dialect returns the protocol of a valid configuration.
func (c *Config) dialect() lttngagent.Dialect {
	if c.Protocol == ProtocolRFC {
		return lttngagent.RFC
	}
	return lttngagent.V2
}

// ofList returns the limits of a reply to a list.
func (c *LimitsConfig) ofList() lttngagent.Limits {
	return lttngagent.Limits{Names: c.MaxLoggers, NameBytes: c.MaxListBytes}
}
