// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/connector/xconnector"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/metadata"
)

func TestEachOutputStartsAndStopsAlone(t *testing.T) {
	set := connectortest.NewNopSettings(metadata.Type)
	for name, start := range map[string]func(xconnector.Factory, *Config) (*input, error){
		"traces": func(f xconnector.Factory, cfg *Config) (*input, error) {
			c, err := f.CreateTracesToTraces(t.Context(), set, cfg, consumertest.NewNop())
			return c.(*input), err
		},
		"metrics": func(f xconnector.Factory, cfg *Config) (*input, error) {
			c, err := f.CreateTracesToMetrics(t.Context(), set, cfg, consumertest.NewNop())
			return c.(*input), err
		},
		"profiles": func(f xconnector.Factory, cfg *Config) (*input, error) {
			c, err := f.CreateTracesToProfiles(t.Context(), set, cfg, consumertest.NewNop())
			return c.(*input), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFactory().(xconnector.Factory)
			cfg := f.CreateDefaultConfig().(*Config)
			for range 2 {
				c, err := start(f, cfg)
				require.NoError(t, err)
				require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
				require.NoError(t, c.Shutdown(t.Context()))
				require.NoError(t, c.Shutdown(t.Context()))
			}
			c, err := start(f, cfg)
			require.NoError(t, err)
			require.NoError(t, c.Shutdown(t.Context()))
		})
	}
}

func TestARatioThatKeepsNoTraceIsRefused(t *testing.T) {
	for _, ratio := range []float64{1e-300, 1e-18, leastRatio / 2} {
		require.ErrorContains(t, keeping(patient(), KeepConfig{Ratio: ratio}).Validate(), "keeps no trace")
	}
	for _, ratio := range []float64{leastRatio, 1e-15, 1} {
		cfg := keeping(patient(), KeepConfig{Ratio: ratio})
		require.NoError(t, cfg.Validate())
		assert.Less(t, cfg.Keep.Get().threshold(), uint64(random))
	}
}

func TestAValueOfAWrongFormIsAnErrorWithTheExpectedForm(t *testing.T) {
	for _, test := range []struct {
		raw  map[string]any
		want string
	}{
		{map[string]any{"keep": map[string]any{"slower_than": 100}}, "keep.slower_than is 100: write the unit too, such as 100ms or 100s"},
		{
			map[string]any{"keep": map[string]any{"functions": []any{map[string]any{"name": "f", "slower_than": 20}}}},
			"keep.functions[0].slower_than is 20: write the unit too",
		},
		{map[string]any{"interval": 10}, "interval is 10: write the unit too"},
		{map[string]any{"min_duration": 10}, "min_duration is 10: write the unit too"},
		{map[string]any{"metrics": map[string]any{"expiration": 10}}, "metrics.expiration is 10: write the unit too"},
		{map[string]any{"fold_repeated": map[string]any{"shorter_than": 1}}, "fold_repeated.shorter_than is 1: write the unit too"},
		{map[string]any{"fold_repeated": "1ms"}, "fold_repeated is 1ms: write fold_repeated: {shorter_than: 1ms}"},
		{map[string]any{"keep": true}, "keep is true: write criteria below it, such as keep: {slower_than: 100ms}"},
		{map[string]any{"keep": map[string]any{"functions": []any{"f"}}}, "keep.functions is [f]: write a list of names, such as keep: {functions: [{name: f}]}"},
		{map[string]any{"keep": map[string]any{"functions": "f"}}, "keep.functions is f: write a list of names"},
	} {
		require.ErrorContains(t, confmap.NewFromStringMap(test.raw).Unmarshal(createDefaultConfig()), test.want)
	}
	cfg := createDefaultConfig().(*Config)
	raw := map[string]any{"keep": map[string]any{"slower_than": "100ms", "functions": []any{map[string]any{"name": "f", "slower_than": 0}}}, "fold_repeated": nil}
	require.NoError(t, confmap.NewFromStringMap(raw).Unmarshal(cfg))
	assert.Equal(t, 100*time.Millisecond, cfg.Keep.Get().SlowerThan)
}

func TestSettingsWithoutAPipelineAreLoggedAtTheStart(t *testing.T) {
	cfg := keeping(patient(), KeepConfig{Ratio: 1})
	cfg.FoldRepeated.ShorterThan, cfg.Profiles.ByThread, cfg.Limits.MaxSumsMiB = time.Millisecond, true, 100
	for name, test := range map[string]struct {
		to   outputs
		want map[string][]any
	}{
		"all":     {allOutputs(), map[string][]any{}},
		"traces":  {outputs{traces: newOutput()}, map[string][]any{"metrics": {"metrics"}, "profiles": {"profiles"}, "metrics or profiles": {"interval", "limits.max_sums_mib"}}},
		"metrics": {outputs{metrics: newOutput()}, map[string][]any{"traces": {"keep", "fold_repeated"}, "profiles": {"profiles"}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, cfg, test.to)
			got := map[string][]any{}
			for _, line := range b.logs.FilterMessageSnippet("no effect").All() {
				got[line.ContextMap()["signal"].(string)] = line.ContextMap()["settings"].([]any)
			}
			assert.Equal(t, test.want, got)
			b.shut()
		})
	}
	b := newBench(t, createDefaultConfig().(*Config), outputs{metrics: newOutput()})
	assert.Zero(t, b.logs.Len(), "defaults need no warning")
	b.shut()
}

// The Collector shuts down only what it could build.
func TestAConnectorThatIsNeverShutDownIsForgotten(t *testing.T) {
	all := shared{made: map[weak.Pointer[Config]]weak.Pointer[pairer]{}}
	made := func() int {
		all.mu.Lock()
		defer all.mu.Unlock()
		return len(all.made)
	}
	set := connectortest.NewNopSettings(metadata.Type)
	cfg := createDefaultConfig().(*Config)
	_, err := all.input(set, createDefaultConfig().(*Config), true, func(*pairer) {})
	require.NoError(t, err)
	first, err := all.input(set, cfg, true, func(*pairer) {})
	require.NoError(t, err)
	require.Equal(t, 2, made())
	require.Eventually(t, func() bool {
		runtime.GC()
		return made() == 1
	}, time.Minute, time.Millisecond)
	second, err := all.input(set, cfg, false, func(*pairer) {})
	require.NoError(t, err)
	assert.Same(t, first.pairer, second.pairer)
	require.NoError(t, first.Shutdown(t.Context()))
	assert.Zero(t, made())
}
