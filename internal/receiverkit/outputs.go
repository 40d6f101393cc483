// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package receiverkit

import (
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/receiverkit/handover"
)

// Each output below is nil if no pipeline accepts its signal. The functions set the common
// Settings and the limits; the receiver sets the other fields. The end of the run closes
// the output. Batches of call events have NewBatches.

// NewLogs opens the queue of log records of a run.
func NewLogs[T any](r *Run, limits LogLimits, settings handover.QueueSettings[T, plog.Logs]) *handover.Logs[T] {
	if r.Next.Logs == nil {
		return nil
	}
	settings.Settings, settings.MaxItems, settings.MaxBytes = r.HandoverSettings(), limits.MaxQueuedLogs, limits.MaxQueuedLogBytes
	queue := handover.NewLogs(r.Next.Logs, settings)
	r.outputs = append(r.outputs, queue.Close)
	return queue
}

// NewSpans opens the queue of spans of a run.
func NewSpans[T any](r *Run, limits SpanLimits, settings handover.QueueSettings[T, ptrace.Traces]) *handover.Spans[T] {
	if r.Next.Traces == nil {
		return nil
	}
	settings.Settings, settings.MaxItems, settings.MaxBytes = r.HandoverSettings(), limits.MaxQueuedSpans, limits.MaxQueuedSpanBytes
	queue := handover.NewSpans(r.Next.Traces, settings)
	r.outputs = append(r.outputs, queue.Close)
	return queue
}

// NewProfiles opens the queue of profiles of a run.
func NewProfiles[T any](r *Run, limits SampleLimits, settings handover.QueueSettings[T, pprofile.Profiles]) *handover.Profiles[T] {
	if r.Next.Profiles == nil {
		return nil
	}
	settings.Settings, settings.MaxItems, settings.MaxBytes = r.HandoverSettings(), limits.MaxQueuedSamples, limits.MaxQueuedSampleBytes
	queue := handover.NewProfiles(r.Next.Profiles, settings)
	r.outputs = append(r.outputs, queue.Close)
	return queue
}

// NewMetrics starts the metrics loop of a run, which collects at each collection_interval and
// at the end of the run. It is never nil: without a pipeline it collects nothing.
func NewMetrics[T any](r *Run, settings handover.MetricsSettings[T]) *handover.Metrics[T] {
	settings.Settings, settings.Next, settings.Interval = r.HandoverSettings(), r.Next.Metrics, r.config.CollectionInterval
	metrics := handover.NewMetrics(settings)
	r.outputs = append(r.outputs, metrics.Close)
	return metrics
}
