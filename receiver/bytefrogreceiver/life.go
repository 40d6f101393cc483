// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"time"

	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/stream"
)

const (
	// checkInterval is how often a run checks what time has changed.
	checkInterval = time.Second
	// announcePause is the least time between two announcements of breaks: breaks that arrive in
	// a burst are announced together.
	announcePause = 10 * time.Millisecond
)

// live is the goroutine of a run that does everything that no message of the agent causes. It
// announces breaks, reports that the run is alive, lets an agent resume after an overload, and at
// last leaves the agent. It ends with the run.
func (r *run) live() {
	k := &keepAlive{run: r, empty: stream.NewEmptyBatches(r.stream), accepted: r.opened}
	rate := rateWatch{limit: r.env.config.WarnEventsPerSecond, at: r.opened}
	ticker := time.NewTicker(min(checkInterval, r.env.config.KeepaliveInterval))
	defer ticker.Stop()
	var due <-chan time.Time
	var announced time.Time
	for {
		select {
		case <-r.leaving:
			(&farewell{run: r, keepAlive: k}).end()
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
		case <-ticker.C:
			now := r.env.Now()
			if k.isDue() {
				k.announce()
			}
			rate.check(now, r.stream.Received(), r.logger)
			r.failed.log(r.logger, now, false)
			if now.Sub(r.opened) >= r.env.timing.untraced {
				r.warnIfUntraced()
			}
		}
		r.resumeAfterOverload()
	}
}
