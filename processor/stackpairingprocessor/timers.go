// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"context"
	"time"
)

// tickInterval is how often the timers of all streams are looked at.
const tickInterval = 100 * time.Millisecond

// tick looks at the timers until ctx is done.
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

// expire gives up what has been waited for long enough, unless it came in time and
// is about to be taken, or the next component refuses: then the clock stands still.
func (p *pairer) expire(ctx context.Context) {
	if p.delivery.offerHeld(ctx) != nil {
		return
	}
	now := p.clock.takenUntil()
	fresh := func() *finished { return p.fresh(ctx) }
	for i := range p.shards {
		p.handOnAll(ctx, p.shards[i].expire(now, p.cfg.IdleTimeout, fresh))
	}
	p.lighten(ctx, p.maxBytes)
}
