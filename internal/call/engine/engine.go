// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callsum"
	"github.com/callbraid/callbraid/internal/call/pairing"
	"github.com/callbraid/callbraid/internal/call/pairingmark"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/nesting"
)

// Engine is a component of stack_pairing: the life cycle of its streams, its timers, and the answer to each
// hand-over. Its only goroutines run the timers, free memory, and offer held spans if it has sums.
type Engine struct {
	streams
	id   component.ID
	next consumer.Traces

	// stopped ends the goroutines after the deliveries that they have begun, and cancel cancels these. ticked is closed
	// when the timers have ended, and offered when no goroutine offers held spans any more. All are nil until Start.
	stopped  chan struct{}
	cancel   context.CancelFunc
	ticked   chan struct{}
	offered  chan struct{}
	shutdown sync.Once

	// calls is held for reading by each hand-over. closed: no further hand-over is accepted.
	calls  sync.RWMutex
	closed atomic.Bool
	// endLife ends every call to the next component, and all waiting. endBegun ends only the calls that have begun.
	endLife, endBegun context.CancelFunc
	farewell          farewell
}

// callPatience is the time of a call to the next component after which the clock stands still.
// It is enough for a call that only queues. A gap that closes makes many calls, and missing
// events may wait behind all of them.
const callPatience = 10 * time.Millisecond

// Settings are what a component of stack_pairing gives to its engine.
type Settings struct {
	ID          component.ID
	Logger      *zap.Logger
	Instruments Instruments
	// Next accepts the spans of finished calls, and spans that are no batches.
	Next consumer.Traces
	// SumsOnly: finished calls become no spans.
	SumsOnly bool
	// Keep selects the traces that become spans; nil: all do.
	Keep *pairing.Keep
	// Sums receives the sums of calls, as SumSettings say. Both are nil if calls are not summed.
	Sums        Sums
	SumSettings *callsum.Settings
	// Selection are the own metrics of Keep. It is nil without Keep.
	Selection *SelectionInstruments
}

// New returns an engine that has not started. An error names the setting of cfg that is wrong.
func New(set Settings, cfg *Config) (*Engine, error) {
	roots, err := compileRoots(cfg.TraceRoots)
	if err != nil {
		return nil, err
	}
	clock := newClock(callPatience)
	life, endLife := context.WithCancel(context.Background())
	begun, endBegun := context.WithCancel(life)
	e := &Engine{id: set.ID, endLife: endLife, endBegun: endBegun}
	next := nextComponent{set.Next, clock, begun, life, &e.farewell}
	e.next = next
	e.init(&set, cfg, roots, clock, next, life)
	return e, nil
}

// Capabilities: an engine never changes a hand-over.
func (e *Engine) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// Start starts the timers, and opens the account of the memory budget.
func (e *Engine) Start(_ context.Context, host component.Host) error {
	var ctx context.Context
	ctx, e.cancel = context.WithCancel(context.Background())
	e.stopped, e.ticked, e.offered = make(chan struct{}), make(chan struct{}), make(chan struct{})
	e.memory.open(budget.Of(host), e.id.String())
	go e.tick(ctx)
	go e.offer(ctx)
	go e.giveWay(ctx, e.stopped)
	return nil
}

// Shutdown refuses further hand-overs, waits for those under way, and ends all streams. It
// offers all held and finished spans until the shutdown timeout. The rest is dropped, counted and
// logged. With sums, the account of the memory budget stays open until CloseAccount.
//
// It leaves a call of the next component that does not return within [Overtime] after that, and returns an error. The streams
// whose step is in such a call do not end.
func (e *Engine) Shutdown(ctx context.Context) (err error) {
	e.shutdown.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, e.cfg.ShutdownTimeout)
		defer cancel()
		defer context.AfterFunc(ctx, e.endLife)()
		e.closed.Store(true)
		e.farewell.hasBegun.Store(true)
		e.finish(ctx)

		// Held spans go first, while there is time.
		e.offerUntil(ctx)
		e.endAll(ctx, callevent.CauseShutdown, e.farewell.isDeaf.Load())
		e.offerUntil(ctx)
		e.delivery.dropHeld(atShutdown)
		if e.farewell.isDeaf.Load() {
			e.delivery.leave()
			err = fmt.Errorf("expected components of traces pipelines to return within %v after shutdown_timeout: one has not, and %d call streams still wait for it", Overtime, e.accounts.streams.Load())
		}
		e.lost.log(e.logger)
		if e.sums == nil {
			e.CloseAccount()
		} else {
			e.excess()
		}
	})
	return err
}

