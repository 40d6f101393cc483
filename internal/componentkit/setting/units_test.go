// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestATimeNeedsAUnit(t *testing.T) {
	type inner struct {
		Wait  time.Duration `mapstructure:"wait"`
		Count int           `mapstructure:"count"`
	}
	type outer struct {
		inner `mapstructure:",squash"`
		Part  inner   `mapstructure:"part"`
		List  []inner `mapstructure:"list"`
		Free  any     `mapstructure:"free"`
	}
	const remedy = ": write a time with its unit, such as 100ms or 1s"
	for want, raw := range map[string]any{
		"": map[string]any{
			"wait": "5s", "count": "5", "part": map[string]any{"wait": 0}, "list": []any{map[string]any{"count": 1, "wait": "0"}}, "free": 3,
		},
		"wait is 5" + remedy:           map[string]any{"wait": 5},
		"wait is 1e+09" + remedy:       map[string]any{"wait": 1e9},
		`wait is "100"` + remedy:       map[string]any{"wait": "100"},
		`wait is "100 ms"` + remedy:    map[string]any{"wait": "100 ms"},
		`wait is ""` + remedy:          map[string]any{"wait": ""},
		"part.wait is 100" + remedy:    map[string]any{"part": map[string]any{"wait": 100, "count": 1}},
		"list[1].wait is 0.5" + remedy: map[string]any{"list": []any{map[string]any{"wait": "1s"}, map[string]any{"wait": 0.5}}},
	} {
		if err := Units("", raw, outer{}); want == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, want)
		}
	}
	// Other errors report these.
	for _, raw := range []any{nil, "text", []any{"text"}, map[string]any{"part": 7, "list": 8, "wait": []any{1}}} {
		assert.NoError(t, Units("", raw, outer{}))
	}
	assert.EqualError(t, Units("keep.", map[string]any{"wait": 1, "part": map[string]any{"wait": 2}}, outer{}),
		"keep.wait is 1"+remedy+"\nkeep.part.wait is 2"+remedy)
}
