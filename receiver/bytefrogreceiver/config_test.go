// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/callbraid/callbraid/internal/receiverkit"
)

func loadConfig(t *testing.T, name string) (*Config, error) {
	t.Helper()
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", name))
	require.NoError(t, err)
	config := createDefaultConfig()
	require.NoError(t, conf.Unmarshal(config))
	return config, confmap.Validate(config)
}

func TestTheDefaultsAreValidAndLeaveTheJDKOut(t *testing.T) {
	config := createDefaultConfig()
	require.NoError(t, confmap.Validate(config))
	assert.Equal(t, "localhost:8765", config.Endpoint)
	assert.Equal(t, OverloadBlock, config.OnOverload)
	assert.Equal(t, 5*time.Second, config.MaxBlock)
	assert.Equal(t, receiverkit.RetryConfig{InitialInterval: 50 * time.Millisecond, MaxInterval: time.Second}, config.Retry)
	for _, class := range []string{
		"java/lang/String", "javax/net/ssl/SSLContext", "jdk/internal/misc/Unsafe", "sun/misc/Launcher",
		"com/sun/proxy/$Proxy12", "com/secdec/bytefrog/agent/Premain",
	} {
		excluded := false
		for _, pattern := range config.Agent.Exclusions {
			excluded = excluded || strings.HasPrefix(class, strings.TrimPrefix(pattern, "^"))
		}
		assert.True(t, excluded, class)
	}
	assert.NotSame(t, &createDefaultConfig().Agent.Exclusions[0], &config.Agent.Exclusions[0])
}

func TestAllSettingsAreRead(t *testing.T) {
	config, err := loadConfig(t, "all.yaml")
	require.NoError(t, err)
	want := createDefaultConfig()
	want.Endpoint = "localhost:9000"
	want.ServiceName = "shop"
	want.ResourceAttributes = map[string]any{"deployment.environment.name": "test", "process.pid": 42}
	want.Agent = AgentConfig{
		Inclusions: []string{"^com/example/"}, Exclusions: []string{""}, HeartbeatInterval: 2 * time.Second,
		BufferMemory: 8 * mib, QueueRetryCount: 4, DataConnections: 3,
	}
	want.Start = StartSuspended
	want.MissedHeartbeats = 5
	want.OnOverload = OverloadSuspend
	want.MaxBlock = 2 * time.Second
	want.ExpectPairing = false
	want.Batch = receiverkit.BatchConfig{MaxBytes: 512 * kib, MaxDelay: time.Second}
	want.KeepaliveInterval = 20 * time.Second
	want.NameWait = 2 * time.Second
	want.Limits = LimitsConfig{
		MaxConnections: 100, MaxConnectionsPerAddress: 50, MaxRuns: 10, MaxMessageSize: 4096, MaxRunMemory: 32 * mib, MaxConnectionLead: 50_000,
		LogLimits:        receiverkit.LogLimits{MaxQueuedLogs: 50, MaxQueuedLogBytes: 2 * mib},
		HandshakeTimeout: time.Second, MessageTimeout: 3 * time.Second,
	}
	want.Retry = receiverkit.RetryConfig{InitialInterval: 10 * time.Millisecond, MaxInterval: 2 * time.Second}
	want.ShutdownTimeout = 7 * time.Second
	want.WarnEventsPerSecond = 1000
	want.CollectionInterval = 30 * time.Second
	want.Metrics.BytefrogConnectionCount.Enabled = false
	assert.Equal(t, want.Metrics.BytefrogConnectionCount.Enabled, config.Metrics.BytefrogConnectionCount.Enabled)
	config.MetricsBuilderConfig = want.MetricsBuilderConfig
	require.True(t, config.TLS.HasValue())
	assert.Equal(t, "server.crt", config.TLS.Get().CertFile)
	config.TLS = want.TLS
	assert.Equal(t, want, config)
}

func TestShorterListsReplaceTheDefaults(t *testing.T) {
	conf := confmap.NewFromStringMap(map[string]any{"agent": map[string]any{"exclusions": []any{"^x/"}}})
	config := createDefaultConfig()
	require.NoError(t, conf.Unmarshal(config))
	assert.Equal(t, []string{"^x/"}, config.Agent.Exclusions)
}

