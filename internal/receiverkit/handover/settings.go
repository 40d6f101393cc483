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

// Settings are common to the hand-overs of all signals. All fields except Memory are required.
type Settings struct {
	// Context is cancelled when the time of the shutdown is over. Data that no pipeline has accepted by then is dropped.
	Context context.Context
	// Observer observes each hand-over. Format is the name of the protocol that the data arrived in.
	Observer *receiverhelper.ObsReport
	Format   string
	Logger   *zap.Logger
	// Retry has the pauses between calls of a pipeline that refuses.
	Retry backoff.Config
	// Now returns the time.
	Now func() time.Time
	// Memory is the group of the budget that queues reserve their memory in. Nil: MaxBytes is their only bound.
	Memory *budget.Group
}

// Late is the cause of a context that ends for another reason than the shutdown. Data that is dropped then is counted
// with its text as the reason, and not with "shutdown".
type Late string

func (l Late) Error() string { return "the time of the hand-over has ended: " + string(l) }

// lateReason returns the reason of drops after the end of ctx.
func lateReason(ctx context.Context) string {
	var late Late
	if errors.As(context.Cause(ctx), &late) {
		return string(late)
	}
	return DroppedShutdown
}

// Reasons of drops.
const (
	// DroppedPermanent: the pipeline returned a permanent error.
	DroppedPermanent = "permanent_error"
	// DroppedShutdown: the time of the shutdown was over.
	DroppedShutdown = "shutdown"
	// DroppedQueueFull: the queue was full.
	DroppedQueueFull = "queue_full"
	// DroppedRefused: the pipeline refused data that has no second try.
	DroppedRefused = "refused"
	// DroppedMemory: the memory budget of the process, or of one peer, was used up.
	DroppedMemory = "memory_budget"
)
