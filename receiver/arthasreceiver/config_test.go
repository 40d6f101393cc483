// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"cmp"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods/task"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/link"
)

func TestAllSettingsAreRead(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "all.yaml"))
	require.NoError(t, err)
	config := createDefaultConfig()
	require.NoError(t, conf.Unmarshal(config))
	require.NoError(t, confmap.Validate(config))
	want := createDefaultConfig()
	want.Servers = []ServerConfig{{Username: "arthas", Password: "secret", ServiceName: "shop"}, {}}
	want.Servers[0].ClientConfig, want.Servers[1].ClientConfig = config.Servers[0].ClientConfig, config.Servers[1].ClientConfig
	assert.Equal(t, "https://shop.example:8563", config.Servers[0].Endpoint)
	assert.Equal(t, 20*time.Second, config.Servers[0].Timeout)
	assert.True(t, config.Servers[0].TLS.InsecureSkipVerify)
	assert.Equal(t, "http://[::1]:7000", config.Servers[1].Endpoint)
	shop := on("com.example.Shop", "checkout")
	want.Monitors = []MonitorConfig{{TargetConfig: TargetConfig{TargetConfig: task.TargetConfig{Class: "com.example.*", Method: "*"}, Exclude: "com.example.Test*", MaxClasses: 5}, Cycle: 30 * time.Second}}
	want.Traces = []TraceConfig{{CallsConfig: CallsConfig{TargetConfig: shop, Limit: 7}, JDKMethods: true}}
	want.Traces[0].LongerThan = 10 * time.Millisecond
	want.Stacks = []CallsConfig{{TargetConfig: TargetConfig{TargetConfig: task.TargetConfig{Class: `com\.example\..*`, Method: "get.*", Regexp: true}}, Limit: -1}}
	want.Watches = []WatchConfig{{CallsConfig: CallsConfig{TargetConfig: shop}, Points: []string{"exception", "finish"}, Expression: "{params[0]}", Depth: 2}}
	want.Watches[0].TraceID, want.Watches[0].SpanID = `@org.slf4j.MDC@get("trace_id")`, `@org.slf4j.MDC@get("span_id")`
	want.Records = []RecordsConfig{{CallsConfig: CallsConfig{TargetConfig: on("com.example.Pay", "charge"), Limit: 8}, Keep: true}}
	want.JVM.Interval, want.ServiceName, want.PollInterval, want.MaxPolls = 15*time.Second, "all", 300*time.Millisecond, 2
	want.IdlePollInterval, want.StateInterval = 7*time.Second, 20*time.Second
	want.Profiles = ProfilesConfig{Period: time.Minute, Event: "wall", Interval: 20 * time.Millisecond}
	storage := component.MustNewID("file_storage")
	want.Storage = &storage
	want.Reconnect = RetryConfig{InitialInterval: time.Second, MaxInterval: time.Minute}
	want.Limits = LimitsConfig{
		MaxMetricPoints: 140, MaxServerMemory: 4 * mib, MaxAnswerBytes: 65536, MaxCommands: 10, MaxMethods: 11, MaxTreeNodes: 12, MaxProfileBytes: 65537, MaxProfileStacks: 15,
		LogLimits:    receiverkit.LogLimits{MaxQueuedLogs: 13, MaxQueuedLogBytes: mib + 1},
		SpanLimits:   receiverkit.SpanLimits{MaxQueuedSpans: 14, MaxQueuedSpanBytes: mib + 2},
		SampleLimits: receiverkit.SampleLimits{MaxQueuedSamples: 16, MaxQueuedSampleBytes: mib + 3},
	}
	want.ResourceAttributes = map[string]any{"deployment.environment.name": "test"}
	want.Retry = RetryConfig{InitialInterval: 2 * time.Millisecond, MaxInterval: 3 * time.Millisecond}
	want.ShutdownTimeout, want.CollectionInterval = 9*time.Second, 30*time.Second
	assert.False(t, config.Metrics.JavaMethodCalls.Enabled)
	assert.False(t, config.Events.ArthasStack.Enabled)
	want.MetricsBuilderConfig, want.LogsBuilderConfig = config.MetricsBuilderConfig, config.LogsBuilderConfig
	assert.Equal(t, want, config)
}

