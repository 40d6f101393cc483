// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/componentkit/schema"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/internal/receiverkit/metricseries"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/heap"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
)

// The histograms, beside the metrics of metadata.yaml.
const (
	metricMarkDuration  = "ruby.gc.mark_phase.duration"
	metricCycleDuration = "ruby.gc.cycle.duration"
)

// metricsLoop makes the metrics of all servers.
type metricsLoop struct {
	*handover.Metrics[process.State]
	out     *outputs
	builder *metadata.MetricsBuilder
	series  allSeries
}

// allSeries are the settings of metrics with a point for each class, file or key.
type allSeries struct {
	allocationCount, allocationSize, created, destroyed, liveObjects, liveSize, other metricseries.Settings
}

func newAllSeries(of *metadata.MetricsConfig) allSeries {
	return allSeries{
		allocationCount: metricseries.NewSettings("ruby.allocation.count", of.RubyAllocationCount.AggregationStrategy, of.RubyAllocationCount.EnabledAttributes,
			metadata.RubyAllocationCountMetricAttributeKeyRubyClass, metadata.RubyAllocationCountMetricAttributeKeyCodeFilePath),
		allocationSize: metricseries.NewSettings("ruby.allocation.size", of.RubyAllocationSize.AggregationStrategy, of.RubyAllocationSize.EnabledAttributes,
			metadata.RubyAllocationSizeMetricAttributeKeyRubyClass, metadata.RubyAllocationSizeMetricAttributeKeyCodeFilePath),
		created: metricseries.NewSettings("ruby.object.created", of.RubyObjectCreated.AggregationStrategy, of.RubyObjectCreated.EnabledAttributes,
			metadata.RubyObjectCreatedMetricAttributeKeyRubyClass),
		destroyed: metricseries.NewSettings("ruby.object.destroyed", of.RubyObjectDestroyed.AggregationStrategy, of.RubyObjectDestroyed.EnabledAttributes,
			metadata.RubyObjectDestroyedMetricAttributeKeyRubyClass),
		liveObjects: metricseries.NewSettings("ruby.heap.live_objects", of.RubyHeapLiveObjects.AggregationStrategy, of.RubyHeapLiveObjects.EnabledAttributes,
			metadata.RubyHeapLiveObjectsMetricAttributeKeyRubyClass),
		liveSize: metricseries.NewSettings("ruby.heap.live_size", of.RubyHeapLiveSize.AggregationStrategy, of.RubyHeapLiveSize.EnabledAttributes,
			metadata.RubyHeapLiveSizeMetricAttributeKeyRubyClass),
		other: metricseries.NewSettings("ruby.gc.stat", of.RubyGcStat.AggregationStrategy, of.RubyGcStat.EnabledAttributes,
			metadata.RubyGcStatMetricAttributeKeyRubyGcStatKey),
	}
}

// maxOver bounds the processes that have ended since the last collection.
const maxOver = 64

func newMetricsLoop(o *outputs, own *counters.Counters, living func() []process.State) *metricsLoop {
	m := &metricsLoop{
		out: o, builder: metadata.NewMetricsBuilder(o.config.MetricsBuilderConfig, o.Settings),
		series: newAllSeries(&o.config.Metrics),
	}
	m.Metrics = receiverkit.NewMetrics(o.Run, handover.MetricsSettings[process.State]{
		Living:   living,
		IsLast:   func(s *process.State) bool { return s.Ended },
		Metrics:  func(states []process.State) pmetric.Metrics { return m.metrics(states, o.Now()) },
		MaxEnded: maxOver, Points: numPoints, What: "servers",
		Dropped: receiverkit.CountBy(own.ReceiverRbkitMetricPointsDropped),
	})
	return m
}

