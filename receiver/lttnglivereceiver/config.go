// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confignet"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

// Config is the configuration of the receiver.
type Config struct {
	// TCPAddrConfig has the endpoint of the relay daemon, host:port, and how long
	// connecting to it may take.
	confignet.TCPAddrConfig `mapstructure:",squash"`
	// Sessions are patterns of host/name: sessions that match one of them are read. *
	// stands for anything, slashes too, and ? for one character.
	Sessions []string `mapstructure:"sessions"`
	// Seek says from where a session is read that is attached for the first time.
	Seek Seek `mapstructure:"seek"`
	// MaxDelay is how long a stream that says nothing may hold up the others of its
	// trace.
	MaxDelay time.Duration `mapstructure:"max_delay"`

	// ServiceName is the resource attribute service.name; empty: unknown_service: and
	// the name of the process, where it is known.
	ServiceName string `mapstructure:"service_name"`
	// ResourceAttributes are added to the resource; they win over the receiver's own.
	ResourceAttributes map[string]any `mapstructure:"resource_attributes"`

	// SymbolPaths are directories in which object files are looked for, under the
	// paths that the tracer tells. Empty: no file is read, and functions go by
	// object and offset.
	SymbolPaths []string `mapstructure:"symbol_paths"`
	// NameWait is how long addresses wait for the list of the process's objects. Always
	// less than what the processor waits for events (its reorder.max_wait).
	NameWait time.Duration `mapstructure:"name_wait"`
	// CallRules make calls of other pairs of events.
	CallRules []CallRule `mapstructure:"call_rules"`

	// Poll is how often the relay daemon is asked.
	Poll PollConfig `mapstructure:"poll"`
	// RequestTimeout is how long a request may take to be sent, and each 64 KiB of a
	// reply to come.
	RequestTimeout time.Duration `mapstructure:"request_timeout"`
	// Reconnect are the pauses before a connection or a session is tried again.
	Reconnect RetryConfig `mapstructure:"reconnect"`
	// Storage is the extension that keeps how far sessions were read; nil: memory
	// does, as long as the collector runs.
	Storage *component.ID `mapstructure:"storage"`

	// ExpectPairing says that stack_pairing follows in this collector. A warning is logged
	// where batches go elsewhere.
	ExpectPairing bool `mapstructure:"expect_pairing"`

	// Batch says when a batch of call events, or of log records, is closed.
	Batch BatchConfig `mapstructure:"batch"`
	// KeepaliveInterval is how often an empty batch says that a process can still be
	// heard of.
	KeepaliveInterval time.Duration `mapstructure:"keepalive_interval"`
	// Limits bound what a relay daemon can make the receiver hold.
	Limits LimitsConfig `mapstructure:"limits"`
	// Retry is how what the pipeline refused is handed on again.
	Retry RetryConfig `mapstructure:"retry"`
	// ShutdownTimeout is how long a shutdown hands on what is in memory.
	ShutdownTimeout time.Duration `mapstructure:"shutdown_timeout"`

	// CollectionInterval is how often metrics are handed on.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`
	// MetricsBuilderConfig says which metrics.
	metadata.MetricsBuilderConfig `mapstructure:",squash"`
}

// Seek is from where a session is read.
type Seek string

const (
	// SeekBeginning: everything that the relay daemon still has.
	SeekBeginning Seek = "beginning"
	// SeekLast: what is recorded from now on.
	SeekLast Seek = "last"
)

// CallRule makes calls of a pair of events: an event named Entry enters a function,
// one named Exit leaves it. Either Name or NameField says which function it is.
type CallRule struct {
	// Entry and Exit are the full names of events.
	Entry string `mapstructure:"entry"`
	Exit  string `mapstructure:"exit"`
	// Name is the name of the function.
	Name string `mapstructure:"name"`
	// NameField is the field of the entry that has the name; dots go into structures.
	NameField string `mapstructure:"name_field"`
	// KeyField is the field by whose value events are paired; empty: by thread.
	KeyField string `mapstructure:"key_field"`
}

// PollConfig is how often the relay daemon is asked.
type PollConfig struct {
	// ListInterval is how often its sessions are listed.
	ListInterval time.Duration `mapstructure:"list_interval"`
	// MinInterval is the pause between two rounds through all streams of a session
	// that had nothing new; it doubles up to MaxInterval while nothing comes. Sessions
	// with buffers for each process stay at MinInterval: their relay daemon gives up
	// what was not asked for when a process ends.
	MinInterval time.Duration `mapstructure:"min_interval"`
	MaxInterval time.Duration `mapstructure:"max_interval"`
}

// BatchConfig says when a batch is closed: by whatever comes first.
type BatchConfig struct {
	MaxBytes int           `mapstructure:"max_bytes"`
	MaxDelay time.Duration `mapstructure:"max_delay"`
}

