// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/pairing"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor/internal/metadata"
)

// pairer is the processor. The goroutine of a hand-over does the work, and owns a stream while
// it holds the lock of its shard. The only other goroutines run the timers and free memory.
type pairer struct {
	id        component.ID
	cfg       *Config
	next      consumer.Traces
	telemetry *telemetry
	logger    *zap.Logger
	// burst logs the first of many like messages.
	burst *zap.Logger

	clock    *clock
	settings pairing.Settings
	accounts accounts
	shards   [shardCount]shard
	delivery delivery

	// maxBytes bounds the memory of streams. reserved is for calls under way.
	maxBytes int64
	reserved atomic.Int64
	// lightening is held while streams are brought below maxBytes.
	lightening sync.Mutex
	memory     memory

	// spare and batches are memory to be used again.
	spare, batches      sync.Pool
	warnBelowResolution func()
	unmet               unmet

	// stop ends the timers, and ticked is closed when they have ended. Both are
	// nil until Start.
	stop     context.CancelFunc
	ticked   chan struct{}
	shutdown sync.Once

	// calls is held for reading by each hand-over. closed is set under calls: no further
	// hand-over is accepted.
	calls  sync.RWMutex
	closed bool
	// endLife ends every call to the next component, and all waiting.
	endLife context.CancelFunc
}

// callPatience is the time of a call to the next component after which the clock stands still.
// It is enough for a call that only queues. A gap that closes makes many calls, and missing
// events may wait behind all of them.
const callPatience = 10 * time.Millisecond

// burstInterval is the interval between two log lines of the same cause.
const burstInterval = 10 * time.Second

func newPairer(set processor.Settings, cfg *Config, next consumer.Traces) (*pairer, error) {
	builder, err := metadata.NewTelemetryBuilder(ownmetrics.Of(component.KindProcessor, set.ID, set.TelemetrySettings))
	if err != nil {
		return nil, err
	}
	roots, err := compileRoots(cfg.TraceRoots)
	if err != nil {
		return nil, err
	}
	clock := newClock(callPatience)
	life, endLife := context.WithCancel(context.Background())
	next = nextComponent{next, clock, life}
	p := &pairer{
		id:        set.ID,
		endLife:   endLife,
		cfg:       cfg,
		next:      next,
		telemetry: newTelemetry(builder),
		logger:    set.Logger,
		burst: set.Logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
			return zapcore.NewSamplerWithOptions(core, burstInterval, 1, 0)
		})),
		clock:    clock,
		settings: cfg.pairing(roots),
		maxBytes: int64(cfg.Reorder.MaxMiB) << 20,
	}
	p.accounts.telemetry = p.telemetry
	for i := range p.shards {
		p.shards[i].settings, p.shards[i].accounts = &p.settings, &p.accounts
		p.shards[i].shown = cfg.SpanAttributes
		p.shards[i].streams = map[callevent.StreamID]*stream{}
	}
	p.delivery = delivery{
		next: next, clock: p.clock, maxBytes: cfg.Limits.MaxHeldMiB << 20,
		life: life, offering: make(chan struct{}, 1),
		dropped: p.dropped,
		isFull:  func() bool { return p.memory.excess(p) > 0 },
		holding: func(change int) { p.telemetry.ProcessorStackPairingHeldSpans.Add(context.Background(), int64(change)) },
	}
	p.spare.New = func() any { return new(finished) }
	p.batches.New = func() any { return new(callevent.Batch) }
	p.warnBelowResolution = sync.OnceFunc(func() {
		p.logger.Warn("min_duration is below the resolution of a traced program's clock, so that clock decides by chance which short calls are left out",
			zap.Duration("min_duration", cfg.MinDuration))
	})
	return p, nil
}

// pairing returns the settings of package pairing.
func (c *Config) pairing(traceRoot func(string) bool) pairing.Settings {
	return pairing.Settings{
		MaxEvents: c.Reorder.MaxEvents, MaxWait: c.Reorder.MaxWait,
		MaxClockJump: c.MaxClockJump.Nanoseconds(),
		MaxFrames:    c.Limits.MaxFrames, MaxLanes: c.Limits.MaxLanes, MaxNameBytes: c.Limits.MaxNamesMiB << 20,
		MaxThrows: c.Limits.MaxExceptionsPerSpan, MaxSpansPerTrace: c.MaxSpansPerTrace, TraceRoot: traceRoot,
		MinDuration: c.MinDuration.Nanoseconds(), MaxDepth: c.MaxDepth,
		DropTruncated: c.Truncated == truncatedDrop,
	}
}

// Capabilities: the processor never changes a hand-over.
func (p *pairer) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// Start starts the timers, and opens the account of the memory budget.
func (p *pairer) Start(_ context.Context, host component.Host) error {
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	p.ticked = make(chan struct{})
	p.memory.open(budget.Of(host), p.id.String())
	go p.tick(ctx)
	go p.giveWay(ctx)
	return nil
}

// Shutdown refuses further hand-overs, waits for those under way, and ends all streams. It
// offers all held and finished spans until the shutdown timeout. The rest is dropped and
// counted.
func (p *pairer) Shutdown(ctx context.Context) error {
	p.shutdown.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, p.cfg.ShutdownTimeout)
		defer cancel()
		defer context.AfterFunc(ctx, p.endLife)()
		if p.stop != nil {
			p.stop()
			<-p.ticked
			<-p.memory.done
		}
		p.calls.Lock()
		p.closed = true
		p.calls.Unlock()

		// Held spans go first, while there is time.
		p.offerUntil(ctx)
		fresh := func() *finished { return p.fresh(ctx) }
		for i := range p.shards {
			p.handOnAll(ctx, p.shards[i].end(callevent.CauseShutdown, fresh))
		}
		p.offerUntil(ctx)
		p.delivery.dropHeld(atShutdown)
		p.memory.close()
		p.telemetry.Shutdown()
	})
	return nil
}

// offerUntil offers the held spans until they are accepted or ctx is done.
func (p *pairer) offerUntil(ctx context.Context) {
	for p.delivery.offerHeld(ctx) != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(tickInterval):
		}
	}
}

func (p *pairer) dropped(spans int, reason dropReason, err error) {
	p.telemetry.ProcessorStackPairingDroppedSpans.Add(context.Background(), int64(spans), p.telemetry.reasons[reason])
	p.burst.Error("Dropped finished spans", zap.Int("spans", spans), zap.String("reason", string(reason)), zap.Error(err))
}

func (p *pairer) shardIndex(id callevent.StreamID) uint64 {
	return binary.LittleEndian.Uint64(id[8:]) % shardCount
}

func (p *pairer) shardOf(id callevent.StreamID) *shard { return &p.shards[p.shardIndex(id)] }

// fresh returns an empty output. If it gets full, its spans are delivered with ctx.
func (p *pairer) fresh(ctx context.Context) *finished {
	f := p.spare.Get().(*finished)
	f.MaxCalls = maxSpansPerCall
	f.Full = func() { p.deliver(ctx, f) }
	return f
}

func (p *pairer) reuse(f *finished) {
	f.origin, f.client, f.Full, f.unheld = nil, client.Info{}, nil, false
	f.Reset()
	p.spare.Put(f)
}
