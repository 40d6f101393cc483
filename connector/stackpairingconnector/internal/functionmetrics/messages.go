// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package functionmetrics

import (
	"iter"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Messages divides the metrics of an interval into messages of at most maxBytes as protobuf. Only a
// large resource makes larger ones, and so does a large point. A point keeps its exemplar. The metrics
// are empty afterwards.
func Messages(all pmetric.Metrics, maxBytes int) iter.Seq[pmetric.Metrics] {
	return func(yield func(pmetric.Metrics) bool) {
		if all.DataPointCount() == 0 {
			return
		}
		if sizer.MetricsSize(all) <= maxBytes {
			yield(all)
			return
		}
		d := divider{maxBytes: maxBytes, yield: yield, message: pmetric.NewMetrics()}
		for _, rm := range all.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				d.beginScope(rm, sm)
				for _, m := range sm.Metrics().All() {
					if !d.addMetric(m) {
						return
					}
				}
			}
		}
		yield(d.message)
	}
}

var sizer pmetric.ProtoMarshaler

// bytesAround is the most that protobuf needs around a point, a metric, a scope or a resource.
const bytesAround = 12

// divider writes one message after the other.
type divider struct {
	maxBytes int
	yield    func(pmetric.Metrics) bool

	message pmetric.Metrics
	// bytes is at least the size of the message, and points is the number of its points.
	bytes, points int
	// resource and scope are without points. around is at least their size.
	resource pmetric.ResourceMetrics
	scope    pmetric.ScopeMetrics
	around   int
	// metrics are those of the current scope in the message. isOpen: they are in it.
	metrics pmetric.MetricSlice
	isOpen  bool
}

func (d *divider) beginScope(rm pmetric.ResourceMetrics, sm pmetric.ScopeMetrics) {
	d.resource, d.scope, d.isOpen = pmetric.NewResourceMetrics(), pmetric.NewScopeMetrics(), false
	rm.Resource().CopyTo(d.resource.Resource())
	d.resource.SetSchemaUrl(rm.SchemaUrl())
	sm.Scope().CopyTo(d.scope.Scope())
	d.scope.SetSchemaUrl(sm.SchemaUrl())
	d.around = sizer.ResourceMetricsSize(d.resource) + sizer.ScopeMetricsSize(d.scope) + 2*bytesAround
}

// addMetric moves the points of a metric. It reports whether the caller wants more messages.
func (d *divider) addMetric(m pmetric.Metric) bool {
	of := definition{m.Name(), m.Unit(), m.Description()}
	around := len(of.name) + len(of.unit) + len(of.description) + 4*bytesAround
	if m.Type() == pmetric.MetricTypeSum {
		var to pmetric.NumberDataPointSlice
		isOpen := false
		for _, p := range m.Sum().DataPoints().All() {
			more, inNew := d.makeRoom(sizer.NumberDataPointSize(p), around, isOpen)
			if !more {
				return false
			}
			if inNew {
				to, isOpen = of.appendSum(d.metrics, 0), true
			}
			p.MoveTo(to.AppendEmpty())
		}
		return true
	}
	var to pmetric.ExponentialHistogramDataPointSlice
	isOpen := false
	for _, p := range m.ExponentialHistogram().DataPoints().All() {
		more, inNew := d.makeRoom(sizer.ExponentialHistogramDataPointSize(p), around, isOpen)
		if !more {
			return false
		}
		if inNew {
			to, isOpen = of.appendHistogram(d.metrics, 0), true
		}
		p.MoveTo(to.AppendEmpty())
	}
	return true
}

// makeRoom makes room for a point, if need be in another message. around is the size of its metric,
// and isOpen tells whether that is in the message. It reports whether the caller wants more, and
// whether the metric must be appended to d.metrics.
func (d *divider) makeRoom(point, around int, isOpen bool) (more, needsMetric bool) {
	size := d.sizeOf(point, around, isOpen)
	// At most half of the bytes of a full message repeat the resource and the scope.
	if d.points > 0 && d.bytes+size > max(d.maxBytes, 2*d.around) {
		if !d.yield(d.message) {
			return false, false
		}
		d.message, d.bytes, d.points, d.isOpen, isOpen = pmetric.NewMetrics(), 0, 0, false, false
		size = d.sizeOf(point, around, isOpen)
	}
	if !d.isOpen {
		rm := d.message.ResourceMetrics().AppendEmpty()
		d.resource.CopyTo(rm)
		sm := rm.ScopeMetrics().AppendEmpty()
		d.scope.CopyTo(sm)
		d.metrics, d.isOpen = sm.Metrics(), true
	}
	d.bytes += size
	d.points++
	return true, !isOpen
}

func (d *divider) sizeOf(point, around int, isOpen bool) int {
	size := point + bytesAround
	if !isOpen {
		size += around
	}
	if !d.isOpen {
		size += d.around
	}
	return size
}
