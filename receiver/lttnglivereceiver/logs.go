// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

// logParcel is a batch of log records of one session on its way to the pipeline.
type logParcel struct {
	logs    plog.Logs
	records int
	bytes   int
}

// newLogQueue returns the delivery of the log records of all sessions. While the pipeline refuses them
// and their queue is full, they are dropped, so that spans do not wait for them. While it accepts them,
// and if there is no traces pipeline, a session waits for room: it reads a recording as fast as both
// pipelines accept it, and the relay daemon keeps the rest.
func (r *liveReceiver) newLogQueue(next consumer.Logs) *handover.Logs[logParcel] {
	overflow := handover.OverflowDropWhileRefused
	if r.next.Traces == nil {
		overflow = handover.OverflowWait
	}
	limits := &r.config.Limits
	return handover.NewLogs(next, handover.QueueSettings[logParcel, plog.Logs]{
		Settings: r.handoverSettings(r.settings.Logger),
		MaxItems: limits.MaxQueuedLogs, MaxBytes: limits.MaxQueuedLogBytes,
		Overflow: overflow, MaxAtOnce: 1,
		Size:    func(p *logParcel) (records, bytes int) { return p.records, p.bytes },
		Make:    func(parcels []logParcel) plog.Logs { return parcels[0].logs },
		Dropped: r.telemetry.LogRecordsDropped,
	})
}

// logSettings say how sessions make log records.
func (r *liveReceiver) logSettings() *process.LogSettings {
	return &process.LogSettings{
		MaxRecordBytes: r.config.Limits.MaxLogRecordBytes, MaxDelay: r.config.Batch.MaxDelay,
		ScopeName: metadata.ScopeName, ScopeVersion: r.settings.BuildInfo.Version, Now: r.env.Now,
	}
}
