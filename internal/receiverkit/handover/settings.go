// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// Settings are what hand-overs of all signals have in common. All fields but Memory
// have to be set.
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
	// Memory is where queues take their memory from. Nil: MaxBytes is their only bound.
	Memory *budget.Group
}

// Late is a cause for which Settings.Context is cancelled, other than the end of the
// time of the shutdown: what was not accepted by then is dropped for this reason.
type Late string

func (l Late) Error() string { return "the time for handing on is over: " + string(l) }

// lateReason is why something is dropped because ctx is over.
func lateReason(ctx context.Context) string {
	var late Late
	if errors.As(context.Cause(ctx), &late) {
		return string(late)
	}
	return DroppedShutdown
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
	// DroppedMemory: the process has no more memory for it, or for its peer.
	DroppedMemory = "memory_budget"
)
