// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func loadConfig(t *testing.T, name string) (*Config, error) {
	t.Helper()
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", name))
	require.NoError(t, err)
	config := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(config))
	return config, confmap.Validate(config)
}

func TestTheDefaultsAreSafe(t *testing.T) {
	config := createDefaultConfig().(*Config)
	require.NoError(t, confmap.Validate(config))
	assert.Equal(t, "localhost:8766", config.NetAddr.Endpoint)
	assert.False(t, config.AllowDisruptive)
	for what, timeout := range map[string]time.Duration{
		"read_timeout": config.ReadTimeout, "read_header_timeout": config.ReadHeaderTimeout, "write_timeout": config.WriteTimeout, "idle_timeout": config.IdleTimeout,
	} {
		assert.NotZero(t, timeout, what)
		assert.LessOrEqual(t, timeout, time.Minute, what)
	}
	assert.Equal(t, 10*time.Second, config.ReadTimeout)
	assert.Equal(t, 10*time.Second, config.ReadHeaderTimeout)
}

func TestAllSettingsAreRead(t *testing.T) {
	config, err := loadConfig(t, "all.yaml")
	require.NoError(t, err)
	want := createDefaultConfig().(*Config)
	want.NetAddr.Endpoint = "0.0.0.0:9000"
	want.AllowedHosts = []string{"collector.example"}
	want.AllowDisruptive = true
	want.CommandTimeout = 5 * time.Second
	want.WriteTimeout = 20 * time.Second
	want.Limits = LimitsConfig{MaxAgents: 1, MaxConnections: 6, MaxRequests: 2, MaxWaiting: 3, MaxRequestBytes: 4096, MaxItems: 5}
	assert.Equal(t, want, config)
}

func TestInvalidSettingsAreNamedWithTheirRemedy(t *testing.T) {
	_, err := loadConfig(t, "wrong.yaml")
	require.Error(t, err)
	for _, want := range []string{
		"endpoint is \"nowhere\": set it to host:port",
		"command_timeout is 1h0m0s: set it to",
		"write_timeout is 30s: set it to at least 1h0m1s",
		"limits.max_agents is 0", "limits.max_connections is 0", "cors is set: leave it out",
		"limits.max_requests is 0", "limits.max_waiting is 0",
		"limits.max_request_bytes is 0", "limits.max_items is 0",
		"allowed_hosts has \"http://x\"",
	} {
		assert.ErrorContains(t, err, want)
	}
	assert.Equal(t, 11, len(strings.Split(err.Error(), "\n")), err.Error())
}
