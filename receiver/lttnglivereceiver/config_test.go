// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/session"
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

func TestTheDefaultsAreValidAndReadEverySessionFromItsBeginning(t *testing.T) {
	config := createDefaultConfig()
	require.NoError(t, confmap.Validate(config))
	assert.Equal(t, "localhost:5344", config.Endpoint)
	assert.Equal(t, []string{"*"}, config.Sessions)
	assert.Equal(t, SeekBeginning, config.Seek)
	assert.Nil(t, config.Storage)
	assert.Equal(t, []string{"/"}, config.SymbolPaths)
	assert.NotSame(t, &createDefaultConfig().Sessions[0], &config.Sessions[0])
}

func TestAllSettingsAreRead(t *testing.T) {
	config, err := loadConfig(t, "all.yaml")
	require.NoError(t, err)
	want := createDefaultConfig()
	want.Endpoint = "relay.example:5344"
	want.DialerConfig.Timeout = 3 * time.Second
	want.Sessions = []string{"web-*/checkout", "db?/*"}
	want.Seek = SeekLast
	want.MaxDelay = 2 * time.Second
	want.ServiceName = "shop"
	want.ResourceAttributes = map[string]any{"deployment.environment.name": "test"}
	want.SymbolPaths = []string{"/srv/roots/web"}
	want.SourceLines = false
	want.NameWait = 2 * time.Second
	want.LogValues = LogValuesConfig{EnumerationNumbers: true, Hexadecimal: true}
	want.CallRules = []CallRule{
		{Entry: event("shop:begin"), Exit: event("shop:end"), NameField: "what", KeyFields: []string{"id"}},
		{Entry: event("db:query_begin"), Exit: event("db:query_end"), Name: "query"},
		{
			Entry: mapping.RuleEvent{Event: "sched_switch", KeyFields: []string{"next_tid"}, Except: map[string]any{"next_tid": 0}},
			Exit:  mapping.RuleEvent{Event: "sched_switch", KeyFields: []string{"prev_tid"}},
			Name:  "on CPU {next_comm}", Lane: mapping.LaneCPU, KeyIsThread: true,
		},
		{
			Entry: event("syscall_entry_*"), Exit: event("syscall_exit_*"), Outermost: true, Attributes: []string{"*"}, ErrorField: "ret",
		},
		{
			Entry: mapping.RuleEvent{Event: "block_rq_issue", KeyFields: []string{"dev", "sector"}, Only: map[string]any{"rwbs": "R"}},
			Exit:  mapping.RuleEvent{Event: "block_rq_complete", KeyFields: []string{"dev", "sector"}},
			Name:  "block", Lane: mapping.LaneKey,
		},
	}
	want.Poll = PollConfig{ListInterval: 5 * time.Second, MinInterval: time.Millisecond, MaxInterval: 20 * time.Millisecond}
	want.RequestTimeout = 4 * time.Second
	want.Reconnect = RetryConfig{InitialInterval: time.Second, MaxInterval: time.Minute}
	id := component.MustNewIDWithName("file_storage", "lttng")
	want.Storage = &id
	want.ExpectPairing = false
	want.Batch = receiverkit.BatchConfig{MaxBytes: 512 * kib, MaxDelay: time.Second}
	want.KeepaliveInterval = 20 * time.Second
	want.Limits = LimitsConfig{
		MaxSessions: 5, MaxSessionMetadataBytes: 4 * mib,
		LimitsConfig: session.LimitsConfig{
			MaxStreams: 100, MaxPacketBytes: mib, MaxMetadataBytes: 2 * mib,
			MaxWaitingBytes: 16 * mib, MaxNamesBytes: 8 * mib, MaxObjectsBytes: 3 * mib,
			MaxProcesses: 50, MaxWaitingEvents: 1000, MaxLogRecordBytes: 512 * kib, LogLimits: receiverkit.LogLimits{MaxQueuedLogs: 500, MaxQueuedLogBytes: 2 * mib},
		},
	}
	want.Retry = RetryConfig{InitialInterval: 10 * time.Millisecond, MaxInterval: 2 * time.Second}
	want.ShutdownTimeout = 7 * time.Second
	want.CollectionInterval = 30 * time.Second
	assert.False(t, config.Metrics.LttngLag.Enabled)
	config.MetricsBuilderConfig = want.MetricsBuilderConfig
	assert.Equal(t, want, config)
}

