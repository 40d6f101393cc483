// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package functionmetrics

import "go.opentelemetry.io/collector/pdata/pmetric"

// definition is the name, the unit and the description of a metric. The generator of the Collector
// (mdatagen) has no exponential histograms, so the definitions are here. The README of the
// connector has the same ones.
type definition struct{ name, unit, description string }

var (
	calls    = definition{"code.function.calls", "{call}", "Calls of a function that ended."}
	failures = definition{"code.function.errors", "{error}", "Calls of a function that an exception left."}
	duration = definition{"code.function.duration", "s", "Duration of the calls of a function, with the time of its callees."}
)

// Attributes of points.
const (
	attributeFunction  = "code.function.name"
	attributeErrorType = "error.type"
	attributeOverflow  = "otel.metric.overflow"

	// otherError is the error.type of unknown exceptions, by the semantic conventions.
	otherError = "_OTHER"
)

// appendMetric appends a metric without points.
func (d definition) appendMetric(metrics pmetric.MetricSlice) pmetric.Metric {
	m := metrics.AppendEmpty()
	m.SetName(d.name)
	m.SetUnit(d.unit)
	m.SetDescription(d.description)
	return m
}

// appendSum appends a cumulative sum with room for so many points.
func (d definition) appendSum(metrics pmetric.MetricSlice, points int) pmetric.NumberDataPointSlice {
	sum := d.appendMetric(metrics).SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	sum.DataPoints().EnsureCapacity(points)
	return sum.DataPoints()
}

// appendHistogram appends a cumulative exponential histogram with room for so many points.
func (d definition) appendHistogram(metrics pmetric.MetricSlice, points int) pmetric.ExponentialHistogramDataPointSlice {
	histogram := d.appendMetric(metrics).SetEmptyExponentialHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	histogram.DataPoints().EnsureCapacity(points)
	return histogram.DataPoints()
}
