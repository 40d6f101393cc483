// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package memorybudgetextension

import (
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/collector/extension/extensiontest"

	"github.com/callbraid/callbraid/extension/memorybudgetextension/internal/metadata"
	"github.com/callbraid/callbraid/internal/testkit"
)

// goRuntime is the memory of Go's runtime in a test: its limit, the live memory, the memory without objects, and the
// number of changes of the limit.
type goRuntime struct {
	limit, live, others int64
	changes             int
}

// read computes the goal as Go's runtime does.
func (r *goRuntime) read() objectMemory {
	return objectMemory{live: r.live, goal: min(2*r.live, max(r.live, r.limit-r.others))}
}

func (r *goRuntime) set(bytes int64) int64 {
	before := r.limit
	if bytes >= 0 {
		r.limit = bytes
		r.changes++
	}
	return before
}

func TestGoHasALimitBelowTheMemoryLimiterUnlessOneIsSet(t *testing.T) {
	limiter := func(mib int) map[string]any { return limited(map[string]any{"limit_mib": mib}) }
	for name, c := range map[string]struct {
		set       bool
		gogc      string
		collector map[string]any
		before    int64
		want      int64
	}{
		"35% of the memory_limiter":              {true, "", limiter(2000), math.MaxInt64, 700 * mib},
		"512 MiB if 35% are less":                {true, "", limiter(1000), math.MaxInt64, 512 * mib},
		"90% of the memory_limiter if less":      {true, "", limiter(500), math.MaxInt64, 450 * mib},
		"90% if the user set GOGC":               {true, "200", limiter(2000), math.MaxInt64, 1800 * mib},
		"none if the setting is off":             {false, "", limiter(1000), math.MaxInt64, math.MaxInt64},
		"none without a memory_limiter":          {true, "", nil, math.MaxInt64, math.MaxInt64},
		"that of GOMEMLIMIT, if the user set it": {true, "", limiter(1000), 5000 * mib, 5000 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", c.gogc)
			x, err := newMemoryBudget(extensiontest.NewNopSettings(metadata.Type), &Config{LimitPercentage: 25, SetGoMemoryLimit: c.set})
			require.NoError(t, err)
			r := &goRuntime{limit: c.before}
			x.goLimit.set, x.goLimit.read = r.set, r.read
			conf := confmap.NewFromStringMap(c.collector)
			require.NoError(t, x.NotifyConfigSnapshot(t.Context(), extensioncapabilities.NewConfigSnapshot(conf, conf)))
			assert.Equal(t, c.want, r.limit)
			require.NoError(t, x.Shutdown(t.Context()))
			require.NoError(t, x.Shutdown(t.Context()))
			assert.Equal(t, c.before, r.limit)
		})
	}
}

func TestTheLimitOfGoIsLiveMemoryAndHalfAsMuchGarbage(t *testing.T) {
	r := &goRuntime{limit: math.MaxInt64}
	l := &goLimit{set: r.set, read: r.read}
	l.begin(2000 * mib)
	for _, c := range []struct {
		name             string
		live, want       int64 // MiB
		staysAsItWasThen bool
	}{
		{"little live memory", 100, 700, true},
		{"as much as the usual limit allows with half as much garbage", 466, 700, true},
		{"more", 600, 900, false},
		{"a little more, which is no step", 630, 900, true},
		{"so much that the largest limit applies", 1300, 1800, false},
		{"even more", 3000, 1800, true},
		{"less again", 800, 1200, false},
		{"little again", 50, 700, false},
	} {
		changes := r.changes
		r.live = c.live * mib
		assert.True(t, l.follow(), c.name)
		assert.Equal(t, c.want*mib, r.limit, c.name)
		assert.Equal(t, c.staysAsItWasThen, r.changes == changes, c.name)
	}
	l.end()
	assert.False(t, l.follow(), "after the end")
	assert.EqualValues(t, int64(math.MaxInt64), r.limit)
}

// Stacks and unused memory between objects leave less for garbage, if the limit does not count them.
func TestTheLimitOfGoLeavesMemoryWithoutObjects(t *testing.T) {
	r := &goRuntime{limit: math.MaxInt64}
	l := &goLimit{set: r.set, read: r.read}
	l.begin(2000 * mib)
	for _, c := range []struct {
		name                 string
		live, others, limits int64 // MiB
	}{
		{"many stacks", 600, 200, 1100},
		{"fewer stacks, which leave more room for garbage", 600, 50, 950},
		{"little live memory", 100, 50, 700},
		{"more stacks than the limit", 400, 800, 1400},
		{"stacks while the limit was high", 700, 10, 1060},
	} {
		r.live, r.others = c.live*mib, c.others*mib
		for range 10 {
			l.follow()
		}
		assert.InEpsilon(t, c.limits*mib, r.limit, 1.0/stepPart, c.name)
		garbage := r.read().goal - r.live
		assert.GreaterOrEqual(t, garbage, r.live/3, c.name)
	}
}

func TestTheLimitOfGoFollowsEachCollection(t *testing.T) {
	collected := make(chan struct{}, 1)
	r := &goRuntime{limit: math.MaxInt64}
	l := &goLimit{set: r.set, read: func() objectMemory {
		select {
		case collected <- struct{}{}:
		default:
		}
		return readObjectMemory()
	}}
	l.begin(2000 * mib)
	defer l.end()
	for range 3 {
		require.True(t, testkit.Happens(func() bool {
			runtime.GC()
			select {
			case <-collected:
				return true
			default:
				return false
			}
		}), "the limit does not follow a collection")
	}
	m := readObjectMemory()
	assert.Positive(t, m.live)
	assert.Greater(t, m.goal, m.live)
}
