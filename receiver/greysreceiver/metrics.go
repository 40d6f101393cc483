// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/javamethods/server"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/javamethods/task"
	"github.com/callbraid/callbraid/internal/javamethods/text"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/internal/receiverkit/metricseries"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/metadata"
)

// processState is a snapshot of a process for metrics.
type processState = server.State

// commands are the metric attributes of the commands with patterns.
var commands = [...]metadata.AttributeGreysCommand{
	task.Monitor: metadata.AttributeGreysCommandMonitor,
	task.Trace:   metadata.AttributeGreysCommandTrace,
	task.Stack:   metadata.AttributeGreysCommandStack,
	task.Records: metadata.AttributeGreysCommandTt,
}

// points returns the estimated number of data points of a state.
func points(s *processState) int { return 5 + 2*len(s.Matched) + 7*len(s.Methods) }

// metricsLoop forwards metrics of the servers at an interval.
type metricsLoop struct {
	*handover.Metrics[processState]
	now     func() time.Time
	builder *metadata.MetricsBuilder
	methods signals.MethodSeries
	// matchedClasses and matchedMethods are the settings of metrics with a point for each pattern.
	matchedClasses, matchedMethods metricseries.Settings
}

// newMethodSeries returns the settings of metrics with a point for each method.
func newMethodSeries(of *metadata.MetricsConfig) signals.MethodSeries {
	return signals.MethodSeries{
		Calls: metricseries.NewSettings("java.method.calls", of.JavaMethodCalls.AggregationStrategy, of.JavaMethodCalls.EnabledAttributes,
			metadata.JavaMethodCallsMetricAttributeKeyCodeFunctionName, metadata.JavaMethodCallsMetricAttributeKeyJavaClass),
		Failures: metricseries.NewSettings("java.method.failures", of.JavaMethodFailures.AggregationStrategy, of.JavaMethodFailures.EnabledAttributes,
			metadata.JavaMethodFailuresMetricAttributeKeyCodeFunctionName, metadata.JavaMethodFailuresMetricAttributeKeyJavaClass),
		Time: metricseries.NewSettings("java.method.time", of.JavaMethodTime.AggregationStrategy, of.JavaMethodTime.EnabledAttributes,
			metadata.JavaMethodTimeMetricAttributeKeyCodeFunctionName, metadata.JavaMethodTimeMetricAttributeKeyJavaClass),
		Mean: metricseries.NewSettings("java.method.duration.mean", of.JavaMethodDurationMean.AggregationStrategy, of.JavaMethodDurationMean.EnabledAttributes,
			metadata.JavaMethodDurationMeanMetricAttributeKeyCodeFunctionName, metadata.JavaMethodDurationMeanMetricAttributeKeyJavaClass),
		Shortest: metricseries.NewSettings("java.method.duration.min", of.JavaMethodDurationMin.AggregationStrategy, of.JavaMethodDurationMin.EnabledAttributes,
			metadata.JavaMethodDurationMinMetricAttributeKeyCodeFunctionName, metadata.JavaMethodDurationMinMetricAttributeKeyJavaClass),
		Longest: metricseries.NewSettings("java.method.duration.max", of.JavaMethodDurationMax.AggregationStrategy, of.JavaMethodDurationMax.EnabledAttributes,
			metadata.JavaMethodDurationMaxMetricAttributeKeyCodeFunctionName, metadata.JavaMethodDurationMaxMetricAttributeKeyJavaClass),
		Ratio: metricseries.NewSettings("java.method.failure_ratio", of.JavaMethodFailureRatio.AggregationStrategy, of.JavaMethodFailureRatio.EnabledAttributes,
			metadata.JavaMethodFailureRatioMetricAttributeKeyCodeFunctionName, metadata.JavaMethodFailureRatioMetricAttributeKeyJavaClass),
	}
}

// maxOver limits the processes that have ended since the last collection.
const maxOver = 64

// newMetricsLoop starts the loop. living returns the states to report.
func newMetricsLoop(run *receiverkit.Run, config *Config, own *counters.Counters, living func() []processState) *metricsLoop {
	m := &metricsLoop{
		now: run.Now, builder: metadata.NewMetricsBuilder(config.MetricsBuilderConfig, run.Settings),
		methods: newMethodSeries(&config.Metrics),
		matchedClasses: metricseries.NewSettings("greys.matched.classes", config.Metrics.GreysMatchedClasses.AggregationStrategy, config.Metrics.GreysMatchedClasses.EnabledAttributes,
			metadata.GreysMatchedClassesMetricAttributeKeyGreysCommand, metadata.GreysMatchedClassesMetricAttributeKeyGreysPattern),
		matchedMethods: metricseries.NewSettings("greys.matched.methods", config.Metrics.GreysMatchedMethods.AggregationStrategy, config.Metrics.GreysMatchedMethods.EnabledAttributes,
			metadata.GreysMatchedMethodsMetricAttributeKeyGreysCommand, metadata.GreysMatchedMethodsMetricAttributeKeyGreysPattern),
	}
	m.Metrics = receiverkit.NewMetrics(run, handover.MetricsSettings[processState]{
		Living:   living,
		Metrics:  func(states []processState) pmetric.Metrics { return m.metrics(states, m.now()) },
		MaxEnded: maxOver, Points: points, What: "servers",
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
		others := append(m.methods.Record(m.builder, s.Methods, s.Over, now), m.recordMatched(s, now)...)
		made := m.builder.Emit(metadata.WithResource(s.Origin.Resource),
			metadata.WithStartTimeOverride(pcommon.NewTimestampFromTime(s.Origin.Begun))).ResourceMetrics()
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
	if s.HasSessions && !s.Over {
		b.RecordGreysSessionCountDataPoint(now, int64(s.Sessions))
	}
}

// recordMatched does the same for metrics that have a point for each pattern.
func (m *metricsLoop) recordMatched(s *processState, now pcommon.Timestamp) []func(pmetric.MetricSlice) {
	if s.Over {
		return nil
	}
	classes, methods := metricseries.New[int64](m.matchedClasses, len(s.Matched)), metricseries.New[int64](m.matchedMethods, len(s.Matched))
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
