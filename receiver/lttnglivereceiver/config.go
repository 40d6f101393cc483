// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confignet"

	"github.com/callbraid/callbraid/internal/lttng/callstream"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/process"
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

	// ServiceName is the resource attribute service.name. Empty: unknown_service: and the name of the
	// process, if it is known.
	ServiceName string `mapstructure:"service_name"`

	// SymbolPaths are directories that have object files under the paths that the tracer recorded.
	// Empty: no file is read, and functions are named by object and offset.
	SymbolPaths []string `mapstructure:"symbol_paths"`
	// NameWait is the maximum time that addresses wait for the list of the process's objects. It is always less than
	// the processor's reorder.max_wait.
	NameWait time.Duration `mapstructure:"name_wait"`
	// LogValues determines the form of values in log records.
	LogValues LogValuesConfig `mapstructure:"log_values"`
	// CallRules make calls of other pairs of events.
	CallRules []CallRule `mapstructure:"call_rules"`

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
type LogValuesConfig struct {
	// EnumerationNumbers adds an attribute with the number of each enumeration, beside that with its label.
	EnumerationNumbers bool `mapstructure:"enumeration_numbers"`
	// Hexadecimal writes integers whose preferred base is 16 as text.
	Hexadecimal bool `mapstructure:"hexadecimal"`
}

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
	// MaxStreams is the maximum number of streams of a session.
	MaxStreams int `mapstructure:"max_streams"`
	// MaxPacketBytes and MaxMetadataBytes bound a packet, and the metadata of a trace.
	MaxPacketBytes   int `mapstructure:"max_packet_bytes"`
	MaxMetadataBytes int `mapstructure:"max_metadata_bytes"`
	// MaxSessionMetadataBytes bounds the metadata of all traces of a session, with its representation in
	// memory. A session with buffers for each process has a trace for each process.
	MaxSessionMetadataBytes int `mapstructure:"max_session_metadata_bytes"`
	// MaxWaitingBytes bounds the packets of a session that wait for packets of other streams; one packet
	// may exceed it. Half of it is for packets for which other streams wait. If these have no room, the
	// others continue without them.
	MaxWaitingBytes int `mapstructure:"max_waiting_bytes"`
	// MaxNamesBytes bounds the names of functions and threads of all processes of a session. Beyond it
	// all are forgotten and read again.
	MaxNamesBytes int `mapstructure:"max_names_bytes"`
	// MaxObjectsBytes bounds the lists of objects that the processes of a session have loaded. Objects
	// without room are refused.
	MaxObjectsBytes int `mapstructure:"max_objects_bytes"`
	// MaxProcesses is the maximum number of processes of a session. Beyond it the call stream of the process with the
	// oldest last event ends.
	MaxProcesses int `mapstructure:"max_processes"`
	// MaxWaitingEvents is the maximum number of call events of a session that wait for lists of objects.
	// Beyond it those of the process with the most stop waiting.
	MaxWaitingEvents int `mapstructure:"max_waiting_events"`
	// MaxLogRecordBytes is the approximate maximum size of a log record. Values that do not fit are omitted or
	// truncated.
	MaxLogRecordBytes int `mapstructure:"max_log_record_bytes"`
	// LogLimits bound the log records that wait for the pipeline.
	receiverkit.LogLimits `mapstructure:",squash"`
}

// RetryConfig is the back-off between tries.
type RetryConfig = receiverkit.RetryConfig

const (
	defaultEndpoint = "localhost:5344"

	kib, mib = 1 << 10, 1 << 20

	// minPacketBytes has room for the smallest buffers that tracers use.
	minPacketBytes = 64 * kib
	// minNamesBytes has room for the longest names, and minObjectsBytes for the objects of a small
	// process.
	minNamesBytes   = mib
	minObjectsBytes = 64 * kib
	// minLogRecordBytes has room for the record of an ordinary program.
	minLogRecordBytes = 16 * kib
	maxLogRecordBytes = 64 * mib
)

func createDefaultConfig() *Config {
	return &Config{
		Config:         receiverkit.DefaultConfig(),
		TCPAddrConfig:  confignet.TCPAddrConfig{Endpoint: defaultEndpoint, DialerConfig: confignet.DialerConfig{Timeout: 10 * time.Second}},
		Sessions:       []string{"*"},
		Seek:           SeekBeginning,
		MaxDelay:       5 * time.Second,
		SymbolPaths:    []string{"/"},
		NameWait:       time.Second,
		Poll:           PollConfig{ListInterval: time.Second, MinInterval: 2 * time.Millisecond, MaxInterval: 50 * time.Millisecond},
		RequestTimeout: 10 * time.Second,
		Reconnect:      receiverkit.DefaultReconnect(),

		BatchesConfig: receiverkit.DefaultBatchesConfig(),
		Limits: LimitsConfig{
			MaxSessions:             64,
			MaxStreams:              4096,
			MaxPacketBytes:          64 * mib,
			MaxMetadataBytes:        ctf.MaxMetadataBytes,
			MaxSessionMetadataBytes: 192 * mib,
			MaxWaitingBytes:         64 * mib,
			MaxNamesBytes:           128 * mib,
			MaxObjectsBytes:         64 * mib,
			MaxProcesses:            1024,
			MaxWaitingEvents:        100_000,
			MaxLogRecordBytes:       mib,
			LogLimits:               receiverkit.LogLimits{MaxQueuedLogs: 100_000, MaxQueuedLogBytes: 64 * mib},
		},
		MetricsBuilderConfig: metadata.NewDefaultMetricsBuilderConfig(),
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

// processSettings returns the settings of processes. now returns the time.
func (c *Config) processSettings(now func() time.Time) *process.Settings {
	return &process.Settings{
		ServiceName: c.ServiceName, ResourceAttributes: c.ResourceAttributes, NameWait: c.NameWait, Rules: mapping.NewRules(c.CallRules),
		Calls: callstream.Settings{
			TextKey: process.AttributeText, MaxBytes: c.Batch.MaxBytes, MaxDelay: c.Batch.MaxDelay, KeepaliveInterval: c.KeepaliveInterval, Now: now,
		},
		Resumes: c.Storage != nil, Now: now,
		Limits: process.Limits{
			Processes: c.Limits.MaxProcesses, NamesBytes: c.Limits.MaxNamesBytes, ObjectsBytes: c.Limits.MaxObjectsBytes,
			WaitingEvents: c.Limits.MaxWaitingEvents,
		},
	}
}
