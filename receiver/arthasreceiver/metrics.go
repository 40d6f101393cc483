// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"encoding/json"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/internal/receiverkit/metricseries"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/metadata"
)

// processState is a snapshot of a process for metrics.
type processState struct {
	origin  *signals.Origin
	methods []process.MethodState
	// dashboard and properties are nil if they are unknown.
	dashboard  *arthas.Dashboard
	properties *arthas.JVM
}

// points returns the estimated number of data points of a state.
func (s *processState) points() int {
	n := 3 * len(s.methods)
	if s.dashboard != nil {
		n += 10 + 3*len(s.dashboard.Pools) + 2*len(s.dashboard.Collectors)
	}
	return n
}

// metricsLoop forwards metrics of the servers at an interval.
type metricsLoop struct {
	*handover.Metrics[processState]
	now                   func() time.Time
	builder               *metadata.MetricsBuilder
	calls, failures, time metricseries.Settings
}

// maxOver limits the processes that have ended since the last collection.
const maxOver = 64

// newMetricsLoop starts the loop. living returns the states to report.
func newMetricsLoop(run *receiverkit.Run, config *Config, own *counters.Counters, living func() []processState) *metricsLoop {
	of := &config.Metrics
	m := &metricsLoop{
		now: run.Now, builder: metadata.NewMetricsBuilder(config.MetricsBuilderConfig, run.Settings),
		calls: metricseries.NewSettings("java.method.calls", of.JavaMethodCalls.AggregationStrategy, of.JavaMethodCalls.EnabledAttributes,
			metadata.JavaMethodCallsMetricAttributeKeyCodeFunctionName, metadata.JavaMethodCallsMetricAttributeKeyJavaClass),
		failures: metricseries.NewSettings("java.method.failures", of.JavaMethodFailures.AggregationStrategy, of.JavaMethodFailures.EnabledAttributes,
			metadata.JavaMethodFailuresMetricAttributeKeyCodeFunctionName, metadata.JavaMethodFailuresMetricAttributeKeyJavaClass),
		time: metricseries.NewSettings("java.method.time", of.JavaMethodTime.AggregationStrategy, of.JavaMethodTime.EnabledAttributes,
			metadata.JavaMethodTimeMetricAttributeKeyCodeFunctionName, metadata.JavaMethodTimeMetricAttributeKeyJavaClass),
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
		others := m.recordMethods(s, now)
		made := m.emit(s, s.origin.Begun).ResourceMetrics()
		for _, of := range made.All() {
			for _, appendOthers := range others {
				appendOthers(of.ScopeMetrics().At(0).Metrics())
			}
		}
		made.MoveAndAppendTo(metrics.ResourceMetrics())
		if s.dashboard == nil {
			continue
		}
		// These sums began with the JVM.
		m.recordJVM(s, now)
		m.emit(s, at.Add(-s.dashboard.Runtime.Uptime)).ResourceMetrics().MoveAndAppendTo(metrics.ResourceMetrics())
	}
	return metrics
}

func (m *metricsLoop) emit(s *processState, since time.Time) pmetric.Metrics {
	return m.builder.Emit(metadata.WithResource(s.origin.Resource), metadata.WithStartTimeOverride(pcommon.NewTimestampFromTime(since)))
}

// recordMethods records the first point of each metric that has a point for each method. It returns functions that
// append the other points.
func (m *metricsLoop) recordMethods(s *processState, now pcommon.Timestamp) []func(pmetric.MetricSlice) {
	b, n := m.builder, len(s.methods)
	calls, failures := metricseries.New[int64](m.calls, n), metricseries.New[int64](m.failures, n)
	seconds := metricseries.New[float64](m.time, n)
	for i := range s.methods {
		of := &s.methods[i]
		calls.Add(of.Calls, of.Function, of.Class)
		failures.Add(of.Failures, of.Function, of.Class)
		seconds.Add(of.Seconds, of.Function, of.Class)
	}
	calls.First(func(v int64, key metricseries.Key) { b.RecordJavaMethodCallsDataPoint(now, v, key[0], key[1]) })
	failures.First(func(v int64, key metricseries.Key) { b.RecordJavaMethodFailuresDataPoint(now, v, key[0], key[1]) })
	seconds.First(func(v float64, key metricseries.Key) { b.RecordJavaMethodTimeDataPoint(now, v, key[0], key[1]) })
	return []func(pmetric.MetricSlice){calls.AppendOthers, failures.AppendOthers, seconds.AppendOthers}
}

// recordJVM records the state of the JVM.
func (m *metricsLoop) recordJVM(s *processState, now pcommon.Timestamp) {
	m.recordMemory(s.dashboard, now)
	m.recordThreads(s.dashboard, now)
	b := m.builder
	runtime := &s.dashboard.Runtime
	if runtime.Processors > 0 {
		b.RecordJvmCPUCountDataPoint(now, runtime.Processors)
	}
	if runtime.HasLoadAverage {
		b.RecordJvmSystemCPULoad1mDataPoint(now, runtime.LoadAverage)
	}
	if s.properties == nil {
		return
	}
	for i := range s.properties.Properties {
		p := &s.properties.Properties[i]
		var value int64
		if json.Unmarshal([]byte(p.JSON), &value) != nil {
			continue
		}
		switch p.Name {
		case "LOADED-CLASS-COUNT":
			b.RecordJvmClassCountDataPoint(now, value)
		case "TOTAL-LOADED-CLASS-COUNT":
			b.RecordJvmClassLoadedDataPoint(now, value)
		case "UNLOADED-CLASS-COUNT":
			b.RecordJvmClassUnloadedDataPoint(now, value)
		}
	}
}

// maxPools limits the pools and the collectors of a JVM, which has about ten.
const maxPools = 100

// recordMemory records memory pools and garbage collectors. The pools with the name of their kind are sums.
func (m *metricsLoop) recordMemory(d *arthas.Dashboard, now pcommon.Timestamp) {
	b := m.builder
	types := map[string]metadata.AttributeJvmMemoryType{
		"heap": metadata.AttributeJvmMemoryTypeHeap, "nonheap": metadata.AttributeJvmMemoryTypeNonHeap,
	}
	for i := range d.Pools[:min(len(d.Pools), maxPools)] {
		p := &d.Pools[i]
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
	for i := range d.Collectors[:min(len(d.Collectors), maxPools)] {
		c := &d.Collectors[i]
		b.RecordArthasGcCollectionsDataPoint(now, c.Collections, c.Name)
		b.RecordArthasGcTimeDataPoint(now, c.Time.Seconds(), c.Name)
	}
}

// recordThreads records the Java threads by state.
func (m *metricsLoop) recordThreads(d *arthas.Dashboard, now pcommon.Timestamp) {
	type group struct {
		daemon bool
		state  metadata.AttributeJvmThreadState
	}
	threads := map[group]int64{}
	for i := range d.Threads {
		t := &d.Threads[i]
		state, known := metadata.MapAttributeJvmThreadState[strings.ToLower(t.State)]
		if t.ID > 0 && known {
			threads[group{t.Daemon, state}]++
		}
	}
	for g, n := range threads {
		m.builder.RecordJvmThreadCountDataPoint(now, n, g.daemon, g.state)
	}
}
