// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestDefaults(t *testing.T) {
	cfg := DefaultConfig()
	require.NoError(t, componenttest.CheckConfigStruct(cfg))
	require.NoError(t, cfg.Validate())
	assert.Equal(t, &Config{
		PairingConfig: PairingConfig{
			Reorder:          ReorderConfig{MaxEvents: 1_000_000, MaxMiB: 512, MaxWait: 5 * time.Second},
			Truncated:        "emit",
			TraceRoots:       []string{},
			MaxSpansPerTrace: 20_000,
			MaxClockJump:     time.Minute,
			IdleTimeout:      time.Minute,
		},
		Limits: LimitsConfig{
			MaxStreams: 10_000, MaxLanes: 10_000, MaxFrames: 16_384, MaxNamesMiB: 64,
			MaxExceptionsPerSpan: 128, MaxAttributeDepth: 32, MaxHeldMiB: 64,
		},
		ShutdownTimeout: 5 * time.Second,
	}, cfg)
}

func TestConfigurationsAreRead(t *testing.T) {
	for name, want := range map[string]*Config{
		"":            DefaultConfig(),
		"spelled_out": DefaultConfig(),
		"all": {
			PairingConfig: PairingConfig{
				Reorder:      ReorderConfig{MaxEvents: 2_000_000, MaxMiB: 1_024, MaxWait: time.Minute},
				Truncated:    "drop",
				TraceRoots:   []string{`com\.example\.Handler\.handle`, `.*\.Job\.run`},
				MinDuration:  2 * time.Millisecond,
				MaxDepth:     40,
				MaxClockJump: 10 * time.Second,
				IdleTimeout:  10 * time.Minute,

				SpanAttributes: SpanAttributesConfig{Sequence: true, FunctionText: true},
			},
			Limits: LimitsConfig{
				MaxStreams: 11, MaxLanes: 12, MaxFrames: 13, MaxNamesMiB: 14, MaxExceptionsPerSpan: 15, MaxAttributeDepth: 17, MaxHeldMiB: 16,
			},
			ShutdownTimeout: 7 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
			require.NoError(t, err)
			sub, err := all.Sub(component.NewIDWithName(component.MustNewType(testID), name).String())
			require.NoError(t, err)
			cfg := DefaultConfig()
			require.NoError(t, sub.Unmarshal(cfg))
			require.NoError(t, cfg.Validate())
			assert.Equal(t, want, cfg)
		})
	}
}

func TestAnUnknownSettingIsAnError(t *testing.T) {
	err := confmap.NewFromStringMap(map[string]any{"reorder": map[string]any{"max_mb": 1}}).Unmarshal(DefaultConfig())
	require.ErrorContains(t, err, "max_mb")
}

func TestSettingsOfTheConnectorAndTimesWithoutUnitsAreErrors(t *testing.T) {
	for want, raw := range map[string]map[string]any{
		"min_duration is 5: write a time with its unit":          {"min_duration": 5},
		"reorder.max_wait is 10: write a time with its unit":     {"reorder": map[string]any{"max_wait": 10}},
		"keep is a setting of the connector":                     {"keep": map[string]any{"slower_than": "100ms"}},
		"fold_repeated is a setting of the connector":            {"fold_repeated": "1ms"},
		"metrics is a setting of the connector":                  {"metrics": nil},
		"profiles is a setting of the connector":                 {"profiles": map[string]any{}},
		"interval is a setting of the connector":                 {"interval": "5s"},
		"limits.max_sums_mib is a setting of the connector":      {"limits": map[string]any{"max_sums_mib": 1, "max_held_mib": 1}},
		"limits.max_undecided_mib is a setting of the connector": {"limits": map[string]any{"max_undecided_mib": nil}},
	} {
		assert.ErrorContains(t, confmap.NewFromStringMap(raw).Unmarshal(DefaultConfig()), want)
	}
}

