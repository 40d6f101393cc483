// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package profilesconverter

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/featuregate"
)

func TestTheGateIsOnlyOnForAConfigurationWithProfiles(t *testing.T) {
	for name, test := range map[string]struct {
		pipelines any
		on        bool
	}{
		"a pipeline of profiles":            {map[string]any{"profiles": nil}, true},
		"a pipeline with a name":            {map[string]any{"traces": nil, "profiles/calls": nil}, true},
		"a pipeline with a blank":           {map[string]any{"profiles /calls": nil}, true},
		"other signals":                     {map[string]any{"traces": nil, "metrics": nil}, false},
		"another signal of that name":       {map[string]any{"traces/profiles": nil}, false},
		"pipelines that are no map":         {3, false},
		"a configuration without pipelines": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			gates := featuregate.NewRegistry()
			of := gates.MustRegister(gate, featuregate.StageAlpha)
			configuration := confmap.NewFromStringMap(map[string]any{"service": map[string]any{"pipelines": test.pipelines}})
			before := configuration.ToStringMap()
			require.NoError(t, (&converter{gates}).Convert(t.Context(), configuration))
			assert.Equal(t, test.on, of.IsEnabled())
			assert.Equal(t, before, configuration.ToStringMap())
		})
	}
}

// A Collector that needs no gate any more has none. One that is too old reports the pipeline itself.
func TestACollectorWithoutTheGateKeepsItsConfiguration(t *testing.T) {
	configuration := confmap.NewFromStringMap(map[string]any{"service": map[string]any{"pipelines": map[string]any{"profiles": nil}}})
	assert.NoError(t, (&converter{featuregate.NewRegistry()}).Convert(t.Context(), configuration))
}

func TestTheGateIsOnAlsoIfAFlagSwitchedItOff(t *testing.T) {
	gates := featuregate.NewRegistry()
	of := gates.MustRegister(gate, featuregate.StageAlpha)
	require.NoError(t, gates.Set(gate, false))
	configuration := confmap.NewFromStringMap(map[string]any{"service": map[string]any{"pipelines": map[string]any{"profiles": nil}}})
	require.NoError(t, (&converter{gates}).Convert(t.Context(), configuration))
	assert.True(t, of.IsEnabled())
}
