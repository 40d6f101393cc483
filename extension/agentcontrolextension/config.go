// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/callbraid/callbraid/internal/componentkit/confignames"
	"github.com/callbraid/callbraid/internal/componentkit/setting"
)

// Config is the configuration of the extension.
type Config struct {
	// ServerConfig is where the API and the page are served.
	confighttp.ServerConfig `mapstructure:",squash"`
	// AllowedHosts are the names of the server that clients may use, beside localhost and addresses.
	// Empty: only these if it listens on a loopback address. Otherwise clients may read under any
	// name, and send commands under this machine's name.
	AllowedHosts []string `mapstructure:"allowed_hosts"`
	// AllowDisruptive allows commands that stop or pause traced programs, or may do so.
	AllowDisruptive bool `mapstructure:"allow_disruptive"`
	// CommandTimeout bounds the time of a command, with the time that it waits for others.
	CommandTimeout time.Duration `mapstructure:"command_timeout"`
	// Limits bound the memory that clients and receivers can use.
	Limits LimitsConfig `mapstructure:"limits"`
}

// LimitsConfig bounds the memory that clients and receivers can use.
type LimitsConfig struct {
	// MaxAgents is how many agents are shown.
	MaxAgents int `mapstructure:"max_agents"`
	// MaxConnections is the largest number of connections of clients; one address has at most half
	// of them. If there are more, an idle one is closed.
	MaxConnections int `mapstructure:"max_connections"`
	// MaxRequests bounds the requests for pages and lists that are served at the same time, and the
	// commands that wait for busy agents.
	MaxRequests int `mapstructure:"max_requests"`
	// MaxWaiting bounds the commands for one agent, with the running one.
	MaxWaiting int `mapstructure:"max_waiting"`
	// MaxRequestBytes is how large the body of a request may be.
	MaxRequestBytes int `mapstructure:"max_request_bytes"`
	// MaxItems bounds the items of an answer, such as names of loggers.
	MaxItems int `mapstructure:"max_items"`
}

const (
	defaultEndpoint = "localhost:8766"
	// defaultReadTimeout is the time in which a request must arrive, and in which its header must
	// arrive.
	defaultReadTimeout = 10 * time.Second
	// leastOfWriting is the least time that a response has beyond its command's.
	leastOfWriting = time.Second

	kib = 1 << 10
)

func createDefaultConfig() component.Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = defaultEndpoint
	server.ReadTimeout = defaultReadTimeout
	server.ReadHeaderTimeout = defaultReadTimeout
	return &Config{
		ServerConfig:   server,
		CommandTimeout: 10 * time.Second,
		Limits: LimitsConfig{
			MaxAgents:       10_000,
			MaxConnections:  1000,
			MaxRequests:     64,
			MaxWaiting:      16,
			MaxRequestBytes: 64 * kib,
			MaxItems:        10_000,
		},
	}
}

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
)

// Unmarshal reports the right name of a misspelt setting.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return confignames.Unmarshal(conf, c) }

// Validate returns all invalid settings, each with its field and its remedy.
func (c *Config) Validate() error {
	all := errors.Join(
		setting.ListenAddress("endpoint", c.NetAddr.Endpoint, defaultEndpoint),
		setting.Timeout("command_timeout", c.CommandTimeout),
		setting.Between("limits.max_agents", c.Limits.MaxAgents, 1, 1_000_000),
		setting.Between("limits.max_connections", c.Limits.MaxConnections, 1, 100_000),
		setting.Between("limits.max_requests", c.Limits.MaxRequests, 1, 10_000),
		setting.Between("limits.max_waiting", c.Limits.MaxWaiting, 1, 10_000),
		setting.Between("limits.max_request_bytes", c.Limits.MaxRequestBytes, kib, 1<<20),
		setting.Between("limits.max_items", c.Limits.MaxItems, 1, 1_000_000),
	)
	// A client that doesn't read would be served forever without it.
	if least := c.CommandTimeout + leastOfWriting; c.WriteTimeout < least {
		all = errors.Join(all, fmt.Errorf("write_timeout is %v: set it to at least %v, %v more than command_timeout", c.WriteTimeout, least, leastOfWriting))
	}
	if c.CORS.HasValue() {
		all = errors.Join(all, errors.New("cors is set: leave it out, pages of other sites are not served"))
	}
	for _, name := range c.AllowedHosts {
		if name == "" || strings.ContainsAny(name, ":/* ") {
			all = errors.Join(all, fmt.Errorf("allowed_hosts has %q: set it to names of hosts, without scheme and port", name))
		}
	}
	return all
}
