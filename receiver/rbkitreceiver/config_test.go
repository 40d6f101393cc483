// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/callbraid/callbraid/internal/receiverkit"
)

func TestAllSettingsAreRead(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "all.yaml"))
	require.NoError(t, err)
	config := createDefaultConfig()
	require.NoError(t, conf.Unmarshal(config))
	require.NoError(t, confmap.Validate(config))
	want := createDefaultConfig()
	want.Servers = []ServerConfig{
		{Publish: "shop.example:5555", Request: "shop.example:5556", ServiceName: "shop", Username: "reader", Password: "secret"},
		{Publish: "[::1]:7000"},
	}
	want.MemoryProfile, want.CPUProfile, want.Clock = true, true, ClockCPU
	want.ObjectSpaceSnapshotInterval, want.TriggerGCInterval, want.StateInterval = 10*time.Minute, time.Hour, 20*time.Second
	want.DumpReferences, want.ProfileInterval = true, time.Minute
	want.ServiceName, want.ResourceAttributes = "all", map[string]any{"deployment.environment.name": "test"}
	want.Timeout, want.Heartbeat = 3*time.Second, 7*time.Second
	want.Reconnect = RetryConfig{InitialInterval: time.Second, MaxInterval: time.Minute}
	want.Limits = LimitsConfig{
		MaxMetricPoints: 10_000, MaxServerMemory: 4194305, MaxMessageBytes: 65536, MaxTrackedObjects: 10, MaxClasses: 11, MaxFiles: 12, MaxSites: 13, MaxDumpObjects: 14,
		MaxFrames: 15, MaxProfileStacks: 16,
		LogLimits:    receiverkit.LogLimits{MaxQueuedLogs: 17, MaxQueuedLogBytes: mib},
		SpanLimits:   receiverkit.SpanLimits{MaxQueuedSpans: 18, MaxQueuedSpanBytes: mib + 1},
		SampleLimits: receiverkit.SampleLimits{MaxQueuedSamples: 19, MaxQueuedSampleBytes: mib + 2},
	}
	want.Retry = RetryConfig{InitialInterval: 2 * time.Millisecond, MaxInterval: 3 * time.Millisecond}
	want.ShutdownTimeout, want.CollectionInterval = 9*time.Second, 30*time.Second
	want.Histograms.MarkDuration.Enabled = false
	assert.False(t, config.Metrics.RubyGcCount.Enabled)
	assert.False(t, config.Events.RbkitObject.Enabled)
	want.MetricsBuilderConfig, want.LogsBuilderConfig = config.MetricsBuilderConfig, config.LogsBuilderConfig
	assert.Equal(t, want, config)
	// Each setting of the file is another one than the default, so that none is missing.
	var same func(a, b reflect.Value) []string
	same = func(a, b reflect.Value) (names []string) {
		for i := range a.NumField() {
			if a.Field(i).Type().PkgPath() == reflect.TypeFor[receiverkit.Config]().PkgPath() {
				names = append(names, same(a.Field(i), b.Field(i))...)
			} else if name := a.Type().Field(i).Name; name != "MetricsBuilderConfig" && reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
				names = append(names, name)
			}
		}
		return names
	}
	defaults := createDefaultConfig()
	assert.Empty(t, same(reflect.ValueOf(*config), reflect.ValueOf(*defaults)))
	assert.Empty(t, same(reflect.ValueOf(config.Limits), reflect.ValueOf(defaults.Limits)))
}

func TestAnErrorNamesTheSettingAndItsRemedy(t *testing.T) {
	cases := map[string]func(*Config){
		"servers is empty: set it to at least one":                                       func(c *Config) { c.Servers = nil },
		`servers[0].publish is "": set it to host:port of a server`:                      func(c *Config) { c.Servers[0].Publish = "" },
		`servers[0].publish is "localhost:0": set its port to 1 to 65535`:                func(c *Config) { c.Servers[0].Publish = "localhost:0" },
		`servers[0].request is "localhost": set it to host:port`:                         func(c *Config) { c.Servers[0].Request = "localhost" },
		`servers[0].request is "localhost:5555", and so is publish: set them to the two`: func(c *Config) { c.Servers[0].Request = "localhost:5555" },
		`servers[1].publish is "localhost:5555", as in servers[0]`:                       func(c *Config) { c.Servers = append(c.Servers, c.Servers[0]) },
		"servers[0].password is set without servers[0].username: set both, or none":      func(c *Config) { c.Servers[0].Password = "x" },
		"set each to at most 255 bytes":                                                  func(c *Config) { c.Servers[0].Username = strings.Repeat("x", 256) },
		`clock is "sun": set it to wall or cpu`:                                          func(c *Config) { c.Clock = "sun" },
		"objectspace_snapshot_interval is 1ms: set it to 100ms to 24h0m0s, or to 0":      func(c *Config) { c.ObjectSpaceSnapshotInterval = time.Millisecond },
		"trigger_gc_interval is -1s":                                                     func(c *Config) { c.TriggerGCInterval = -time.Second },
		"state_interval is 0s":                                                           func(c *Config) { c.StateInterval = 0 },
		"profile_interval is 0s":                                                         func(c *Config) { c.ProfileInterval = 0 },
		"resource_attributes":                                                            func(c *Config) { c.ResourceAttributes = map[string]any{"x": make(chan int)} },
		"timeout is 0s":                                                                  func(c *Config) { c.Timeout = 0 },
		"heartbeat is 0s":                                                                func(c *Config) { c.Heartbeat = 0 },
		"reconnect.max_interval is 1ms":                                                  func(c *Config) { c.Reconnect.MaxInterval = time.Millisecond },
		"limits.max_message_bytes is 1: set it to 65536 to 1073741824":                   func(c *Config) { c.Limits.MaxMessageBytes = 1 },
		"limits.max_tracked_objects is 1":                                                func(c *Config) { c.Limits.MaxTrackedObjects = 1 },
		"limits.max_queued_sample_bytes is 1":                                            func(c *Config) { c.Limits.MaxQueuedSampleBytes = 1 },
		"retry.initial_interval is 0s":                                                   func(c *Config) { c.Retry.InitialInterval = 0 },
		"shutdown_timeout is 0s":                                                         func(c *Config) { c.ShutdownTimeout = 0 },
		"collection_interval is 0s":                                                      func(c *Config) { c.CollectionInterval = 0 },
	}
	for text, spoil := range cases {
		config := createDefaultConfig()
		config.Servers = []ServerConfig{{Publish: defaultPublish, Request: defaultRequest}}
		require.NoError(t, confmap.Validate(config))
		spoil(config)
		assert.ErrorContains(t, config.Validate(), text)
	}
}

func TestServersShareTheMetricPoints(t *testing.T) {
	for _, c := range []struct{ servers, classes, sites int }{
		{0, 1000, 5000}, {1, 1000, 5000}, {2, 1000, 5000}, {10, 625, 1250}, {50, 125, 250}, {100_000, 1, 1},
	} {
		config := createDefaultConfig()
		config.Servers = make([]ServerConfig, c.servers)
		limits := config.limitsOfServer()
		assert.Equal(t, [2]int{c.classes, c.sites}, [2]int{limits.MaxClasses, limits.MaxSites}, "%d servers", c.servers)
	}
}

func TestTheServiceNameOfAServerWins(t *testing.T) {
	c := createDefaultConfig()
	c.ServiceName = "all"
	for name, want := range map[string]string{"": "all", "shop": "shop"} {
		of := originsOf(c, &ServerConfig{ServiceName: name}, "")
		assert.Equal(t, want, of.ServiceName)
	}
}
