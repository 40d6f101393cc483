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
	for want, raw := range map[string]any{
		"": map[string]any{"wait": "5s", "count": 5, "part": map[string]any{"wait": 0}, "list": []any{map[string]any{"count": 1}}, "free": 3},
		"wait is 5: write the unit too, such as 5ms or 5s":               map[string]any{"wait": 5},
		"part.wait is 100: write the unit too, such as 100ms or 100s":    map[string]any{"part": map[string]any{"wait": 100, "count": 1}},
		"list[1].wait is 0.5: write the unit too, such as 0.5ms or 0.5s": map[string]any{"list": []any{map[string]any{"wait": "1s"}, map[string]any{"wait": 0.5}}},
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
		"keep.wait is 1: write the unit too, such as 1ms or 1s\nkeep.part.wait is 2: write the unit too, such as 2ms or 2s")
}
