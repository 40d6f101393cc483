// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/rbkittest"
)

func TestGarbageCollectionsArePaired(t *testing.T) {
	const start, mark, sweep, missed = rbkit.GCStart, rbkit.GCEndMark, rbkit.GCEndSweep, rbkit.Unknown
	type event struct {
		at   int64
		what rbkit.Kind
	}
	cases := map[string]struct {
		events                    []event
		want                      []Cycle
		noStart, noEnd, stepsBack int64
		marked, whole             uint64
	}{
		"one":                         {events: []event{{1, start}, {3, mark}, {9, sweep}}, want: []Cycle{{1, 1, 3, 9}}, marked: 1, whole: 1},
		"one without a length":        {events: []event{{1, start}, {1, mark}, {1, sweep}}, want: []Cycle{{1, 1, 1, 1}}, marked: 1, whole: 1},
		"an end without a start":      {events: []event{{1, sweep}, {2, start}, {3, mark}, {4, sweep}}, want: []Cycle{{1, 2, 3, 4}}, noStart: 1, marked: 1, whole: 1},
		"marking without a start":     {events: []event{{1, mark}}, noStart: 1},
		"a start without an end":      {events: []event{{1, start}, {2, start}, {3, mark}, {4, sweep}}, want: []Cycle{{2, 2, 3, 4}}, noEnd: 1, marked: 1, whole: 1},
		"sweeping that does not end":  {events: []event{{1, start}, {2, mark}, {3, start}}, noEnd: 1, marked: 1},
		"marking that does not end":   {events: []event{{1, start}, {2, sweep}, {3, mark}}, noStart: 2},
		"marking that ends twice":     {events: []event{{1, start}, {2, mark}, {3, mark}, {4, sweep}}, want: []Cycle{{1, 1, 2, 4}}, noStart: 1, marked: 1, whole: 1},
		"a loss during marking":       {events: []event{{1, start}, {2, missed}, {3, mark}, {4, sweep}}, noStart: 2, noEnd: 1},
		"a loss during sweeping":      {events: []event{{1, start}, {2, mark}, {3, missed}, {4, sweep}}, noStart: 1, noEnd: 1, marked: 1},
		"a loss between two":          {events: []event{{1, start}, {2, mark}, {3, sweep}, {4, missed}, {5, start}, {6, mark}, {7, sweep}}, want: []Cycle{{1, 1, 2, 3}, {2, 5, 6, 7}}, marked: 2, whole: 2},
		"a clock set back in marking": {events: []event{{5, start}, {3, mark}, {9, sweep}}, noStart: 1, stepsBack: 1},
		"a clock set back in sweeping": {events: []event{{5, start}, {6, mark}, {4, sweep}, {7, start}, {8, mark}, {9, sweep}},
			want: []Cycle{{2, 7, 8, 9}}, stepsBack: 1, marked: 2, whole: 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []Cycle
			cycles := cycles{finished: func(c *Cycle) { got = append(got, *c) }}
			for _, e := range c.events {
				if e.what == missed {
					cycles.dropOpen()
					continue
				}
				cycles.handleEvent(e.at, e.what)
			}
			assert.Equal(t, c.want, got)
			assert.Equal(t, [...]int64{c.noStart, c.noEnd, c.stepsBack}, [...]int64{cycles.noStart, cycles.noEnd, cycles.stepsBack})
			assert.Equal(t, [...]uint64{c.marked, c.whole}, [...]uint64{cycles.marking.Count, cycles.whole.Count})
		})
	}
}

func TestDurationsGoToTheirBuckets(t *testing.T) {
	var h Histogram
	for _, d := range []time.Duration{0, time.Millisecond, 1001 * time.Microsecond, time.Minute, time.Hour} {
		h.Observe(d)
	}
	assert.EqualValues(t, 2, h.Buckets[0])
	assert.EqualValues(t, 1, h.Buckets[1])
	assert.EqualValues(t, 1, h.Buckets[len(Bounds)-1])
	assert.EqualValues(t, 1, h.Buckets[len(Bounds)])
	assert.Equal(t, [...]time.Duration{0, time.Hour}, [...]time.Duration{h.Min, h.Max})
	assert.True(t, slices.IsSorted(Bounds[:]))
}

