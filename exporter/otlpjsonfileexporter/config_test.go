// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package otlpjsonfileexporter

import (
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestTheDefaultsNeedOnlyAPath(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	require.EqualError(t, cfg.Validate(), "path is empty: set it to a file, such as ./spans.json")
	cfg.Path = "spans.json"
	require.NoError(t, cfg.Validate())
	assert.False(t, cfg.QueueConfig.HasValue(), "errors reach the caller")
	assert.False(t, cfg.RetryConfig.Enabled)
	s := cfg.settings()
	assert.Equal(t, fs.FileMode(0o600), s.FileMode)
	assert.Equal(t, fs.FileMode(0o700), s.DirectoryMode)
	assert.Equal(t, int64(1<<30), s.MaxBytes)
}

func TestEachSettingIsRead(t *testing.T) {
	cm, err := confmaptest.LoadConf("testdata/all.yaml")
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, cm.Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	require.True(t, cfg.QueueConfig.HasValue())
	assert.EqualValues(t, 11, cfg.QueueConfig.Get().QueueSize)
	assert.True(t, cfg.RetryConfig.Enabled)
	assert.Zero(t, cfg.RetryConfig.MaxElapsedTime)
	want := createDefaultConfig().(*Config)
	want.Path, want.CreateDirectory, want.Fsync = "./data/spans.json", true, true
	want.FilePermissions, want.DirectoryPermissions = "0640", "0750"
	want.Rotation = RotationConfig{MaxMegabytes: 7, MaxBackups: 8}
	want.TimeoutConfig.Timeout = 9 * time.Second
	want.QueueConfig, want.RetryConfig = cfg.QueueConfig, cfg.RetryConfig
	assert.Equal(t, want, cfg)
	assert.Error(t, confmap.NewFromStringMap(map[string]any{"no_such_setting": 1}).Unmarshal(createDefaultConfig()))
}

func TestImpossibleSettingsAreRefused(t *testing.T) {
	for _, test := range []struct {
		want   string
		change func(*Config)
	}{
		{"path is empty: set it to a file", func(c *Config) { c.Path = "" }},
		{"rotation.max_megabytes is 0: set it to 1 to 1048576", func(c *Config) { c.Rotation.MaxMegabytes = 0 }},
		{"rotation.max_backups is 0: set it to 1 to 10000", func(c *Config) { c.Rotation.MaxBackups = 0 }},
		{`file_permissions is "0400": set it to an octal number from 0600`, func(c *Config) { c.FilePermissions = "0400" }},
		{`file_permissions is "rw": set it`, func(c *Config) { c.FilePermissions = "rw" }},
		{`file_permissions is "04600": set it`, func(c *Config) { c.FilePermissions = "04600" }},
		{`directory_permissions is "0600": set it to an octal number from 0700`, func(c *Config) { c.DirectoryPermissions = "0600" }},
		{"retry_on_failure.enabled is false with a sending_queue, which then drops data that the file refuses: set it to true", func(c *Config) { c.QueueConfig.GetOrInsertDefault() }},
	} {
		cfg := createDefaultConfig().(*Config)
		cfg.Path = "spans.json"
		test.change(cfg)
		assert.ErrorContains(t, cfg.Validate(), test.want)
	}
}
