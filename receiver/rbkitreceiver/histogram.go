// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/saturating"
)

// histogramBounds are the upper bounds of the buckets, in seconds. The server's clock
// shows milliseconds.
var histogramBounds = [...]float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60}

// histogram counts durations. Its zero value has none.
type histogram struct {
	buckets  [len(histogramBounds) + 1]uint64
	count    uint64
	sum      time.Duration
	min, max time.Duration
}

func (h *histogram) observe(d time.Duration) {
	at := 0
	for at < len(histogramBounds) && d.Seconds() > histogramBounds[at] {
		at++
	}
	h.buckets[at]++
	if h.count == 0 || d < h.min {
		h.min = d
	}
	h.count++
	h.sum = time.Duration(saturating.Add(int64(h.sum), uint64(d)))
	h.max = max(h.max, d)
}

// appendTo appends the histogram as a metric, if it has durations.
func (h *histogram) appendTo(metrics pmetric.MetricSlice, name, description string, start, now pcommon.Timestamp) {
	if h.count == 0 {
		return
	}
	m := metrics.AppendEmpty()
	m.SetName(name)
	m.SetDescription(description)
	m.SetUnit("s")
	made := m.SetEmptyHistogram()
	made.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	point := made.DataPoints().AppendEmpty()
	point.SetStartTimestamp(start)
	point.SetTimestamp(now)
	point.SetCount(h.count)
	point.SetSum(h.sum.Seconds())
	point.SetMin(h.min.Seconds())
	point.SetMax(h.max.Seconds())
	point.ExplicitBounds().FromRaw(histogramBounds[:])
	point.BucketCounts().FromRaw(h.buckets[:])
}
