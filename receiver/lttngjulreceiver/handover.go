// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/handover"
)

const formatLTTngAgent = "lttng_agent"

// maxEntriesAtOnce is how many entries are handed on at once.
const maxEntriesAtOnce = 1000

// handoverSettings is what hand-overs of all signals have in common.
func (e *environment) handoverSettings() handover.Settings {
	return handover.Settings{
		Context: e.ctx, Observer: e.observer, Format: formatLTTngAgent, Logger: e.logger,
		Retry: e.config.Retry, Now: e.now,
	}
}

// logSink hands on the log records of all agents: nobody waits for it, so that each agent
// is told in time what it has to be.
type logSink = handover.Logs[logEntry]

func newLogSink(env *environment, next consumer.Logs) *logSink {
	return handover.NewLogs(next, handover.QueueSettings[logEntry, plog.Logs]{
		Settings: env.handoverSettings(),
		MaxItems: env.config.Limits.MaxQueuedLogs, MaxBytes: env.config.Limits.MaxQueuedLogBytes,
		Overflow: handover.OverflowDrop, MaxAtOnce: maxEntriesAtOnce,
		Size:    (*logEntry).size,
		Make:    func(entries []logEntry) plog.Logs { return logsOf(entries, env.build) },
		Dropped: env.telemetry.logRecordsDropped,
	})
}
