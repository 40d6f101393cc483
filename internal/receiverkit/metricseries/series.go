// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package metricseries makes the points of metrics that have very many. The builders that
// mdatagen generates look through all points for each: they make the first point alone,
// and so the metric, and all others come from here. It knows no component.
package metricseries

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// How values are made one that only differ in attributes that are not wanted: what
// generated configurations call aggregation strategies. Any other is the sum.
const (
	strategyAverage = "avg"
	strategyMin     = "min"
	strategyMax     = "max"
)

// Value is what points can have.
type Value interface{ int64 | float64 }

// Series are the points of a metric with attributes, one for all values that have the same
// of those that are wanted.
type Series[V Value] struct {
	settings Settings
	points   []point[V]
	// at are the indexes of points.
	at map[Key]int
}

// Key is the values of a metric's attributes, of which there are two at most; what is not
// wanted is empty.
type Key [2]string

type point[V Value] struct {
	key   Key
	value V
	// of is how many values it is of.
	of int64
}

// Settings are what is set for a metric with attributes.
type Settings struct {
	name string
	// attributes are the keys of all that the metric has, and wanted says which are set.
	attributes []string
	wanted     [len(Key{})]bool
	// strategy says what becomes of values that only differ in what is not wanted.
	strategy string
}

// NewSettings takes the attributes that are set from a generated configuration.
func NewSettings[K ~string](name, strategy string, set []K, attributes ...K) Settings {
	s := Settings{name: name, strategy: strategy}
	for i, key := range attributes {
		s.attributes = append(s.attributes, string(key))
		s.wanted[i] = slices.Contains(set, key)
	}
	return s
}

// New is a series without points, with room for some.
func New[V Value](settings Settings, capacity int) *Series[V] {
	return &Series[V]{settings: settings, points: make([]point[V], 0, capacity), at: make(map[Key]int, capacity)}
}

// Add adds a value with its attributes.
func (s *Series[V]) Add(value V, key ...string) {
	var wanted Key
	for i, v := range key {
		if s.settings.wanted[i] {
			wanted[i] = v
		}
	}
	at, known := s.at[wanted]
	if !known {
		s.at[wanted] = len(s.points)
		s.points = append(s.points, point[V]{key: wanted, value: value, of: 1})
		return
	}
	p := &s.points[at]
	p.of++
	switch s.settings.strategy {
	case strategyMin:
		p.value = min(p.value, value)
	case strategyMax:
		p.value = max(p.value, value)
	default:
		p.value = sumOf(p.value, value)
	}
}

// value is that of a point.
func (s *Series[V]) value(p *point[V]) V {
	if s.settings.strategy == strategyAverage {
		return p.value / V(p.of)
	}
	return p.value
}

// sumOf is the sum of two numbers, or the largest or smallest whole number where it is
// beyond.
func sumOf[V Value](a, b V) V {
	x, whole := any(a).(int64)
	if !whole {
		return a + b
	}
	y := any(b).(int64)
	switch sum := x + y; {
	case x > 0 && y > 0 && sum < 0:
		return any(int64(math.MaxInt64)).(V)
	case x < 0 && y < 0 && sum >= 0:
		return any(int64(math.MinInt64)).(V)
	default:
		return any(sum).(V)
	}
}

// First has record make the first point, if there is one.
func (s *Series[V]) First(record func(value V, key Key)) {
	if len(s.points) > 0 {
		record(s.value(&s.points[0]), s.points[0].key)
	}
}

// AppendOthers appends all points but the first to the metric that was made, if it is one
// of these.
func (s *Series[V]) AppendOthers(metrics pmetric.MetricSlice) {
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

func (s *Series[V]) appendTo(points pmetric.NumberDataPointSlice) {
	points.EnsureCapacity(len(s.points))
	start, now := points.At(0).StartTimestamp(), points.At(0).Timestamp()
	for i := range s.points[1:] {
		p := &s.points[1+i]
		made := points.AppendEmpty()
		made.SetStartTimestamp(start)
		made.SetTimestamp(now)
		switch v := any(s.value(p)).(type) {
		case int64:
			made.SetIntValue(v)
		case float64:
			made.SetDoubleValue(v)
		}
		s.putAttributes(made.Attributes(), p.key)
	}
}

func (s *Series[V]) putAttributes(to pcommon.Map, key Key) {
	to.EnsureCapacity(len(s.settings.attributes))
	for i, name := range s.settings.attributes {
		if s.settings.wanted[i] {
			to.PutStr(name, key[i])
		}
	}
}
