// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// bound is the reason why a stream had to free memory. Its text is the metric's attribute.
type bound string

const (
	boundMaxMiB     bound = "max_mib"
	boundBudget     bound = "memory_budget"
	boundMaxStreams bound = "max_streams"
)

// lighten keeps the memory of all streams below most bytes, and that of the processor within
// the memory budget of the process:
//
//  1. It frees memory that is not in use.
//  2. The stream with the most memory gives up its oldest gaps.
//  3. If nothing waits in it, it forgets its names and open frames instead. Other streams do
//     not pay for it, even if events wait in them.
//
// It runs after a batch was accepted, because the batch may be the missing one. Other callers
// wait meanwhile, because finished spans have to be delivered before more is accepted.
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

// over returns the bytes that the streams have to free, and the bound that demands it. Held
// spans and reserved memory reduce the share of the streams to no less than half.
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

// makeRoom frees memory of a stream.
func (p *pairer) makeRoom(ctx context.Context, in *shard, id callevent.StreamID, by bound, over int64) {
	f := p.fresh(ctx)
	if by == boundBudget {
		// Others need the memory now, so the spans must not wait long for the next component.
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

// remedies are for the operator.
var remedies = map[bound]string{
	boundMaxMiB: "raise reorder.max_mib, or trace less",
	boundBudget: "raise limit_mib of the extension memory_budget, or trace less",
}

// largest finds the stream with the most memory.
func (p *pairer) largest() (in *shard, id callevent.StreamID) {
	var most int64
	for i := range p.shards {
		if found, n := p.shards[i].largest(); n > most {
			in, id, most = &p.shards[i], found, n
		}
	}
	return in, id
}

// provenPart is the denominator of the part of limits.max_streams that is for streams that
// are not proven yet. Proven streams keep the rest.
const provenPart = 4

// boundStreams ends streams while there are too many:
//
//  1. Ended streams go first.
//  2. If more than a quarter of all are not proven, the longest silent one with the lowest
//     standing goes. So a flood of new streams makes room for itself.
//  3. Otherwise the longest silent proven stream goes. So silent streams do not keep new ones
//     out.
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
