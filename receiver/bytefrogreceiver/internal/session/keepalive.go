// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/stream"
)

// keepAlive sends batches without events. They announce breaks, report that the run is alive, and at
// last that it has ended. It is for the goroutine of live.
type keepAlive struct {
	run *run
	// empty makes the batches, one after the other.
	empty *stream.EmptyBatches
	// accepted is when the pipeline accepted the last batch. refused: it has refused one since.
	accepted time.Time
	refused  bool
	// announcing receives the result of the batch that is being sent; nil: none. missed: something had
	// to be announced meanwhile.
	announcing chan announcement
	missed     bool
}

// announcement is the result of a batch with some breaks.
type announcement struct {
	barriers []callevent.Barrier
	accepted bool
}

// isDue reports whether a batch is due even without new breaks.
func (k *keepAlive) isDue() bool {
	return k.refused || k.run.env.Receiver.Now().Sub(k.accepted) >= k.run.env.Settings.Batches.KeepaliveInterval
}

// announce sends a batch with the breaks that no batch has announced, if there are any or a batch is
// due. It does not wait for the pipeline, and the end of the run does not cancel the call: the pipeline
// may have accepted a cancelled batch, and would get it twice.
func (k *keepAlive) announce() {
	r := k.run
	if !r.batches.isOpen() || !r.life.isStarted() {
		return
	}
	if k.announcing != nil {
		k.missed = true
		return
	}
	if !r.stream.HasNewBarriers() && !k.isDue() {
		return
	}
	barriers := r.stream.NewBarriers()
	batch, err := k.empty.Batch(barriers)
	if err != nil {
		r.logger.Error("Could not make an empty batch", zap.Error(err))
		return
	}
	result := make(chan announcement, 1)
	k.announcing = result
	go func() { result <- announcement{barriers: barriers, accepted: r.batches.Offer(batch, r.Resource)} }()
}

// announced notes the result of an announcement, and sends the next if one was missed.
func (k *keepAlive) announced(a announcement) {
	k.announcing, k.refused = nil, !a.accepted
	if a.accepted {
		k.accepted = k.run.env.Receiver.Now()
		k.run.stream.BarriersAnnounced(a.barriers)
	}
	if k.missed {
		k.missed = false
		k.announce()
	}
}

// finish waits for the announcement that is being sent, if there is one.
func (k *keepAlive) finish() {
	if k.announcing != nil {
		k.missed = false
		k.announced(<-k.announcing)
	}
}

// sendEnd sends a batch that reports the end of the run.
func (k *keepAlive) sendEnd() {
	r := k.run
	if !r.life.isStarted() {
		return
	}
	r.breaks.add(callevent.End(r.stream.Next(), r.life.ending.Cause))
	batch, err := k.empty.Batch(r.stream.NewBarriers())
	if err != nil {
		r.logger.Error("Could not make the batch that reports the end of the run", zap.Error(err))
		return
	}
	r.batches.send(batch)
}
