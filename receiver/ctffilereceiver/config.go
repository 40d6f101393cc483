// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/callbraid/callbraid/internal/componentkit/confignames"
	"github.com/callbraid/callbraid/internal/componentkit/setting"
	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/ctffilereceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/ctffilereceiver/internal/recorded"
)

// Config is the configuration of the receiver.
type Config struct {
	receiverkit.Config `mapstructure:",squash"`
	// Include and Exclude are patterns of paths. The receiver reads the traces in matching directories, and below. *, ?
	// and [...] match within a name, ** any number of directories.
	Include []string `mapstructure:"include"`
	Exclude []string `mapstructure:"exclude"`
	// Mode says whether files still grow.
	Mode Mode `mapstructure:"mode"`
	// AtEnd is the action after the last trace, in the mode once.
	AtEnd AtEnd `mapstructure:"at_end"`
	// PollInterval is the interval of searches, and the longest pause between looks at files that may grow.
	PollInterval time.Duration `mapstructure:"poll_interval"`
	// MaxDelay is the time without growth of a trace after which its streams no longer wait for others. EndAfter is the
	// time after which the trace has ended.
	MaxDelay time.Duration `mapstructure:"max_delay"`
	EndAfter time.Duration `mapstructure:"end_after"`

	// MappingConfig gives events a meaning.
	session.MappingConfig `mapstructure:",squash"`

	// Storage is the extension that stores positions. If it is nil, positions are kept in memory while the collector
	// runs.
	Storage *component.ID `mapstructure:"storage"`
	// Reconnect has the pauses before the receiver tries again to read a trace, in the mode watch.
	Reconnect receiverkit.RetryConfig `mapstructure:"reconnect"`

	// BatchesConfig has the settings of batches of call events. Its Batch also bounds batches of log records.
	receiverkit.BatchesConfig `mapstructure:",squash"`
	// Limits bound the memory that files can make the receiver use.
	Limits LimitsConfig `mapstructure:"limits"`
	// MetricsBuilderConfig selects the metrics.
	metadata.MetricsBuilderConfig `mapstructure:",squash"`
}

// Mode says whether files still grow.
type Mode string

const (
	// ModeOnce: the receiver reads all traces that exist at its start, to their end.
	ModeOnce Mode = "once"
	// ModeWatch: the receiver also reads new traces, and those that are still written.
	ModeWatch Mode = "watch"
)

// AtEnd is the action after the last trace.
type AtEnd string

const (
	// AtEndKeepRunning: the collector keeps running.
	AtEndKeepRunning AtEnd = "keep_running"
	// AtEndStopCollector: the collector shuts down.
	AtEndStopCollector AtEnd = "stop_collector"
)

// LimitsConfig bounds the memory that files can make the receiver use.
type LimitsConfig struct {
	// MaxTraces is the maximum number of directories of traces.
	MaxTraces int `mapstructure:"max_traces"`
	// MaxOpenTraces is the maximum number of traces that are read at the same time.
	MaxOpenTraces int `mapstructure:"max_open_traces"`
	// LimitsConfig bounds the data of each trace.
	session.LimitsConfig `mapstructure:",squash"`
}

func createDefaultConfig() *Config {
	return &Config{
		Config:        receiverkit.DefaultConfig(),
		Mode:          ModeOnce,
		AtEnd:         AtEndKeepRunning,
		PollInterval:  time.Second,
		MaxDelay:      5 * time.Second,
		EndAfter:      time.Minute,
		MappingConfig: session.DefaultMappingConfig(),
		Reconnect:     receiverkit.DefaultReconnect(),
		BatchesConfig: receiverkit.DefaultBatchesConfig(),
		Limits: LimitsConfig{
			MaxTraces:     10_000,
			MaxOpenTraces: 64,
			LimitsConfig:  session.DefaultLimits(),
		},
		MetricsBuilderConfig: metadata.NewDefaultMetricsBuilderConfig(),
	}
}

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
)

// Unmarshal reports the right name of a misspelt setting.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return confignames.Unmarshal(conf, c) }

