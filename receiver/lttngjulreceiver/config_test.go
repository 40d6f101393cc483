// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
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

func TestTheDefaultsAreValidListenOnLocalhostAndTouchNoFileAndNoLogger(t *testing.T) {
	config := createDefaultConfig()
	require.NoError(t, confmap.Validate(config))
	assert.Equal(t, "localhost:5345", config.Endpoint)
	assert.Equal(t, Protocol2, config.Protocol)
	assert.Empty(t, config.PortFiles)
	assert.Empty(t, config.Enable)
	assert.Empty(t, config.Contexts)
}

func TestAllSettingsAreRead(t *testing.T) {
	config, err := loadConfig(t, "all.yaml")
	require.NoError(t, err)
	want := createDefaultConfig()
	want.Endpoint = "127.0.0.1:5346"
	want.PortFiles = []string{"/var/run/lttng/agent.port", "~/.lttng/agent.port"}
	want.ServiceName = "shop"
	want.ResourceAttributes = map[string]any{"deployment.environment.name": "test"}
	want.Enable = []EnableRule{
		{Domain: "jul", Logger: "com.example.*", Level: "FINER"},
		{Domain: "jul", Logger: "com.example.db", Level: 800, LevelType: "single", Filter: `logger_name == "com.example.db"`},
		{Domain: "log4j2", Logger: "*", LevelType: "all"},
		{Domain: "python", Logger: "*", Level: "warning"},
	}
	want.Contexts = []ContextRule{{Provider: "shop", Name: "user"}, {Domain: "log4j", Provider: "shop", Name: "cart"}}
	want.ListInterval = 20 * time.Second
	want.CommandTimeout = 3 * time.Second
	want.Limits = LimitsConfig{
		MaxAgents: 10, MaxAgentsPerAddress: 9, RegistrationTimeout: 2 * time.Second, MaxLoggers: 100, MaxListBytes: 8192,
		MaxInventoryBytes: 2 * mib, LogLimits: receiverkit.LogLimits{MaxQueuedLogs: 500, MaxQueuedLogBytes: 3 * mib},
	}
	want.Retry = RetryConfig{InitialInterval: 10 * time.Millisecond, MaxInterval: 2 * time.Second}
	want.ShutdownTimeout = 7 * time.Second
	want.CollectionInterval = 30 * time.Second
	assert.False(t, config.Metrics.LttngAgentCommands.Enabled)
	config.MetricsBuilderConfig = want.MetricsBuilderConfig
	assert.Equal(t, want, config)
}

func TestRulesBecomeCommandsForTheirDomain(t *testing.T) {
	config, err := loadConfig(t, "all.yaml")
	require.NoError(t, err)
	p, err := newPlan(config)
	require.NoError(t, err)
	filter, err := lttngagent.ParseFilter(`logger_name == "com.example.db"`)
	require.NoError(t, err)
	single, err := lttngagent.NewLevels(lttngagent.SingleLevel, 800)
	require.NoError(t, err)
	user := lttngagent.EnableContext{Context: contextOf(t, "shop", "user")}
	assert.Equal(t, plan{
		lttngagent.JUL: {
			enable(t, lttngagent.JUL, "com.example.*", "FINER"),
			lttngagent.Enable{Logger: pattern(t, "com.example.db"), Levels: single, Filter: filter},
			user,
		},
		lttngagent.Log4j:  {user, lttngagent.EnableContext{Context: contextOf(t, "shop", "cart")}},
		lttngagent.Log4j2: {enable(t, lttngagent.Log4j2, "*", ""), user},
		lttngagent.Python: {enable(t, lttngagent.Python, "*", "WARNING")},
	}, p)
}

