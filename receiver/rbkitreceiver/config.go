// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"time"

	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
)

// Config is the configuration of the receiver.
type Config struct {
	// Servers are those that are followed.
	Servers []ServerConfig `mapstructure:"servers"`

	// MemoryProfile switches on that the server tells of garbage collections and of each
	// object that is created and destroyed. It slows the program down.
	MemoryProfile bool `mapstructure:"memory_profile"`
	// CPUProfile switches on that the server samples what runs.
	CPUProfile bool `mapstructure:"cpu_profile"`
	// Clock is by what it samples; empty: as the server is set.
	Clock Clock `mapstructure:"clock"`
	// ObjectSpaceSnapshotInterval and TriggerGCInterval are how often the server is told to
	// dump all objects, or to collect garbage; 0: never. The program stands still meanwhile.
	ObjectSpaceSnapshotInterval time.Duration `mapstructure:"objectspace_snapshot_interval"`
	TriggerGCInterval           time.Duration `mapstructure:"trigger_gc_interval"`
	// StateInterval is how often the server is asked for its state, which is corrected.
	StateInterval time.Duration `mapstructure:"state_interval"`

	// DumpReferences makes a log record of each object of a dump, with what it refers to.
	DumpReferences bool `mapstructure:"dump_references"`
	// ProfileInterval is what time a profile of CPU samples is of.
	ProfileInterval time.Duration `mapstructure:"profile_interval"`

	// ServiceName is the resource attribute service.name of servers that have no other;
	// empty: the name of the process.
	ServiceName string `mapstructure:"service_name"`
	// ResourceAttributes are added to the resource; they win over the receiver's own.
	ResourceAttributes map[string]any `mapstructure:"resource_attributes"`

	// Timeout is how long connecting and its handshake may take, each 64 KiB of a message to
	// come, and a request to be answered.
	Timeout time.Duration `mapstructure:"timeout"`
	// Heartbeat is after how long of silence a server is asked whether it is there.
	Heartbeat time.Duration `mapstructure:"heartbeat"`
	// Reconnect are the pauses before a connection is tried again.
	Reconnect RetryConfig `mapstructure:"reconnect"`
	// Limits bound what servers can make the receiver hold.
	Limits LimitsConfig `mapstructure:"limits"`
	// Retry is how what the pipeline refused is handed on again.
	Retry RetryConfig `mapstructure:"retry"`
	// ShutdownTimeout is how long a shutdown hands on what is in memory.
	ShutdownTimeout time.Duration `mapstructure:"shutdown_timeout"`

	// CollectionInterval is how often metrics are handed on.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`
	// Histograms says which of them.
	Histograms HistogramsConfig `mapstructure:"histograms"`
	// MetricsBuilderConfig says which other metrics.
	metadata.MetricsBuilderConfig `mapstructure:",squash"`
	// LogsBuilderConfig says which log records.
	metadata.LogsBuilderConfig `mapstructure:",squash"`
}

// ServerConfig is one server.
type ServerConfig struct {
	// Publish is the address, host:port, on which it publishes.
	Publish string `mapstructure:"publish"`
	// Request is the address, host:port, on which it answers; empty: nothing is asked of it.
	Request string `mapstructure:"request"`
	// ServiceName is its service.name; empty: that of the receiver.
	ServiceName string `mapstructure:"service_name"`
	// Username and Password are for servers behind a proxy that asks for them (ZMTP's
	// PLAIN, in clear); both empty: none.
	Username string              `mapstructure:"username"`
	Password configopaque.String `mapstructure:"password"`
}

// Clock is by what the CPU is profiled.
type Clock string

const (
	// ClockUnchanged leaves it as the server is set.
	ClockUnchanged Clock = ""
	// ClockWall is the time that passes.
	ClockWall Clock = "wall"
	// ClockCPU is the time that the program runs.
	ClockCPU Clock = "cpu"
)

