// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/backoff"
)

// Settings are what hand-overs of all signals have in common. All fields have to be
// set.
type Settings struct {
	// Context is cancelled when the time of the shutdown is over: what was not
	// accepted by then is dropped.
	Context context.Context
	// Observer observes each hand-over, under the name of the Format that data came in.
	Observer *receiverhelper.ObsReport
	Format   string
	Logger   *zap.Logger
	// Retry is the pauses between tries.
	Retry backoff.Config
	// Now is the time.
	Now func() time.Time
}

// Why something was dropped.
const (
	// DroppedPermanent: the pipeline refused it for good.
	DroppedPermanent = "permanent_error"
	// DroppedShutdown: the time of the shutdown was over.
	DroppedShutdown = "shutdown"
	// DroppedQueueFull: there was no room for it.
	DroppedQueueFull = "queue_full"
	// DroppedRefused: the pipeline refused it, and it is not tried again.
	DroppedRefused = "refused"
)
