// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
)

// maxEntriesAtOnce bounds the entries of one delivery.
const maxEntriesAtOnce = 1000

// logSink delivers the log records of all agents. It never waits for the pipeline, so that
// agents get their commands in time.
type logSink struct {
	run       *receiverkit.Run
	telemetry *telemetry
	queue     *handover.Logs[logEntry]
	// shares bounds the part of the queue that records of loggers use.
	shares *shares
	// dropping limits log lines of dropped records of loggers.
	dropping logline.Seldom
}

// newLogSink returns the sink of a run, or nil if no pipeline accepts log records.
func newLogSink(run *receiverkit.Run, limits *LimitsConfig, telemetry *telemetry) *logSink {
	if run.Next.Logs == nil {
		return nil
	}
	s := &logSink{run: run, telemetry: telemetry, shares: newShares(limits)}
	s.queue = receiverkit.NewLogs(run, limits.LogLimits, handover.QueueSettings[logEntry, plog.Logs]{
		Overflow: handover.OverflowDrop, MaxAtOnce: maxEntriesAtOnce,
		Size: (*logEntry).size,
		Make: func(entries []logEntry) plog.Logs {
			for i := range entries {
				s.shares.release(&entries[i])
			}
			return logsOf(entries, run.Kit)
		},
		Dropped: telemetry.logRecordsDropped,
	})
	return s
}

// Deliver queues an entry, or drops and counts it.
func (s *logSink) Deliver(entry logEntry) {
	if !s.shares.reserve(&entry) {
		s.dropRecords(&entry)
	} else if !s.queue.Enqueue(entry) {
		s.shares.release(&entry)
	}
}

// dropRecords counts and logs dropped records of loggers.
func (s *logSink) dropRecords(entry *logEntry) {
	records, _ := entry.size()
	s.telemetry.logRecordsDropped(records, droppedShare)
	s.run.LogSeldom(&s.dropping, s.run.Logger.Warn, "Log records of loggers are dropped: their part of the queue is full",
		zap.String("domain", entry.domain), zap.Int("max_of_agent", s.shares.ofAgent.records))
}
