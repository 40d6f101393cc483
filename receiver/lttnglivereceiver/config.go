// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confignet"

	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

// Config is the configuration of the receiver.
type Config struct {
	// TCPAddrConfig has the endpoint of the relay daemon, host:port, and the maximum time for connecting to it.
	confignet.TCPAddrConfig `mapstructure:",squash"`
	receiverkit.Config      `mapstructure:",squash"`
	// Sessions are patterns of host/name. The receiver reads matching sessions. * stands for any text, including
	// slashes, and ? for one character.
	Sessions []string `mapstructure:"sessions"`
	// Seek is the place at which reading begins when a session is attached for the first time.
	Seek Seek `mapstructure:"seek"`
	// MaxDelay is the maximum time that other streams of a trace wait for a stream that sends nothing.
	MaxDelay time.Duration `mapstructure:"max_delay"`

	// MappingConfig gives events a meaning.
	session.MappingConfig `mapstructure:",squash"`

	// Poll contains the intervals of requests to the relay daemon.
	Poll PollConfig `mapstructure:"poll"`
	// RequestTimeout is the maximum time to send a request, and to receive each 64 KiB of a reply.
	RequestTimeout time.Duration `mapstructure:"request_timeout"`
	// Reconnect has the pauses before the receiver connects or attaches a session again.
	Reconnect RetryConfig `mapstructure:"reconnect"`
	// Storage is the extension that stores positions. If it is nil, positions are kept in memory while the collector
	// runs.
	Storage *component.ID `mapstructure:"storage"`

	// BatchesConfig has the settings of batches of call events. Its Batch also bounds batches of log records.
	receiverkit.BatchesConfig `mapstructure:",squash"`
	// Limits bound the memory that a relay daemon can make the receiver use.
	Limits LimitsConfig `mapstructure:"limits"`
	// MetricsBuilderConfig selects the metrics.
	metadata.MetricsBuilderConfig `mapstructure:",squash"`
}

// Seek is the place at which reading of a session begins.
type Seek string

const (
	// SeekBeginning: at the beginning of the relay daemon's recording.
	SeekBeginning Seek = "beginning"
	// SeekLast: now.
	SeekLast Seek = "last"
)

// CallRule makes calls of a pair of events.
type CallRule = mapping.CallRule

// LogValuesConfig determines the form of values in log records.
type LogValuesConfig = session.LogValuesConfig

// PollConfig contains the intervals of requests to the relay daemon.
type PollConfig struct {
	// ListInterval is the interval of lists of sessions.
	ListInterval time.Duration `mapstructure:"list_interval"`
	// MinInterval is the pause after a round through all streams of a session without news. It doubles
	// up to MaxInterval while there is no news. For sessions with buffers for each process it stays at
	// MinInterval: their relay daemon discards data that was not read when a process ends.
	MinInterval time.Duration `mapstructure:"min_interval"`
	MaxInterval time.Duration `mapstructure:"max_interval"`
}

// LimitsConfig bounds the memory that a relay daemon can make the receiver use.
type LimitsConfig struct {
	// MaxSessions is the maximum number of attached sessions.
	MaxSessions int `mapstructure:"max_sessions"`
	// MaxSessionMetadataBytes bounds the metadata of all traces of a session, with its representation in
	// memory. A session with buffers for each process has a trace for each process.
	MaxSessionMetadataBytes int `mapstructure:"max_session_metadata_bytes"`
	// LimitsConfig bounds the data of each session.
	session.LimitsConfig `mapstructure:",squash"`
}

// RetryConfig is the back-off between tries.
type RetryConfig = receiverkit.RetryConfig

const defaultEndpoint = "localhost:5344"

func createDefaultConfig() *Config {
	return &Config{
		Config:         receiverkit.DefaultConfig(),
		TCPAddrConfig:  confignet.TCPAddrConfig{Endpoint: defaultEndpoint, DialerConfig: confignet.DialerConfig{Timeout: 10 * time.Second}},
		Sessions:       []string{"*"},
		Seek:           SeekBeginning,
		MaxDelay:       5 * time.Second,
		MappingConfig:  session.DefaultMappingConfig(),
		Poll:           PollConfig{ListInterval: time.Second, MinInterval: 2 * time.Millisecond, MaxInterval: 50 * time.Millisecond},
		RequestTimeout: 10 * time.Second,
		Reconnect:      receiverkit.DefaultReconnect(),

		BatchesConfig: receiverkit.DefaultBatchesConfig(),
		Limits: LimitsConfig{
			MaxSessions:             64,
			MaxSessionMetadataBytes: 192 << 20,
			LimitsConfig:            session.DefaultLimits(),
		},
		MetricsBuilderConfig: metadata.NewDefaultMetricsBuilderConfig(),
	}
}

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
		Endpoint: c.Endpoint, FromNow: c.Seek == SeekLast, MaxDelay: c.MaxDelay,
		MinPoll: c.Poll.MinInterval, MaxPoll: c.Poll.MaxInterval, RequestTimeout: c.RequestTimeout, Reconnect: c.Reconnect,
		Stored: c.Storage != nil, ShutdownTimeout: c.ShutdownTimeout,
		Limits: session.Limits{
			Streams: c.Limits.MaxStreams, PacketBytes: c.Limits.MaxPacketBytes, MetadataBytes: c.Limits.MaxMetadataBytes,
			SessionMetadataBytes: c.Limits.MaxSessionMetadataBytes, WaitingBytes: c.Limits.MaxWaitingBytes,
		},
	}
}
