// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package memorybudgetextension

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/extension/memorybudgetextension/internal/metadata"
	"github.com/callbraid/callbraid/extension/memorybudgetextension/internal/metadatatest"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// testAvailable is the memory of the process in these tests.
const testAvailable = 8000 * mib

func TestTheLimitFollowsFromTheConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		config    Config
		collector map[string]any
		want      int64
		warning   string
	}{
		"a share of the process by default": {
			config: Config{LimitPercentage: 25}, want: 2000 * mib,
		},
		"a configured number of MiB": {
			config: Config{LimitMiB: 300, LimitPercentage: 25}, want: 300 * mib,
		},
		"a share of the memory_limiter if that is less": {
			config:    Config{LimitPercentage: 25},
			collector: limited(map[string]any{"limit_mib": 1000, "check_interval": "1s"}),
			want:      400 * mib,
		},
		"a share of the lowest memory_limiter": {
			config: Config{LimitPercentage: 25},
			collector: map[string]any{
				"processors": map[string]any{
					"memory_limiter/a": map[string]any{"limit_mib": 2000}, "memory_limiter/b": map[string]any{"limit_mib": 1000},
					"stack_pairing": nil, "memory_limiter_of_others": map[string]any{"limit_mib": 1},
				},
				"extensions": map[string]any{"memory_limiter": map[string]any{"limit_percentage": 5}},
				"service": map[string]any{
					"extensions": []any{"memory_limiter"},
					"pipelines": map[string]any{
						"traces": map[string]any{"processors": []any{"memory_limiter/a", "memory_limiter_of_others"}},
						"logs":   map[string]any{"processors": []any{"memory_limiter/b"}},
					},
				},
			},
			want: 160 * mib,
		},
		"no share of a memory_limiter that nothing uses": {
			config: Config{LimitPercentage: 25},
			collector: map[string]any{
				"processors": map[string]any{"memory_limiter": map[string]any{"limit_mib": 1000}},
				"extensions": map[string]any{"memory_limiter": map[string]any{"limit_mib": 1000}},
				"service":    map[string]any{"pipelines": map[string]any{"traces": map[string]any{"processors": []any{"batch"}}}},
			},
			want: 2000 * mib,
		},
		"the process's share if the memory_limiter allows more": {
			config:    Config{LimitPercentage: 1},
			collector: limited(map[string]any{"limit_mib": 4000}),
			want:      80 * mib,
		},
		"a warning if the chosen one is near the memory_limiter": {
			config:    Config{LimitMiB: 800, LimitPercentage: 25},
			collector: limited(map[string]any{"limit_mib": 1000}),
			want:      800 * mib,
			warning:   "limit_mib of memory_budget is near the limit of a memory_limiter",
		},
		"a memory_limiter without a limit has no effect": {
			config:    Config{LimitPercentage: 25},
			collector: limited(nil),
			want:      2000 * mib,
		},
	} {
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zap.WarnLevel)
			settings := extensiontest.NewNopSettings(metadata.Type)
			settings.Logger = zap.New(core)
			x, err := newMemoryBudget(settings, &c.config)
			require.NoError(t, err)
			x.available = testAvailable
			require.NoError(t, x.Start(t.Context(), componenttest.NewNopHost()))
			conf := confmap.NewFromStringMap(c.collector)
			require.NoError(t, x.NotifyConfigSnapshot(t.Context(), extensioncapabilities.NewConfigSnapshot(conf, conf)))
			assert.Equal(t, c.want, x.MemoryBudget().Limit())
			require.NoError(t, x.Shutdown(t.Context()))
			if c.warning == "" {
				assert.Empty(t, logs.All())
			} else {
				require.Len(t, logs.All(), 1)
				assert.Contains(t, logs.All()[0].Message, c.warning)
				assert.Equal(t, int64(400), logs.All()[0].ContextMap()["suggested_limit_mib"])
			}
		})
	}
}

// limited is the configuration of a collector whose pipeline has a memory_limiter.
func limited(settings any) map[string]any {
	return map[string]any{
		"processors": map[string]any{"memory_limiter": settings},
		"service":    map[string]any{"pipelines": map[string]any{"traces": map[string]any{"processors": []any{"memory_limiter"}}}},
	}
}

func TestImpossibleSettingsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"the limit is too low":      {Config{LimitMiB: 1, LimitPercentage: 25}, "limit_mib is 1"},
		"the limit is negative":     {Config{LimitMiB: -1, LimitPercentage: 25}, "limit_mib is -1"},
		"the percentage is zero":    {Config{}, "limit_percentage is 0"},
		"the percentage is all":     {Config{LimitPercentage: 100}, "limit_percentage is 100"},
		"the limit is in bytes":     {Config{LimitMiB: 1 << 30, LimitPercentage: 25}, "limit_mib is 1073741824"},
		"the defaults are accepted": {*createDefaultConfig().(*Config), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.config.Validate()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestMetricsHaveTheMemoryOfEachComponent(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	settings := metadatatest.NewSettings(tel)
	x, err := newMemoryBudget(settings, &Config{LimitMiB: 16, LimitPercentage: 25})
	require.NoError(t, err)
	run := x.MemoryBudget().Group("bytefrog").Open(budget.Settings{Leave: func(*budget.Error) {}})
	require.NoError(t, run.Reserve(mib))
	require.Error(t, run.Reserve(16*mib))
	id := attribute.String("extension", metadata.Type.String())
	holder := attribute.NewSet(id, attribute.String("holder", "bytefrog"))
	metadatatest.AssertEqualExtensionMemoryBudgetLimit(t, tel, []metricdata.DataPoint[int64]{{Value: 16 * mib, Attributes: attribute.NewSet(id)}}, metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualExtensionMemoryBudgetUsage(t, tel,
		[]metricdata.DataPoint[int64]{{Value: mib, Attributes: holder}}, metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualExtensionMemoryBudgetRequestsToGiveWay(t, tel,
		[]metricdata.DataPoint[int64]{{Value: 1, Attributes: holder}}, metricdatatest.IgnoreTimestamp())
	require.NoError(t, x.Shutdown(t.Context()))
}