func TestOnlyWholeNumbersAreStatistics(t *testing.T) {
	for _, c := range []struct {
		number rbkit.Number
		want   int64
		whole  bool
	}{
		{rbkit.Number{Integer: -5}, -5, true},
		{rbkit.Number{Float: 5, IsFloat: true}, 5, true},
		{rbkit.Number{Float: 5.5, IsFloat: true}, 0, false},
		{rbkit.Number{Float: 1 << 53, IsFloat: true}, 0, false},
		{rbkit.Number{Float: math.Inf(-1), IsFloat: true}, 0, false},
		{rbkit.Number{Float: math.NaN(), IsFloat: true}, 0, false},
	} {
		got, whole := wholeNumber(c.number)
		assert.Equal(t, c.whole, whole, c.number)
		assert.Equal(t, c.want, got, c.number)
	}
}

// setStats sets statistics from a message.
func setStats(t *testing.T, s Stats, all ...rbkit.Stat) Stats {
	t.Helper()
	s.replaceBy(rbkittest.LastEvent(t, rbkit.Released, func(c *rbkit.Collection) error { return c.Stats(1, all) }).Stats)
	return s
}

func TestStatisticsAreTheLastThatWereSent(t *testing.T) {
	s := Stats{}
	setStats(t, s, rbkit.Stat{Name: "a", Value: 1}, rbkit.Stat{Name: "b", Missing: true}, rbkit.Stat{Name: "c", Value: math.MaxUint64})
	assert.Equal(t, Stats{"a": 1}, s)
	setStats(t, s, rbkit.Stat{Name: "a", Missing: true})
	assert.Empty(t, s, "a statistic that is no longer sent")
	setStats(t, s, rbkit.Stat{Name: "heap_free_slot", Value: 10}, rbkit.Stat{Name: "heap_free_slots", Value: 100}, rbkit.Stat{Name: "heap_free_num", Value: 1000})
	assert.Equal(t, Stats{"heap_free_slots": 10}, s, "of those that are the same the first")
	var many []rbkit.Stat
	for i := range maxStats + 1 {
		many = append(many, rbkit.Stat{Name: fmt.Sprintf("key_%d", i), Value: uint64(i)})
	}
	assert.Len(t, setStats(t, s, many...), maxStats)
}

func TestSumsEndWithTheLargestNumber(t *testing.T) {
	var h Histogram
	for range 3 {
		h.Observe(math.MaxInt64 / 2)
		assert.Positive(t, h.Sum)
	}
	assert.Equal(t, time.Duration(math.MaxInt64), h.Sum)
}

func TestStatisticsOfOneLifeDontFall(t *testing.T) {
	s := Stats{"count": 5, "total_allocated_objects": 100, "heap_live_slots": 50}
	for name, c := range map[string]struct {
		now  rbkit.Stat
		fell bool
	}{
		"the same":                  {rbkit.Stat{Name: "count", Value: 5}, false},
		"more":                      {rbkit.Stat{Name: "count", Value: 6}, false},
		"less":                      {rbkit.Stat{Name: "count", Value: 4}, true},
		"less of another":           {rbkit.Stat{Name: "total_allocated_objects", Value: 99}, true},
		"missing":                   {rbkit.Stat{Name: "count", Missing: true}, false},
		"a statistic that may fall": {rbkit.Stat{Name: "heap_live_slots", Value: 4}, false},
		"by a former name":          {rbkit.Stat{Name: "total_allocated_object", Value: 4}, true},
		"not known anywhere":        {rbkit.Stat{Name: "something_new", Value: 0}, false},
	} {
		e := rbkittest.LastEvent(t, rbkit.Released, func(into *rbkit.Collection) error { return into.Stats(1, []rbkit.Stat{c.now}) })
		assert.Equal(t, c.fell, s.fell(e.Stats), name)
		assert.False(t, Stats{}.fell(e.Stats), "%s, not known before", name)
	}
}
