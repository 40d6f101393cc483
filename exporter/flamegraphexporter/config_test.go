// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestTheDefaultsAreValid(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, cfg.Validate())
	assert.Equal(t, "localhost:4040", cfg.NetAddr.Endpoint)
	for what, timeout := range map[string]time.Duration{
		"read": cfg.ReadTimeout, "header": cfg.ReadHeaderTimeout, "write": cfg.WriteTimeout, "idle": cfg.IdleTimeout,
	} {
		assert.Positive(t, timeout, "a connection that is silent ends: %s", what)
	}
}

func TestEachSettingIsRead(t *testing.T) {
	cm, err := confmaptest.LoadConf("testdata/all.yaml")
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, cm.Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	want := createDefaultConfig().(*Config)
	want.NetAddr.Endpoint = "localhost:1"
	want.AllowedHosts = []string{"flames.example"}
	want.FollowLinks, want.CountSpans = false, false
	want.VersionAttribute = "service.version"
	want.PendingTimeout = 5 * time.Minute
	want.MaxPending, want.MaxNodes, want.MaxServices = 1001, 1002, 10
	want.MaxNameBytes, want.MaxNamesMiB, want.MaxWindows = 1004, 5, 6
	want.MaxKeptWindows, want.MaxKeptWindowNodes = 7, 1008
	want.Traces.MaxSpans = 1007
	storage := component.MustNewID("file_storage")
	want.Storage = &storage
	want.History = HistoryConfig{Hours: 24, Days: 7, MaxMiB: 9, SaveInterval: 5 * time.Second}
	assert.Equal(t, want, cfg)
	assert.Error(t, confmap.NewFromStringMap(map[string]any{"no_such_setting": 1}).Unmarshal(createDefaultConfig()))
}

func TestImpossibleSettingsAreRefused(t *testing.T) {
	for _, test := range []struct {
		want   string
		change func(*Config)
	}{
		{"endpoint is empty: set it to host:port", func(c *Config) { c.NetAddr.Endpoint = "" }},
		{"allowed_hosts has \"a:80\"", func(c *Config) { c.AllowedHosts = []string{"b", "a:80"} }},
		{"allowed_hosts has \"\"", func(c *Config) { c.AllowedHosts = []string{""} }},
		{"pending_timeout", func(c *Config) { c.PendingTimeout = 0 }},
		{"pending_timeout", func(c *Config) { c.PendingTimeout = math.MaxInt64 }},
		{"max_pending", func(c *Config) { c.MaxPending = 1 }},
		{"max_nodes", func(c *Config) { c.MaxNodes = 10 }},
		{"max_services", func(c *Config) { c.MaxServices = 0 }},
		{"max_names_mib is 1: set it to at least 1024 bytes times max_services, 1025", func(c *Config) { c.MaxNamesMiB, c.MaxServices = 1, 1025 }},
		{"max_nodes is 100000: set it to at least 100 times max_services, 1001", func(c *Config) { c.MaxNodes, c.MaxServices = 100_000, 1001 }},
		{"max_name_bytes", func(c *Config) { c.MaxNameBytes = 15 }},
		{"max_names_mib", func(c *Config) { c.MaxNamesMiB = 0 }},
		{"max_windows", func(c *Config) { c.MaxWindows = 0 }},
		{"max_kept_windows", func(c *Config) { c.MaxKeptWindows = 0 }},
		{"max_kept_window_nodes", func(c *Config) { c.MaxKeptWindowNodes = 0 }},
		{"history.hours", func(c *Config) { c.History.Hours = 0 }},
		{"history.days", func(c *Config) { c.History.Days = -1 }},
		{"history.max_mib", func(c *Config) { c.History.MaxMiB = 0 }},
		{"history.save_interval", func(c *Config) { c.History.SaveInterval = time.Millisecond }},
		{"traces.max_spans", func(c *Config) { c.Traces.MaxSpans = -1 }},
		{"max_names_mib is 1: set it to at least 16 times max_name_bytes, 65537", func(c *Config) { c.MaxNameBytes, c.MaxNamesMiB = 65_537, 1 }},
	} {
		cfg := createDefaultConfig().(*Config)
		test.change(cfg)
		err := cfg.Validate()
		require.Error(t, err, test.want)
		assert.Contains(t, err.Error(), test.want)
		assert.Contains(t, err.Error(), "set it to")
	}
}
