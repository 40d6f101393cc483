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
	// TCPAddrConfig has the endpoint to listen on, host:port. Agents connect to
	// 127.0.0.1 of their own machine, whatever it is.
	confignet.TCPAddrConfig `mapstructure:",squash"`
	// PortFiles are the files from which agents learn the port: absolute paths, or such
	// that begin with ~/. The receiver writes them, and removes them at its shutdown.
	PortFiles []string `mapstructure:"port_files"`
	// Protocol is the version of the protocol.
	Protocol Protocol `mapstructure:"protocol"`

	// ServiceName is the resource attribute service.name; empty: unknown_service: and
	// the name of the agent's program, as far as it is known.
	ServiceName string `mapstructure:"service_name"`
	// ProcessCommandArgs adds process.command_args to the resource, which can hold secrets.
	ProcessCommandArgs bool `mapstructure:"process_command_args"`

	// Enable and Contexts become commands for each agent that registers, in this order.
	Enable   []EnableRule  `mapstructure:"enable"`
	Contexts []ContextRule `mapstructure:"contexts"`

	// ListInterval is how often an agent is asked for its loggers; more often after it
	// has registered and after changes.
	ListInterval time.Duration `mapstructure:"list_interval"`
	// CommandTimeout is how long an agent has for a command, with all of the answer.
	CommandTimeout time.Duration `mapstructure:"command_timeout"`
	// Limits bound the memory that agents can use.
	Limits LimitsConfig `mapstructure:"limits"`
	// Config has the settings of every receiver. A shutdown may restore agents for four
	// fifths of shutdown_timeout.
	receiverkit.Config `mapstructure:",squash"`

	// MetricsBuilderConfig says which metrics.
	metadata.MetricsBuilderConfig `mapstructure:",squash"`
	// LogsBuilderConfig says which log records.
	metadata.LogsBuilderConfig `mapstructure:",squash"`
}

// Protocol is the version of the protocol.
type Protocol string

const (
	// Protocol2 is the protocol of LTTng's agents since 2.6.
	Protocol2 Protocol = "2.0"
	// ProtocolRFC is version 0.1, of the proposal of 2013.
	ProtocolRFC Protocol = "rfc"
)

// EnableRule has loggers of a domain traced.
type EnableRule struct {
	// Domain is the logging library: jul, log4j, log4j2 or python.
	Domain string `mapstructure:"domain"`
	// Logger is the name of a logger, or of many: * stands for any text.
	Logger string `mapstructure:"logger"`
	// Level is the name or the number of a level of the domain; nil: all levels.
	Level any `mapstructure:"level"`
	// LevelType is the meaning of Level: range (this and the more severe ones, the default
	// where there is a level), single, or all (without a level).
	LevelType string `mapstructure:"level_type"`
	// Filter is an expression in the language of LTTng; empty: none.
	Filter string `mapstructure:"filter"`
}

// ContextRule has a value of the application recorded with each record.
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
	// MaxAgentsPerAddress is how many of them one address can have; an IPv6 /64 network
	// counts as one address. 0: as many as there are.
	MaxAgentsPerAddress int `mapstructure:"max_agents_per_address"`
	// RegistrationTimeout is how long a connection has to register.
	RegistrationTimeout time.Duration `mapstructure:"registration_timeout"`
	// MaxLoggers is how many loggers an agent may have, and MaxListBytes how many bytes
	// of names.
	MaxLoggers   int `mapstructure:"max_loggers"`
	MaxListBytes int `mapstructure:"max_list_bytes"`
	// MaxInventoryBytes is how many bytes the names of all agents may take in memory.
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

// dialect is the protocol as internal/lttng/lttngagent has it. The configuration is valid.
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
