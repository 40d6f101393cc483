// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/task"
	"github.com/callbraid/callbraid/internal/receiverkit"
)

func TestAllSettingsAreRead(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "all.yaml"))
	require.NoError(t, err)
	config := createDefaultConfig()
	require.NoError(t, conf.Unmarshal(config))
	require.NoError(t, confmap.Validate(config))
	want := createDefaultConfig()
	target := func(class, method string) TargetConfig { return TargetConfig{Class: class, Method: method} }
	want.Servers = []ServerConfig{{Endpoint: "shop.example:3658", ServiceName: "shop"}, {Endpoint: "[::1]:7000"}}
	assert.True(t, config.Servers[0].TLS.Get().InsecureSkipVerify)
	assert.Nil(t, config.Servers[1].TLS.Get())
	want.Servers[0].TLS = config.Servers[0].TLS
	want.Protocol = ProtocolConsole
	want.Monitors = []MonitorConfig{{TargetConfig: target("com.example.*", "*"), Cycle: 30 * time.Second}}
	want.Traces = []CallsConfig{{TargetConfig: target("com.example.Shop", "checkout"), Limit: 7}}
	want.Stacks = []CallsConfig{{TargetConfig: TargetConfig{Class: `com\.example\..*`, Method: "get.*", Regexp: true}}}
	want.Records = []CallsConfig{{TargetConfig: target("com.example.Pay", "charge"), Limit: -1}}
	want.Classes = []ClassesConfig{{Class: "com.example.*", Fields: true, Limit: 8}}
	want.Methods = []MethodsConfig{{TargetConfig: target("com.example.*", "*"), Limit: 9}}
	want.InventoryInterval, want.StateInterval, want.RecordDetails = time.Hour, 20*time.Second, false
	want.PerMethod, want.RecursionCheck = false, 21
	want.GP = GPConfig{
		Version: 2, Codes: GPCodesConfig{Session: 7, Stack: 8, TTList: 9, TTDetail: 10}, MaxFrameBytes: 65536,
		Heartbeat: time.Second, MaxUnanswered: 4, ProbeTimeout: 3 * time.Second, RecordsInterval: 2 * time.Second,
	}
	want.Timezone, want.ServiceName = "Europe/Berlin", "all"
	want.ResourceAttributes = map[string]any{"deployment.environment.name": "test"}
	want.Timeout, want.AnswerTimeout = 3*time.Second, 4*time.Second
	want.Reconnect = RetryConfig{InitialInterval: time.Second, MaxInterval: time.Minute}
	want.Limits = LimitsConfig{
		MaxMetricPoints: 10_000, MaxServerMemory: 4194305, MaxReplyBytes: 65536, MaxCommands: 10, MaxPatternCommands: 12, MaxMethods: 11, MaxInventory: 12, MaxTreeNodes: 13, MaxDetails: 14,
		LogLimits: receiverkit.LogLimits{MaxQueuedLogs: 15, MaxQueuedLogBytes: mib}, SpanLimits: receiverkit.SpanLimits{MaxQueuedSpans: 16, MaxQueuedSpanBytes: mib + 1},
	}
	want.Retry = RetryConfig{InitialInterval: 2 * time.Millisecond, MaxInterval: 3 * time.Millisecond}
	want.ShutdownTimeout, want.CollectionInterval = 9*time.Second, 30*time.Second
	assert.False(t, config.Metrics.JavaMethodCalls.Enabled)
	assert.False(t, config.Events.GreysStack.Enabled)
	want.MetricsBuilderConfig, want.LogsBuilderConfig = config.MetricsBuilderConfig, config.LogsBuilderConfig
	assert.Equal(t, want, config)
	// Each setting in the file differs from its default, so that a missing one is found.
	same := func(a, b any) (names []string) {
		x, y := reflect.ValueOf(a), reflect.ValueOf(b)
		for i := range x.NumField() {
			if name := x.Type().Field(i).Name; name != "MetricsBuilderConfig" && reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
				names = append(names, name)
			}
		}
		return names
	}
	defaults := createDefaultConfig()
	assert.Empty(t, same(*config, *defaults))
	assert.Empty(t, same(config.Limits, defaults.Limits))
	assert.Empty(t, same(config.GP, defaults.GP))
}

