// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"container/heap"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/pairing"
)

// streams has all call streams. It accepts their batches, delivers the spans of finished calls,
// and keeps memory and the number of streams below their bounds. It knows no life cycle.
//
// The goroutine of a caller does the work, and owns a stream while it holds the lock of its
// shard.
type streams struct {
	cfg       *Config
	telemetry *telemetry
	logger    *zap.Logger
	// burst logs the first of many like messages.
	burst *zap.Logger

	clock    *clock
	settings pairing.Settings
	// sums is nil if calls are not summed.
	sums     Sums
	accounts accounts
	shards   [shardCount]shard
	delivery delivery
	lost     losses

	// maxBytes bounds the memory of streams. reserved is for calls under way.
	maxBytes int64
	reserved atomic.Int64
	// bounding is held while streams are brought below maxBytes.
	bounding sync.Mutex
	// deciding is held while the undecided calls are brought below their bound.
	deciding sync.Mutex
	memory   memory

	// spare and batches are memory to use again.
	spare, batches      sync.Pool
	warnBelowResolution func()
	unmet               unmet
}

// burstInterval is the interval between two log lines of the same cause.
const burstInterval = 10 * time.Second

// BurstLogger returns a logger that logs the first of many like messages.
func BurstLogger(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, burstInterval, 1, 0)
	}))
}

// init sets up streams that deliver to the next component. life ends at the shutdown
// timeout.
func (s *streams) init(set *Settings, cfg *Config, roots func(string) bool, clock *clock, next nextComponent, life context.Context) {
	logger := set.Logger
	s.cfg, s.logger, s.clock, s.telemetry = cfg, logger, clock, newTelemetry(set)
	s.burst = BurstLogger(logger)
	s.settings, s.sums = cfg.pairing(roots), set.Sums
	s.settings.Sums, s.settings.SumsOnly, s.settings.Keep = set.SumSettings, set.SumsOnly, set.Keep
	if set.Keep != nil {
		set.Keep.Now = clock.now
	}
	s.maxBytes = int64(cfg.Reorder.MaxMiB) << 20
	s.accounts.telemetry = s.telemetry
	for i := range s.shards {
		s.shards[i].settings, s.shards[i].accounts = &s.settings, &s.accounts
		s.shards[i].shown, s.shards[i].sums = cfg.SpanAttributes, set.Sums
		s.shards[i].states = tracestatesOf(set.Keep)
		s.shards[i].mu = newTimedMutex()
		s.shards[i].streams = map[callevent.StreamID]*stream{}
	}
	again := next
	if set.Sums != nil {
		again.clock = nil
	}
	s.delivery = delivery{
		next: next, again: again, clock: clock, maxBytes: cfg.Limits.MaxHeldMiB << 20,
		life: life, offering: make(chan struct{}, 1), goesOn: set.Sums != nil,
		dropped: s.dropped,
		isFull:  func() bool { return s.excess() > 0 },
		holding: func(change int) { s.telemetry.HeldSpans.Add(context.Background(), int64(change)) },
	}
	s.spare.New = func() any { return new(finished) }
	s.batches.New = func() any { return new(callevent.Batch) }
	s.warnBelowResolution = sync.OnceFunc(func() {
		logger.Warn("min_duration is below the resolution of a traced program's clock, so chance decides which short calls are left out",
			zap.Duration("min_duration", cfg.MinDuration))
	})
}

// reserve reserves memory for the events of the batches. A single call always has room.
func (s *streams) reserve(batches []carrier) (room int64, ok bool) {
	for _, c := range batches {
		data, found := c.span.Attributes().Get(callevent.AttributeData)
		if found && data.Type() == pcommon.ValueTypeBytes {
			room += 2 * int64(data.Bytes().Len())
		}
	}
	if sum := s.reserved.Add(room); sum > room && (sum > s.maxBytes || s.excess() > 0) {
		s.reserved.Add(-room)
		s.excess() // the refused call needs no memory of others
		return 0, false
	}
	return room, true
}