// LimitsConfig bounds what servers can make the receiver hold. All but MaxMetricPoints,
// MaxMessageBytes and the queues are for each server.
type LimitsConfig struct {
	// MaxMetricPoints is how many metric points with a class, or a class and a file, all servers
	// together may have. Each server has an equal part.
	MaxMetricPoints int `mapstructure:"max_metric_points"`
	// MaxServerMemory is how many bytes a server may take in memory, with all that the other
	// limits are of. Beyond it the server is disconnected for a while.
	MaxServerMemory int `mapstructure:"max_server_memory"`
	// MaxMessageBytes bounds a message.
	MaxMessageBytes int `mapstructure:"max_message_bytes"`
	// MaxTrackedObjects is how many objects are remembered with their class until they are
	// destroyed. Beyond it those that were created longest ago are forgotten.
	MaxTrackedObjects int `mapstructure:"max_tracked_objects"`
	// MaxClasses and MaxFiles are how many classes, and files, have counts of their own, and
	// MaxSites how many pairs of them.
	MaxClasses int `mapstructure:"max_classes"`
	MaxFiles   int `mapstructure:"max_files"`
	MaxSites   int `mapstructure:"max_sites"`
	// MaxDumpObjects is of how many objects of a dump references are checked.
	MaxDumpObjects int `mapstructure:"max_dump_objects"`
	// MaxFrames is how many frames a stack may have.
	MaxFrames int `mapstructure:"max_frames"`
	// MaxProfileStacks is how many different stacks a profile may have.
	MaxProfileStacks int `mapstructure:"max_profile_stacks"`
	// MaxQueuedLogs, MaxQueuedSpans and MaxQueuedSamples are how many log records, spans and
	// samples can wait, and …Bytes how many bytes of them: whichever is reached first.
	MaxQueuedLogs        int `mapstructure:"max_queued_logs"`
	MaxQueuedLogBytes    int `mapstructure:"max_queued_log_bytes"`
	MaxQueuedSpans       int `mapstructure:"max_queued_spans"`
	MaxQueuedSpanBytes   int `mapstructure:"max_queued_span_bytes"`
	MaxQueuedSamples     int `mapstructure:"max_queued_samples"`
	MaxQueuedSampleBytes int `mapstructure:"max_queued_sample_bytes"`
}

// HistogramsConfig says which histograms are handed on. The generated configuration of
// metrics has none.
type HistogramsConfig struct {
	// MarkDuration is how long mark phases of garbage collections lasted, CycleDuration how long
	// all of them.
	MarkDuration  HistogramConfig `mapstructure:"ruby.gc.mark_phase.duration"`
	CycleDuration HistogramConfig `mapstructure:"ruby.gc.cycle.duration"`
}

// HistogramConfig is of one histogram.
type HistogramConfig struct {
	Enabled bool `mapstructure:"enabled"`
}

// RetryConfig is the back-off between tries.
type RetryConfig = backoff.Config

const (
	// defaultPublish and defaultRequest are where servers listen if they aren't told
	// otherwise.
	defaultPublish = "localhost:5555"
	defaultRequest = "localhost:5556"

	mib = 1 << 20
)

// pointsOfClass and pointsOfSite are how many metric points a class has, and a class with a file.
const pointsOfClass, pointsOfSite = 4, 2

// limitsOfServer are the limits of one server. Of its part of MaxMetricPoints one half is for
// classes and one half for sites, at least one of each.
func (c *Config) limitsOfServer() LimitsConfig {
	limits := c.Limits
	half := limits.MaxMetricPoints / max(len(c.Servers), 1) / 2
	limits.MaxClasses = min(limits.MaxClasses, max(half/pointsOfClass, 1))
	limits.MaxSites = min(limits.MaxSites, max(half/pointsOfSite, 1))
	return limits
}

func createDefaultConfig() *Config {
	return &Config{
		StateInterval:   30 * time.Second,
		ProfileInterval: 10 * time.Second,
		Timeout:         5 * time.Second,
		Heartbeat:       15 * time.Second,
		Reconnect:       RetryConfig{InitialInterval: 200 * time.Millisecond, MaxInterval: 30 * time.Second},
		Limits: LimitsConfig{
			MaxMetricPoints:      50_000,
			MaxServerMemory:      256 * mib,
			MaxMessageBytes:      32 * mib,
			MaxTrackedObjects:    1_000_000,
			MaxClasses:           1000,
			MaxFiles:             1000,
			MaxSites:             5000,
			MaxDumpObjects:       1_000_000,
			MaxFrames:            4096,
			MaxProfileStacks:     10_000,
			MaxQueuedLogs:        100_000,
			MaxQueuedLogBytes:    64 * mib,
			MaxQueuedSpans:       100_000,
			MaxQueuedSpanBytes:   64 * mib,
			MaxQueuedSamples:     1_000_000,
			MaxQueuedSampleBytes: 64 * mib,
		},
		Retry:                RetryConfig{InitialInterval: 50 * time.Millisecond, MaxInterval: time.Second},
		ShutdownTimeout:      5 * time.Second,
		CollectionInterval:   10 * time.Second,
		Histograms:           HistogramsConfig{MarkDuration: HistogramConfig{Enabled: true}, CycleDuration: HistogramConfig{Enabled: true}},
		MetricsBuilderConfig: metadata.NewDefaultMetricsBuilderConfig(),
		LogsBuilderConfig:    metadata.DefaultLogsBuilderConfig(),
	}
}
