// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// bound is what made a stream give up what it holds. Its text is the metric's attribute.
type bound string

const (
	boundMaxMiB     bound = "max_mib"
	boundBudget     bound = "memory_budget"
	boundMaxStreams bound = "max_streams"
)

// lighten keeps what all streams hold below the most bytes, and what the processor holds
// within the memory budget of the process:
//
//  1. Memory that is not in use is given back.
//  2. The stream that holds most gives up its oldest gaps.
//  3. Where nothing waits in it, it forgets its names and open frames instead.
//     Others don't pay for it, though events wait in them.
//
// A batch that comes is taken before that: it may be the one that others wait
// for. Whoever comes meanwhile waits, because what is finished has to be handed
// on before more is taken.
func (p *pairer) lighten(ctx context.Context, most int64) {
	if over, _ := p.over(most); over <= 0 {
		return
	}
	p.lightening.Lock()
	defer p.lightening.Unlock()
	if over, _ := p.over(most); over > 0 {
		for i := range p.shards {
			p.shards[i].spare()
		}
	}
	for {
		over, by := p.over(most)
		if over <= 0 {
			return
		}
		before, waited := p.accounts.bytes.Load(), p.accounts.waiting.Load()
		sh, id := p.largest()
		if sh == nil {
			return
		}
		p.makeRoom(ctx, sh, id, by, over)
		if p.accounts.bytes.Load() >= before && p.accounts.waiting.Load() >= waited {
			return
		}
	}
}

// over is how many bytes the streams hold too much, and by which bound. Where spans are
// held, or much is reserved, the streams pay for these only down to half of what the
// processor may have.
func (p *pairer) over(most int64) (bytes int64, by bound) {
	streams := p.accounts.bytes.Load()
	bytes, by = streams-most, boundMaxMiB
	if excess := p.memory.excess(p); excess > 0 {
		allowed := p.memory.sum(p) - excess
		if owed := min(excess, streams-allowed/2); owed > bytes {
			bytes, by = owed, boundBudget
		}
	}
	return bytes, by
}

// makeRoom has a stream hold less.
func (p *pairer) makeRoom(ctx context.Context, in *shard, id callevent.StreamID, by bound, over int64) {
	f := p.fresh(ctx)
	if by == boundBudget {
		// Others need the memory now: nobody may wait for long until the spans are taken.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.cfg.ShutdownTimeout)
		defer cancel()
		f.Full, f.unheld = func() { p.deliver(ctx, f) }, true
	}
	held := in.lighten(id, f)
	p.telemetry.ProcessorStackPairingShedStreams.Add(ctx, 1, p.telemetry.bounds[by])
	if line := p.burst.Check(zap.WarnLevel, "Call streams hold too much memory: the largest one gave up its oldest gap, or its names and open calls"); line != nil {
		line.Write(zap.String("bound", string(by)), zap.Stringer("stream", id), zap.Int64("stream_bytes", held), zap.Int64("excess_bytes", over),
			zap.String("remedy", remedies[by]))
	}
	p.handOn(ctx, f)
}

// remedies say what an operator can do.
var remedies = map[bound]string{
	boundMaxMiB: "raise reorder.max_mib, or trace less",
	boundBudget: "raise limit_mib of the extension memory_budget, or trace less",
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

// provenPart is the part of limits.max_streams that proven streams keep whatever else
// comes: all but one of so many parts. The rest is for those that have yet to prove
// themselves.
const provenPart = 4

// boundStreams ends streams while there are too many since the newest came:
//
//  1. Those of which nothing follows go first.
//  2. Where more than a quarter of all have shown nothing since their first batch, the
//     one of these goes that has shown least, and of equals the one that was silent for
//     longest. So a flood of new streams makes room for itself.
//  3. Otherwise the proven stream goes that was silent for longest. So streams that
//     proved themselves once and are silent now don't keep new ones out.
//
// The newest is never the one that ends.
func (p *pairer) boundStreams(ctx context.Context, newest callevent.StreamID) {
	for p.accounts.streams.Load() > int64(p.cfg.Limits.MaxStreams) {
		var all longestSilent
		for i := range p.shards {
			p.shards[i].addLongestSilent(&all, newest)
		}
		order := [...]standing{hasEnded, isNew, hasReturned, isProven}
		if unproven := all[isNew].count + all[hasReturned].count; unproven <= p.cfg.Limits.MaxStreams/provenPart {
			order = [...]standing{hasEnded, isProven, isNew, hasReturned}
		}
		i := slices.IndexFunc(order[:], func(of standing) bool { return all[of].in != nil })
		if i < 0 {
			return
		}
		first := all[order[i]]
		f := p.fresh(ctx)
		first.in.endIfThere(first.id, callevent.CauseLimit, f)
		p.telemetry.ProcessorStackPairingShedStreams.Add(ctx, 1, p.telemetry.bounds[boundMaxStreams])
		p.handOn(ctx, f)
	}
}