// accept passes one batch to its stream and delivers the finished calls.
func (s *streams) accept(ctx context.Context, c carrier) {
	batch := s.batches.Get().(*callevent.Batch)
	defer s.batches.Put(batch)
	data, err := callevent.Data(c.span)
	if err == nil {
		err = batch.Unpack(data)
	}
	if err != nil {
		s.telemetry.CorruptBatches.Add(ctx, 1)
		if line := s.burst.Check(zap.WarnLevel, "Dropped a batch of call events that cannot be read"); line != nil {
			resource := c.resource.Resource().Attributes()
			line.Write(peer(ctx), shortText(resource, attributeService), shortText(resource, attributeInstance), zap.Error(err))
		}
		return
	}
	s.telemetry.Batches.Add(ctx, 1)
	if callevent.HasNeeds(c.span) {
		s.unmet.check(c.span, s.cfg, s.clock.now(), s.logger)
	}
	f := s.fresh(ctx)
	s.shardOf(batch.Stream).accept(batch, c, client.FromContext(ctx), s.clock.now(), f)
	s.deliverAndReuse(ctx, f)
	s.boundStreams(ctx, batch.Stream)
	s.boundUndecided(ctx)
}

// deliverAndReuse delivers the finished calls of one stream for the client that sent it, logs
// its losses, and reuses f. The sums go first, because the next component can block.
func (s *streams) deliverAndReuse(ctx context.Context, f *finished) {
	if f.Counters.BelowResolution {
		s.warnBelowResolution()
	}
	if f.Counters.Missing+f.Counters.Late > 0 {
		s.burst.Warn("Call events did not arrive in time, so calls around them are truncated. If this repeats, raise reorder.max_wait and reorder.max_events, or find where batches are delayed or lost",
			zap.Uint64("missing", f.Counters.Missing), zap.Uint64("late", f.Counters.Late))
	}
	f.deliverSums()
	if f.isPassing {
		s.accounts.passing.Add(-1)
	}
	s.deliver(ctx, f)
	s.reuse(f)
}

func (s *streams) deliverAll(ctx context.Context, all []*finished) {
	for _, f := range all {
		s.deliverAndReuse(ctx, f)
	}
}

// deliver delivers the calls in f, at most maxSpansPerCall in one call. If one step finishes
// more, deliver runs during that step, which bounds the memory. Other streams of the shard
// wait meanwhile.
func (s *streams) deliver(ctx context.Context, f *finished) {
	if len(f.Calls) == 0 {
		return
	}
	delay := time.Since(time.Unix(0, f.Calls[0].End))
	s.telemetry.Delay.Record(ctx, max(delay.Seconds(), 0))
	if f.unheld && s.delivery.spans.Load() > 0 {
		s.dropped(len(f.Calls), memoryBudget, s.delivery.whyHeld())
		f.ClearCalls()
		return
	}
	if f.origin.sums.to != nil {
		f.origin.sums.to.Kept(&f.Output, &f.origin.identity)
	}
	ctx = client.NewContext(ctx, f.client)
	for spans := f.Calls; len(spans) > 0; {
		part := spans[:f.fitting(spans)]
		s.delivery.deliver(ctx, func() ptrace.Traces { return f.origin.traces(part, &f.Output) })
		spans = spans[len(part):]
	}
	f.ClearCalls()
}

func (s *streams) dropped(spans int, reason dropReason, err error) {
	s.telemetry.DroppedSpans.Add(context.Background(), int64(spans), s.telemetry.reasons[reason])
	if reason == atShutdown {
		s.lost.add(spans, err)
		return
	}
	s.burst.Error(messageDropped, zap.Int("spans", spans), zap.String("reason", string(reason)), zap.Error(err))
}

const messageDropped = "Dropped finished spans"

// losses are the spans that a shutdown drops. They have one log line, which no other one hides.
type losses struct {
	mu    sync.Mutex
	spans int
	// why is the first error that refused some.
	why error
}

func (l *losses) add(spans int, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spans += spans; l.why == nil {
		l.why = why
	}
}

func (l *losses) log(logger *zap.Logger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spans > 0 {
		logger.Error(messageDropped, zap.Int("spans", l.spans), zap.String("reason", string(atShutdown)), zap.Error(l.why))
	}
}

// fresh returns an empty output. If it gets full, its spans are delivered with ctx.
func (s *streams) fresh(ctx context.Context) *finished {
	f := s.spare.Get().(*finished)
	f.MaxCalls = maxSpansPerCall
	f.Full = func() { s.deliver(ctx, f) }
	return f
}

func (s *streams) reuse(f *finished) {
	f.origin, f.client, f.Full, f.unheld, f.isPassing = nil, client.Info{}, nil, false, false
	f.Reset()
	s.spare.Put(f)
}

func (s *streams) shardIndex(id callevent.StreamID) uint64 {
	return binary.LittleEndian.Uint64(id[8:]) % shardCount
}

func (s *streams) shardOf(id callevent.StreamID) *shard { return &s.shards[s.shardIndex(id)] }

