// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
)

// signal has the functions and names of a signal with data D.
type signal[D any] struct {
	// items is the name of the items in log lines. maxItems and maxBytes are the settings that bound them.
	items, maxItems, maxBytes string
	consume                   func(context.Context, D) error
	mutates                   func() bool
	copyOf                    func(D) D
	start                     func(*receiverhelper.ObsReport, context.Context) context.Context
	end                       func(observer *receiverhelper.ObsReport, ctx context.Context, format string, items int, err error)
}

// Logs is a Queue of log records.
type Logs[T any] = Queue[T, plog.Logs]

// NewLogs returns a hand-over of log records, whose goroutine runs until Close.
func NewLogs[T any](next consumer.Logs, settings QueueSettings[T, plog.Logs]) *Logs[T] {
	return newQueue(settings, signal[plog.Logs]{
		items: "log records", maxItems: "limits.max_queued_logs", maxBytes: "limits.max_queued_log_bytes",
		consume: next.ConsumeLogs,
		mutates: func() bool { return next.Capabilities().MutatesData },
		copyOf: func(logs plog.Logs) plog.Logs {
			other := plog.NewLogs()
			logs.CopyTo(other)
			return other
		},
		start: (*receiverhelper.ObsReport).StartLogsOp,
		end:   (*receiverhelper.ObsReport).EndLogsOp,
	})
}

// Spans is a Queue of spans that are not batches.
type Spans[T any] = Queue[T, ptrace.Traces]

// NewSpans returns a hand-over of spans, whose goroutine runs until Close.
func NewSpans[T any](next consumer.Traces, settings QueueSettings[T, ptrace.Traces]) *Spans[T] {
	return newQueue(settings, signal[ptrace.Traces]{
		items: "spans", maxItems: "limits.max_queued_spans", maxBytes: "limits.max_queued_span_bytes",
		consume: next.ConsumeTraces,
		mutates: func() bool { return next.Capabilities().MutatesData },
		copyOf: func(traces ptrace.Traces) ptrace.Traces {
			other := ptrace.NewTraces()
			traces.CopyTo(other)
			return other
		},
		start: (*receiverhelper.ObsReport).StartTracesOp,
		end:   (*receiverhelper.ObsReport).EndTracesOp,
	})
}

// Profiles is a Queue of profiles; its items are samples.
type Profiles[T any] = Queue[T, pprofile.Profiles]

// NewProfiles returns a hand-over of profiles, whose goroutine runs until Close.
func NewProfiles[T any](next xconsumer.Profiles, settings QueueSettings[T, pprofile.Profiles]) *Profiles[T] {
	return newQueue(settings, signal[pprofile.Profiles]{
		items: "profile samples", maxItems: "limits.max_queued_samples", maxBytes: "limits.max_queued_sample_bytes",
		consume: next.ConsumeProfiles,
		mutates: func() bool { return next.Capabilities().MutatesData },
		copyOf: func(profiles pprofile.Profiles) pprofile.Profiles {
			other := pprofile.NewProfiles()
			profiles.CopyTo(other)
			return other
		},
		start: (*receiverhelper.ObsReport).StartProfilesOp,
		end:   (*receiverhelper.ObsReport).EndProfilesOp,
	})
}
