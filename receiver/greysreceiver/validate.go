// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/callbraid/callbraid/internal/componentkit/confignames"
	"github.com/callbraid/callbraid/internal/componentkit/setting"
	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/internal/receiverkit"
)

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
)

// Unmarshal reports the right name of a misspelt setting.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return confignames.Unmarshal(conf, c) }

// Validate returns all errors of the configuration, each with its field and its remedy.
func (c *Config) Validate() error {
	_, zone := time.LoadLocation(c.Timezone)
	if zone != nil {
		zone = fmt.Errorf("timezone is %q: set it to a name such as Europe/Berlin, to UTC, or to Local for that of this machine: %w", c.Timezone, zone)
	}
	return errors.Join(
		c.validateServers(),
		c.validateProtocol(),
		c.validateCommands(),
		setting.Within("inventory_interval", c.InventoryInterval, time.Second, 24*time.Hour),
		setting.Within("state_interval", c.StateInterval, 10*time.Millisecond, time.Hour),
		setting.Between("recursion_check", c.RecursionCheck, 0, 1000),
		c.GP.validate(),
		zone,
		setting.Timeout("timeout", c.Timeout),
		setting.Timeout("answer_timeout", c.AnswerTimeout),
		receiverkit.ValidateReconnect(c.Reconnect),
		c.Limits.validate(),
		c.ValidateCommon(),
	)
}

func (c *Config) validateServers() error {
	if len(c.Servers) == 0 {
		return fmt.Errorf("servers is empty: set it to at least one, with endpoint: %s", defaultEndpoint)
	}
	seen := map[string]int{}
	var all error
	for i := range c.Servers {
		endpoint := c.Servers[i].Endpoint
		field := fmt.Sprintf("servers[%d].endpoint", i)
		all = errors.Join(all, setting.DialAddress(field, endpoint, "a server", defaultEndpoint))
		if other, twice := seen[serverOf(endpoint)]; twice {
			all = errors.Join(all, fmt.Errorf("%s is %q, which is the server of servers[%d]: name it once, because the reset of one client removes the instrumentation of the other", field, endpoint, other))
		}
		seen[serverOf(endpoint)] = i
	}
	return all
}

// serverOf returns the same text for all names of this machine.
func serverOf(endpoint string) string {
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return endpoint // setting.DialAddress reports it
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if ip := net.ParseIP(host); ip != nil {
		host = ip.String()
		if ip.IsUnspecified() || ip.Equal(net.IPv4(127, 0, 0, 1)) || ip.Equal(net.IPv6loopback) {
			host = "localhost"
		}
	}
	return net.JoinHostPort(host, port)
}

func (c *Config) validateProtocol() error {
	switch c.Protocol {
	case ProtocolAuto, ProtocolGP, ProtocolConsole:
		return nil
	default:
		return fmt.Errorf("protocol is %q: set it to %s, %s or %s", c.Protocol, ProtocolAuto, ProtocolGP, ProtocolConsole)
	}
}

// validateCommands checks the configured tasks.
func (c *Config) validateCommands() error {
	_, err := c.tasks()
	running := len(c.Monitors) + len(c.Traces) + len(c.Stacks) + len(c.Records)
	if running > c.Limits.MaxCommands {
		err = errors.Join(err, fmt.Errorf("monitors, traces, stacks and tt have %d commands together: replace some by one pattern that matches more, or raise limits.max_commands, which is %d", running, c.Limits.MaxCommands))
	}
	return err
}

// asksNothing reports whether the configuration has no tasks.
func (c *Config) asksNothing() bool {
	return len(c.Monitors)+len(c.Traces)+len(c.Stacks)+len(c.Records)+len(c.Classes)+len(c.Methods) == 0
}

func (c *GPConfig) validate() error {
	codes := setting.Between("gp.version", c.Version, 1, math.MaxUint16)
	for _, code := range []struct {
		field string
		value int
	}{
		{"session", c.Codes.Session},
		{"stack", c.Codes.Stack},
		{"tt_list", c.Codes.TTList},
		{"tt_detail", c.Codes.TTDetail},
	} {
		codes = errors.Join(codes, setting.Between("gp.codes."+code.field, code.value, 0, math.MaxUint16))
	}
	if err := c.codes().Check(); err != nil {
		codes = errors.Join(codes, fmt.Errorf("gp.codes: %w", err))
	}
	return errors.Join(
		codes,
		setting.Between("gp.max_frame_bytes", c.MaxFrameBytes, 64<<10, gp.MaxMaxFrame),
		setting.Within("gp.heartbeat", c.Heartbeat, 10*time.Millisecond, time.Hour),
		setting.Between("gp.max_unanswered", c.MaxUnanswered, 1, 1000),
		setting.Timeout("gp.probe_timeout", c.ProbeTimeout),
		setting.Within("gp.tt_interval", c.RecordsInterval, 10*time.Millisecond, time.Hour),
	)
}

func (c *GPConfig) codes() gp.Codes {
	return gp.Codes{
		Sessions: gp.RequestType(c.Codes.Session), Stack: gp.RequestType(c.Codes.Stack),
		Records: gp.RequestType(c.Codes.TTList), RecordDetail: gp.RequestType(c.Codes.TTDetail),
	}
}

func (c *LimitsConfig) validate() error {
	return errors.Join(
		setting.Between("limits.max_metric_points", c.MaxMetricPoints, 10, 100_000_000),
		setting.Between("limits.max_server_memory", c.MaxServerMemory, 4*mib, math.MaxInt),
		setting.Between("limits.max_reply_bytes", c.MaxReplyBytes, 64<<10, 1<<30),
		setting.Between("limits.max_commands", c.MaxCommands, 1, 1000),
		setting.Between("limits.max_pattern_commands", c.MaxPatternCommands, 1, 1000),
		setting.Between("limits.max_methods", c.MaxMethods, 1, 1_000_000),
		setting.Between("limits.max_inventory", c.MaxInventory, 1, 10_000_000),
		setting.Between("limits.max_tree_nodes", c.MaxTreeNodes, 1, 1_000_000),
		setting.Between("limits.max_details", c.MaxDetails, 1, 1_000_000),
		c.LogLimits.ValidateQueue(10_000_000),
		c.SpanLimits.ValidateQueue(10_000_000),
	)
}