func TestTheConfigurationBecomesCommands(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "all.yaml"))
	require.NoError(t, err)
	config := createDefaultConfig()
	require.NoError(t, conf.Unmarshal(config))
	wants, err := config.tasks()
	require.NoError(t, err)
	var asked []javamethods.Command
	for _, w := range wants {
		left := w.Limit
		if w.Every > 0 {
			left = 0
		}
		asked = append(asked, w.Command(left))
	}
	target := func(class, method string, regexp bool) javamethods.Target {
		return javamethods.Target{Class: patternOf(t, class), Method: patternOf(t, method), Regexp: regexp}
	}
	assert.Equal(t, []javamethods.Command{
		javamethods.MonitorCommand{Target: target("com.example.*", "*", false), Cycle: 30 * time.Second},
		javamethods.TraceCommand{Target: target("com.example.Shop", "checkout", false), Limit: 7},
		javamethods.StackCommand{Target: target(`com\.example\..*`, "get.*", true), Limit: task.DefaultCalls},
		javamethods.RecordCommand{Target: target("com.example.Pay", "charge", false)},
		javamethods.RecordsCommand{},
		javamethods.ClassesCommand{Class: patternOf(t, "com.example.*"), Fields: true},
		javamethods.MethodsCommand{Target: target("com.example.*", "*", false)},
	}, asked)
	config.Monitors[0].Cycle = 0
	wants, err = config.tasks()
	require.NoError(t, err)
	assert.Equal(t, 10*time.Second, wants[0].Command(0).(javamethods.MonitorCommand).Cycle)
}

