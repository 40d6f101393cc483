// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/metadata"
)

const formatGreys = "greys"

// handoverSettings are the common settings of all signals.
func (e *environment) handoverSettings() handover.Settings {
	return handover.Settings{
		Context: e.ctx, Observer: e.observer, Format: formatGreys, Logger: e.logger,
		Retry: e.config.Retry, Now: e.now, Memory: e.memory,
	}
}

// A server whose replies are not read tries to send again and again, inside the traced program. So
// no reply waits for a pipeline: the queue of a signal drops and counts data beyond its limits.

// parcelsAtOnce is how many call trees, recorded calls, or log records a batch has at most.
const parcelsAtOnce = 256

func newSpans(e *environment, next consumer.Traces) *handover.Spans[spanParcel] {
	return handover.NewSpans(next, handover.QueueSettings[spanParcel, ptrace.Traces]{
		Settings: e.handoverSettings(),
		MaxItems: e.config.Limits.MaxQueuedSpans, MaxBytes: e.config.Limits.MaxQueuedSpanBytes,
		MaxAtOnce: parcelsAtOnce,
		Size:      func(p *spanParcel) (spans, bytes int) { return len(p.spans), p.bytes() },
		Make:      e.traces,
		Dropped:   e.counters.SpansDropped,
	})
}

func newLogSink(e *environment, next consumer.Logs) *handover.Logs[logParcel] {
	return handover.NewLogs(next, handover.QueueSettings[logParcel, plog.Logs]{
		Settings: e.handoverSettings(),
		MaxItems: e.config.Limits.MaxQueuedLogs, MaxBytes: e.config.Limits.MaxQueuedLogBytes,
		MaxAtOnce: parcelsAtOnce,
		Size:      func(p *logParcel) (records, bytes int) { return 1, p.bytes },
		Make:      e.logRecords,
		Dropped:   e.counters.LogRecordsDropped,
	})
}

func (e *environment) setScope(scope pcommon.InstrumentationScope) {
	scope.SetName(metadata.ScopeName)
	scope.SetVersion(e.build.Version)
}
