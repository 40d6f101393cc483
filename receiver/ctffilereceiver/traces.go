// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"context"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/ctffilereceiver/internal/telemetry"
)

// batches returns a function that opens the delivery of a trace's batches. A trace is read as fast as the pipeline
// accepts its batches. Batches that are not delivered when ctx ends are dropped.
func batches(run *receiverkit.Run, config *Config, counters *telemetry.Telemetry) func(context.Context, *zap.Logger) process.Batches {
	return func(ctx context.Context, logger *zap.Logger) process.Batches {
		return receiverkit.NewBatches(ctx, run, logger, &config.BatchesConfig, handover.BatchesSettings{
			WhileRefused: "the trace is not read until it accepts them",
			TryLate:      true,
			Accepted:     counters.BatchAccepted, Dropped: counters.BatchDropped, Retried: counters.HandoverRetried,
		})
	}
}
