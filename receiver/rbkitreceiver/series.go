// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
)

// series is a metric with attributes, one point for all values that have the same of those
// that are wanted. The generated builder looks through all points for each: it makes the
// first point alone, and so the metric.
type series struct {
	settings seriesSettings
	points   []seriesPoint
	// at are the indexes of points.
	at map[seriesKey]int
}

// seriesKey is the values of a metric's attributes; what is not wanted is empty.
type seriesKey [2]string

type seriesPoint struct {
	key   seriesKey
	value int64
	// of is how many values it is of.
	of int64
}

// seriesSettings are what is set for a metric with attributes.
type seriesSettings struct {
	name string
	// attributes are the keys of all that the metric has, and wanted says which are set.
	attributes []string
	wanted     [len(seriesKey{})]bool
	// strategy says what becomes of values that only differ in what is not wanted.
	strategy string
}

// newSeriesSettings takes the attributes that are set from a generated configuration.
func newSeriesSettings[K ~string](name, strategy string, set []K, attributes ...K) seriesSettings {
	s := seriesSettings{name: name, strategy: strategy}
	for i, key := range attributes {
		s.attributes = append(s.attributes, string(key))
		s.wanted[i] = slices.Contains(set, key)
	}
	return s
}

func newSeries(settings seriesSettings, capacity int) *series {
	return &series{settings: settings, points: make([]seriesPoint, 0, capacity), at: make(map[seriesKey]int, capacity)}
}

// add adds a value with its attributes.
func (s *series) add(value int64, key ...string) {
	var wanted seriesKey
	for i, v := range key {
		if s.settings.wanted[i] {
			wanted[i] = v
		}
	}
	at, known := s.at[wanted]
	if !known {
		s.at[wanted] = len(s.points)
		s.points = append(s.points, seriesPoint{key: wanted, value: value, of: 1})
		return
	}
	p := &s.points[at]
	p.of++
	switch s.settings.strategy {
	case metadata.AggregationStrategyMin:
		p.value = min(p.value, value)
	case metadata.AggregationStrategyMax:
		p.value = max(p.value, value)
	default:
		p.value = sumOf(p.value, value)
	}
}

// value is that of a point.
func (s *series) value(p *seriesPoint) int64 {
	if s.settings.strategy == metadata.AggregationStrategyAvg {
		return p.value / p.of
	}
	return p.value
}

// sumOf is the sum of two numbers, or the largest or smallest number where it is beyond.
func sumOf(a, b int64) int64 {
	switch sum := a + b; {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	default:
		return sum
	}
}

// first has record make the first point, if there is one.
func (s *series) first(record func(value int64, key seriesKey)) {
	if len(s.points) > 0 {
		record(s.value(&s.points[0]), s.points[0].key)
	}
}

// appendOthers appends all points but the first to the metric that was made, if it is one
// of these.
func (s *series) appendOthers(metrics pmetric.MetricSlice) {
	for _, m := range metrics.All() {
		if m.Name() != s.settings.name {
			continue
		}
		if m.Type() == pmetric.MetricTypeSum {
			s.appendTo(m.Sum().DataPoints())
		} else {
			s.appendTo(m.Gauge().DataPoints())
		}
	}
}

func (s *series) appendTo(points pmetric.NumberDataPointSlice) {
	points.EnsureCapacity(len(s.points))
	start, now := points.At(0).StartTimestamp(), points.At(0).Timestamp()
	for i := range s.points[1:] {
		p := &s.points[1+i]
		made := points.AppendEmpty()
		made.SetStartTimestamp(start)
		made.SetTimestamp(now)
		made.SetIntValue(s.value(p))
		s.putAttributes(made.Attributes(), p.key)
	}
}

func (s *series) putAttributes(to pcommon.Map, key seriesKey) {
	to.EnsureCapacity(len(s.settings.attributes))
	for i, name := range s.settings.attributes {
		if s.settings.wanted[i] {
			to.PutStr(name, key[i])
		}
	}
}