func (m *metricsLoop) metrics(states []process.State, at time.Time) pmetric.Metrics {
	now := pcommon.NewTimestampFromTime(at)
	metrics := pmetric.NewMetrics()
	for i := range states {
		s := &states[i]
		if s.Ended && slices.ContainsFunc(states[i+1:], func(later process.State) bool { return later.Origin == s.Origin }) {
			continue // the pipeline had refused it, and the process connected again
		}
		// Sums of the process begin with it, sums of the receiver with its first message.
		series := m.recordStats(s, now)
		m.emit(s, s.Origin.Started, series).MoveAndAppendTo(metrics.ResourceMetrics())
		series = m.recordObserved(s, now)
		observed := m.emit(s, s.Origin.Begun, series)
		m.appendHistograms(s, observed, now)
		observed.MoveAndAppendTo(metrics.ResourceMetrics())
	}
	return metrics
}

// emit returns the recorded metrics of a process with a start time, and the other points of
// series.
func (m *metricsLoop) emit(s *process.State, start time.Time, all []*metricseries.Series[int64]) pmetric.ResourceMetricsSlice {
	made := m.builder.Emit(metadata.WithResource(s.Origin.Resource),
		metadata.WithStartTimeOverride(pcommon.NewTimestampFromTime(start))).ResourceMetrics()
	if made.Len() > 0 {
		metrics := made.At(0).ScopeMetrics().At(0).Metrics()
		for _, series := range all {
			series.AppendOthers(metrics)
		}
		metrics.RemoveIf(func(m pmetric.Metric) bool { return isUnknown(s, m) })
	}
	made.RemoveIf(func(of pmetric.ResourceMetrics) bool { return of.ScopeMetrics().At(0).Metrics().Len() == 0 })
	return made
}

// isUnknown reports whether a metric has an unknown value: the current state of a process
// that has ended, or a sum below zero.
func isUnknown(s *process.State, m pmetric.Metric) bool {
	if m.Type() == pmetric.MetricTypeGauge {
		return s.Ended
	}
	points := m.Sum().DataPoints()
	points.RemoveIf(func(p pmetric.NumberDataPoint) bool {
		return m.Sum().IsMonotonic() && (p.IntValue() < 0 || p.DoubleValue() < 0)
	})
	return points.Len() == 0
}

func (m *metricsLoop) recordStats(s *process.State, now pcommon.Timestamp) []*metricseries.Series[int64] {
	other := metricseries.New[int64](m.series.other, 0)
	for key, value := range s.Stats {
		if record, ok := statMetrics[key]; ok {
			record(m.builder, now, value)
		} else {
			other.Add(value, key)
		}
	}
	other.First(func(n int64, key metricseries.Key) { m.builder.RecordRubyGcStatDataPoint(now, n, key[0]) })
	return []*metricseries.Series[int64]{other}
}

func (m *metricsLoop) recordObserved(s *process.State, now pcommon.Timestamp) []*metricseries.Series[int64] {
	b := m.builder
	b.RecordRbkitMessagesDataPoint(now, s.Messages)
	b.RecordRbkitMessagesLostDataPoint(now, s.Lost)
	b.RecordRbkitEventsDataPoint(now, s.Events)
	b.RecordRbkitCPUSamplesDataPoint(now, s.Samples)
	b.RecordRbkitNetworkIoDataPoint(now, s.Bytes, metadata.AttributeNetworkIoDirectionReceive)
	created, destroyed := byClass(s, m.series.created, s.Created), byClass(s, m.series.destroyed, s.Destroyed)
	created.First(func(n int64, key metricseries.Key) { b.RecordRubyObjectCreatedDataPoint(now, n, key[0]) })
	destroyed.First(func(n int64, key metricseries.Key) { b.RecordRubyObjectDestroyedDataPoint(now, n, key[0]) })
	counts, sizes := metricseries.New[int64](m.series.allocationCount, len(s.Sites)), metricseries.New[int64](m.series.allocationSize, len(s.Sites))
	for at, n := range s.Sites {
		class, file := s.Classes[at.Class], s.Files[at.File]
		counts.Add(n.Objects, class, file)
		sizes.Add(n.Bytes, class, file)
	}
	counts.First(func(n int64, key metricseries.Key) { b.RecordRubyAllocationCountDataPoint(now, n, key[0], key[1]) })
	sizes.First(func(n int64, key metricseries.Key) { b.RecordRubyAllocationSizeDataPoint(now, n, key[0], key[1]) })
	if len(s.Created) > 0 {
		b.RecordRubyObjectTrackedDataPoint(now, int64(s.Tracked))
	}
	live, size := byClass(s, m.series.liveObjects, s.Live.Objects), byClass(s, m.series.liveSize, s.Live.Bytes)
	live.First(func(n int64, key metricseries.Key) { b.RecordRubyHeapLiveObjectsDataPoint(now, n, key[0]) })
	size.First(func(n int64, key metricseries.Key) { b.RecordRubyHeapLiveSizeDataPoint(now, n, key[0]) })
	return []*metricseries.Series[int64]{created, destroyed, counts, sizes, live, size}
}

