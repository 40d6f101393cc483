// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/stream"
)

const (
	// checkInterval is the interval of checks that depend on the time.
	checkInterval = time.Second
	// announcePause is the least time between two announcements of breaks: breaks that arrive in
	// a burst are announced together.
	announcePause = 10 * time.Millisecond
)

// live does everything that no message of the agent causes, until the run is over. It announces breaks,
// reports that the run is alive, and lets an agent resume after an overload. At last it disconnects
// the agent.
func live(r *run) {
	k := &keepAlive{run: r, empty: stream.NewEmptyBatches(r.stream), accepted: r.life.opened}
	rate := rateWatch{limit: r.env.Settings.WarnEventsPerSecond, at: r.life.opened}
	ticker := time.NewTicker(min(checkInterval, r.env.Settings.Batches.KeepaliveInterval))
	defer ticker.Stop()
	var due <-chan time.Time
	var announced time.Time
	for {
		select {
		case <-r.life.leaving:
			(&farewell{run: r, keepAlive: k}).end()
			return
		case <-r.Memory.Full():
			r.life.leave(OutOfMemory(r.Memory.Reason()))
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
		case <-ticker.C:
			now := r.env.Receiver.Now()
			if k.isDue() {
				k.announce()
			}
			rate.check(now, r.stream.Received(), r.logger)
			r.classes.failed.log(r.logger, now, false)
			if now.Sub(r.life.opened) >= r.env.Timing.Untraced {
				r.warnIfUntraced()
			}
		}
		r.agent.resumeAfterOverload(r.batches.isHolding)
	}
}
