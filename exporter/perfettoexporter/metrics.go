// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package perfettoexporter

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/exporter/perfettoexporter/internal/tracefile"
)

// The two counters of a histogram or summary, behind its name.
const (
	counterCount = " count"
	counterSum   = " sum"
)

// consumeMetrics adds all values to chunks. It never fails.
func (e *perfetto) consumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := &e.reader
	for _, rm := range md.ResourceMetrics().All() {
		r.begin(rm.Resource())
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				r.readMetric(m, e.flushFull)
			}
		}
	}
	r.forget()
	e.countUnwritten(ctx)
	return nil
}

// flushFull writes the chunk if it is full.
func (e *perfetto) flushFull() {
	if e.writer.Full() {
		e.flush()
	}
}

// readMetric adds the values of a metric. It calls then after each point.
func (r *reader) readMetric(m pmetric.Metric, then func()) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		r.readNumbers(m, m.Gauge().DataPoints(), then)
	case pmetric.MetricTypeSum:
		r.readNumbers(m, m.Sum().DataPoints(), then)
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			r.readDistribution(m, p, p.HasSum())
			then()
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			r.readDistribution(m, p, p.HasSum())
			then()
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			r.readDistribution(m, p, true)
			then()
		}
	}
}

func (r *reader) readNumbers(m pmetric.Metric, points pmetric.NumberDataPointSlice, then func()) {
	for _, p := range points.All() {
		if p.Flags().NoRecordedValue() || !r.isValid(p.Timestamp()) {
			continue
		}
		if c := r.counter(m, "", m.Unit(), p.Attributes()); c != nil {
			switch p.ValueType() {
			case pmetric.NumberDataPointValueTypeInt:
				r.writer.Int(c, uint64(p.Timestamp()), p.IntValue())
			case pmetric.NumberDataPointValueTypeDouble:
				r.writer.Double(c, uint64(p.Timestamp()), p.DoubleValue())
			}
		}
		then()
	}
}

// distribution is a point of a histogram of either kind, or of a summary.
type distribution interface {
	Flags() pmetric.DataPointFlags
	Timestamp() pcommon.Timestamp
	Attributes() pcommon.Map
	Count() uint64
	Sum() float64
}

// readDistribution adds count and sum of a point.
func (r *reader) readDistribution(m pmetric.Metric, p distribution, hasSum bool) {
	if p.Flags().NoRecordedValue() || !r.isValid(p.Timestamp()) {
		return
	}
	const unitOfCount = ""
	if c := r.counter(m, counterCount, unitOfCount, p.Attributes()); c != nil {
		r.writer.Int(c, uint64(p.Timestamp()), int64(p.Count()))
	}
	if !hasSum {
		return
	}
	if c := r.counter(m, counterSum, m.Unit(), p.Attributes()); c != nil {
		r.writer.Double(c, uint64(p.Timestamp()), p.Sum())
	}
}

// counter returns the counter of a metric's attributes. It is nil if the file has no room for it.
func (r *reader) counter(m pmetric.Metric, part, unit string, attributes pcommon.Map) *tracefile.Counter {
	c := r.writer.Counter(r.ownProcess(), tracefile.CounterID{Name: nameOfCounter(m.Name()+part, attributes), Unit: unit, Description: m.Description()})
	if c == nil {
		r.uncounted++
	}
	return c
}

// nameOfCounter returns a name with the attributes, such as jvm.memory.used {jvm.memory.pool.name=Metaspace}.
func nameOfCounter(name string, attributes pcommon.Map) string {
	if attributes.Len() == 0 {
		return name
	}
	all := make([]string, 0, attributes.Len())
	for key, v := range attributes.All() {
		all = append(all, key+"="+scalar(v))
	}
	slices.Sort(all)
	return name + " {" + strings.Join(all, ", ") + "}"
}