func TestCommandsOfTheConfiguration(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "all.yaml"))
	require.NoError(t, err)
	config := createDefaultConfig()
	require.NoError(t, conf.Unmarshal(config))
	tasks, err := config.tasks()
	require.NoError(t, err)
	var lines []string
	for _, of := range tasks {
		command := of.Command(of.Limit).(link.Command)
		line, err := arthas.CommandLine(command.Within(cmp.Or(command.Limit, arthas.MaxLimit)))
		require.NoError(t, err)
		lines = append(lines, line)
	}
	assert.Equal(t, []string{
		"monitor -c 30 -n 2147483647 -m 5 --exclude-class-pattern com.example.Test* -- com.example.* *",
		"trace -n 7 --skipJDKMethod false -- com.example.Shop checkout '#cost>10'",
		`stack -n 2147483647 -E -- 'com\.example\..*' get.*`,
		`watch -e -f -x 3 -n 100 -- com.example.Shop checkout '{(@org.slf4j.MDC@get("trace_id")),(@org.slf4j.MDC@get("span_id")),({params[0]})}'`,
		"tt -t -n 8 -- com.example.Pay charge",
	}, lines)
}

func TestErrorsNameTheFieldAndTheRemedy(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no server":         {func(c *Config) { c.Servers = nil }, "servers is empty: set it to at least one, with endpoint: http://localhost:8563"},
		"no scheme":         {func(c *Config) { c.Servers[0].Endpoint = "localhost:8563" }, `servers[0].endpoint is "localhost:8563": set it to the HTTP address of Arthas, such as http://localhost:8563`},
		"a password in it":  {func(c *Config) { c.Servers[0].Endpoint = "http://a:secret@localhost" }, "servers[0].endpoint has a user: set username and password"},
		"a query":           {func(c *Config) { c.Servers[0].Endpoint = "http://localhost?username=a" }, "servers[0].endpoint has a query or a fragment"},
		"one server twice":  {func(c *Config) { c.Servers = append(c.Servers, c.Servers[0]) }, "servers[1].endpoint is that of servers[0]: name it once"},
		"a short timeout":   {func(c *Config) { c.Servers[0].Timeout = time.Millisecond }, "servers[0].timeout"},
		"compression":       {func(c *Config) { c.Servers[0].Compression = "gzip" }, `servers[0].compression is "gzip": remove it`},
		"no user":           {func(c *Config) { c.Servers[0].Password = "x" }, "servers[0].password is set without username"},
		"no password":       {func(c *Config) { c.Servers[0].Username = "x" }, "servers[0].username is set without password"},
		"a colon":           {func(c *Config) { c.Servers[0].Username, c.Servers[0].Password = "a:b", "x" }, "servers[0].username has a colon"},
		"little memory":     {func(c *Config) { c.Limits.MaxServerMemory = 1 }, "limits.max_server_memory"},
		"a part of a cycle": {func(c *Config) { c.Monitors[0].Cycle = 1500 * time.Millisecond }, "monitors[0].cycle is 1.5s: set it to whole seconds, 1s to 24h"},
		"another command":   {func(c *Config) { c.Monitors[0].Class = "a b" }, `monitors[0].class: pattern "a b" has ' ' at byte 1`},
		"a pipe":            {func(c *Config) { c.Monitors[0].Method = "|" }, `monitors[0].method: pattern "|" begins or ends with a vertical bar`},
		"a file":            {func(c *Config) { c.Monitors[0].Exclude = ">" }, `monitors[0].exclude: pattern is ">": the server would write its results to a file`},
		"a pattern twice":   {func(c *Config) { c.Monitors = append(c.Monitors, c.Monitors[0]) }, "monitor has the patterns demo.Shop buy twice: name them once"},
		"a negative limit":  {func(c *Config) { c.Stacks = []CallsConfig{{shop, -2}} }, "stacks[0].limit is -2: set it to 1 to 2147483647, or to -1 for none"},
		"endless records":   {func(c *Config) { c.Records = []RecordsConfig{{CallsConfig: CallsConfig{shop, -1}}} }, "records[0].limit is -1: set it to 1 to 1000, because recorded calls stay in the memory of the program"},
		"an unknown point":  {func(c *Config) { c.Watches = []WatchConfig{{Points: []string{"end"}}} }, `watches[0].points has "end": set it to before, success, exception or finish`},
		"a deep object":     {func(c *Config) { c.Watches = []WatchConfig{{Depth: 5}} }, "watches[0].depth is 5: set it to 1 to 4"},
		"an expression":     {func(c *Config) { c.Watches = []WatchConfig{{Expression: "a\nb"}} }, "watches[0].expression: "},
		"an open bracket": {func(c *Config) {
			c.Watches = []WatchConfig{{CallsConfig: CallsConfig{TargetConfig: shop}, TraceID: "a)+(b"}}
		},
			`watches[0]: expression "a)+(b" has ')' at byte 1 without its counterpart`},
		"a span without a trace": {func(c *Config) { c.Watches = []WatchConfig{{SpanID: "a"}} }, "watches[0].span_id is set without trace_id: set both"},
		"a deep object with IDs": {func(c *Config) { c.Watches = []WatchConfig{{Depth: 4, TraceID: "a"}} }, "watches[0].depth is 4: set it to 1 to 3"},
		"an ID of two lines":     {func(c *Config) { c.Watches = []WatchConfig{{TraceID: "a\nb"}} }, "watches[0].trace_id: "},
		"a negative duration":    {func(c *Config) { c.Monitors[0].LongerThan = -1 }, "monitors[0].longer_than is -1ns: set it to at least 0"},
		"negative classes":       {func(c *Config) { c.Monitors[0].MaxClasses = -1 }, "monitors[0].max_classes is -1"},
		"too many commands":      {func(c *Config) { c.Limits.MaxCommands = 1; c.Stacks = []CallsConfig{{shop, 1}} }, "raise limits.max_commands, which is 1"},
		"a short JVM interval":   {func(c *Config) { c.JVM.Interval = time.Millisecond }, "jvm.interval"},
		"a long poll interval":   {func(c *Config) { c.PollInterval = time.Minute }, "poll_interval"},
		"no idle interval":       {func(c *Config) { c.IdlePollInterval = 0 }, "idle_poll_interval"},
		"no state interval":      {func(c *Config) { c.StateInterval = 0 }, "state_interval"},
		"a part of a period":     {func(c *Config) { c.Profiles.Period = 1500 * time.Millisecond }, "profiles.period is 1.5s: set it to whole seconds"},
		"a long period":          {func(c *Config) { c.Profiles.Period = 2 * time.Hour }, "profiles.period is 2h0m0s"},
		"an unknown event":       {func(c *Config) { c.Profiles.Event = "cpu,file=/tmp/x" }, `profiles.event is "cpu,file=/tmp/x": set it to cpu, wall, alloc or lock`},
		"a short interval":       {func(c *Config) { c.Profiles.Interval = time.Microsecond }, "profiles.interval is 1µs"},
		"an unused interval":     {func(c *Config) { c.Profiles.Event, c.Profiles.Interval = "lock", time.Second }, "profiles.interval is 1s: remove it, because the event lock has none"},
		"short profiles":         {func(c *Config) { c.Limits.MaxProfileBytes = 1 }, "limits.max_profile_bytes is 1"},
		"no stacks":              {func(c *Config) { c.Limits.MaxProfileStacks = 0 }, "limits.max_profile_stacks is 0"},
		"no queue of samples":    {func(c *Config) { c.Limits.MaxQueuedSamples = 0 }, "limits.max_queued_samples is 0"},
		"no poll":                {func(c *Config) { c.MaxPolls = 0 }, "max_polls"},
	} {
		t.Run(name, func(t *testing.T) {
			config := createDefaultConfig()
			config.Servers = []ServerConfig{{}}
			config.Servers[0].Endpoint = exampleEndpoint
			config.Monitors = []MonitorConfig{{TargetConfig: shop}}
			require.NoError(t, config.Validate())
			tt.change(config)
			require.ErrorContains(t, config.Validate(), tt.want)
		})
	}
}