// Validate returns all errors, each with its field and its remedy.
func (c *Config) Validate() error {
	return errors.Join(
		c.validatePatterns(),
		c.validateModes(),
		setting.Within("poll_interval", c.PollInterval, 10*time.Millisecond, time.Hour),
		setting.Within("max_delay", c.MaxDelay, time.Millisecond, time.Hour),
		setting.Within("end_after", c.EndAfter, c.MaxDelay, 24*time.Hour),
		c.ValidateMapping(),
		receiverkit.ValidateReconnect(c.Reconnect),
		c.BatchesConfig.ValidateWith(&c.Config, ""),
		setting.Between("limits.max_traces", c.Limits.MaxTraces, 1, 1_000_000),
		setting.Between("limits.max_open_traces", c.Limits.MaxOpenTraces, 1, 10_000),
		c.Limits.ValidateLimits(),
	)
}

func (c *Config) validatePatterns() error {
	if len(c.Include) == 0 {
		return errors.New(`include is empty: set it to directories of traces, or to patterns such as "/traces/**"`)
	}
	_, err := c.finder()
	return err
}

// finder returns the search for traces.
func (c *Config) finder() (*recorded.Finder, error) {
	f := &recorded.Finder{MaxDirs: c.Limits.MaxTraces}
	var all []error
	for _, of := range []struct {
		field    string
		texts    []string
		patterns *[]recorded.Pattern
	}{{"include", c.Include, &f.Include}, {"exclude", c.Exclude, &f.Exclude}} {
		for i, text := range of.texts {
			p, err := recorded.ParsePattern(text)
			if err != nil {
				all = append(all, fmt.Errorf(`%s[%d] %q: %w: set it to a directory, or to a pattern such as "/traces/**"`, of.field, i, text, err))
			}
			*of.patterns = append(*of.patterns, p)
		}
	}
	return f, errors.Join(all...)
}

func (c *Config) validateModes() error {
	switch c.Mode {
	case ModeOnce, ModeWatch:
	default:
		return fmt.Errorf("mode is %q: set it to %s (read the traces that exist) or %s (also new and growing ones)", c.Mode, ModeOnce, ModeWatch)
	}
	switch {
	case c.AtEnd != AtEndKeepRunning && c.AtEnd != AtEndStopCollector:
		return fmt.Errorf("at_end is %q: set it to %s or %s", c.AtEnd, AtEndKeepRunning, AtEndStopCollector)
	case c.AtEnd == AtEndStopCollector && c.Mode != ModeOnce:
		return fmt.Errorf("at_end is %s: set mode to %s, because with the mode watch there is no last trace", c.AtEnd, ModeOnce)
	}
	return nil
}

// aheadBytes is the size of packets of a trace that are read before other streams need them.
const aheadBytes = 4 << 20

// minPoll is the shortest pause between looks at files that may grow.
const minPoll = 5 * time.Millisecond

// forSessions returns the settings that sessions need.
func (c *Config) forSessions() session.Config {
	return session.Config{
		Settings: c.sessionSettings(),
		Mapping:  &c.MappingConfig, Limits: &c.Limits.LimitsConfig, Common: &c.Config, Batches: &c.BatchesConfig, Storage: c.Storage,
	}
}

// sessionSettings returns the settings of sessions.
func (c *Config) sessionSettings() session.Settings {
	return session.Settings{
		MinPoll: min(minPoll, c.PollInterval), MaxPoll: c.PollInterval, Reconnect: c.Reconnect,
		Stored: c.Storage != nil, ShutdownTimeout: c.ShutdownTimeout,
		Limits: session.Limits{
			// A trace has one stream more than files: the metadata.
			Streams: c.Limits.MaxStreams + 2, PacketBytes: c.Limits.MaxPacketBytes, MetadataBytes: c.Limits.MaxMetadataBytes,
			SessionMetadataBytes: maxTraceMetadata, WaitingBytes: c.Limits.MaxWaitingBytes, AheadBytes: aheadBytes,
		},
	}
}

// maxTraceMetadata bounds the metadata of a trace with the structures made from it.
const maxTraceMetadata = 512 << 20
