// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

// newBatches returns the delivery of a session's batches. A session waits until the pipeline accepts a
// batch, and is not read meanwhile. Its relay daemon keeps the recording, so nothing is lost, and the
// traced programs do not notice. Batches that are not delivered when ctx ends are dropped.
func (r *liveReceiver) newBatches(ctx context.Context, logger *zap.Logger) process.Batches {
	settings := r.run.HandoverSettings()
	settings.Context, settings.Logger = ctx, logger
	return handover.NewBatches(handover.BatchesSettings{
		Settings: settings, Next: r.run.Next.Traces,
		ScopeName: metadata.ScopeName, ScopeVersion: r.kit.Settings.BuildInfo.Version,
		WhileRefused: "the session is not read until it accepts them",
		TryLate:      true,
		Accepted:     r.telemetry.BatchAccepted, Dropped: r.telemetry.BatchDropped, Retried: r.telemetry.HandoverRetried,
		Unpaired: r.unpaired,
	})
}