func TestConfigurationErrorsHaveTheirFieldAndRemedy(t *testing.T) {
	cases := map[string]func(*Config){
		"servers is empty: set it to at least one, with endpoint: localhost:3658":    func(c *Config) { c.Servers = nil },
		`servers[0].endpoint is "": set it to host:port of a server`:                 func(c *Config) { c.Servers[0].Endpoint = "" },
		`servers[0].endpoint is "localhost:0": set its port to 1 to 65535`:           func(c *Config) { c.Servers[0].Endpoint = "localhost:0" },
		`servers[1].endpoint is "localhost:3658", which is the server of servers[0]`: func(c *Config) { c.Servers = append(c.Servers, c.Servers[0]) },
		`servers[1].endpoint is "127.0.0.1:3658", which is the server of servers[0]`: func(c *Config) {
			c.Servers = append(c.Servers, ServerConfig{Endpoint: "127.0.0.1:3658"})
		},
		`protocol is "telnet": set it to auto, gp or console`:                 func(c *Config) { c.Protocol = "telnet" },
		"monitors[0].class: pattern is empty":                                 func(c *Config) { c.Monitors[0].Class = "" },
		`monitors[0].method: pattern "a b" has ' ' at byte 1`:                 func(c *Config) { c.Monitors[0].Method = "a b" },
		"set it to a pattern of names, such as com.example.*":                 func(c *Config) { c.Monitors[0].Class = "-x" },
		"monitors[0].cycle is 1.5s: set it to whole seconds, 1s to 24h":       func(c *Config) { c.Monitors[0].Cycle = 1500 * time.Millisecond },
		"monitor has the patterns demo.* * twice: name them once":             func(c *Config) { c.Monitors = append(c.Monitors, c.Monitors[0]) },
		"traces[0].limit is -2: set it to 1 to 2147483647, or to -1 for none": func(c *Config) { c.Traces = []CallsConfig{some("a", "b", -2)} },
		"stacks[0].class: pattern is empty":                                   func(c *Config) { c.Stacks = []CallsConfig{some("", "b", 0)} },
		"tt[0].method: pattern is empty":                                      func(c *Config) { c.Records = []CallsConfig{some("a", "", 0)} },
		"classes[0].class: pattern is empty":                                  func(c *Config) { c.Classes = []ClassesConfig{{}} },
		"methods[0].limit is -3": func(c *Config) {
			c.Methods = []MethodsConfig{{TargetConfig: TargetConfig{Class: "a", Method: "b"}, Limit: -3}}
		},
		"have 2 commands together: replace some by one pattern that matches more, or raise limits.max_commands": func(c *Config) {
			c.Limits.MaxCommands, c.Traces = 1, []CallsConfig{some("a", "b", 0)}
		},
		"inventory_interval is 0s":                      func(c *Config) { c.InventoryInterval = 0 },
		"state_interval is 0s":                          func(c *Config) { c.StateInterval = 0 },
		"gp.version is 0: set it to 1 to 65535":         func(c *Config) { c.GP.Version = 0 },
		"gp.codes.stack is 65536: set it to 0 to 65535": func(c *Config) { c.GP.Codes.Stack = 65536 },
		"gp.codes: code 0x0003":                         func(c *Config) { c.GP.Codes.Session = 3 },
		"gp.max_frame_bytes is 1":                       func(c *Config) { c.GP.MaxFrameBytes = 1 },
		"gp.heartbeat is 0s":                            func(c *Config) { c.GP.Heartbeat = 0 },
		"gp.max_unanswered is 0":                        func(c *Config) { c.GP.MaxUnanswered = 0 },
		"gp.probe_timeout is 0s":                        func(c *Config) { c.GP.ProbeTimeout = 0 },
		"gp.tt_interval is 0s":                          func(c *Config) { c.GP.RecordsInterval = 0 },
		`timezone is "Mars": set it to a name such as`:  func(c *Config) { c.Timezone = "Mars" },
		"resource_attributes":                           func(c *Config) { c.ResourceAttributes = map[string]any{"x": make(chan int)} },
		"timeout is 0s":                                 func(c *Config) { c.Timeout = 0 },
		"answer_timeout is 0s":                          func(c *Config) { c.AnswerTimeout = 0 },
		"reconnect.max_interval is 1ms":                 func(c *Config) { c.Reconnect.MaxInterval = time.Millisecond },
		"limits.max_reply_bytes is 1: set it to 65536":  func(c *Config) { c.Limits.MaxReplyBytes = 1 },
		"limits.max_tree_nodes is 0":                    func(c *Config) { c.Limits.MaxTreeNodes = 0 },
		"limits.max_queued_span_bytes is 1":             func(c *Config) { c.Limits.MaxQueuedSpanBytes = 1 },
		"retry.initial_interval is 0s":                  func(c *Config) { c.Retry.InitialInterval = 0 },
		"shutdown_timeout is 0s":                        func(c *Config) { c.ShutdownTimeout = 0 },
		"collection_interval is 0s":                     func(c *Config) { c.CollectionInterval = 0 },
	}
	for text, spoil := range cases {
		config := createDefaultConfig()
		config.Servers = []ServerConfig{{Endpoint: defaultEndpoint}}
		config.Monitors = []MonitorConfig{monitor("demo.*", "*")}
		require.NoError(t, confmap.Validate(config))
		spoil(config)
		assert.ErrorContains(t, config.Validate(), text)
	}
}

func TestAllNamesOfThisMachineAreTheSameServer(t *testing.T) {
	for endpoint, want := range map[string]string{
		"localhost:3658": "localhost:3658", "LocalHost.:3658": "localhost:3658", "127.0.0.1:3658": "localhost:3658",
		"[::1]:3658": "localhost:3658", "[0:0::1]:3658": "localhost:3658", "0.0.0.0:3658": "localhost:3658", "[::]:3658": "localhost:3658",
		"localhost:3659": "localhost:3659", "127.0.0.2:3658": "127.0.0.2:3658", "Shop.example:3658": "shop.example:3658",
		"192.0.2.1:3658": "192.0.2.1:3658", "no port": "no port",
	} {
		assert.Equal(t, want, serverOf(endpoint), endpoint)
	}
}

// A program beside the collector sends times of the same zone.
func TestTheDefaultTimezoneIsThisMachines(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Timezone = createDefaultConfig().Timezone
		c.Monitors = []MonitorConfig{monitor("demo.*", "*")}
	})
	assert.Same(t, time.Local, b.receiver.env.zone)
}
