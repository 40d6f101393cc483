// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/telemetry"
)

// batches returns a function that opens the delivery of a session's batches. A session waits until the pipeline
// accepts a batch, and is not read meanwhile. Its relay daemon keeps the recording, so nothing is lost, and the
// traced programs are not affected. Batches that are not delivered when ctx ends are dropped.
func batches(run *receiverkit.Run, config *Config, counters *telemetry.Telemetry) func(context.Context, *zap.Logger) process.Batches {
	return func(ctx context.Context, logger *zap.Logger) process.Batches {
		return receiverkit.NewBatches(ctx, run, logger, &config.BatchesConfig, handover.BatchesSettings{
			WhileRefused: "the session is not read until it accepts them",
			TryLate:      true,
			Accepted:     counters.BatchAccepted, Dropped: counters.BatchDropped, Retried: counters.HandoverRetried,
		})
	}
}
