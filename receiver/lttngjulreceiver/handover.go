// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/receiverkit/handover"
)

const formatLTTngAgent = "lttng_agent"

// maxEntriesAtOnce is how many entries are handed on at once.
const maxEntriesAtOnce = 1000

// handoverSettings is what hand-overs of all signals have in common.
func (e *environment) handoverSettings() handover.Settings {
	return handover.Settings{
		Context: e.ctx, Observer: e.observer, Format: formatLTTngAgent, Logger: e.logger,
		Retry: e.config.Retry, Now: e.now, Memory: e.inventories.accounts,
	}
}

// logSink hands on the log records of all agents: nobody waits for it, so that each agent
// is told in time what it has to be.
type logSink struct {
	env   *environment
	queue *handover.Logs[logEntry]
	// shares bound what of it the records of loggers have.
	shares *shares
}

func newLogSink(env *environment, next consumer.Logs) *logSink {
	s := &logSink{env: env, shares: newShares(&env.config.Limits)}
	s.queue = handover.NewLogs(next, handover.QueueSettings[logEntry, plog.Logs]{
		Settings: env.handoverSettings(),
		MaxItems: env.config.Limits.MaxQueuedLogs, MaxBytes: env.config.Limits.MaxQueuedLogBytes,
		Overflow: handover.OverflowDrop, MaxAtOnce: maxEntriesAtOnce,
		Size: (*logEntry).size,
		Make: func(entries []logEntry) plog.Logs {
			for i := range entries {
				s.shares.give(&entries[i])
			}
			return logsOf(entries, env.build)
		},
		Dropped: env.telemetry.logRecordsDropped,
	})
	return s
}

// Add hands on an entry, or drops and counts it.
func (s *logSink) Add(entry logEntry) {
	if !s.shares.take(&entry) {
		s.drop(&entry)
	} else if !s.queue.Add(entry) {
		s.shares.give(&entry)
	}
}

// drop counts records of loggers that have no room, and says so.
func (s *logSink) drop(entry *logEntry) {
	records, _ := entry.size()
	s.env.telemetry.logRecordsDropped(records, droppedShare)
	if since, say := s.env.lines.shareDrops.Say(s.env.now()); say {
		s.env.logger.Warn("Records of loggers are dropped: as many wait as an agent, or all together, may have in the queue",
			zap.String("domain", entry.domain), zap.Int("max_of_agent", s.shares.ofAgent.records), zap.Int("since_last_line", since))
	}
}

// Close hands on what waits, and waits for the end of it.
func (s *logSink) Close() { s.queue.Close() }