// An error names the setting, its value, and the remedy.
func TestAnImpossibleValueIsAnError(t *testing.T) {
	for _, test := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Reorder.MaxEvents = 0 }, "reorder.max_events is 0: set it to 1 or more"},
		{func(c *Config) { c.Reorder.MaxEvents = 1<<28 + 1 }, "reorder.max_events is 268435457: set it to 268435456 or less"},
		{func(c *Config) { c.Reorder.MaxMiB = -1 }, "reorder.max_mib is -1: set it to 1 or more"},
		{func(c *Config) { c.Reorder.MaxMiB = math.MaxInt }, fmt.Sprintf("reorder.max_mib is %d: set it to 1048576 or less", math.MaxInt)},
		{func(c *Config) { c.Reorder.MaxWait = 0 }, "reorder.max_wait is 0s: set it above 0s"},
		{func(c *Config) { c.Reorder.MaxWait = 2 * time.Minute }, "idle_timeout is 1m0s: set it above reorder.max_wait, 2m0s"},
		{func(c *Config) { c.Truncated = "keep" }, `truncated is "keep": set it to "emit" or "drop"`},
		{func(c *Config) { c.Truncated = "" }, `truncated is "": set it to "emit" or "drop"`},
		{
			func(c *Config) { c.TraceRoots = []string{"fine", `com.(example`} },
			"trace_roots[1] is no RE2 expression: write it in the syntax of https://github.com/google/re2/wiki/Syntax: " +
				"error parsing regexp: missing closing ): `com.(example`",
		},
		{
			func(c *Config) { c.TraceRoots = []string{`a)|(b`} },
			"trace_roots[0] is no RE2 expression: write it in the syntax of https://github.com/google/re2/wiki/Syntax: " +
				"error parsing regexp: unexpected ): `a)|(b`",
		},
		{func(c *Config) { c.MaxSpansPerTrace = -1 }, "max_spans_per_trace is -1: set it to 0 or more"},
		{func(c *Config) { c.MinDuration = -1 }, "min_duration is -1ns: set it to 0s or more"},
		{func(c *Config) { c.MaxDepth = -1 }, "max_depth is -1: set it to 0 or more"},
		{func(c *Config) { c.MaxClockJump = 0 }, "max_clock_jump is 0s: set it above 0s"},
		{func(c *Config) { c.IdleTimeout = 0 }, "idle_timeout is 0s: set it above 0s"},
		{func(c *Config) { c.Limits.MaxStreams = 0 }, "limits.max_streams is 0: set it to 1 or more"},
		{func(c *Config) { c.Limits.MaxLanes = 0 }, "limits.max_lanes is 0: set it to 1 or more"},
		{func(c *Config) { c.Limits.MaxFrames = 0 }, "limits.max_frames is 0: set it to 1 or more"},
		{func(c *Config) { c.Limits.MaxNamesMiB = 0 }, "limits.max_names_mib is 0: set it to 1 or more"},
		{func(c *Config) { c.Limits.MaxNamesMiB = 1<<20 + 1 }, "limits.max_names_mib is 1048577: set it to 1048576 or less"},
		{func(c *Config) { c.Limits.MaxExceptionsPerSpan = -1 }, "limits.max_exceptions_per_span is -1: set it to 0 or more"},
		{func(c *Config) { c.Limits.MaxAttributeDepth = 0 }, "limits.max_attribute_depth is 0: set it to 1 or more"},
		{func(c *Config) { c.Limits.MaxAttributeDepth = 1001 }, "limits.max_attribute_depth is 1001: set it to 1000 or less"},
		{func(c *Config) { c.Limits.MaxHeldMiB = 0 }, "limits.max_held_mib is 0: set it to 1 or more"},
		{func(c *Config) { c.ShutdownTimeout = -time.Second }, "shutdown_timeout is -1s: set it above 0s"},
		{
			func(c *Config) { c.Limits.MaxLanes, c.MaxDepth = 0, -1 },
			"max_depth is -1: set it to 0 or more\nlimits.max_lanes is 0: set it to 1 or more",
		},
	} {
		t.Run(test.want, func(t *testing.T) {
			cfg := DefaultConfig()
			test.change(cfg)
			require.EqualError(t, cfg.Validate(), test.want)
		})
	}
}

func TestLimitsOfValuesAreAccepted(t *testing.T) {
	cfg := &Config{
		PairingConfig: PairingConfig{
			Reorder:   ReorderConfig{MaxEvents: 1, MaxMiB: 1, MaxWait: 1},
			Truncated: "drop", MaxClockJump: 1, IdleTimeout: 2,
		},
		ShutdownTimeout: 1,
		Limits:          LimitsConfig{MaxStreams: 1, MaxLanes: 1, MaxFrames: 1, MaxNamesMiB: 1, MaxAttributeDepth: 1, MaxHeldMiB: 1},
	}
	require.NoError(t, cfg.Validate())
}

func TestTraceRootsMatchWholeNames(t *testing.T) {
	for _, test := range []struct {
		expressions []string
		name        string
		want        bool
	}{
		{[]string{`com\.example\.Handler\.handle`}, "com.example.Handler.handle", true},
		{[]string{`com\.example\.Handler\.handle`}, "com.example.Handler.handleAll", false},
		{[]string{`Handler\.handle`}, "com.example.Handler.handle", false},
		{[]string{`.*Handler\.handle`}, "com.example.Handler.handle", true},
		{[]string{"a|ab"}, "ab", true},
		{[]string{"a.*?"}, "abc", true},
		{[]string{"no", `\Qdemo.f`}, "demo.f", true},
		{[]string{"(?i)DEMO.*"}, "demo.f", true},
		{[]string{"^demo.f$"}, "demo.f", true},
		{[]string{""}, "demo.f", false},
	} {
		isRoot, err := compileRoots(test.expressions)
		require.NoError(t, err)
		assert.Equal(t, test.want, isRoot(test.name), "%q on %q", test.expressions, test.name)
	}
	isRoot, err := compileRoots(nil)
	require.NoError(t, err)
	assert.Nil(t, isRoot, "without expressions no function is checked")
}
