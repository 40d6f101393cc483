// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"context"

	"github.com/callbraid/callbraid/internal/callevent"
)

// lighten keeps what all streams hold below the bound: the stream that holds
// most gives up its oldest gap; where nothing waits, the largest forgets its
// names and open frames. A batch that comes is taken before that: it may be
// the one that others wait for.
func (p *pairer) lighten(ctx context.Context) {
	if p.accounts.bytes.Load() <= p.maxBytes || !p.lightening.TryLock() {
		return
	}
	defer p.lightening.Unlock()
	for before := p.accounts.bytes.Load(); before > p.maxBytes; {
		of := func(s size) int64 { return s.bytes }
		if p.accounts.waiting.Load() > 0 {
			of = func(s size) int64 { return s.waiting }
		}
		waited := p.accounts.waiting.Load()
		sh, id := p.largest(of)
		if sh == nil {
			return
		}
		f := p.fresh(ctx)
		sh.lighten(id, f)
		p.handOnAll(ctx, []*finished{f})
		after := p.accounts.bytes.Load()
		if after >= before && p.accounts.waiting.Load() >= waited {
			return
		}
		before = after
	}
}

// largest finds the stream for which of is largest.
func (p *pairer) largest(of func(size) int64) (in *shard, id callevent.StreamID) {
	var most int64
	for i := range p.shards {
		if found, n := p.shards[i].largest(of); n > most {
			in, id, most = &p.shards[i], found, n
		}
	}
	return in, id
}

// boundStreams ends a stream if there are too many since the newest came: one
// of its shard, or where that has no other, of the next.
func (p *pairer) boundStreams(ctx context.Context, newest callevent.StreamID) {
	for first := p.shardIndex(newest); p.accounts.streams.Load() > int64(p.cfg.Limits.MaxStreams); first++ {
		sh := &p.shards[first%shardCount]
		if f := sh.endOldest(newest, callevent.CauseLimit, func() *finished { return p.fresh(ctx) }); f != nil {
			p.handOnAll(ctx, []*finished{f})
		}
	}
}
