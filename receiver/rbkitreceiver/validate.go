// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"errors"
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/callbraid/callbraid/internal/componentkit/setting"
)

var _ confmap.Validator = (*Config)(nil)

// Validate says everything that is wrong, each with its field and its remedy.
func (c *Config) Validate() error {
	return errors.Join(
		c.validateServers(),
		c.validateClock(),
		withinOrNever("objectspace_snapshot_interval", c.ObjectSpaceSnapshotInterval),
		withinOrNever("trigger_gc_interval", c.TriggerGCInterval),
		setting.Within("state_interval", c.StateInterval, 10*time.Millisecond, time.Hour),
		setting.Within("profile_interval", c.ProfileInterval, 10*time.Millisecond, time.Hour),
		setting.ResourceAttributes(c.ResourceAttributes),
		setting.Timeout("timeout", c.Timeout),
		setting.Within("heartbeat", c.Heartbeat, 10*time.Millisecond, time.Hour),
		c.Reconnect.ValidateAs("reconnect", time.Hour),
		c.Limits.validate(),
		c.Retry.ValidateAs("retry", time.Minute),
		setting.Timeout("shutdown_timeout", c.ShutdownTimeout),
		setting.CollectionInterval(c.CollectionInterval),
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
			all = errors.Join(all, fmt.Errorf("%spublish is %q, and so is that of servers[%d]: name a server once", at, s.Publish, other))
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
		setting.Between("limits.max_queued_logs", c.MaxQueuedLogs, 1, 10_000_000),
		setting.Between("limits.max_queued_log_bytes", c.MaxQueuedLogBytes, mib, math.MaxInt),
		setting.Between("limits.max_queued_spans", c.MaxQueuedSpans, 1, 10_000_000),
		setting.Between("limits.max_queued_span_bytes", c.MaxQueuedSpanBytes, mib, math.MaxInt),
		setting.Between("limits.max_queued_samples", c.MaxQueuedSamples, 1, 100_000_000),
		setting.Between("limits.max_queued_sample_bytes", c.MaxQueuedSampleBytes, mib, math.MaxInt),
	)
}

// withinOrNever is for what stops the program each time.
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
