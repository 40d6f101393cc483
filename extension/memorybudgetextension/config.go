// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package memorybudgetextension

import (
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/confignames"
	"github.com/callbraid/callbraid/internal/componentkit/setting"
)

// Config is the configuration of the extension.
type Config struct {
	// LimitMiB bounds the memory that all components together hold for their peers, in MiB; 0:
	// computed from LimitPercentage and from memory_limiter.
	LimitMiB int `mapstructure:"limit_mib"`
	// LimitPercentage is the same as a share of the memory that the process may use, in
	// percent: of GOMEMLIMIT, its cgroup's limit, or the machine's memory.
	LimitPercentage int `mapstructure:"limit_percentage"`
	// SetGoMemoryLimit lets Go collect garbage earlier if there is much live memory, by the limit of
	// memory_limiter, unless GOMEMLIMIT is set.
	SetGoMemoryLimit bool `mapstructure:"set_go_memory_limit"`
	// Requests bounds the OTLP requests of receivers that have the extension as middleware.
	Requests RequestsConfig `mapstructure:"requests"`
}

// RequestsConfig bounds OTLP requests, before they are decoded.
type RequestsConfig struct {
	// LimitMiB bounds the memory of all requests together, from their first byte to their answer, in
	// MiB: their bytes and their decoded data.
	LimitMiB int `mapstructure:"limit_mib"`
	// MaxAttributeDepth is how many levels of lists and maps an attribute may have.
	MaxAttributeDepth int `mapstructure:"max_attribute_depth"`
	// MaxOpen is how many requests may be sent or answered at the same time.
	MaxOpen int `mapstructure:"max_open"`
	// ReadTimeout bounds the time in which the bytes of one request must arrive.
	ReadTimeout time.Duration `mapstructure:"read_timeout"`
	// WriteTimeout bounds the time in which a client must read the answer to a GET request.
	WriteTimeout time.Duration `mapstructure:"write_timeout"`
}

const (
	mib = 1 << 20
	// leastMiB lets one program of some thousand methods be traced.
	leastMiB = 16
	// mostMiB is a tebibyte: more is a mistake in the unit.
	mostMiB = 1 << 20
	// mostDepth is that of stack_pairing. At this depth no recursion is dangerous.
	mostDepth = 1000
	mostOpen  = 100000
)

func createDefaultConfig() component.Config {
	return &Config{LimitPercentage: budget.DefaultPercentage, SetGoMemoryLimit: true, Requests: RequestsConfig{
		LimitMiB: 128, MaxAttributeDepth: 32, MaxOpen: 128, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
	}}
}

var _ confmap.Unmarshaler = (*Config)(nil)

// Unmarshal reports the right name of a misspelt setting.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return confignames.Unmarshal(conf, c) }

// Validate names each setting that cannot be, with its remedy.
func (c *Config) Validate() error {
	err := setting.Between("limit_percentage", c.LimitPercentage, 1, 90)
	if c.LimitMiB != 0 {
		err = errors.Join(err, setting.Between("limit_mib", c.LimitMiB, leastMiB, mostMiB))
	}
	return errors.Join(err, c.Requests.validate())
}

func (c *RequestsConfig) validate() error {
	return errors.Join(
		setting.Between("requests.limit_mib", c.LimitMiB, leastMiB, mostMiB/leastMiB),
		setting.Between("requests.max_attribute_depth", c.MaxAttributeDepth, 1, mostDepth),
		setting.Between("requests.max_open", c.MaxOpen, 1, mostOpen),
		setting.Within("requests.read_timeout", c.ReadTimeout, time.Second, time.Hour),
		setting.Within("requests.write_timeout", c.WriteTimeout, time.Second, time.Hour),
	)
}
