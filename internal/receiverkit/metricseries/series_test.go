// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package metricseries

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func TestASumStopsAtTheLargestNumber(t *testing.T) {
	assert.Equal(t, int64(math.MaxInt64), sumOf[int64](math.MaxInt64, 1))
	assert.Equal(t, int64(math.MinInt64), sumOf[int64](math.MinInt64, -1))
	assert.EqualValues(t, -1, sumOf[int64](math.MinInt64, math.MaxInt64))
	assert.Equal(t, 0.75, sumOf(0.5, 0.25))
}

func TestValuesThatDifferOnlyInDisabledAttributesAreCombined(t *testing.T) {
	type attribute string
	for strategy, want := range map[string]string{"sum": "map[a:9 b:0.5]", "avg": "map[a:4.5 b:0.5]", "min": "map[a:1 b:0.5]", "max": "map[a:8 b:0.5]"} {
		s := New[float64](NewSettings("time", strategy, []attribute{"class"}, "class", "method"), 0)
		s.Add(8, "a", "x")
		s.Add(1, "a", "y")
		s.Add(0.5, "b", "x")
		metrics := pmetric.NewMetricSlice()
		s.First(func(value float64, key Key) {
			m := metrics.AppendEmpty()
			m.SetName("time")
			p := m.SetEmptyGauge().DataPoints().AppendEmpty()
			p.SetDoubleValue(value)
			p.Attributes().PutStr("class", key[0])
		})
		metrics.AppendEmpty().SetName("another")
		s.AppendOthers(metrics)
		got := map[string]float64{}
		for _, p := range metrics.At(0).Gauge().DataPoints().All() {
			class, _ := p.Attributes().Get("class")
			assert.Equal(t, 1, p.Attributes().Len())
			got[class.Str()] = p.DoubleValue()
		}
		assert.Equal(t, want, fmt.Sprint(got), strategy)
	}
}
