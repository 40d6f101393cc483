// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/task"
	"github.com/callbraid/callbraid/internal/javamethods/text"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/internal/receiverkit/metricseries"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/metadata"
)

// processState is a snapshot of a process for metrics.
type processState struct {
	process.State
	origin *origin
	// over means that the process has ended, or is not connected. Gauges are then unknown.
	over bool
}

// commands are the metric attributes of the commands with patterns.
var commands = [...]metadata.AttributeGreysCommand{
	task.Monitor: metadata.AttributeGreysCommandMonitor,
	task.Trace:   metadata.AttributeGreysCommandTrace,
	task.Stack:   metadata.AttributeGreysCommandStack,
	task.Records: metadata.AttributeGreysCommandTt,
}

// points returns the estimated number of data points of a state.
func (s *processState) points() int { return 5 + 2*len(s.Matched) + 7*len(s.Methods) }

// metricsLoop forwards metrics of the servers at an interval.
type metricsLoop struct {
	*handover.Metrics[processState]
	now     func() time.Time
	builder *metadata.MetricsBuilder
	series  allSeries
}

// allSeries are the settings of metrics with a point for each method or pattern.
type allSeries struct {
	calls, failures, time, mean, shortest, longest, ratio metricseries.Settings
	matchedClasses, matchedMethods                        metricseries.Settings
}

func newAllSeries(of *metadata.MetricsConfig) allSeries {
	return allSeries{
		calls: metricseries.NewSettings("java.method.calls", of.JavaMethodCalls.AggregationStrategy, of.JavaMethodCalls.EnabledAttributes,
			metadata.JavaMethodCallsMetricAttributeKeyCodeFunctionName, metadata.JavaMethodCallsMetricAttributeKeyJavaClass),
		failures: metricseries.NewSettings("java.method.failures", of.JavaMethodFailures.AggregationStrategy, of.JavaMethodFailures.EnabledAttributes,
			metadata.JavaMethodFailuresMetricAttributeKeyCodeFunctionName, metadata.JavaMethodFailuresMetricAttributeKeyJavaClass),
		time: metricseries.NewSettings("java.method.time", of.JavaMethodTime.AggregationStrategy, of.JavaMethodTime.EnabledAttributes,
			metadata.JavaMethodTimeMetricAttributeKeyCodeFunctionName, metadata.JavaMethodTimeMetricAttributeKeyJavaClass),
		mean: metricseries.NewSettings("java.method.duration.mean", of.JavaMethodDurationMean.AggregationStrategy, of.JavaMethodDurationMean.EnabledAttributes,
			metadata.JavaMethodDurationMeanMetricAttributeKeyCodeFunctionName, metadata.JavaMethodDurationMeanMetricAttributeKeyJavaClass),
		shortest: metricseries.NewSettings("java.method.duration.min", of.JavaMethodDurationMin.AggregationStrategy, of.JavaMethodDurationMin.EnabledAttributes,
			metadata.JavaMethodDurationMinMetricAttributeKeyCodeFunctionName, metadata.JavaMethodDurationMinMetricAttributeKeyJavaClass),
		longest: metricseries.NewSettings("java.method.duration.max", of.JavaMethodDurationMax.AggregationStrategy, of.JavaMethodDurationMax.EnabledAttributes,
			metadata.JavaMethodDurationMaxMetricAttributeKeyCodeFunctionName, metadata.JavaMethodDurationMaxMetricAttributeKeyJavaClass),
		ratio: metricseries.NewSettings("java.method.failure_ratio", of.JavaMethodFailureRatio.AggregationStrategy, of.JavaMethodFailureRatio.EnabledAttributes,
			metadata.JavaMethodFailureRatioMetricAttributeKeyCodeFunctionName, metadata.JavaMethodFailureRatioMetricAttributeKeyJavaClass),
		matchedClasses: metricseries.NewSettings("greys.matched.classes", of.GreysMatchedClasses.AggregationStrategy, of.GreysMatchedClasses.EnabledAttributes,
			metadata.GreysMatchedClassesMetricAttributeKeyGreysCommand, metadata.GreysMatchedClassesMetricAttributeKeyGreysPattern),
		matchedMethods: metricseries.NewSettings("greys.matched.methods", of.GreysMatchedMethods.AggregationStrategy, of.GreysMatchedMethods.EnabledAttributes,
			metadata.GreysMatchedMethodsMetricAttributeKeyGreysCommand, metadata.GreysMatchedMethodsMetricAttributeKeyGreysPattern),
	}
}

// maxOver limits the processes that have ended since the last collection.
const maxOver = 64

// newMetricsLoop starts the loop. living returns the states to report.
func newMetricsLoop(run *receiverkit.Run, config *Config, own *counters.Counters, living func() []processState) *metricsLoop {
	m := &metricsLoop{
		now: run.Now, builder: metadata.NewMetricsBuilder(config.MetricsBuilderConfig, run.Settings),
		series: newAllSeries(&config.Metrics),
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
		m.recordReceived(s, now)
		others := append(m.recordMethods(s, now), m.recordMatched(s, now)...)
		made := m.builder.Emit(metadata.WithResource(s.origin.resource),
			metadata.WithStartTimeOverride(pcommon.NewTimestampFromTime(s.origin.begun))).ResourceMetrics()
		for _, of := range made.All() {
			all := of.ScopeMetrics().At(0).Metrics()
			for _, appendOthers := range others {
				appendOthers(all)
			}
		}
		made.MoveAndAppendTo(metrics.ResourceMetrics())
	}
	return metrics
}

