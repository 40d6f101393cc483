// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

const formatLTTng = "lttng"

// handoverSettings is what hand-overs of all signals have in common.
func (e *environment) handoverSettings(logger *zap.Logger) handover.Settings {
	return handover.Settings{
		Context: e.ctx, Observer: e.observer, Format: formatLTTng, Logger: logger,
		Retry: e.config.Retry, Now: e.now, Memory: e.memory,
	}
}

// newHandover makes the hand-over of a session's batches: whoever hands on a batch waits
// until it was accepted, and the session is not read meanwhile. Its relay daemon keeps
// what is recorded, so nothing is lost and the traced programs don't notice.
// Where ctx ends before the receiver does, the session's memory was needed.
func newHandover(ctx context.Context, env *environment, logger *zap.Logger) *handover.Batches {
	settings := env.handoverSettings(logger)
	settings.Context = ctx
	return handover.NewBatches(handover.BatchesSettings{
		Settings: settings, Next: env.traces,
		ScopeName: metadata.ScopeName, ScopeVersion: env.build.Version,
		WhileRefused: "the session is not read until it accepts them",
		TryLate:      true,
		Accepted:     env.telemetry.batchAccepted,
		Dropped: func(events int, reason string) {
			if errors.Is(context.Cause(ctx), errMemoryTime) && reason == handover.DroppedShutdown {
				reason = droppedMemory
			}
			env.telemetry.batchDropped(events, reason)
		},
		Retried:  env.telemetry.handoverRetried,
		Unpaired: env.unpaired,
	})
}

// logParcel is log records of one session on their way to the pipeline.
type logParcel struct {
	logs    plog.Logs
	records int
	bytes   int
}

// logSink hands on the log records of all sessions. While the pipeline refuses them, and
// their queue is full, they are dropped, so that spans don't wait for them. As long as it
// accepts, and where there are no spans to wait, whoever adds records waits for room
// instead: a recording is read as fast as both can take it, and the relay daemon keeps
// the rest.
type logSink = handover.Logs[logParcel]

func newLogSink(env *environment, next consumer.Logs) *logSink {
	overflow := handover.OverflowDropWhileRefused
	if env.traces == nil {
		overflow = handover.OverflowWait
	}
	return handover.NewLogs(next, handover.QueueSettings[logParcel, plog.Logs]{
		Settings: env.handoverSettings(env.logger),
		MaxItems: env.config.Limits.MaxQueuedLogs, MaxBytes: env.config.Limits.MaxQueuedLogBytes,
		Overflow: overflow, MaxAtOnce: 1,
		Size:    func(p *logParcel) (records, bytes int) { return p.records, p.bytes },
		Make:    func(parcels []logParcel) plog.Logs { return parcels[0].logs },
		Dropped: env.telemetry.logRecordsDropped,
	})
}
