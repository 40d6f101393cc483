// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/telemetry"
)

// logParcel is a batch of log records of one session on its way to the pipeline.
type logParcel struct {
	logs    plog.Logs
	records int
	bytes   int
}

// openLogs opens the queue of the log records of all sessions, or returns nil if no pipeline accepts them. While the
// pipeline refuses them and the queue is full, they are dropped, so that spans do not wait for them. While it accepts
// them, or if there is no traces pipeline, a session waits for room: it reads a recording as fast as both pipelines
// accept it, and the relay daemon keeps the rest.
func openLogs(run *receiverkit.Run, config *Config, counters *telemetry.Telemetry) *handover.Logs[logParcel] {
	overflow := handover.OverflowDropWhileRefused
	if run.Next.Traces == nil {
		overflow = handover.OverflowWait
	}
	return receiverkit.NewLogs(run, config.Limits.LogLimits, handover.QueueSettings[logParcel, plog.Logs]{
		Overflow: overflow, MaxAtOnce: 1,
		Size:    func(p *logParcel) (records, bytes int) { return p.records, p.bytes },
		Make:    func(parcels []logParcel) plog.Logs { return parcels[0].logs },
		Dropped: counters.LogRecordsDropped,
	})
}

// logSettings returns the settings of sessions for log records.
func logSettings(run *receiverkit.Run, config *Config) *process.LogSettings {
	return &process.LogSettings{
		MaxRecordBytes: config.Limits.MaxLogRecordBytes, EnumerationNumbers: config.LogValues.EnumerationNumbers, Hexadecimal: config.LogValues.Hexadecimal,
		MaxDelay:  config.Batch.MaxDelay,
		ScopeName: metadata.ScopeName, ScopeVersion: run.Settings.BuildInfo.Version, Now: run.Now,
	}
}