// expire gives up overdue events. Events of a hand-over under way are not overdue, and while
// hand-overs are refused the clock stands still.
func (s *streams) expire(ctx context.Context) {
	if s.delivery.refuses(ctx) {
		return
	}
	now := s.clock.settledUntil()
	fresh := func() *finished { return s.fresh(ctx) }
	for i := range s.shards {
		s.deliverAll(ctx, s.shards[i].expire(now, s.cfg.IdleTimeout, fresh))
	}
	s.boundMemory(ctx, s.maxBytes)
}

// offerUntil offers the held spans until they are accepted or ctx is done.
func (s *streams) offerUntil(ctx context.Context) {
	for s.delivery.offerHeld(ctx) != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(tickInterval):
		}
	}
}

// boundMemory keeps the memory of all streams below most bytes, and that of the engine within
// the memory budget of the process:
//
//  1. It frees memory that is not in use.
//  2. The stream with the most memory gives up its oldest gaps. Undecided calls count only for
//     the memory budget. Then the stream decides its traces first.
//  3. If nothing waits in it, it forgets its names and open frames instead. Other streams do
//     not pay for it, even if events wait in them.
//
// It runs after a batch was accepted, because the batch may be the missing one. Other callers
// wait meanwhile, because finished spans have to be delivered before more is accepted.
func (s *streams) boundMemory(ctx context.Context, most int64) {
	if over, _ := s.over(most); over <= 0 {
		return
	}
	s.bounding.Lock()
	defer s.bounding.Unlock()
	if over, _ := s.over(most); over > 0 {
		for i := range s.shards {
			s.shards[i].spare()
		}
	}
	for {
		over, by := s.over(most)
		if over <= 0 {
			return
		}
		before, waited := s.accounts.bytes.Load(), s.accounts.waiting.Load()
		sh, id := s.largest(by)
		if sh == nil {
			return
		}
		s.makeRoom(ctx, sh, id, by, over)
		if s.accounts.bytes.Load() >= before && s.accounts.waiting.Load() >= waited {
			return
		}
	}
}

// over returns the bytes that the streams have to free, and the bound that demands it. Held
// spans and reserved memory reduce the share of the streams to no less than half.
func (s *streams) over(most int64) (bytes int64, by bound) {
	streams := s.accounts.bytes.Load()
	bytes, by = streams-most, boundMaxMiB
	if keep := s.settings.Keep; keep != nil {
		// Calls that wait for a decision have their own bound.
		bytes -= keep.HeldBytes()
	}
	if excess := s.excess(); excess > 0 {
		allowed := s.held() - excess
		if owed := min(excess, streams-allowed/2); owed > bytes {
			bytes, by = owed, boundBudget
		}
	}
	return bytes, by
}

// makeRoom frees memory of a stream.
func (s *streams) makeRoom(ctx context.Context, in *shard, id callevent.StreamID, by bound, over int64) {
	f := s.fresh(ctx)
	if by == boundBudget {
		// Others need the memory now, so the spans must not wait long for the next component.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.ShutdownTimeout)
		defer cancel()
		f.Full, f.unheld = func() { s.deliver(ctx, f) }, true
	}
	held := in.freeMemory(id, by, f)
	s.telemetry.ShedStreams.Add(ctx, 1, s.telemetry.bounds[by])
	if line := s.burst.Check(zap.WarnLevel, "Call streams hold too much memory: the largest one gave up its oldest gap, or its names and open calls"); line != nil {
		line.Write(zap.String("bound", string(by)), zap.Stringer("stream", id), zap.Int64("stream_bytes", held), zap.Int64("excess_bytes", over),
			zap.String("remedy", remedies[by]))
	}
	s.deliverAndReuse(ctx, f)
}

// remedies are for the operator.
var remedies = map[bound]string{
	boundMaxMiB: "raise reorder.max_mib, or trace less",
	boundBudget: "raise limit_mib of the extension memory_budget, or trace less",
}

