// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

// logParcel is a batch of log records of one session on its way to the pipeline.
type logParcel struct {
	logs    plog.Logs
	records int
	bytes   int
}

// openLogs opens the queue of the log records of all sessions, if a pipeline takes them. While the
// pipeline refuses them and their queue is full, they are dropped, so that spans do not wait for them.
// While it accepts them, and if there is no traces pipeline, a session waits for room: it reads a
// recording as fast as both pipelines accept it, and the relay daemon keeps the rest.
func (r *liveReceiver) openLogs() {
	if r.run.Next.Logs == nil {
		return
	}
	overflow := handover.OverflowDropWhileRefused
	if r.run.Next.Traces == nil {
		overflow = handover.OverflowWait
	}
	r.logs = receiverkit.NewLogs(r.run, r.config.Limits.LogLimits, handover.QueueSettings[logParcel, plog.Logs]{
		Overflow: overflow, MaxAtOnce: 1,
		Size:    func(p *logParcel) (records, bytes int) { return p.records, p.bytes },
		Make:    func(parcels []logParcel) plog.Logs { return parcels[0].logs },
		Dropped: r.telemetry.LogRecordsDropped,
	})
	r.env.Logs = &process.LogSettings{
		MaxRecordBytes: r.config.Limits.MaxLogRecordBytes, MaxDelay: r.config.Batch.MaxDelay,
		ScopeName: metadata.ScopeName, ScopeVersion: r.kit.Settings.BuildInfo.Version, Now: r.env.Now,
	}
}
