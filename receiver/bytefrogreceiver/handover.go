// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/callevent"
)

// parcel is one batch on its way into the pipeline. What the pipeline is given is
// made anew for each try: it may change what it refuses.
type parcel struct {
	batch callevent.Packed
	// observed is the context of the observation that begins with the first try
	// and ends once, in handover.delivered.
	observed context.Context
}

// handover gives the batches of one run to the pipeline, which may refuse them.
//
// The policy block: whoever hands on a batch waits until it was accepted, so a
// data connection is not read meanwhile, and the agent feels it. The policy
// suspend: the batch is held, a goroutine of its own hands on what is held, in
// order, and the agent is told to suspend; only when half of the run's memory is
// used whoever hands on waits.
type handover struct {
	next      consumer.Traces
	observer  *receiverhelper.ObsReport
	telemetry *telemetry
	logger    *zap.Logger
	// traces makes of a batch what the pipeline takes.
	traces func(callevent.Packed) ptrace.Traces
	// ctx is cancelled when what was not accepted has to be dropped.
	ctx context.Context
	// backoff is between tries.
	backoff backoff

	// calls is how many calls the pipeline has not returned from.
	calls atomic.Int32
	// waiting is how many connections wait here and are not read.
	waiting atomic.Int32
	// dropping and refusing say that a burst of it goes on and was logged.
	dropping, refusing atomic.Bool
	// drops and refusals are logged seldom: a pipeline may accept and refuse by turns.
	drops, refusals seldom
	// now is the time.
	now func() time.Time

	// budget and refused are set for the policy suspend alone: refused is called
	// when the pipeline refuses, drained when nothing is held any more.
	budget           *budget
	refused, drained func()
	mu               sync.Mutex
	held             []parcel
	// freed is closed, and made anew, when something held was handed on.
	freed    chan struct{}
	draining sync.WaitGroup
}

const formatBytefrog = "bytefrog"

// send hands on a batch, whose data is the caller's again when it returns: the batch
// was accepted, or is held, or was dropped and counted. When the time is over it asks
// no pipeline that may take long; the end of a run, which has no events, is tried once.
func (h *handover) send(batch callevent.Packed) {
	p := parcel{batch: batch, observed: h.observer.StartTracesOp(h.ctx)}
	if err := h.ctx.Err(); err != nil && batch.Events > 0 {
		h.delivered(p, err)
		return
	}
	if h.refused == nil {
		h.waiting.Add(1)
		defer h.waiting.Add(-1)
		h.deliver(p)
		return
	}
	if h.holds() {
		h.hold(p)
		return
	}
	h.waiting.Add(1)
	err := h.call(p.observed, batch)
	h.waiting.Add(-1)
	if err == nil || consumererror.IsPermanent(err) || h.ctx.Err() != nil {
		h.delivered(p, err)
		return
	}
	h.refusedNow(err)
	h.hold(p)
	h.refused()
}

// call gives a batch to the pipeline.
func (h *handover) call(ctx context.Context, batch callevent.Packed) error {
	h.calls.Add(1)
	defer h.calls.Add(-1)
	return h.next.ConsumeTraces(ctx, h.traces(batch))
}

// offer hands on a batch without events, which nothing is lost with: it reports
// whether the pipeline accepted it at once.
func (h *handover) offer(batch callevent.Packed) bool {
	if h.holds() {
		return false
	}
	ctx := h.observer.StartTracesOp(h.ctx)
	err := h.call(ctx, batch)
	h.observer.EndTracesOp(ctx, formatBytefrog, 1, err)
	return err == nil
}

// deliver hands on a batch until it is accepted, refused for good, or the time is
// over.
func (h *handover) deliver(p parcel) {
	for {
		err := h.call(p.observed, p.batch)
		if err == nil || consumererror.IsPermanent(err) {
			h.backoff.accepted()
			h.delivered(p, err)
			return
		}
		h.refusedNow(err)
		select {
		case <-h.backoff.refused():
		case <-h.ctx.Done():
		}
		if h.ctx.Err() != nil {
			h.delivered(p, err)
			return
		}
		h.telemetry.handoverRetried()
	}
}

// delivered ends the hand-over of a batch: accepted, or dropped with err.
func (h *handover) delivered(p parcel, err error) {
	h.observer.EndTracesOp(p.observed, formatBytefrog, 1, err)
	if err == nil {
		h.telemetry.batchAccepted()
		h.dropping.Store(false)
		if h.refusing.Swap(false) {
			h.logger.Info("The pipeline accepts call events again")
		}
		return
	}
	reason := droppedPermanent
	if !consumererror.IsPermanent(err) {
		reason = droppedShutdown
	}
	h.telemetry.batchDropped(p.batch.Events, reason)
	if since, say := sayOnce(&h.dropping, &h.drops, h.now()); say {
		h.logger.Error("A batch of call events is dropped, and so are others until the next is accepted",
			zap.String("reason", reason), zap.Int("events", p.batch.Events), zap.Int("batches_since_last_line", since), zap.Error(err))
	}
}

func (h *handover) refusedNow(err error) {
	if since, say := sayOnce(&h.refusing, &h.refusals, h.now()); say {
		h.logger.Warn("The pipeline refuses call events: they are held and handed on again",
			zap.Int("refusals_since_last_line", since), zap.Error(err))
	}
}

// sayOnce counts one of a burst and reports whether to say so: once for a burst, and
// not at once for one that follows another closely.
func sayOnce(said *atomic.Bool, seldom *seldom, now time.Time) (since int, say bool) {
	if said.Load() {
		seldom.pass()
		return 0, false
	}
	if since, say = seldom.say(now); say {
		said.Store(true)
	}
	return since, say
}

func (h *handover) holds() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.held) > 0
}

// hold keeps a copy of a batch until it can be handed on, and waits for memory where
// there is none.
func (h *handover) hold(p parcel) {
	for !h.tryHold(p) {
		h.mu.Lock()
		freed := h.freed
		empty := len(h.held) == 0
		h.mu.Unlock()
		if empty {
			// Names have all the memory: there is nothing here to wait for.
			h.waiting.Add(1)
			h.deliver(p)
			h.waiting.Add(-1)
			return
		}
		h.waiting.Add(1)
		select {
		case <-freed:
		case <-h.ctx.Done():
			h.waiting.Add(-1)
			h.delivered(p, h.ctx.Err())
			return
		}
		h.waiting.Add(-1)
	}
}

// tryHold leaves half of the run's memory for names: without it, one more would end
// the run.
func (h *handover) tryHold(p parcel) bool {
	if !h.budget.takeOfHalf(len(p.batch.Data)) {
		return false
	}
	p.batch.Data = bytes.Clone(p.batch.Data)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = append(h.held, p)
	if len(h.held) == 1 {
		h.freed = make(chan struct{})
		h.draining.Add(1)
		go h.drain()
	}
	return true
}

// drain hands on what is held until nothing is.
func (h *handover) drain() {
	defer h.draining.Done()
	for {
		h.mu.Lock()
		p := h.held[0]
		h.mu.Unlock()
		h.deliver(p)
		h.budget.give(len(p.batch.Data))

		h.mu.Lock()
		h.held[0] = parcel{}
		h.held = h.held[1:]
		rest := len(h.held)
		close(h.freed)
		h.freed = make(chan struct{})
		if rest == 0 {
			h.held = nil
		}
		h.mu.Unlock()
		if rest == 0 {
			h.drained()
			return
		}
	}
}

// wait waits until nothing is held.
func (h *handover) wait() { h.draining.Wait() }