// largest finds the stream with the most memory under a bound.
func (s *streams) largest(by bound) (in *shard, id callevent.StreamID) {
	var most int64
	for i := range s.shards {
		if found, n := s.shards[i].largest(by); n > most {
			in, id, most = &s.shards[i], found, n
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
func (s *streams) boundStreams(ctx context.Context, newest callevent.StreamID) {
	for s.accounts.streams.Load() > int64(s.cfg.Limits.MaxStreams) {
		var all longestSilent
		for i := range s.shards {
			s.shards[i].addLongestSilent(&all, newest)
		}
		order := [...]standing{hasEnded, isNew, hasReturned, isProven}
		if unproven := all[isNew].count + all[hasReturned].count; unproven <= s.cfg.Limits.MaxStreams/provenPart {
			order = [...]standing{hasEnded, isProven, isNew, hasReturned}
		}
		i := slices.IndexFunc(order[:], func(of standing) bool { return all[of].in != nil })
		if i < 0 {
			return
		}
		first := all[order[i]]
		f := s.fresh(ctx)
		first.in.endIfThere(first.id, callevent.CauseLimit, f)
		s.telemetry.ShedStreams.Add(ctx, 1, s.telemetry.bounds[boundMaxStreams])
		s.deliverAndReuse(ctx, f)
	}
}

// decidedShare is the part of the bound of undecided calls, one of so many, that boundUndecided frees.
// It looks at all streams once for that, and not for each hand-over.
const decidedShare = 8

// boundUndecided decides traces early if too many calls wait: of all streams, first the trace whose first waiting call ended
// first, by the engine's clock. Of traces with the same time any one is first. Other callers wait meanwhile, because memory has to
// be freed before more is accepted.
func (s *streams) boundUndecided(ctx context.Context) {
	keep := s.settings.Keep
	if keep == nil || keep.Excess() == 0 {
		return
	}
	s.deciding.Lock()
	defer s.deciding.Unlock()
	if keep.Excess() == 0 {
		return
	}
	enough := func() bool { return keep.HeldBytes() <= keep.MaxBytes-keep.MaxBytes/decidedShare }
	var all undecidedStreams
	for i := range s.shards {
		all = s.shards[i].appendUndecided(all)
	}
	heap.Init(&all)
	for len(all) > 0 && !enough() {
		oldest := &all[0]
		f := s.fresh(ctx)
		var waits bool
		oldest.since, waits = oldest.in.decideUntil(oldest.id, all.second(), enough, f)
		if waits {
			heap.Fix(&all, 0)
		} else {
			heap.Pop(&all)
		}
		s.deliverAndReuse(ctx, f)
	}
}

// undecidedStreams are streams with traces that are not decided, as a heap by the time since which their
// oldest ones wait.
type undecidedStreams []undecidedStream

type undecidedStream struct {
	in    *shard
	id    callevent.StreamID
	since time.Duration
}

func (u undecidedStreams) Len() int           { return len(u) }
func (u undecidedStreams) Less(i, j int) bool { return u[i].since < u[j].since }
func (u undecidedStreams) Swap(i, j int)      { u[i], u[j] = u[j], u[i] }
func (u *undecidedStreams) Push(x any)        { *u = append(*u, x.(undecidedStream)) }
func (u *undecidedStreams) Pop() any {
	last := len(*u) - 1
	x := (*u)[last]
	*u = (*u)[:last]
	return x
}

// second is the time since which the second oldest waits.
func (u undecidedStreams) second() time.Duration {
	since := time.Duration(math.MaxInt64)
	for i := 1; i < min(len(u), 3); i++ {
		since = min(since, u[i].since)
	}
	return since
}

// PassSums passes the growth of all sums on to Settings.Sums. Each stream waits while its values
// are copied. It waits for no delivery: streams that wait for one keep their growth. Then it reports false: calls that
// SourceSums.Kept has received are not in the sums yet.
func (s *streams) PassSums() (all bool) {
	all = true
	for i := range s.shards {
		all = s.shards[i].takeSums() && all
	}
	return all && s.accounts.passing.Load() == 0
}

// giveWay frees memory at each demand of the budget, until stopped is closed. The timers do not do
// that, because they may wait for the next component.
func (s *streams) giveWay(ctx context.Context, stopped <-chan struct{}) {
	defer close(s.memory.done)
	for {
		select {
		case <-stopped:
			return
		case <-s.memory.asked:
			if s.sums != nil {
				s.sums.GiveWay()
			}
			s.boundMemory(ctx, math.MaxInt64)
		}
	}
}

// endAll ends all streams, except those that isDeaf excludes: see shard.end.
func (s *streams) endAll(ctx context.Context, cause callevent.Cause, isDeaf bool) {
	fresh := func() *finished { return s.fresh(ctx) }
	for i := range s.shards {
		s.deliverAll(ctx, s.shards[i].end(cause, isDeaf, fresh))
	}
}

// held is the memory of all streams, held spans, calls under way and sums, in bytes.
func (s *streams) held() int64 {
	held := s.accounts.bytes.Load() + s.delivery.heldBytes.Load() + s.reserved.Load()
	if s.sums != nil {
		held += s.sums.Bytes()
	}
	return held
}

// excess reports the memory to the budget, and returns the bytes to free.
func (s *streams) excess() int64 { return s.memory.excess(s.held()) }
