// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"context"
	"time"
)

// tickInterval is the interval between two runs of the timers of all streams.
const tickInterval = 100 * time.Millisecond

// tick runs the timers until ctx is done.
func (p *pairer) tick(ctx context.Context) {
	defer close(p.ticked)
	ticker := time.NewTicker(tickInterval)
	defer ticker.Stop()
	defer p.clock.tick(false)
	p.clock.tick(true)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.clock.tick(true)
			p.expire(ctx)
		}
	}
}

// expire gives up overdue events. Events of a hand-over under way are not overdue, and while
// the next component refuses the clock stands still.
func (p *pairer) expire(ctx context.Context) {
	if p.delivery.offerHeld(ctx) != nil {
		return
	}
	now := p.clock.settledUntil()
	fresh := func() *finished { return p.fresh(ctx) }
	for i := range p.shards {
		p.handOnAll(ctx, p.shards[i].expire(now, p.cfg.IdleTimeout, fresh))
	}
	p.lighten(ctx, p.maxBytes)
}
