// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/callbraid/callbraid/internal/arthas"
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

// Validate returns all errors of the configuration, each with its field and its remedy.
func (c *Config) Validate() error {
	tasks, err := c.tasks()
	if len(tasks) > c.Limits.MaxCommands {
		err = errors.Join(err, fmt.Errorf("monitors, traces, stacks, watches and records have %d commands together: use patterns that match more, or raise limits.max_commands, which is %d", len(tasks), c.Limits.MaxCommands))
	}
	if c.JVM.Interval != 0 {
		err = errors.Join(err, setting.Within("jvm.interval", c.JVM.Interval, time.Second, time.Hour))
	}
	return errors.Join(
		c.validateServers(),
		err,
		setting.Within("poll_interval", c.PollInterval, 10*time.Millisecond, time.Second),
		setting.Within("idle_poll_interval", c.IdlePollInterval, 10*time.Millisecond, time.Minute),
		setting.Within("state_interval", c.StateInterval, 10*time.Millisecond, time.Hour),
		setting.Between("max_polls", c.MaxPolls, 1, 16),
		receiverkit.ValidateReconnect(c.Reconnect),
		c.Profiles.validate(),
		c.Limits.validate(),
		c.ValidateCommon(),
	)
}

// asksNothing reports whether the configuration has no tasks, and requests neither the state of the JVM nor profiles.
func (c *Config) asksNothing() bool {
	return len(c.Monitors)+len(c.Traces)+len(c.Stacks)+len(c.Watches)+len(c.Records) == 0 && c.JVM.Interval == 0 && c.Profiles.Period == 0
}

const exampleEndpoint = "http://localhost:8563"

func (c *Config) validateServers() error {
	if len(c.Servers) == 0 {
		return fmt.Errorf("servers is empty: set it to at least one, with endpoint: %s", exampleEndpoint)
	}
	seen := map[string]int{}
	var all error
	for i := range c.Servers {
		field := fmt.Sprintf("servers[%d]", i)
		server := &c.Servers[i]
		all = errors.Join(all, server.validate(field))
		if other, twice := seen[server.Endpoint]; twice {
			all = errors.Join(all, fmt.Errorf("%s.endpoint is that of servers[%d]: name it once, because a reset of one removes the instrumentation of the other", field, other))
		}
		seen[server.Endpoint] = i
	}
	return all
}

func (s *ServerConfig) validate(field string) error {
	var all error
	u, err := url.Parse(s.Endpoint)
	switch {
	case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https":
		all = fmt.Errorf("%s.endpoint is %q: set it to the HTTP address of Arthas, such as %s", field, s.Endpoint, exampleEndpoint)
		if err == nil && u.User != nil {
			all = fmt.Errorf("%s.endpoint has no scheme: set it to the HTTP address of Arthas, such as %s", field, exampleEndpoint)
		}
	case u.User != nil:
		all = fmt.Errorf("%s.endpoint has a user: set username and password", field)
	case u.RawQuery != "" || u.Fragment != "":
		all = fmt.Errorf("%s.endpoint has a query or a fragment: set it to such as %s", field, exampleEndpoint)
	}
	if s.Timeout != 0 {
		all = errors.Join(all, setting.Within(field+".timeout", s.Timeout, time.Second, 10*time.Minute))
	}
	if s.Compression.IsCompressed() {
		all = errors.Join(all, fmt.Errorf("%s.compression is %q: remove it, because Arthas reads no compressed requests", field, s.Compression))
	}
	switch {
	case s.Username == "" && s.Password != "":
		all = errors.Join(all, fmt.Errorf("%s.password is set without username: set both. Arthas' default user is arthas", field))
	case s.Username != "" && s.Password == "":
		all = errors.Join(all, fmt.Errorf("%s.username is set without password: set both", field))
	case strings.Contains(s.Username, ":"):
		all = errors.Join(all, fmt.Errorf("%s.username has a colon: Basic authentication does not allow it", field))
	case s.Username != "" && s.Auth.HasValue():
		all = errors.Join(all, fmt.Errorf("%s has username and auth: set one of them", field))
	}
	return all
}

func (c *LimitsConfig) validate() error {
	return errors.Join(
		setting.Between("limits.max_metric_points", c.MaxMetricPoints, 10, 100_000_000),
		setting.Between("limits.max_server_memory", c.MaxServerMemory, mib, math.MaxInt),
		setting.Between("limits.max_answer_bytes", c.MaxAnswerBytes, 64<<10, 1<<30),
		setting.Between("limits.max_commands", c.MaxCommands, 1, 100),
		setting.Between("limits.max_methods", c.MaxMethods, 1, 1_000_000),
		setting.Between("limits.max_tree_nodes", c.MaxTreeNodes, 1, 1_000_000),
		c.LogLimits.ValidateQueue(10_000_000),
		c.SpanLimits.ValidateQueue(10_000_000),
		c.SampleLimits.ValidateQueue(10_000_000),
		setting.Between("limits.max_profile_bytes", c.MaxProfileBytes, 1<<10, 256*mib),
		setting.Between("limits.max_profile_stacks", c.MaxProfileStacks, 1, 1_000_000),
	)
}

func (c *ProfilesConfig) validate() (err error) {
	if c.Period != 0 {
		err = setting.Within("profiles.period", c.Period, time.Second, time.Hour)
		if c.Period%time.Second != 0 {
			err = errors.Join(err, fmt.Errorf("profiles.period is %v: set it to whole seconds", c.Period))
		}
	}
	switch event := c.event(); event {
	case arthas.ProfileCPU, arthas.ProfileWall:
		if c.Interval != 0 {
			err = errors.Join(err, setting.Within("profiles.interval", c.Interval, time.Millisecond, time.Second))
		}
	case arthas.ProfileAlloc, arthas.ProfileLock:
		if c.Interval != 0 {
			err = errors.Join(err, fmt.Errorf("profiles.interval is %v: remove it, because the event %s has none", c.Interval, event))
		}
	default:
		err = errors.Join(err, fmt.Errorf("profiles.event is %q: set it to cpu, wall, alloc or lock", c.Event))
	}
	return err
}
