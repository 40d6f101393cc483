// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/pairingmark"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/nesting"
	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor/internal/metadata"
)

// pairer is the processor: the life cycle of an engine, its timers, and the answer to each
// hand-over. Its only goroutines run the timers and free memory.
type pairer struct {
	engine
	id   component.ID
	next consumer.Traces

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
	p := &pairer{id: set.ID, endLife: endLife, next: nextComponent{next, clock, life}}
	p.init(cfg, set.Logger, builder, roots, clock, p.next, life)
	return p, nil
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
		p.endAll(ctx, callevent.CauseShutdown)
		p.offerUntil(ctx)
		p.delivery.dropHeld(atShutdown)
		p.memory.close()
		p.telemetry.Shutdown()
	})
	return nil
}

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

// ConsumeTraces accepts a hand-over, or refuses all of it. It refuses one with an attribute that
// is nested too deep, with a permanent error: copying and holding it would recurse over it.
//
// The mark in ctx shows the receiver that its batches reach stack_pairing, accepted or not.
func (p *pairer) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	pairingmark.Set(ctx)
	p.calls.RLock()
	defer p.calls.RUnlock()
	if p.closed {
		return errShutdown
	}
	if err := nesting.Traces(td, p.cfg.Limits.MaxAttributeDepth); err != nil {
		return p.refuseNested(ctx, err)
	}
	defer p.clock.handoverDone(p.clock.handoverBegun())
	return p.acceptAll(ctx, td)
}

// acceptAll accepts a hand-over, or refuses all of it:
//
//	(a) It delivers held spans. If they are refused again, it refuses the call.
//	(b) It reserves room for all batches, or refuses the call.
//	(c) It passes on spans that are not batches. If they are refused, it refuses the call.
//	(d) It accepts all batches. It drops one that it cannot unpack.
//	(e) It delivers the finished spans. It holds those that are refused.
//
// It is not part of ConsumeTraces because the compiler inlines deferred calls only in functions
// with few of them and few returns. The others cost much of a small hand-over.
func (p *pairer) acceptAll(ctx context.Context, td ptrace.Traces) error {
	batches, others := split(td)
	if err := p.delivery.offerHeld(ctx); err != nil {
		p.telemetry.ProcessorStackPairingRefusedCalls.Add(ctx, 1)
		// Not wrapped: the error may name a part of the held spans, and the caller would read
		// that as a part of td.
		return fmt.Errorf("finished spans are held because the next component refuses them: %v", err)
	}
	if len(batches) == 0 {
		return p.next.ConsumeTraces(ctx, td)
	}
	room, ok := p.reserve(batches)
	if !ok {
		p.telemetry.ProcessorStackPairingRefusedCalls.Add(ctx, 1)
		return errNoRoom
	}
	defer p.reserved.Add(-room)
	if others > 0 {
		if err := p.next.ConsumeTraces(ctx, without(td, callevent.Carries)); err != nil {
			return withBatches(err, td)
		}
	}
	for _, c := range batches {
		p.accept(ctx, c)
		// One batch of a call may be what another waits for.
		p.lighten(ctx, p.maxBytes+room)
	}
	p.lighten(ctx, p.maxBytes)
	return nil
}

// refuseNested counts and logs a hand-over that is nested too deep, and returns its error. It
// is permanent, because sending the same again does not help.
func (p *pairer) refuseNested(ctx context.Context, err error) error {
	p.telemetry.ProcessorStackPairingNestedCalls.Add(ctx, 1)
	p.burst.Warn("Refused a hand-over with an attribute that is nested too deep. If the sender is honest, raise limits.max_attribute_depth",
		peer(ctx), zap.Error(err))
	return consumererror.NewPermanent(fmt.Errorf("%w: flatten the attribute, or raise limits.max_attribute_depth of stack_pairing", err))
}
