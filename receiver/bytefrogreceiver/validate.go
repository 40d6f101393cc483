// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/collector/confmap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/componentkit/confignames"
	"github.com/callbraid/callbraid/internal/componentkit/setting"
	"github.com/callbraid/callbraid/internal/receiverkit"
)

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
)

// Unmarshal reports the right name of a misspelt setting.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return confignames.Unmarshal(conf, c) }

// Validate returns all errors, each with its field and its remedy.
func (c *Config) Validate() error {
	return errors.Join(
		setting.ListenAddress("endpoint", c.Endpoint, defaultEndpoint),
		c.validateServiceName(),
		c.BatchesConfig.ValidateWith(&c.Config, ", and well below reorder.max_wait of stack_pairing"),
		c.Agent.validate(),
		c.validateStart(),
		setting.Between("missed_heartbeats", c.MissedHeartbeats, 2, 100_000),
		c.validateOverload(),
		setting.Within("name_wait", c.NameWait, time.Millisecond, receiverkit.MaxBatchNameWait),
		c.Limits.validate(),
		setting.Within("end_timeout", c.EndTimeout, time.Millisecond, maxEndTimeout),
		setting.Between("warn_events_per_second", c.WarnEventsPerSecond, 0, math.MaxInt32),
	)
}

func (c *Config) validateServiceName() error {
	if c.ServiceName == "" {
		return fmt.Errorf("service_name is empty: set it, or leave it out for %s", defaultServiceName)
	}
	return nil
}

func (c *Config) validateStart() error {
	switch c.Start {
	case StartTracing, StartSuspended:
		return nil
	default:
		return fmt.Errorf("start is %q: set it to %s, or to %s and let agents trace with the extension agent_control", c.Start, StartTracing, StartSuspended)
	}
}

func (c *Config) validateOverload() error {
	switch c.OnOverload {
	case OverloadBlock, OverloadSuspend:
		if c.MaxBlock == 0 {
			return nil
		}
		return setting.Within("max_block", c.MaxBlock, 10*time.Millisecond, time.Hour)
	default:
		return fmt.Errorf("on_overload is %q: set it to %s (the traced program waits, nothing is lost) or %s (it goes on, with a break in the data)",
			c.OnOverload, OverloadBlock, OverloadSuspend)
	}
}

func (c *AgentConfig) validate() error {
	err := errors.Join(
		setting.Within("agent.heartbeat_interval", c.HeartbeatInterval, 10*time.Millisecond, time.Hour),
		wholeMilliseconds("agent.heartbeat_interval", c.HeartbeatInterval),
		areUTF8("agent.inclusions", c.Inclusions),
		areUTF8("agent.exclusions", c.Exclusions),
		areExpressions("agent.inclusions", c.Inclusions),
		areExpressions("agent.exclusions", c.Exclusions),
		setting.Between("agent.queue_retry_count", c.QueueRetryCount, 1, math.MaxInt32),
		setting.Between("agent.data_connections", c.DataConnections, 1, maxDataConnections),
	)
	if err != nil {
		return err
	}
	if least := c.DataConnections * minBufferMemory; c.BufferMemory < least || c.BufferMemory > math.MaxInt32 {
		return fmt.Errorf("agent.buffer_memory is %d: set it to %d to %d, %d bytes for each of the %d agent.data_connections",
			c.BufferMemory, least, math.MaxInt32, minBufferMemory, c.DataConnections)
	}
	for version := uint8(bytefrog.MinVersion); version <= bytefrog.MaxVersion; version++ {
		agent := c.message()
		agent.RunID = maxRunID
		if _, err := agent.Message(version); err != nil {
			return fmt.Errorf("agent: %w: make inclusions and exclusions shorter", err)
		}
	}
	return nil
}

func (c *LimitsConfig) validate() error {
	return errors.Join(
		setting.Between("limits.max_connections", c.MaxConnections, 2, 1_000_000),
		setting.Between("limits.max_connections_per_address", c.MaxConnectionsPerAddress, 0, 1_000_000),
		setting.Between("limits.max_runs", c.MaxRuns, 1, maxRunID),
		setting.Between("limits.max_message_size", c.MaxMessageSize, 256, bytefrog.MaxString),
		setting.Between("limits.max_run_memory", c.MaxRunMemory, minRunMemory, math.MaxInt),
		setting.Between("limits.max_connection_lead", c.MaxConnectionLead, 1, maxConnectionLead),
		c.ValidateQueue(10_000_000),
		setting.Timeout("limits.handshake_timeout", c.HandshakeTimeout),
		setting.Timeout("limits.message_timeout", c.MessageTimeout),
	)
}

func wholeMilliseconds(field string, value time.Duration) error {
	if value%time.Millisecond != 0 {
		return fmt.Errorf("%s is %v: set it to whole milliseconds, such as %v", field, value, value.Round(time.Millisecond))
	}
	return nil
}

func areUTF8(field string, values []string) error {
	for i, value := range values {
		if !utf8.ValidString(value) {
			return fmt.Errorf("%s[%d] is %q: write it in UTF-8", field, i, value)
		}
	}
	return nil
}