func (m *metricsLoop) recordReceived(s *processState, now pcommon.Timestamp) {
	b := m.builder
	b.RecordGreysRepliesDataPoint(now, s.Replies)
	b.RecordGreysRepliesBadDataPoint(now, s.Bad)
	b.RecordGreysRepliesMissingDataPoint(now, s.Missing)
	b.RecordGreysReconnectsDataPoint(now, s.Reconnects)
	if s.HasSessions && !s.over {
		b.RecordGreysSessionCountDataPoint(now, int64(s.Sessions))
	}
}

// recordMethods records the first point of each metric that has a point for each method. It returns functions that
// append the other points.
func (m *metricsLoop) recordMethods(s *processState, now pcommon.Timestamp) []func(pmetric.MetricSlice) {
	b, n := m.builder, len(s.Methods)
	calls, failures := metricseries.New[int64](m.series.calls, n), metricseries.New[int64](m.series.failures, n)
	seconds, ratio := metricseries.New[float64](m.series.time, n), metricseries.New[float64](m.series.ratio, n)
	mean, shortest, longest := metricseries.New[float64](m.series.mean, n), metricseries.New[float64](m.series.shortest, n), metricseries.New[float64](m.series.longest, n)
	for i := range s.Methods {
		of := &s.Methods[i]
		calls.Add(of.Calls, of.Function, of.Class)
		failures.Add(of.Failures, of.Function, of.Class)
		if !of.Untimed {
			seconds.Add(of.Seconds, of.Function, of.Class)
		}
		if s.over || !of.HasCycle {
			continue
		}
		ratio.Add(float64(of.Cycle.Failed)/float64(of.Cycle.Calls), of.Function, of.Class)
		if of.Cycle.HasMean {
			mean.Add(of.Cycle.Mean.Seconds(), of.Function, of.Class)
		}
		if of.Cycle.HasRange {
			shortest.Add(of.Cycle.Min.Seconds(), of.Function, of.Class)
			longest.Add(of.Cycle.Max.Seconds(), of.Function, of.Class)
		}
	}
	calls.First(func(v int64, key metricseries.Key) { b.RecordJavaMethodCallsDataPoint(now, v, key[0], key[1]) })
	failures.First(func(v int64, key metricseries.Key) { b.RecordJavaMethodFailuresDataPoint(now, v, key[0], key[1]) })
	seconds.First(func(v float64, key metricseries.Key) { b.RecordJavaMethodTimeDataPoint(now, v, key[0], key[1]) })
	ratio.First(func(v float64, key metricseries.Key) {
		b.RecordJavaMethodFailureRatioDataPoint(now, v, key[0], key[1])
	})
	mean.First(func(v float64, key metricseries.Key) {
		b.RecordJavaMethodDurationMeanDataPoint(now, v, key[0], key[1])
	})
	shortest.First(func(v float64, key metricseries.Key) {
		b.RecordJavaMethodDurationMinDataPoint(now, v, key[0], key[1])
	})
	longest.First(func(v float64, key metricseries.Key) {
		b.RecordJavaMethodDurationMaxDataPoint(now, v, key[0], key[1])
	})
	return []func(pmetric.MetricSlice){
		calls.AppendOthers, failures.AppendOthers, seconds.AppendOthers, ratio.AppendOthers,
		mean.AppendOthers, shortest.AppendOthers, longest.AppendOthers,
	}
}

// recordMatched does the same for metrics that have a point for each pattern.
func (m *metricsLoop) recordMatched(s *processState, now pcommon.Timestamp) []func(pmetric.MetricSlice) {
	if s.over {
		return nil
	}
	classes, methods := metricseries.New[int64](m.series.matchedClasses, len(s.Matched)), metricseries.New[int64](m.series.matchedMethods, len(s.Matched))
	named := map[string]metadata.AttributeGreysCommand{"": commands[task.Monitor]}
	for i := range s.Matched {
		of := &s.Matched[i]
		command := commands[of.Task.Kind]
		named[command.String()] = command
		classes.Add(of.Classes, command.String(), text.Short(of.Task.Pattern))
		methods.Add(of.Methods, command.String(), text.Short(of.Task.Pattern))
	}
	classes.First(func(v int64, key metricseries.Key) {
		m.builder.RecordGreysMatchedClassesDataPoint(now, v, named[key[0]], key[1])
	})
	methods.First(func(v int64, key metricseries.Key) {
		m.builder.RecordGreysMatchedMethodsDataPoint(now, v, named[key[0]], key[1])
	})
	return []func(pmetric.MetricSlice){classes.AppendOthers, methods.AppendOthers}
}