// LimitsConfig bounds what a relay daemon can make the receiver hold.
type LimitsConfig struct {
	// MaxSessions is how many sessions are attached at once.
	MaxSessions int `mapstructure:"max_sessions"`
	// MaxStreams is how many streams a session may have at once.
	MaxStreams int `mapstructure:"max_streams"`
	// MaxPacketBytes and MaxMetadataBytes bound a packet, and the metadata of a trace.
	MaxPacketBytes   int `mapstructure:"max_packet_bytes"`
	MaxMetadataBytes int `mapstructure:"max_metadata_bytes"`
	// MaxSessionMetadataBytes bounds the metadata of all traces of a session together, with
	// what is made of it: with buffers for each process it has one for each.
	MaxSessionMetadataBytes int `mapstructure:"max_session_metadata_bytes"`
	// MaxWaitingBytes is how many bytes of packets of a session may wait for packets of
	// other streams, and one packet more. Half of it is for packets that others wait
	// for; where these have no room, the others go on without them.
	MaxWaitingBytes int `mapstructure:"max_waiting_bytes"`
	// MaxNamesBytes bounds what the names of functions and threads take that are
	// remembered of all processes of a session. Beyond it all are forgotten, and come again.
	MaxNamesBytes int `mapstructure:"max_names_bytes"`
	// MaxObjectsBytes bounds what the lists of objects take that all processes of a session
	// have loaded. What has no room is refused.
	MaxObjectsBytes int `mapstructure:"max_objects_bytes"`
	// MaxProcesses is how many processes of a session are followed. Beyond it the one
	// that was silent for longest ends.
	MaxProcesses int `mapstructure:"max_processes"`
	// MaxWaitingEvents is how many call events of a session wait for the lists of their
	// processes' objects. Beyond it those of the process that has most go without.
	MaxWaitingEvents int `mapstructure:"max_waiting_events"`
	// MaxLogRecordBytes is how large a log record may be, about. What has no room is left
	// out or cut.
	MaxLogRecordBytes int `mapstructure:"max_log_record_bytes"`
	// MaxQueuedLogs is how many log records can wait, and MaxQueuedLogBytes how many
	// bytes of them: whichever is reached first.
	MaxQueuedLogs     int `mapstructure:"max_queued_logs"`
	MaxQueuedLogBytes int `mapstructure:"max_queued_log_bytes"`
}

// RetryConfig is the back-off between tries.
type RetryConfig = backoff.Config

const (
	defaultEndpoint = "localhost:5344"

	kib, mib = 1 << 10, 1 << 20

	// maxNameWait leaves the processor's default wait of 5 s a second, and
	// maxRetryInterval two: what is handed on again is on its way for some time.
	maxNameWait      = 4 * time.Second
	maxRetryInterval = 3 * time.Second
	// minPacketBytes has room for the smallest buffer that tracers are told to have.
	minPacketBytes = 64 * kib
	// minNamesBytes has room for the longest names, and minObjectsBytes for the objects of a
	// small process.
	minNamesBytes   = mib
	minObjectsBytes = 64 * kib
	// minLogRecordBytes has room for what a record of an ordinary program says.
	minLogRecordBytes = 16 * kib
	maxLogRecordBytes = 64 * mib
)

func createDefaultConfig() *Config {
	return &Config{
		TCPAddrConfig:  confignet.TCPAddrConfig{Endpoint: defaultEndpoint, DialerConfig: confignet.DialerConfig{Timeout: 10 * time.Second}},
		Sessions:       []string{"*"},
		Seek:           SeekBeginning,
		MaxDelay:       5 * time.Second,
		SymbolPaths:    []string{"/"},
		NameWait:       time.Second,
		Poll:           PollConfig{ListInterval: time.Second, MinInterval: 2 * time.Millisecond, MaxInterval: 50 * time.Millisecond},
		RequestTimeout: 10 * time.Second,
		Reconnect:      RetryConfig{InitialInterval: 200 * time.Millisecond, MaxInterval: 30 * time.Second},

		ExpectPairing:     true,
		Batch:             BatchConfig{MaxBytes: 256 * kib, MaxDelay: 200 * time.Millisecond},
		KeepaliveInterval: 10 * time.Second,
		Limits: LimitsConfig{
			MaxSessions:             64,
			MaxStreams:              4096,
			MaxPacketBytes:          64 * mib,
			MaxMetadataBytes:        ctf.MaxMetadataBytes,
			MaxSessionMetadataBytes: 128 * mib,
			MaxWaitingBytes:         64 * mib,
			MaxNamesBytes:           128 * mib,
			MaxObjectsBytes:         64 * mib,
			MaxProcesses:            1024,
			MaxWaitingEvents:        100_000,
			MaxLogRecordBytes:       mib,
			MaxQueuedLogs:           100_000,
			MaxQueuedLogBytes:       64 * mib,
		},
		Retry:                RetryConfig{InitialInterval: 50 * time.Millisecond, MaxInterval: time.Second},
		ShutdownTimeout:      5 * time.Second,
		CollectionInterval:   10 * time.Second,
		MetricsBuilderConfig: metadata.NewDefaultMetricsBuilderConfig(),
	}
}
