// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/javamethods/server"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/internal/receiverkit/metricseries"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/metadata"
)

// processState is a snapshot of a process for metrics. jvm is nil if it is unknown.
type processState struct {
	server.State
	jvm *jvmState
}

// points returns the estimated number of data points of a state.
func (s *processState) points() int {
	n := 5 * len(s.Methods)
	if s.jvm != nil {
		n += 20 + 3*len(s.jvm.pools) + 2*len(s.jvm.collectors)
	}
	return n
}

// metricsLoop forwards metrics of the servers at an interval.
type metricsLoop struct {
	*handover.Metrics[processState]
	now     func() time.Time
	builder *metadata.MetricsBuilder
	methods signals.MethodSeries
}

// maxOver limits the processes that have ended since the last collection.
const maxOver = 64

// newMetricsLoop starts the loop. living returns the states to report.
func newMetricsLoop(run *receiverkit.Run, config *Config, own *counters.Counters, living func() []processState) *metricsLoop {
	of := &config.Metrics
	m := &metricsLoop{
		now: run.Now, builder: metadata.NewMetricsBuilder(config.MetricsBuilderConfig, run.Settings),
		methods: signals.MethodSeries{
			Calls: metricseries.NewSettings("java.method.calls", of.JavaMethodCalls.AggregationStrategy, of.JavaMethodCalls.EnabledAttributes,
				metadata.JavaMethodCallsMetricAttributeKeyCodeFunctionName, metadata.JavaMethodCallsMetricAttributeKeyJavaClass),
			Failures: metricseries.NewSettings("java.method.failures", of.JavaMethodFailures.AggregationStrategy, of.JavaMethodFailures.EnabledAttributes,
				metadata.JavaMethodFailuresMetricAttributeKeyCodeFunctionName, metadata.JavaMethodFailuresMetricAttributeKeyJavaClass),
			Time: metricseries.NewSettings("java.method.time", of.JavaMethodTime.AggregationStrategy, of.JavaMethodTime.EnabledAttributes,
				metadata.JavaMethodTimeMetricAttributeKeyCodeFunctionName, metadata.JavaMethodTimeMetricAttributeKeyJavaClass),
			Mean: metricseries.NewSettings("java.method.duration.mean", of.JavaMethodDurationMean.AggregationStrategy, of.JavaMethodDurationMean.EnabledAttributes,
				metadata.JavaMethodDurationMeanMetricAttributeKeyCodeFunctionName, metadata.JavaMethodDurationMeanMetricAttributeKeyJavaClass),
			Ratio: metricseries.NewSettings("java.method.failure_ratio", of.JavaMethodFailureRatio.AggregationStrategy, of.JavaMethodFailureRatio.EnabledAttributes,
				metadata.JavaMethodFailureRatioMetricAttributeKeyCodeFunctionName, metadata.JavaMethodFailureRatioMetricAttributeKeyJavaClass),
		},
	}
	m.Metrics = receiverkit.NewMetrics(run, handover.MetricsSettings[processState]{
		Living:   living,
		Metrics:  func(states []processState) pmetric.Metrics { return m.metrics(states, m.now()) },
		MaxEnded: maxOver, Points: (*processState).points, What: "servers",
		Dropped: own.MetricPointsDropped,
	})
	return m
}

func (m *metricsLoop) metrics(states []processState, at time.Time) pmetric.Metrics {
	now := pcommon.NewTimestampFromTime(at)
	metrics := pmetric.NewMetrics()
	for i := range states {
		s := &states[i]
		others := m.methods.Record(m.builder, s.Methods, s.Over, now)
		made := m.emit(s, s.Origin.Begun).ResourceMetrics()
		for _, of := range made.All() {
			for _, appendOthers := range others {
				appendOthers(of.ScopeMetrics().At(0).Metrics())
			}
		}
		made.MoveAndAppendTo(metrics.ResourceMetrics())
		if s.jvm == nil {
			continue
		}
		// These sums began with the JVM.
		m.recordJVM(s.jvm, now)
		m.emit(s, at.Add(-s.jvm.runtime.Uptime)).ResourceMetrics().MoveAndAppendTo(metrics.ResourceMetrics())
	}
	return metrics
}

func (m *metricsLoop) emit(s *processState, since time.Time) pmetric.Metrics {
	return m.builder.Emit(metadata.WithResource(s.Origin.Resource), metadata.WithStartTimeOverride(pcommon.NewTimestampFromTime(since)))
}

// recordJVM records the state of the JVM.
func (m *metricsLoop) recordJVM(s *jvmState, now pcommon.Timestamp) {
	b := m.builder
	m.recordMemory(s, now)
	for g, n := range s.threads {
		b.RecordJvmThreadCountDataPoint(now, n, g.daemon, g.state)
	}
	if s.runtime.Processors > 0 {
		b.RecordJvmCPUCountDataPoint(now, s.runtime.Processors)
	}
	if s.runtime.HasLoadAverage {
		b.RecordJvmSystemCPULoad1mDataPoint(now, s.runtime.LoadAverage)
	}
	for name, record := range map[string]func(pcommon.Timestamp, int64){
		classesLoaded: b.RecordJvmClassCountDataPoint, classesEverLoaded: b.RecordJvmClassLoadedDataPoint, classesUnloaded: b.RecordJvmClassUnloadedDataPoint,
	} {
		if n, known := s.classes[name]; known {
			record(now, n)
		}
	}
}

// recordMemory records memory pools and garbage collectors. The pools with the name of their kind are sums.
func (m *metricsLoop) recordMemory(s *jvmState, now pcommon.Timestamp) {
	b := m.builder
	types := map[string]metadata.AttributeJvmMemoryType{
		"heap": metadata.AttributeJvmMemoryTypeHeap, "nonheap": metadata.AttributeJvmMemoryTypeNonHeap,
	}
	for i := range s.pools {
		p := &s.pools[i]
		kind, known := types[p.Kind]
		if !known || p.Name == p.Kind {
			continue
		}
		b.RecordJvmMemoryUsedDataPoint(now, p.Used, p.Name, kind)
		b.RecordJvmMemoryCommittedDataPoint(now, p.Committed, p.Name, kind)
		if p.HasMax {
			b.RecordJvmMemoryLimitDataPoint(now, p.Max, p.Name, kind)
		}
	}
	for i := range s.collectors {
		c := &s.collectors[i]
		b.RecordArthasGcCollectionsDataPoint(now, c.Collections, c.Name)
		b.RecordArthasGcTimeDataPoint(now, c.Time.Seconds(), c.Name)
	}
}