func TestAConfigurationErrorNamesItsRemedy(t *testing.T) {
	cases := map[string]struct {
		change func(c *Config)
		want   string
	}{
		"endpoint":            {func(c *Config) { c.Endpoint = "8765" }, `endpoint is "8765": set it to host:port, such as localhost:8765`},
		"service name":        {func(c *Config) { c.ServiceName = "" }, "service_name is empty: set it"},
		"resource attributes": {func(c *Config) { c.ResourceAttributes = map[string]any{"x": struct{}{}} }, "resource_attributes: "},
		"heartbeat interval":  {func(c *Config) { c.Agent.HeartbeatInterval = 0 }, "agent.heartbeat_interval is 0s: set it to 10ms to 1h0m0s"},
		"buffer memory":       {func(c *Config) { c.Agent.BufferMemory = 100 }, "agent.buffer_memory is 100: set it to 2560 to 2147483647, 1280 bytes for each of the 2 agent.data_connections"},
		"heartbeat fraction":  {func(c *Config) { c.Agent.HeartbeatInterval = 1500*time.Millisecond + 600*time.Microsecond }, "agent.heartbeat_interval is 1.5006s: set it to whole milliseconds, such as 1.501s"},
		"inclusions":          {func(c *Config) { c.Agent.Inclusions = []string{"^a/", "^\xff/"} }, `agent.inclusions[1] is "^\xff/": write it in UTF-8`},
		"exclusions":          {func(c *Config) { c.Agent.Exclusions = []string{"\xff"} }, `agent.exclusions[0] is "\xff": write it in UTF-8`},
		"no port":             {func(c *Config) { c.Endpoint = "localhost:" }, `endpoint is "localhost:": set its port to 1 to 65535`},
		"port":                {func(c *Config) { c.Endpoint = "localhost:65536" }, `endpoint is "localhost:65536": set its port to 1 to 65535`},
		"no endpoint":         {func(c *Config) { c.Endpoint = "" }, `endpoint is "": set it to host:port`},
		"lead too large":      {func(c *Config) { c.Limits.MaxConnectionLead = 1_000_000_001 }, "limits.max_connection_lead is 1000000001: set it to 1 to 1000000000"},
		"retry too late":      {func(c *Config) { c.Retry.MaxInterval = 5 * time.Second }, "retry.max_interval is 5s: set it to 50ms to 3s, and well below reorder.max_wait of stack_pairing"},
		"first retry":         {func(c *Config) { c.Retry.InitialInterval = 5 * time.Second }, "retry.initial_interval is 5s: set it to 1ms to 3s"},
		"retry count":         {func(c *Config) { c.Agent.QueueRetryCount = 0 }, "agent.queue_retry_count is 0: set it to 1 to"},
		"data connections":    {func(c *Config) { c.Agent.DataConnections = 65 }, "agent.data_connections is 65: set it to 1 to 64"},
		"patterns":            {func(c *Config) { c.Agent.Inclusions = []string{strings.Repeat("x", 70_000)} }, "make inclusions and exclusions shorter"},
		"missed heartbeats":   {func(c *Config) { c.MissedHeartbeats = 1 }, "missed_heartbeats is 1: set it to 2 to"},
		"start":               {func(c *Config) { c.Start = "paused" }, `start is "paused": set it to tracing`},
		"overload":            {func(c *Config) { c.OnOverload = "drop" }, `on_overload is "drop": set it to block`},
		"too short a block":   {func(c *Config) { c.MaxBlock = time.Millisecond }, `max_block is 1ms: set it to 10ms to 1h0m0s`},
		"batch size":          {func(c *Config) { c.Batch.MaxBytes = 1 }, "batch.max_bytes is 1: set it to 163840 to 1048576"},
		"batch delay":         {func(c *Config) { c.Batch.MaxDelay = time.Hour }, "batch.max_delay is 1h0m0s: set it to"},
		"keepalive":           {func(c *Config) { c.KeepaliveInterval = 0 }, "keepalive_interval is 0s: set it to"},
		"name wait":           {func(c *Config) { c.NameWait = 5 * time.Second }, "name_wait is 5s: set it to 1ms to 4s"},
		"connections":         {func(c *Config) { c.Limits.MaxConnections = 0 }, "limits.max_connections is 0: set it to"},
		"runs":                {func(c *Config) { c.Limits.MaxRuns = 256 }, "limits.max_runs is 256: set it to 1 to 255"},
		"message size":        {func(c *Config) { c.Limits.MaxMessageSize = 70_000 }, "limits.max_message_size is 70000: set it to 256 to 65535"},
		"run memory":          {func(c *Config) { c.Limits.MaxRunMemory = 1 }, "limits.max_run_memory is 1: set it to"},
		"lead":                {func(c *Config) { c.Limits.MaxConnectionLead = 0 }, "limits.max_connection_lead is 0: set it to"},
		"logs":                {func(c *Config) { c.Limits.MaxQueuedLogs = 0 }, "limits.max_queued_logs is 0: set it to"},
		"bytes of logs":       {func(c *Config) { c.Limits.MaxQueuedLogBytes = 1 }, "limits.max_queued_log_bytes is 1: set it to 1048576 to"},
		"handshake":           {func(c *Config) { c.Limits.HandshakeTimeout = 0 }, "limits.handshake_timeout is 0s: set it to"},
		"message":             {func(c *Config) { c.Limits.MessageTimeout = 0 }, "limits.message_timeout is 0s: set it to"},
		"retry":               {func(c *Config) { c.Retry.MaxInterval = time.Millisecond }, "retry.max_interval is 1ms: set it to 50ms to"},
		"shutdown":            {func(c *Config) { c.ShutdownTimeout = 0 }, "shutdown_timeout is 0s: set it to"},
		"warning":             {func(c *Config) { c.WarnEventsPerSecond = -1 }, "warn_events_per_second is -1: set it to 0 to"},
		"collection":          {func(c *Config) { c.CollectionInterval = 0 }, "collection_interval is 0s: set it to"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			config := createDefaultConfig()
			c.change(config)
			assert.ErrorContains(t, config.Validate(), c.want)
		})
	}
}
