// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package metricseries makes the points of metrics with very many points. For each point, the builders that mdatagen
// generates compare all others. So such a builder makes the metric with its first point, and this package appends the
// others. It knows no component.
package metricseries

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Aggregation strategies of generated configurations. They combine values that differ only in disabled attributes. Any
// other strategy is the sum.
const (
	strategyAverage = "avg"
	strategyMin     = "min"
	strategyMax     = "max"
)

// Value is the type of a point's value.
type Value interface{ int64 | float64 }

// Series has the points of a metric: one for all values with the same enabled attributes.
type Series[V Value] struct {
	settings Settings
	points   []point[V]
	// at has the indexes of points.
	at map[Key]int
}

// Key has the values of a metric's attributes, at most two. A disabled attribute is empty.
type Key [2]string

type point[V Value] struct {
	key   Key
	value V
	// values counts the combined values.
	values int64
}

// Settings are the configuration of a metric with attributes.
type Settings struct {
	name string
	// attributes are the keys of all attributes. enabled has the same indexes.
	attributes []string
	enabled    [len(Key{})]bool
	// strategy combines values that differ only in disabled attributes.
	strategy string
}

// NewSettings returns the settings of a metric, from the enabled ones of its attributes in a generated configuration.
func NewSettings[K ~string](name, strategy string, enabled []K, attributes ...K) Settings {
	s := Settings{name: name, strategy: strategy}
	for i, key := range attributes {
		s.attributes = append(s.attributes, string(key))
		s.enabled[i] = slices.Contains(enabled, key)
	}
	return s
}

// New returns a series without points. The capacity is the expected number of points.
func New[V Value](settings Settings, capacity int) *Series[V] {
	return &Series[V]{settings: settings, points: make([]point[V], 0, capacity), at: make(map[Key]int, capacity)}
}

// Add adds a value with its attributes.
func (s *Series[V]) Add(value V, key ...string) {
	var enabled Key
	for i, v := range key {
		if s.settings.enabled[i] {
			enabled[i] = v
		}
	}
	at, known := s.at[enabled]
	if !known {
		s.at[enabled] = len(s.points)
		s.points = append(s.points, point[V]{key: enabled, value: value, values: 1})
		return
	}
	p := &s.points[at]
	p.values++
	switch s.settings.strategy {
	case strategyMin:
		p.value = min(p.value, value)
	case strategyMax:
		p.value = max(p.value, value)
	default:
		p.value = sumOf(p.value, value)
	}
}

// value returns the value of a point.
func (s *Series[V]) value(p *point[V]) V {
	if s.settings.strategy == strategyAverage {
		return p.value / V(p.values)
	}
	return p.value
}

// sumOf returns the sum of two numbers. If an int64 overflows, it returns the largest or smallest one.
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

// First calls record with the first point, if the series has one.
func (s *Series[V]) First(record func(value V, key Key)) {
	if len(s.points) > 0 {
		record(s.value(&s.points[0]), s.points[0].key)
	}
}

// AppendOthers appends all points except the first to the metric of the series, if metrics has it.
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
		if s.settings.enabled[i] {
			to.PutStr(name, key[i])
		}
	}
}
