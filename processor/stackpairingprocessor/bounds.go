// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"context"

	"github.com/callbraid/callbraid/internal/callevent"
)

// lighten keeps what all streams hold below the bound:
//
//  1. Memory that is not in use is given back.
//  2. The stream that holds most gives up its oldest gaps.
//  3. Where nothing waits in it, it forgets its names and open frames instead.
//     Others don't pay for it, though events wait in them.
//
// A batch that comes is taken before that: it may be the one that others wait
// for. Whoever comes meanwhile waits, because what is finished has to be handed
// on before more is taken.
func (p *pairer) lighten(ctx context.Context, bound int64) {
	if p.accounts.bytes.Load() <= bound {
		return
	}
	p.lightening.Lock()
	defer p.lightening.Unlock()
	if p.accounts.bytes.Load() > bound {
		for i := range p.shards {
			p.shards[i].spare()
		}
	}
	for before := p.accounts.bytes.Load(); before > bound; {
		waited := p.accounts.waiting.Load()
		sh, id := p.largest()
		if sh == nil {
			return
		}
		f := p.fresh(ctx)
		sh.lighten(id, f)
		p.handOn(ctx, f)
		after := p.accounts.bytes.Load()
		if after >= before && p.accounts.waiting.Load() >= waited {
			return
		}
		before = after
	}
}

// largest finds the stream that holds most.
func (p *pairer) largest() (in *shard, id callevent.StreamID) {
	var most int64
	for i := range p.shards {
		if found, n := p.shards[i].largest(); n > most {
			in, id, most = &p.shards[i], found, n
		}
	}
	return in, id
}

// boundStreams ends streams while there are too many since the newest came:
// those first of which nothing follows, then that which was silent for longest.
func (p *pairer) boundStreams(ctx context.Context, newest callevent.StreamID) {
	for p.accounts.streams.Load() > int64(p.cfg.Limits.MaxStreams) {
		var in *shard
		var least spent
		for i := range p.shards {
			if s, ok := p.shards[i].mostSpent(newest); ok && (in == nil || s.before(least)) {
				in, least = &p.shards[i], s
			}
		}
		if in == nil {
			return
		}
		f := p.fresh(ctx)
		in.endIfThere(least.id, callevent.CauseLimit, f)
		p.handOn(ctx, f)
	}
}
