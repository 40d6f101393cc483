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
