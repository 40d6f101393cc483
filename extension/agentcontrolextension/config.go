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

	"github.com/callbraid/callbraid/internal/componentkit/setting"
)

// Config is the configuration of the extension.
type Config struct {
	// ServerConfig is where the API and the page are served.
	confighttp.ServerConfig `mapstructure:",squash"`
	// AllowedHosts are the names that clients may call the server by, beside localhost
	// and addresses. Empty: no other name where it listens on a loopback address; else any
	// for who looks, and this machine's name for commands.
	AllowedHosts []string `mapstructure:"allowed_hosts"`
	// AllowDisruptive says whether commands that stop or pause traced programs, or may,
	// are carried out.
	AllowDisruptive bool `mapstructure:"allow_disruptive"`
	// CommandTimeout is how long a command may take, waiting for others included.
	CommandTimeout time.Duration `mapstructure:"command_timeout"`
	// Limits bound what clients and receivers can make the extension hold.
	Limits LimitsConfig `mapstructure:"limits"`
}

// LimitsConfig bounds what clients and receivers can make the extension hold.
type LimitsConfig struct {
	// MaxAgents is how many agents are shown.
	MaxAgents int `mapstructure:"max_agents"`
	// MaxConnections is how many connections clients have; one address has at most half of
	// them. When there are more, one goes on which nothing is asked.
	MaxConnections int `mapstructure:"max_connections"`
	// MaxRequests is how many requests for pages and lists are served at once, and how many
	// commands wait for agents that others have.
	MaxRequests int `mapstructure:"max_requests"`
	// MaxWaiting is how many commands can wait for one agent, the one that it carries out
	// included.
	MaxWaiting int `mapstructure:"max_waiting"`
	// MaxRequestBytes is how large the body of a request may be.
	MaxRequestBytes int `mapstructure:"max_request_bytes"`
	// MaxItems is how many items, such as names of loggers, an answer has.
	MaxItems int `mapstructure:"max_items"`
}

const (
	defaultEndpoint = "localhost:8766"
	// defaultReadTimeout is how long a request may take to come, and its begin alone.
	defaultReadTimeout = 10 * time.Second
	// leastOfWriting is how much longer a response may take than its command.
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

var _ confmap.Validator = (*Config)(nil)

// Validate says everything that is wrong, each with its field and its remedy.
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
	// A client that doesn't read would be served for ever without it.
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