func TestErrorsNameTheSettingAndItsRemedy(t *testing.T) {
	rule := func(r CallRule) func(*Config) { return func(c *Config) { c.CallRules = []CallRule{r} } }
	cases := map[string]struct {
		change func(c *Config)
		want   string
	}{
		"endpoint":            {func(c *Config) { c.Endpoint = "5344" }, `endpoint is "5344": set it to host:port of a relay daemon, such as localhost:5344`},
		"no host":             {func(c *Config) { c.Endpoint = ":5344" }, `endpoint is ":5344": set it to host:port`},
		"no port":             {func(c *Config) { c.Endpoint = "localhost:" }, `endpoint is "localhost:": set its port to 1 to 65535`},
		"port 0":              {func(c *Config) { c.Endpoint = "localhost:0" }, `endpoint is "localhost:0": set its port to 1 to 65535`},
		"dialer":              {func(c *Config) { c.DialerConfig.Timeout = -time.Second }, "dialer.timeout is -1s: set it to 1ms to 10m0s"},
		"no dialer timeout":   {func(c *Config) { c.DialerConfig.Timeout = 0 }, "dialer.timeout is 0s: set it to 1ms to 10m0s"},
		"no sessions":         {func(c *Config) { c.Sessions = nil }, `sessions is empty: set it to patterns of host/name`},
		"empty session":       {func(c *Config) { c.Sessions = []string{"*", ""} }, `sessions[1] is "": set it to a pattern`},
		"seek":                {func(c *Config) { c.Seek = "end" }, `seek is "end": set it to beginning`},
		"resource attributes": {func(c *Config) { c.ResourceAttributes = map[string]any{"x": struct{}{}} }, "resource_attributes: "},
		"max delay":           {func(c *Config) { c.MaxDelay = 0 }, "max_delay is 0s: set it to 1ms to 1h0m0s"},
		"symbol paths":        {func(c *Config) { c.SymbolPaths = []string{"lib"} }, `symbol_paths[0] is "lib": set it to an absolute path`},
		"name wait":           {func(c *Config) { c.NameWait = 5 * time.Second }, "name_wait is 5s: set it to 1ms to 4s"},
		"rule without exit":   {rule(CallRule{Entry: event("a:b"), Name: "n"}), "call_rules[0]: set entry and exit"},
		"rule of one event":   {rule(CallRule{Entry: event("a:b"), Exit: event("a:b"), Name: "n"}), `call_rules[0]: entry and exit are both "a:b"`},
		"rule without name":   {rule(CallRule{Entry: event("a:b"), Exit: event("a:c")}), "call_rules[0]: set either name, or name_field to a field of a:b"},
		"rule with two names": {rule(CallRule{Entry: event("a:b"), Exit: event("a:c"), Name: "n", NameField: "f"}), "call_rules[0]: set either name, or name_field"},
		"keys in both places": {rule(CallRule{
			Entry: mapping.RuleEvent{Event: "a:b", KeyFields: []string{"k"}}, Exit: event("a:c"), Name: "n", KeyFields: []string{"k"},
		}), "call_rules[0]: set either key_field, or entry.key_field and exit.key_field"},
		"list interval":     {func(c *Config) { c.Poll.ListInterval = 0 }, "poll.list_interval is 0s: set it to 10ms to"},
		"poll interval":     {func(c *Config) { c.Poll.MinInterval = 0 }, "poll.min_interval is 0s: set it to 100µs to"},
		"longest interval":  {func(c *Config) { c.Poll.MaxInterval = time.Millisecond }, "poll.max_interval is 1ms: set it to 2ms to"},
		"request timeout":   {func(c *Config) { c.RequestTimeout = 0 }, "request_timeout is 0s: set it to 1ms"},
		"reconnect":         {func(c *Config) { c.Reconnect.MaxInterval = time.Millisecond }, "reconnect.max_interval is 1ms: set it to 200ms to 1h0m0s"},
		"batch size":        {func(c *Config) { c.Batch.MaxBytes = 1 }, "batch.max_bytes is 1: set it to 163840 to 1048576"},
		"batch delay":       {func(c *Config) { c.Batch.MaxDelay = time.Hour }, "batch.max_delay is 1h0m0s: set it to 1ms to 1m0s"},
		"keepalive":         {func(c *Config) { c.KeepaliveInterval = 0 }, "keepalive_interval is 0s"},
		"sessions":          {func(c *Config) { c.Limits.MaxSessions = 0 }, "limits.max_sessions is 0: set it to 1 to"},
		"streams":           {func(c *Config) { c.Limits.MaxStreams = 1 }, "limits.max_streams is 1: set it to 2 to"},
		"packet":            {func(c *Config) { c.Limits.MaxPacketBytes = 1 }, "limits.max_packet_bytes is 1: set it to 65536 to"},
		"metadata":          {func(c *Config) { c.Limits.MaxMetadataBytes = 1<<31 - 1 }, "limits.max_metadata_bytes is 2147483647"},
		"session metadata":  {func(c *Config) { c.Limits.MaxSessionMetadataBytes = 1 }, "limits.max_session_metadata_bytes is 1"},
		"waiting bytes":     {func(c *Config) { c.Limits.MaxWaitingBytes = 1 }, "limits.max_waiting_bytes is 1"},
		"names":             {func(c *Config) { c.Limits.MaxNamesBytes = session.MinNamesBytes - 1 }, "limits.max_names_bytes is 1048575: set it to 1048576 to"},
		"objects":           {func(c *Config) { c.Limits.MaxObjectsBytes = session.MinObjectsBytes - 1 }, "limits.max_objects_bytes is 65535: set it to 65536 to"},
		"processes":         {func(c *Config) { c.Limits.MaxProcesses = 0 }, "limits.max_processes is 0"},
		"waiting events":    {func(c *Config) { c.Limits.MaxWaitingEvents = 0 }, "limits.max_waiting_events is 0"},
		"queued logs":       {func(c *Config) { c.Limits.MaxQueuedLogs = 0 }, "limits.max_queued_logs is 0"},
		"small records":     {func(c *Config) { c.Limits.MaxLogRecordBytes = session.MinLogRecordBytes - 1 }, "limits.max_log_record_bytes is 16383: set it to 16384 to 67108864"},
		"large records":     {func(c *Config) { c.Limits.MaxLogRecordBytes = session.MaxLogRecordBytes + 1 }, "limits.max_log_record_bytes is 67108865"},
		"queued log bytes":  {func(c *Config) { c.Limits.MaxQueuedLogBytes = 0 }, "limits.max_queued_log_bytes is 0"},
		"room for a record": {func(c *Config) { c.Limits.MaxLogRecordBytes, c.Limits.MaxQueuedLogBytes = 4*mib, 4*mib-1 }, "limits.max_queued_log_bytes is 4194303: set it to 4194304 to"},
		"retry":             {func(c *Config) { c.Retry.MaxInterval = 5 * time.Second }, "retry.max_interval is 5s: set it to 50ms to 3s"},
		"shutdown":          {func(c *Config) { c.ShutdownTimeout = 0 }, "shutdown_timeout is 0s"},
		"collection":        {func(c *Config) { c.CollectionInterval = 0 }, "collection_interval is 0s"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			config := createDefaultConfig()
			test.change(config)
			err := confmap.Validate(config)
			require.Error(t, err)
			assert.Contains(t, err.Error(), test.want)
		})
	}
}

func TestSessionsAreMatchedByHostAndName(t *testing.T) {
	cases := []struct {
		pattern, session string
		match            bool
	}{
		{"*", "web-1/checkout", true},
		{"web-*/checkout", "web-1/checkout", true},
		{"web-*/checkout", "web-1/checkout-2", false},
		{"web-?/*", "web-1/x", true},
		{"web-?/*", "web-10/x", false},
		{"*/checkout", "web.example/checkout", true},
		{"web.example/*", "webxexample/checkout", false},
		{"[a]/x", "a/x", false},
		{"a/x\ny", "a/x\ny", true},
	}
	for _, c := range cases {
		assert.Equal(t, c.match, compilePatterns([]string{c.pattern}).match(c.session), "%s against %s", c.pattern, c.session)
	}
}