// byClass is a series of counts that are not 0.
func byClass(s *process.State, settings metricseries.Settings, of heap.Counts) *metricseries.Series[int64] {
	made := metricseries.New[int64](settings, len(of))
	for i, n := range of {
		if n != 0 {
			made.Add(n, s.Classes[i])
		}
	}
	return made
}

// appendHistograms appends the histograms of the process.
func (m *metricsLoop) appendHistograms(s *process.State, observed pmetric.ResourceMetricsSlice, now pcommon.Timestamp) {
	start := pcommon.NewTimestampFromTime(s.Origin.Begun)
	for _, h := range []struct {
		of                *process.Histogram
		wanted            bool
		name, description string
	}{
		{&s.Marking, m.out.config.Histograms.MarkDuration.Enabled, metricMarkDuration, "Time from the start of a garbage collection to the end of its mark phase. No pause: the program may run between steps of marking."},
		{&s.Whole, m.out.config.Histograms.CycleDuration.Enabled, metricCycleDuration, "Time from the start of a garbage collection to the end of its sweep phase. No pause: the program runs most of it."},
	} {
		if h.of.Count == 0 || !h.wanted {
			continue
		}
		if observed.Len() == 0 {
			m.appendScope(s, observed)
		}
		appendHistogram(observed.At(0).ScopeMetrics().At(0).Metrics(), h.of, h.name, h.description, start, now)
	}
}

// appendScope appends the resource and the scope without metrics, where all that the builder
// makes is switched off.
func (m *metricsLoop) appendScope(s *process.State, to pmetric.ResourceMetricsSlice) {
	made := to.AppendEmpty()
	made.SetSchemaUrl(schema.URL)
	s.Origin.Resource.CopyTo(made.Resource())
	m.out.SetScope(made.ScopeMetrics().AppendEmpty().Scope())
}

// appendHistogram appends a histogram as a metric.
func appendHistogram(metrics pmetric.MetricSlice, h *process.Histogram, name, description string, start, now pcommon.Timestamp) {
	m := metrics.AppendEmpty()
	m.SetName(name)
	m.SetDescription(description)
	m.SetUnit("s")
	made := m.SetEmptyHistogram()
	made.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	point := made.DataPoints().AppendEmpty()
	point.SetStartTimestamp(start)
	point.SetTimestamp(now)
	point.SetCount(h.Count)
	point.SetSum(h.Sum.Seconds())
	point.SetMin(h.Min.Seconds())
	point.SetMax(h.Max.Seconds())
	point.ExplicitBounds().FromRaw(process.Bounds[:])
	point.BucketCounts().FromRaw(h.Buckets[:])
}

// numPoints returns the approximate number of data points of a state.
func numPoints(s *process.State) int {
	return 8 + len(s.Stats) + len(s.Created) + len(s.Destroyed) + 2*len(s.Live.Objects) + 2*len(s.Sites)
}

// Ended holds the last state of a process for the next collection.
func (o *outputs) Ended(s process.State) { o.metrics.Ended(s) }
