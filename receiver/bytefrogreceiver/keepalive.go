// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// keepAlive sends batches without events: they announce breaks, report that the run is alive, and
// at last that it has ended. It is for the goroutine of run.live.
type keepAlive struct {
	run *run
	// packer makes the batches, one after the other.
	packer *callevent.Packer
	// accepted is when the pipeline accepted the last batch. refused says that it has refused one
	// since.
	accepted time.Time
	refused  bool
	// announcing is the batch that is on its way, if one is; missed says that there was something
	// to announce meanwhile.
	announcing chan announcement
	missed     bool
}

// announcement is the result of a batch with these breaks.
type announcement struct {
	barriers []callevent.Barrier
	accepted bool
}

// isDue reports whether the pipeline needs a batch though nothing has broken.
func (k *keepAlive) isDue() bool {
	return k.refused || k.run.env.now().Sub(k.accepted) >= k.run.env.config.KeepaliveInterval
}

// announce sends a batch with the breaks that none has announced, if there are any or a batch is
// due. It doesn't wait for the pipeline: the end of the run must not either. A hand-over that is
// broken off may have happened, and would happen again.
func (k *keepAlive) announce() {
	r := k.run
	if r.handover == nil || !r.isStarted() {
		return
	}
	if k.announcing != nil {
		k.missed = true
		return
	}
	if !r.stream.barriers.haveNews() && !k.isDue() {
		return
	}
	barriers := r.stream.barriers.unannounced(nil)
	batch, err := k.emptyBatch(barriers)
	if err != nil {
		r.logger.Error("Could not make an empty batch", zap.Error(err))
		return
	}
	result := make(chan announcement, 1)
	k.announcing = result
	go func() { result <- announcement{barriers: barriers, accepted: r.handover.Offer(batch, r.resource)} }()
}

// announced notes the result of an announcement, and sends the next if one was missed.
func (k *keepAlive) announced(a announcement) {
	k.announcing, k.refused = nil, !a.accepted
	if a.accepted {
		k.accepted = k.run.env.now()
		k.run.stream.barriers.announced(a.barriers)
	}
	if k.missed {
		k.missed = false
		k.announce()
	}
}

// finish waits for the announcement that is on its way, if one is.
func (k *keepAlive) finish() {
	if k.announcing != nil {
		k.missed = false
		k.announced(<-k.announcing)
	}
}

// sendEnd sends a batch that reports the end of the run.
func (k *keepAlive) sendEnd() {
	r := k.run
	if !r.isStarted() {
		return
	}
	r.breakAt(callevent.End(r.stream.next.Load(), r.ending.cause))
	batch, err := k.emptyBatch(r.stream.barriers.unannounced(nil))
	if err != nil {
		r.logger.Error("Could not make the batch that reports the end of the run", zap.Error(err))
		return
	}
	r.send(batch)
}

// emptyBatch makes a batch without events.
func (k *keepAlive) emptyBatch(barriers []callevent.Barrier) (callevent.Packed, error) {
	r := k.run
	if k.packer == nil {
		packer, err := newPacker(r.stream, r.streamID, callevent.MinBatchBytes)
		if err != nil {
			return callevent.Packed{}, err
		}
		k.packer = packer
	}
	k.packer.Reset()
	return k.packer.Close(barriers, r.stream.next.Load(), r.env.now().UnixNano())
}