func TestAnErrorNamesTheSettingAndItsRemedy(t *testing.T) {
	rule := func(r EnableRule) func(*Config) { return func(c *Config) { c.Enable = []EnableRule{r} } }
	rfcRule := func(r EnableRule) func(*Config) {
		return func(c *Config) { c.Protocol, c.Enable = ProtocolRFC, []EnableRule{r} }
	}
	context := func(r ContextRule) func(*Config) { return func(c *Config) { c.Contexts = []ContextRule{r} } }
	cases := map[string]struct {
		change func(c *Config)
		want   string
	}{
		"endpoint":            {func(c *Config) { c.Endpoint = "5345" }, `endpoint is "5345": set it to host:port, such as localhost:5345`},
		"port":                {func(c *Config) { c.Endpoint = "localhost:lttng" }, `endpoint is "localhost:lttng": set its port to 1 to 65535`},
		"relative port file":  {func(c *Config) { c.PortFiles = []string{"/a", "agent.port"} }, `port_files[1] is "agent.port": set it to an absolute path`},
		"port file twice":     {func(c *Config) { c.PortFiles = []string{"/a/b", "/a//b"} }, `port_files[1] is "/a//b", which the list already has`},
		"protocol":            {func(c *Config) { c.Protocol = "2.1" }, `protocol is "2.1": set it to "2.0"`},
		"resource attributes": {func(c *Config) { c.ResourceAttributes = map[string]any{"x": struct{}{}} }, "resource_attributes: "},
		"no domain":           {rule(EnableRule{Logger: "*"}), `enable[0].domain is "": set it to jul or log4j or python or log4j2`},
		"domain of the RFC":   {rfcRule(EnableRule{Domain: "python", Logger: "*"}), `enable[0].domain is "python": set it to jul`},
		"no logger":           {rule(EnableRule{Domain: "jul"}), `enable[0].logger is empty: set it to a name, or to * for all`},
		"long logger":         {rule(EnableRule{Domain: "jul", Logger: string(make([]byte, 256))}), `enable[0].logger: expected `},
		"level":               {rule(EnableRule{Domain: "jul", Logger: "*", Level: "LOUD"}), `enable[0].level: expected a level of jul (OFF, SEVERE,`},
		"no level":            {rule(EnableRule{Domain: "jul", Logger: "*", Level: 1.5}), `enable[0].level is 1.5: set it to the name or the number of a level`},
		"level type":          {rule(EnableRule{Domain: "jul", Logger: "*", Level: 1, LevelType: "some"}), `enable[0].level_type: expected all, range or single`},
		"type without level":  {rule(EnableRule{Domain: "jul", Logger: "*", LevelType: "single"}), `enable[0].level_type is "single": set level, too`},
		"all with a level":    {rule(EnableRule{Domain: "jul", Logger: "*", Level: 1, LevelType: "all"}), `enable[0].level_type is "all": leave level out`},
		"filter":              {rule(EnableRule{Domain: "jul", Logger: "*", Filter: "\x00"}), `enable[0].filter: expected `},
		"level of the RFC":    {rfcRule(EnableRule{Domain: "jul", Logger: "*", Level: 1}), `enable[0].logger is "*": enable cannot be sent: `},
		"context":             {context(ContextRule{Provider: "shop"}), `contexts[0].provider and name: expected `},
		"context's domain":    {context(ContextRule{Domain: "c", Provider: "shop", Name: "user"}), `contexts[0].domain is "c": set it to jul or`},
		"context of Python":   {context(ContextRule{Domain: "python", Provider: "shop", Name: "user"}), `contexts[0].domain is "python": enable context cannot be sent: `},
		"list interval":       {func(c *Config) { c.ListInterval = 0 }, "list_interval is 0s: set it to 10ms to"},
		"command timeout":     {func(c *Config) { c.CommandTimeout = 0 }, "command_timeout is 0s: set it to 1ms to"},
		"agents per address":  {func(c *Config) { c.Limits.MaxAgentsPerAddress = -1 }, "limits.max_agents_per_address is -1: set it to 0 to"},
		"agents":              {func(c *Config) { c.Limits.MaxAgents = 0 }, "limits.max_agents is 0: set it to 1 to"},
		"registration":        {func(c *Config) { c.Limits.RegistrationTimeout = 0 }, "limits.registration_timeout is 0s"},
		"loggers":             {func(c *Config) { c.Limits.MaxLoggers = 0 }, "limits.max_loggers is 0"},
		"list bytes":          {func(c *Config) { c.Limits.MaxListBytes = 0 }, "limits.max_list_bytes is 0"},
		"inventory":           {func(c *Config) { c.Limits.MaxInventoryBytes = 0 }, "limits.max_inventory_bytes is 0"},
		"queued logs":         {func(c *Config) { c.Limits.MaxQueuedLogs = 0 }, "limits.max_queued_logs is 0"},
		"queued log bytes":    {func(c *Config) { c.Limits.MaxQueuedLogBytes = 0 }, "limits.max_queued_log_bytes is 0"},
		"retry":               {func(c *Config) { c.Retry.MaxInterval = time.Hour }, "retry.max_interval is 1h0m0s: set it to 50ms to 1m0s"},
		"shutdown":            {func(c *Config) { c.ShutdownTimeout = 0 }, "shutdown_timeout is 0s"},
		"collection":          {func(c *Config) { c.CollectionInterval = 0 }, "collection_interval is 0s"},
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
