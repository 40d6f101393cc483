// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/callevent"
)

const formatLTTng = "lttng"

// handover gives the batches of one session to the pipeline, which may refuse them:
// whoever hands on a batch waits until it was accepted, and the session is not read
// meanwhile. Its relay daemon keeps what is recorded, so nothing is lost and the traced
// programs don't notice. It is for one goroutine.
type handover struct {
	env     *environment
	logger  *zap.Logger
	backoff backoff
	// dropping and refusing say that a burst of it goes on, which is logged once.
	dropping, refusing bool
}

func newHandover(env *environment, logger *zap.Logger) *handover {
	return &handover{env: env, logger: logger, backoff: backoff{RetryConfig: env.config.Retry}}
}

// send hands on a batch until it is accepted, refused for good, or the time is over.
// Its data is the caller's again when it returns.
func (h *handover) send(batch callevent.Packed, resource pcommon.Resource) {
	ctx := h.env.observer.StartTracesOp(h.env.ctx)
	for {
		// What the pipeline is given is made anew for each try: it may change what it
		// refuses.
		err := h.env.traces.ConsumeTraces(ctx, batchTraces(batch, resource, h.env.build))
		if err == nil || consumererror.IsPermanent(err) {
			h.backoff.reset()
			h.delivered(ctx, batch, err)
			return
		}
		if !h.refusing {
			h.refusing = true
			h.logger.Warn("The pipeline refuses call events: the session is not read until it accepts them", zap.Error(err))
		}
		timer := time.NewTimer(h.backoff.pause())
		select {
		case <-timer.C:
		case <-h.env.ctx.Done():
		}
		timer.Stop()
		if h.env.ctx.Err() != nil {
			h.delivered(ctx, batch, err)
			return
		}
		h.env.telemetry.handoverRetried()
	}
}

// offer hands on a batch without events, which nothing is lost with: it reports
// whether the pipeline accepted it at once.
func (h *handover) offer(batch callevent.Packed, resource pcommon.Resource) bool {
	ctx := h.env.observer.StartTracesOp(h.env.ctx)
	err := h.env.traces.ConsumeTraces(ctx, batchTraces(batch, resource, h.env.build))
	h.env.observer.EndTracesOp(ctx, formatLTTng, 1, err)
	return err == nil
}

// delivered ends the hand-over of a batch: accepted, or dropped with err.
func (h *handover) delivered(ctx context.Context, batch callevent.Packed, err error) {
	h.env.observer.EndTracesOp(ctx, formatLTTng, 1, err)
	if err == nil {
		h.env.telemetry.batchAccepted()
		h.dropping = false
		if h.refusing {
			h.refusing = false
			h.logger.Info("The pipeline accepts call events again")
		}
		return
	}
	reason := droppedPermanent
	if !consumererror.IsPermanent(err) {
		reason = droppedShutdown
	}
	h.env.telemetry.batchDropped(batch.Events, reason)
	if !h.dropping {
		h.dropping = true
		h.logger.Error("A batch of call events is dropped, and so are others until the next is accepted",
			zap.String("reason", reason), zap.Int("events", batch.Events), zap.Error(err))
	}
}
