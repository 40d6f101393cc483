// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"

	"github.com/callbraid/callbraid/internal/componentkit/confignames"
	"github.com/callbraid/callbraid/internal/componentkit/setting"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
)

// Config is the configuration of the receiver.
type Config struct {
	// Servers are the servers to follow.
	Servers []ServerConfig `mapstructure:"servers"`

	// MemoryProfile makes the server report garbage collections and each object that is created
	// and destroyed. It slows the program down.
	MemoryProfile bool `mapstructure:"memory_profile"`
	// CPUProfile switches on that the server samples stacks.
	CPUProfile bool `mapstructure:"cpu_profile"`
	// Clock is the clock of its samples; empty: the one that is set in the server.
	Clock Clock `mapstructure:"clock"`
	// ObjectSpaceSnapshotInterval and TriggerGCInterval are how often the server gets the command to
	// dump all objects, or to collect garbage; 0: never. The program stands still meanwhile.
	ObjectSpaceSnapshotInterval time.Duration `mapstructure:"objectspace_snapshot_interval"`
	TriggerGCInterval           time.Duration `mapstructure:"trigger_gc_interval"`
	// StateInterval is how often the server is asked for its state, which is corrected.
	StateInterval time.Duration `mapstructure:"state_interval"`

	// DumpReferences makes a log record of each object of a dump, with its references.
	DumpReferences bool `mapstructure:"dump_references"`
	// ProfileInterval is the length of a profile of CPU samples.
	ProfileInterval time.Duration `mapstructure:"profile_interval"`

	// ServiceName is the resource attribute service.name of servers that have no other;
	// empty: the name of the process.
	ServiceName string `mapstructure:"service_name"`

	// Timeout bounds a connection with its handshake, each 64 KiB of a message, and a request.
	Timeout time.Duration `mapstructure:"timeout"`
	// Heartbeat is the silence after which the receiver sends a PING to the server.
	Heartbeat time.Duration `mapstructure:"heartbeat"`
	// Reconnect are the pauses before a connection is tried again.
	Reconnect RetryConfig `mapstructure:"reconnect"`
	// Limits bound the memory that servers can use.
	Limits LimitsConfig `mapstructure:"limits"`
	// Config has the settings of every receiver.
	receiverkit.Config `mapstructure:",squash"`

	// Histograms switches histograms.
	Histograms HistogramsConfig `mapstructure:"histograms"`
	// MetricsBuilderConfig switches all other metrics.
	metadata.MetricsBuilderConfig `mapstructure:",squash"`
	// LogsBuilderConfig switches log records.
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

// Clock is the clock of CPU profiles.
type Clock string

const (
	// ClockUnchanged leaves it as the server is set.
	ClockUnchanged Clock = ""
	// ClockWall is the time that passes.
	ClockWall Clock = "wall"
	// ClockCPU is the time that the program runs.
	ClockCPU Clock = "cpu"
)

// LimitsConfig bounds the memory that servers can use. All limits are for each server,
// except MaxMetricPoints, MaxMessageBytes and those of the queues.
type LimitsConfig struct {
	// MaxMetricPoints is how many metric points with a class, or a class and a file, all servers
	// together may have. Each server has an equal part.
	MaxMetricPoints int `mapstructure:"max_metric_points"`
	// MaxServerMemory bounds all memory of a server in bytes. Beyond it the server is disconnected
	// for a while.
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
	// The limits of the queues.
	receiverkit.LogLimits    `mapstructure:",squash"`
	receiverkit.SpanLimits   `mapstructure:",squash"`
	receiverkit.SampleLimits `mapstructure:",squash"`
}

// HistogramsConfig switches histograms on. The generated configuration of
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

// RetryConfig is the back-off between attempts.
type RetryConfig = receiverkit.RetryConfig

const (
	// defaultPublish and defaultRequest are the default addresses of servers.
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

// originsOf returns the settings of the origins of a server.
func originsOf(c *Config, server *ServerConfig, host string) origin.Settings {
	return origin.Settings{Resource: c.Resource, ServiceName: cmp.Or(server.ServiceName, c.ServiceName), Publish: server.Publish, Host: host}
}

func createDefaultConfig() *Config {
	return &Config{
		StateInterval:   30 * time.Second,
		ProfileInterval: 10 * time.Second,
		Timeout:         5 * time.Second,
		Heartbeat:       15 * time.Second,
		Reconnect:       receiverkit.DefaultReconnect(),
		Limits: LimitsConfig{
			MaxMetricPoints:   50_000,
			MaxServerMemory:   256 * mib,
			MaxMessageBytes:   32 * mib,
			MaxTrackedObjects: 1_000_000,
			MaxClasses:        1000,
			MaxFiles:          1000,
			MaxSites:          5000,
			MaxDumpObjects:    1_000_000,
			MaxFrames:         4096,
			MaxProfileStacks:  10_000,
			LogLimits:         receiverkit.LogLimits{MaxQueuedLogs: 100_000, MaxQueuedLogBytes: 64 * mib},
			SpanLimits:        receiverkit.SpanLimits{MaxQueuedSpans: 100_000, MaxQueuedSpanBytes: 64 * mib},
			SampleLimits:      receiverkit.SampleLimits{MaxQueuedSamples: 1_000_000, MaxQueuedSampleBytes: 64 * mib},
		},
		Config:               receiverkit.DefaultConfig(),
		Histograms:           HistogramsConfig{MarkDuration: HistogramConfig{Enabled: true}, CycleDuration: HistogramConfig{Enabled: true}},
		MetricsBuilderConfig: metadata.NewDefaultMetricsBuilderConfig(),
		LogsBuilderConfig:    metadata.DefaultLogsBuilderConfig(),
	}
}

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
)

// Unmarshal reports the right name of a misspelt setting.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return confignames.Unmarshal(conf, c) }

// Validate returns an error for each wrong setting, with its field and remedy.
func (c *Config) Validate() error {
	return errors.Join(
		c.validateServers(),
		c.validateClock(),
		withinOrNever("objectspace_snapshot_interval", c.ObjectSpaceSnapshotInterval),
		withinOrNever("trigger_gc_interval", c.TriggerGCInterval),
		setting.Within("state_interval", c.StateInterval, 10*time.Millisecond, time.Hour),
		setting.Within("profile_interval", c.ProfileInterval, 10*time.Millisecond, time.Hour),
		setting.Timeout("timeout", c.Timeout),
		setting.Within("heartbeat", c.Heartbeat, 10*time.Millisecond, time.Hour),
		receiverkit.ValidateReconnect(c.Reconnect),
		c.Limits.validate(),
		c.ValidateCommon(),
	)
}

func (c *Config) validateServers() error {
	if len(c.Servers) == 0 {
		return fmt.Errorf("servers is empty: set it to at least one, with publish: %s and request: %s", defaultPublish, defaultRequest)
	}
	seen := map[string]int{}
	var all error
	for i, s := range c.Servers {
		at := fmt.Sprintf("servers[%d].", i)
		all = errors.Join(all, setting.DialAddress(at+"publish", s.Publish, "a server", defaultPublish), s.validateSecurity(at))
		if s.Request != "" {
			all = errors.Join(all, setting.DialAddress(at+"request", s.Request, "a server", defaultRequest))
		}
		if s.Request == s.Publish {
			all = errors.Join(all, fmt.Errorf("%srequest is %q, and so is publish: set them to the two ports of the server", at, s.Request))
		}
		if other, twice := seen[s.Publish]; twice {
			all = errors.Join(all, fmt.Errorf("%spublish is %q, as in servers[%d]: list each server once", at, s.Publish, other))
		}
		seen[s.Publish] = i
	}
	return all
}

// maxCredential is how many bytes ZMTP has for a name or a password.
const maxCredential = 255

func (s *ServerConfig) validateSecurity(at string) error {
	if len(s.Username) > maxCredential || len(s.Password) > maxCredential {
		return fmt.Errorf("%susername and %spassword: set each to at most %d bytes", at, at, maxCredential)
	}
	if s.Username == "" && s.Password != "" {
		return fmt.Errorf("%spassword is set without %susername: set both, or none", at, at)
	}
	return nil
}

func (c *Config) validateClock() error {
	switch c.Clock {
	case ClockUnchanged, ClockWall, ClockCPU:
		return nil
	default:
		return fmt.Errorf("clock is %q: set it to %s or %s, or leave it out to keep the server's", c.Clock, ClockWall, ClockCPU)
	}
}

func (c *LimitsConfig) validate() error {
	return errors.Join(
		setting.Between("limits.max_metric_points", c.MaxMetricPoints, 10, 100_000_000),
		setting.Between("limits.max_server_memory", c.MaxServerMemory, 4*mib, math.MaxInt),
		setting.Between("limits.max_message_bytes", c.MaxMessageBytes, 64<<10, 1<<30),
		setting.Between("limits.max_tracked_objects", c.MaxTrackedObjects, 2, 100_000_000),
		setting.Between("limits.max_classes", c.MaxClasses, 1, 1_000_000),
		setting.Between("limits.max_files", c.MaxFiles, 1, 1_000_000),
		setting.Between("limits.max_sites", c.MaxSites, 1, 1_000_000),
		setting.Between("limits.max_dump_objects", c.MaxDumpObjects, 0, 100_000_000),
		setting.Between("limits.max_frames", c.MaxFrames, 1, 65_536),
		setting.Between("limits.max_profile_stacks", c.MaxProfileStacks, 1, 1_000_000),
		c.LogLimits.ValidateQueue(10_000_000),
		c.SpanLimits.ValidateQueue(10_000_000),
		c.SampleLimits.ValidateQueue(100_000_000),
	)
}

// withinOrNever checks the interval of a command that stops the program each time.
func withinOrNever(field string, value time.Duration) error {
	const least, most = 100 * time.Millisecond, 24 * time.Hour
	if value == 0 {
		return nil
	}
	if err := setting.Within(field, value, least, most); err != nil {
		return fmt.Errorf("%w, or to 0 for never", err)
	}
	return nil
}
