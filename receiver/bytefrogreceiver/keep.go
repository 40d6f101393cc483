// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/stream"
)

// keeper does what a run needs though nothing comes: it announces breaks, says that
// the run is alive, lets a suspended agent go on, and at last leaves the agent.
type keeper struct {
	run *run
	// empty makes empty batches, one after the other.
	empty *stream.EmptyBatches
	// said is when the pipeline accepted the last empty batch; failed says that it
	// has not accepted one with news.
	said   time.Time
	failed bool
	// announcing is the announcement that is on its way, if one is; missed says that
	// there was something to announce meanwhile.
	announcing chan announcement
	missed     bool
	rate       rateWatch
}

// announcement is what became of an empty batch with these breaks.
type announcement struct {
	barriers []callevent.Barrier
	accepted bool
}

const (
	// keepTick is how often the keeper looks around.
	keepTick = time.Second
	// announcePause is the least time between two announcements of breaks: breaks
	// that come in a burst are announced together.
	announcePause = 10 * time.Millisecond
)

// keep is the goroutine of the keeper; it ends with the run.
func (r *run) keep() {
	k := &keeper{run: r, empty: stream.NewEmptyBatches(r.stream), said: r.opened, rate: rateWatch{limit: r.env.config.WarnEventsPerSecond, at: r.opened}}
	ticker := time.NewTicker(min(keepTick, r.env.config.KeepaliveInterval))
	defer ticker.Stop()
	var due, settled <-chan time.Time
	var announced time.Time
	joined := r.data.joined
	for {
		select {
		case <-r.leaving:
			k.end()
			return
		case <-r.memory.Full():
			r.leave(outOfMemory(r.memory.Reason()))
			continue
		case <-r.news:
			if due == nil {
				due = time.After(announcePause - time.Since(announced))
			}
		case announced = <-due:
			due = nil
			k.announce()
		case a := <-k.announcing:
			k.announced(a)
		case <-joined:
			joined, settled = nil, time.After(r.env.timing.prepared)
		case <-settled:
			// It reports no class and makes no call: its program may do nothing.
			settled = nil
			r.agentPrepared()
		case <-ticker.C:
			now := r.env.now()
			if k.failed || now.Sub(k.said) >= r.env.config.KeepaliveInterval {
				k.announce()
			}
			k.watchRate(now)
			r.failed.log(r.logger, now, false)
			if now.Sub(r.opened) >= r.env.timing.untraced {
				r.warnIfUntraced()
			}
		}
		r.resume()
	}
}

// announce hands on an empty batch with the breaks that none has announced, if
// there are any or the last empty batch is old. It doesn't wait for the pipeline: an
// agent that has to be left must not either, and a hand-over that is broken off for it
// may have happened, and would happen again.
func (k *keeper) announce() {
	r := k.run
	if r.handover == nil || !r.isStarted() {
		return
	}
	if k.announcing != nil {
		k.missed = true
		return
	}
	if !r.stream.HasNewBarriers() && !k.failed && r.env.now().Sub(k.said) < r.env.config.KeepaliveInterval {
		return
	}
	barriers := r.stream.NewBarriers()
	batch, err := k.empty.Batch(barriers)
	if err != nil {
		r.logger.Error("An empty batch could not be made", zap.Error(err))
		return
	}
	result := make(chan announcement, 1)
	k.announcing = result
	go func() { result <- announcement{barriers: barriers, accepted: r.handover.Offer(batch, r.resource)} }()
}

// announced takes what became of an announcement.
func (k *keeper) announced(a announcement) {
	k.announcing, k.failed = nil, !a.accepted
	if a.accepted {
		k.said = k.run.env.now()
		k.run.stream.BarriersAnnounced(a.barriers)
	}
	if k.missed {
		k.missed = false
		k.announce()
	}
}

// rateWatch sees when a run traces more than is sensible.
type rateWatch struct {
	limit  int
	at     time.Time
	events uint64
	warned time.Time
}

// warnPause is the least time between two warnings of one run.
const warnPause = time.Minute

func (k *keeper) watchRate(now time.Time) {
	w := &k.rate
	events := k.run.stream.Received()
	seconds := now.Sub(w.at).Seconds()
	if seconds <= 0 {
		return
	}
	rate := float64(events-w.events) / seconds
	w.at, w.events = now, events
	if w.limit == 0 || rate < float64(w.limit) || now.Sub(w.warned) < warnPause {
		return
	}
	w.warned = now
	k.run.logger.Warn("The agent traces more calls than is sensible: leave classes out with agent.exclusions, or name those wanted in agent.inclusions",
		zap.Float64("events_per_second", rate), zap.Int("warn_events_per_second", w.limit))
}
