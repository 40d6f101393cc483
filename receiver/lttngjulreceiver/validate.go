// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"errors"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/setting"
)

var _ confmap.Validator = (*Config)(nil)

// Validate says everything that is wrong, each with its field and its remedy.
func (c *Config) Validate() error {
	return errors.Join(
		c.validateEndpoint(),
		c.validatePortFiles(),
		c.validateProtocol(),
		c.validateResource(),
		c.validatePlan(),
		setting.Within("list_interval", c.ListInterval, 10*time.Millisecond, 24*time.Hour),
		setting.Within("command_timeout", c.CommandTimeout, time.Millisecond, 10*time.Minute),
		c.Limits.validate(),
		c.Retry.ValidateAs("retry", maxRetryInterval),
		setting.Within("shutdown_timeout", c.ShutdownTimeout, time.Millisecond, 10*time.Minute),
		setting.Within("collection_interval", c.CollectionInterval, 100*time.Millisecond, 24*time.Hour),
	)
}

func (c *Config) validateEndpoint() error {
	_, port, err := net.SplitHostPort(c.Endpoint)
	if err != nil {
		return fmt.Errorf("endpoint is %q: set it to host:port, such as %s", c.Endpoint, defaultEndpoint)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("endpoint is %q: set its port to 1 to 65535, or to 0 for any that is free", c.Endpoint)
	}
	return nil
}

func (c *Config) validatePortFiles() error {
	seen := map[string]bool{}
	for i, path := range c.PortFiles {
		if !filepath.IsAbs(path) && !strings.HasPrefix(path, homePrefix) {
			return fmt.Errorf("port_files[%d] is %q: set it to an absolute path, such as /var/run/lttng/agent.port, or to one that begins with %s", i, path, homePrefix)
		}
		if clean := filepath.Clean(path); seen[clean] {
			return fmt.Errorf("port_files[%d] is %q, which is there twice: leave it out once", i, path)
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

func (c *Config) validateResource() error {
	if err := pcommon.NewMap().FromRaw(c.ResourceAttributes); err != nil {
		return fmt.Errorf("resource_attributes: %w: use strings, numbers, booleans, and lists of them", err)
	}
	return nil
}

func (c *Config) validatePlan() error {
	_, err := newPlan(c)
	return err
}

func (c *LimitsConfig) validate() error {
	return errors.Join(
		setting.Between("limits.max_agents", c.MaxAgents, 1, 1_000_000),
		setting.Within("limits.registration_timeout", c.RegistrationTimeout, time.Millisecond, 10*time.Minute),
		setting.Between("limits.max_loggers", c.MaxLoggers, 1, 10_000_000),
		setting.Between("limits.max_list_bytes", c.MaxListBytes, kib, 1<<30),
		setting.Between("limits.max_inventory_bytes", c.MaxInventoryBytes, mib, math.MaxInt),
		setting.Between("limits.max_queued_logs", c.MaxQueuedLogs, 1, 100_000_000),
		setting.Between("limits.max_queued_log_bytes", c.MaxQueuedLogBytes, minQueuedLogBytes, math.MaxInt),
	)
}
