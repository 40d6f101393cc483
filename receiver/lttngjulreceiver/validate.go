// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/callbraid/callbraid/internal/componentkit/confignames"
	"github.com/callbraid/callbraid/internal/componentkit/setting"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/portfile"
)

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
)

// Unmarshal reports the right name of a misspelt setting.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return confignames.Unmarshal(conf, c) }

// Validate returns an error for each wrong setting, with its field and remedy.
func (c *Config) Validate() error {
	return errors.Join(
		setting.ListenAddress("endpoint", c.Endpoint, defaultEndpoint),
		c.validatePortFiles(),
		c.validateProtocol(),
		c.validatePlan(),
		setting.Within("list_interval", c.ListInterval, 10*time.Millisecond, 24*time.Hour),
		setting.Timeout("command_timeout", c.CommandTimeout),
		c.Limits.validate(),
		c.ValidateCommon(),
	)
}

func (c *Config) validatePortFiles() error {
	seen := map[string]bool{}
	for i, path := range c.PortFiles {
		if !filepath.IsAbs(path) && !strings.HasPrefix(path, portfile.HomePrefix) {
			return fmt.Errorf("port_files[%d] is %q: set it to an absolute path, such as /var/run/lttng/agent.port, or to one that begins with %s", i, path, portfile.HomePrefix)
		}
		if clean := filepath.Clean(path); seen[clean] {
			return fmt.Errorf("port_files[%d] is %q, which the list already has: remove it", i, path)
		} else {
			seen[clean] = true
		}
	}
	return nil
}

func (c *Config) validateProtocol() error {
	switch c.Protocol {
	case Protocol2, ProtocolRFC:
		return nil
	default:
		return fmt.Errorf("protocol is %q: set it to %q (LTTng's agents since 2.6) or %s (the proposal of 2013)", c.Protocol, Protocol2, ProtocolRFC)
	}
}

func (c *Config) validatePlan() error {
	_, err := newPlan(c)
	return err
}

func (c *LimitsConfig) validate() error {
	return errors.Join(
		setting.Between("limits.max_agents", c.MaxAgents, 1, 1_000_000),
		setting.Between("limits.max_agents_per_address", c.MaxAgentsPerAddress, 0, 1_000_000),
		setting.Timeout("limits.registration_timeout", c.RegistrationTimeout),
		setting.Between("limits.max_loggers", c.MaxLoggers, 1, 10_000_000),
		setting.Between("limits.max_list_bytes", c.MaxListBytes, kib, 1<<30),
		setting.Between("limits.max_inventory_bytes", c.MaxInventoryBytes, mib, math.MaxInt),
		c.LogLimits.ValidateQueue(100_000_000),
	)
}
