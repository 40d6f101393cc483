// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package confignames

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"
	"go.opentelemetry.io/collector/confmap"
)

type namedSettings struct {
	confignet.TCPAddrConfig `mapstructure:",squash"`
	TLS                     configoptional.Optional[configtls.ServerConfig] `mapstructure:"tls"`
	Limits                  struct {
		MaxRuns  int `mapstructure:"max_runs"`
		MaxLanes int `mapstructure:"max_lanes"`
	} `mapstructure:"limits"`
	Rules []struct {
		Level string `mapstructure:"level"`
	} `mapstructure:"rules"`
	Free map[string]any `mapstructure:"free"`
}

func TestAnUnknownSettingHasTheNameThatWasMeant(t *testing.T) {
	for name, c := range map[string]struct {
		raw  map[string]any
		want string
	}{
		"misspelt":                   {map[string]any{"endpiont": "a"}, "endpiont is not a setting: did you mean endpoint?"},
		"misspelt in an embedded":    {map[string]any{"dialler": nil}, "dialler is not a setting: did you mean dialer?"},
		"below another":              {map[string]any{"limits": map[string]any{"max_run": 1}}, "limits.max_run is not a setting: did you mean limits.max_runs?"},
		"of the Collector":           {map[string]any{"tls": map[string]any{"cert_fil": "a"}}, "tls.cert_fil is not a setting: did you mean tls.cert_file?"},
		"in a list":                  {map[string]any{"rules": []any{map[string]any{"level": "a"}, map[string]any{"levl": "a"}}}, "rules[1].levl is not a setting: did you mean rules[1].level?"},
		"at another place":           {map[string]any{"max_lanes": 1}, "max_lanes is not a setting: did you mean limits.max_lanes?"},
		"unlike all others":          {map[string]any{"limits": map[string]any{"colour": 1}}, "limits.colour is not a setting: remove it, or use one of max_lanes, max_runs"},
		"two":                        {map[string]any{"endpiont": "a", "freee": nil}, "endpiont is not a setting: did you mean endpoint?\nfreee is not a setting: did you mean free?"},
		"the Collector's own errors": {map[string]any{"limits": 7}, "'limits' expected a map"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.ErrorContains(t, Unmarshal(confmap.NewFromStringMap(c.raw), &namedSettings{}), c.want)
		})
	}
}

func TestKnownSettingsAreRead(t *testing.T) {
	var read namedSettings
	require.NoError(t, Unmarshal(confmap.NewFromStringMap(map[string]any{
		"endpoint": "localhost:1", "tls": map[string]any{"cert_file": "a"}, "limits": map[string]any{"max_runs": 3},
		"rules": []any{map[string]any{"level": "b"}}, "free": map[string]any{"any": map[string]any{"thing": 1}},
	}), &read))
	assert.Equal(t, "localhost:1", read.Endpoint)
	assert.Equal(t, "a", read.TLS.Get().CertFile)
	assert.Equal(t, 3, read.Limits.MaxRuns)
	assert.Equal(t, "b", read.Rules[0].Level)
	assert.Equal(t, map[string]any{"any": map[string]any{"thing": 1}}, read.Free)
	require.NoError(t, Unmarshal(confmap.New(), &read))
}
