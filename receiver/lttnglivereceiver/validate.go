// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/collector/confmap"

	"github.com/callbraid/callbraid/internal/componentkit/confignames"
	"github.com/callbraid/callbraid/internal/componentkit/setting"
	"github.com/callbraid/callbraid/internal/lttng/session"
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
		setting.DialAddress("endpoint", c.Endpoint, "a relay daemon", defaultEndpoint),
		setting.Timeout("dialer.timeout", c.DialerConfig.Timeout),
		c.validateSessions(),
		c.BatchesConfig.ValidateWith(&c.Config, ""),
		setting.Within("max_delay", c.MaxDelay, time.Millisecond, time.Hour),
		c.ValidateMapping(),
		c.Poll.validate(),
		setting.Timeout("request_timeout", c.RequestTimeout),
		receiverkit.ValidateReconnect(c.Reconnect),
		c.Limits.validate(),
	)
}

func (c *Config) validateSessions() error {
	if len(c.Sessions) == 0 {
		return errors.New(`sessions is empty: set it to patterns of host/name, such as "*" for all`)
	}
	for i, pattern := range c.Sessions {
		if pattern == "" || !utf8.ValidString(pattern) {
			return fmt.Errorf(`sessions[%d] is %q: set it to a pattern of host/name, such as "*/web-*"`, i, pattern)
		}
	}
	switch c.Seek {
	case SeekBeginning, SeekLast:
		return nil
	default:
		return fmt.Errorf("seek is %q: set it to %s (everything that the relay daemon still has) or %s (from now on)", c.Seek, SeekBeginning, SeekLast)
	}
}

func (c *PollConfig) validate() error {
	if err := errors.Join(
		setting.Within("poll.list_interval", c.ListInterval, 10*time.Millisecond, time.Hour),
		setting.Within("poll.min_interval", c.MinInterval, 100*time.Microsecond, 10*time.Second),
	); err != nil {
		return err
	}
	return setting.Within("poll.max_interval", c.MaxInterval, c.MinInterval, time.Minute)
}

func (c *LimitsConfig) validate() error {
	return errors.Join(
		setting.Between("limits.max_sessions", c.MaxSessions, 1, 10_000),
		setting.Between("limits.max_session_metadata_bytes", c.MaxSessionMetadataBytes, session.MinPacketBytes, math.MaxInt),
		c.ValidateLimits(),
	)
}