// finish ends the goroutines, and waits for hand-overs under way. The next component may have stored the spans of a cancelled
// delivery, and would get them again. So deliveries that have begun have three quarters of the time until the deadline of ctx.
// Then they are cancelled, and their spans are held. The rest of the time is for these and other spans.
func (e *Engine) finish(ctx context.Context) {
	deadline, _ := ctx.Deadline()
	defer e.delivery.isEnding.Store(false)
	defer time.AfterFunc(time.Until(deadline)/4*3, func() {
		e.delivery.isEnding.Store(true)
		e.endBegun()
		if e.cancel != nil {
			e.cancel()
		}
	}).Stop()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		if e.stopped != nil {
			close(e.stopped)
			<-e.ticked
			<-e.offered
			<-e.memory.done
			e.cancel()
		}
		e.calls.Lock()
		defer e.calls.Unlock()
	}()
	if !EndsInTime(ctx, finished) {
		e.farewell.isDeaf.Store(true)
	}
}

// CloseAccount closes the account of the memory budget, after the last sums.
func (e *Engine) CloseAccount() { e.memory.close() }

// tick runs the timers until the stop.
func (e *Engine) tick(ctx context.Context) {
	defer close(e.ticked)
	ticker := time.NewTicker(tickInterval)
	defer ticker.Stop()
	defer e.clock.tick(false)
	e.clock.tick(true)
	for {
		select {
		case <-e.stopped:
			return
		case <-ticker.C:
			e.clock.tick(true)
			e.expire(ctx)
		}
	}
}

// offer offers held spans until the stop, if hand-overs go on meanwhile. The timers do not do that, because the
// next component may block.
func (e *Engine) offer(ctx context.Context) {
	defer close(e.offered)
	if !e.delivery.goesOn {
		return
	}
	ticker := time.NewTicker(tickInterval)
	defer ticker.Stop()
	for {
		select {
		case <-e.stopped:
			return
		case <-ticker.C:
			_ = e.delivery.offerHeld(ctx)
		}
	}
}

// ConsumeTraces accepts a hand-over, or refuses all of it. It refuses one with an attribute that
// is nested too deep, with a permanent error: copying and holding it would recurse over it.
//
// The mark in ctx shows the receiver that its batches reach stack_pairing, accepted or not.
func (e *Engine) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	pairingmark.Set(ctx)
	if !e.calls.TryRLock() { // only a shutdown locks calls
		return errShutdown
	}
	defer e.calls.RUnlock()
	if e.closed.Load() {
		return errShutdown
	}
	if err := nesting.Traces(td, e.cfg.Limits.MaxAttributeDepth); err != nil {
		return e.refuseNested(ctx, err)
	}
	defer e.clock.handoverDone(e.clock.handoverBegun())
	return e.acceptAll(ctx, td)
}

// acceptAll accepts a hand-over, or refuses all of it:
//
//	(a) It delivers held spans. If they are refused again, it refuses the call. With sums it does
//	    that only if there is no room for more held spans. Otherwise a goroutine delivers them.
//	(b) It reserves room for all batches, or refuses the call.
//	(c) It passes on spans that are not batches. If they are refused, it refuses the call.
//	(d) It accepts all batches. It drops one that it cannot unpack.
//	(e) It delivers the finished spans. It holds those that are refused.
//
// It is not part of ConsumeTraces because the compiler inlines deferred calls only in functions
// with few of them and few returns. The others cost much of a small hand-over.
func (e *Engine) acceptAll(ctx context.Context, td ptrace.Traces) error {
	batches, others := split(td)
	if err := e.delivery.ready(ctx); err != nil {
		e.telemetry.RefusedCalls.Add(ctx, 1)
		// Not wrapped: the error may name a part of the held spans, and the caller would read
		// that as a part of td.
		return fmt.Errorf("finished spans are held because the next component refuses them: %v", err)
	}
	if len(batches) == 0 {
		return e.next.ConsumeTraces(ctx, td)
	}
	room, ok := e.reserve(batches)
	if !ok {
		e.telemetry.RefusedCalls.Add(ctx, 1)
		return errNoRoom
	}
	defer e.reserved.Add(-room)
	if others > 0 {
		if err := e.next.ConsumeTraces(ctx, without(td, callevent.Carries)); err != nil {
			return withBatches(err, td)
		}
	}
	for _, c := range batches {
		e.accept(ctx, c)
		// One batch of a call may be what another waits for.
		e.boundMemory(ctx, e.maxBytes+room)
	}
	e.boundMemory(ctx, e.maxBytes)
	return nil
}

// refuseNested counts and logs a hand-over that is nested too deep, and returns its error. It
// is permanent, because sending the same again does not help.
func (e *Engine) refuseNested(ctx context.Context, err error) error {
	e.telemetry.NestedCalls.Add(ctx, 1)
	e.burst.Warn("Refused data with an attribute that is nested too deep. If the sender is honest, raise limits.max_attribute_depth",
		peer(ctx), zap.Error(err))
	return consumererror.NewPermanent(fmt.Errorf("%w: flatten the attribute, or raise limits.max_attribute_depth of stack_pairing", err))
}
