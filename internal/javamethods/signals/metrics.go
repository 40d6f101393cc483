// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/receiverkit/metricseries"
)

// MethodBuilder is the part of a generated metrics builder that has the metrics of methods.
type MethodBuilder interface {
	RecordJavaMethodCallsDataPoint(at pcommon.Timestamp, v int64, function, class string)
	RecordJavaMethodFailuresDataPoint(at pcommon.Timestamp, v int64, function, class string)
	RecordJavaMethodTimeDataPoint(at pcommon.Timestamp, v float64, function, class string)
	RecordJavaMethodFailureRatioDataPoint(at pcommon.Timestamp, v float64, function, class string)
	RecordJavaMethodDurationMeanDataPoint(at pcommon.Timestamp, v float64, function, class string)
}

// RangeBuilder is the same for a tracer that reports the shortest and the longest call.
type RangeBuilder interface {
	RecordJavaMethodDurationMinDataPoint(at pcommon.Timestamp, v float64, function, class string)
	RecordJavaMethodDurationMaxDataPoint(at pcommon.Timestamp, v float64, function, class string)
}

// pointsOfMethod is the number of metric points of a method: one for each field of MethodSeries.
const pointsOfMethod = 7

// MethodsOfServer returns how many methods of one of several servers have sums of their own, so that all servers together
// have at most maxPoints metric points of methods. setting is the setting that limits the methods: it is
// limits.max_metric_points or limits.max_methods.
func MethodsOfServer(maxPoints, servers, maxMethods int) (methods int, setting string) {
	part := max(maxPoints/max(servers, 1)/pointsOfMethod, 1)
	if part < maxMethods {
		return part, "limits.max_metric_points"
	}
	return maxMethods, "limits.max_methods"
}

// MethodSeries are the settings of metrics that have a point for each method. Shortest and Longest are for a
// [RangeBuilder].
type MethodSeries struct {
	Calls, Failures, Time, Mean, Shortest, Longest, Ratio metricseries.Settings
}

// Record records the first point of each metric. It returns functions that append the other points. over means that the
// process has ended, or is not connected: values of the last cycle are then unknown.
func (m *MethodSeries) Record(b MethodBuilder, methods []process.MethodState, over bool, now pcommon.Timestamp) []func(pmetric.MetricSlice) {
	n := len(methods)
	calls, failures := metricseries.New[int64](m.Calls, n), metricseries.New[int64](m.Failures, n)
	seconds, ratio := metricseries.New[float64](m.Time, n), metricseries.New[float64](m.Ratio, n)
	mean, shortest, longest := metricseries.New[float64](m.Mean, n), metricseries.New[float64](m.Shortest, n), metricseries.New[float64](m.Longest, n)
	for i := range methods {
		of := &methods[i]
		calls.Add(of.Calls, of.Function, of.Class)
		failures.Add(of.Failures, of.Function, of.Class)
		if !of.Untimed {
			seconds.Add(of.Seconds, of.Function, of.Class)
		}
		if over || !of.HasCycle {
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
	if b, has := b.(RangeBuilder); has {
		shortest.First(func(v float64, key metricseries.Key) {
			b.RecordJavaMethodDurationMinDataPoint(now, v, key[0], key[1])
		})
		longest.First(func(v float64, key metricseries.Key) {
			b.RecordJavaMethodDurationMaxDataPoint(now, v, key[0], key[1])
		})
	}
	return []func(pmetric.MetricSlice){
		calls.AppendOthers, failures.AppendOthers, seconds.AppendOthers, ratio.AppendOthers,
		mean.AppendOthers, shortest.AppendOthers, longest.AppendOthers,
	}
}
