// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"

	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/internal/receiverkit/metricseries"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/metadata"
)

// processState is what metrics are made of: what is known of a process at one moment.
type processState struct {
	origin                            *origin
	replies, bad, missing, reconnects int64
	sessions                          int
	hasSessions                       bool
	matched                           []matchedState
	methods                           []methodState
	// over says that the process has ended: what it is like now is not known.
	over bool
}

// matchedState is what the patterns of a command matched.
type matchedState struct {
	command          metadata.AttributeGreysCommand
	pattern          string
	classes, methods int64
}

// commands are those that have patterns, as metrics name them.
var commands = [...]metadata.AttributeGreysCommand{
	askMonitor: metadata.AttributeGreysCommandMonitor,
	askTrace:   metadata.AttributeGreysCommandTrace,
	askStack:   metadata.AttributeGreysCommandStack,
	askRecords: metadata.AttributeGreysCommandTt,
}

// state is a copy: the process goes on.
func (p *process) state() processState {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := processState{
		origin: p.origin, replies: p.replies, bad: p.bad, missing: p.missing, reconnects: p.reconnects,
		sessions: p.sessions, hasSessions: p.hasSessions,
		methods: p.calls.states(p.env.now()),
	}
	for _, t := range p.tasks {
		if m := t.matched; m.known {
			s.matched = append(s.matched, matchedState{commands[t.kind], t.pattern, m.classes, m.methods})
		}
	}
	return s
}

// points is how many data points a state makes, about.
func (s *processState) points() int { return 5 + 2*len(s.matched) + 7*len(s.methods) }

// metricsLoop hands on metrics of the servers.
type metricsLoop struct {
	*handover.Metrics[processState]
	env     *environment
	builder *metadata.MetricsBuilder
	series  allSeries
}

// allSeries are what is set for metrics that have a point for each method, or pattern.
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

// maxOver bounds the processes that have ended since the last collection.
const maxOver = 64

func newMetricsLoop(e *environment, settings receiver.Settings, next consumer.Metrics, living func() []processState) *metricsLoop {
	m := &metricsLoop{
		env: e, builder: metadata.NewMetricsBuilder(e.config.MetricsBuilderConfig, settings),
		series: newAllSeries(&e.config.Metrics),
	}
	m.Metrics = handover.NewMetrics(handover.MetricsSettings[processState]{
		Settings: e.handoverSettings(), Next: next, Interval: e.config.CollectionInterval,
		Living:   living,
		Metrics:  func(states []processState) pmetric.Metrics { return m.metrics(states, e.now()) },
		MaxEnded: maxOver, Points: (*processState).points, What: "servers",
		Dropped: e.telemetry.metricPointsDropped,
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
	b.RecordGreysRepliesDataPoint(now, s.replies)
	b.RecordGreysRepliesBadDataPoint(now, s.bad)
	b.RecordGreysRepliesMissingDataPoint(now, s.missing)
	b.RecordGreysReconnectsDataPoint(now, s.reconnects)
	if s.hasSessions && !s.over {
		b.RecordGreysSessionCountDataPoint(now, int64(s.sessions))
	}
}

// recordMethods records the first point of each metric that has one for each method, and
// gives what appends the others.
func (m *metricsLoop) recordMethods(s *processState, now pcommon.Timestamp) []func(pmetric.MetricSlice) {
	b, n := m.builder, len(s.methods)
	calls, failures := metricseries.New[int64](m.series.calls, n), metricseries.New[int64](m.series.failures, n)
	seconds, ratio := metricseries.New[float64](m.series.time, n), metricseries.New[float64](m.series.ratio, n)
	mean, shortest, longest := metricseries.New[float64](m.series.mean, n), metricseries.New[float64](m.series.shortest, n), metricseries.New[float64](m.series.longest, n)
	for i := range s.methods {
		of := &s.methods[i]
		calls.Add(of.calls, of.function, of.class)
		failures.Add(of.failures, of.function, of.class)
		if !of.untimed {
			seconds.Add(of.seconds, of.function, of.class)
		}
		if s.over || !of.hasCycle {
			continue
		}
		ratio.Add(float64(of.cycle.Failed)/float64(of.cycle.Calls), of.function, of.class)
		if of.cycle.HasMean {
			mean.Add(of.cycle.Mean.Seconds(), of.function, of.class)
		}
		if of.cycle.HasRange {
			shortest.Add(of.cycle.Min.Seconds(), of.function, of.class)
			longest.Add(of.cycle.Max.Seconds(), of.function, of.class)
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
	classes, methods := metricseries.New[int64](m.series.matchedClasses, len(s.matched)), metricseries.New[int64](m.series.matchedMethods, len(s.matched))
	named := map[string]metadata.AttributeGreysCommand{"": commands[askMonitor]}
	for i := range s.matched {
		of := &s.matched[i]
		named[of.command.String()] = of.command
		classes.Add(of.classes, of.command.String(), text(of.pattern))
		methods.Add(of.methods, of.command.String(), text(of.pattern))
	}
	classes.First(func(v int64, key metricseries.Key) {
		m.builder.RecordGreysMatchedClassesDataPoint(now, v, named[key[0]], key[1])
	})
	methods.First(func(v int64, key metricseries.Key) {
		m.builder.RecordGreysMatchedMethodsDataPoint(now, v, named[key[0]], key[1])
	})
	return []func(pmetric.MetricSlice){classes.AppendOthers, methods.AppendOthers}
}
