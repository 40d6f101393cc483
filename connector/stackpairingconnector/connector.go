// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/functionmetrics"
	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/metadata"
	"github.com/callbraid/callbraid/internal/call/callsum"
	"github.com/callbraid/callbraid/internal/call/engine"
	"github.com/callbraid/callbraid/internal/call/pairing"
	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
)

// pairer is the connector of a configuration, with all of its outputs. Its goroutine sends
// metrics and profiles by interval.
type pairer struct {
	cfg       *Config
	set       connector.Settings
	telemetry *metadata.TelemetryBuilder
	// forget removes it from the shared ones.
	forget func()
	// warnPaired warns once of a stack_pairing in front of the connector.
	warnPaired func()

	// The outputs. traces is nil without a pipeline of them.
	traces   consumer.Traces
	metrics  sender[pmetric.Metrics]
	profiles sender[pprofile.Profiles]

	// sums is nil without pipelines of metrics and of profiles. created is before all intervals, and has the monotonic clock.
	sums    *sums
	created time.Time
	engine  *engine.Engine

	// taking guards sent: when the sums were taken last.
	taking sync.Mutex
	sent   time.Time

	mu sync.Mutex
	// passing is the input that passes hand-overs on: that to traces, if there is one. The Collector
	// gives it data that the components behind it may change.
	passing *input
	// inputs is the number of inputs, and started the number of those that have started.
	inputs, started int
	// stopped makes the goroutine end after the messages that it sends, and cancel cancels these. done is closed
	// when it has ended. All are nil until all inputs have started.
	stopped, done chan struct{}
	cancel        context.CancelFunc
	stopping      sync.Once
}

func newPairer(set connector.Settings, cfg *Config, forget func()) (*pairer, error) {
	telemetry, err := metadata.NewTelemetryBuilder(ownmetrics.Of(component.KindConnector, set.ID, set.TelemetrySettings))
	if err != nil {
		return nil, err
	}
	p := &pairer{cfg: cfg, set: set, telemetry: telemetry, forget: forget}
	p.created = time.Now()
	p.sent = p.created
	p.warnPaired = sync.OnceFunc(func() {
		set.Logger.Warn("Another stack_pairing in front of this connector has made spans of calls, so this connector counts none of them. Remove it from the pipeline")
	})
	p.metrics.dropped = p.dropped(telemetry.ConnectorStackPairingDroppedPoints, "Dropped points of metrics", "points")
	p.profiles.dropped = p.dropped(telemetry.ConnectorStackPairingDroppedSamples, "Dropped samples of profiles", "samples")
	// Only the messages of one interval of metrics wait.
	p.metrics.maxBytes, p.profiles.maxBytes = math.MaxInt, cfg.Limits.MaxHeldMiB<<20
	return p, nil
}

// dropped returns a function that counts and logs dropped data.
func (p *pairer) dropped(counter metric.Int64Counter, message, unit string) func(int, dropReason, error) {
	logger := engine.BurstLogger(p.set.Logger)
	return func(n int, reason dropReason, err error) {
		counter.Add(context.Background(), int64(n), metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", string(reason)))))
		logger.Error(message, zap.Int(unit, n), zap.String("reason", string(reason)), zap.Error(err))
	}
}

// start starts the engine with the first input. The Collector starts the components behind an
// output before the input of that output, so the goroutine begins with the last input.
func (p *pairer) start(ctx context.Context, host component.Host) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started++
	if p.started == 1 {
		if err := p.startEngine(ctx, host); err != nil {
			return err
		}
	}
	if p.started == p.inputs {
		var life context.Context
		life, p.cancel = context.WithCancel(context.Background())
		p.stopped, p.done = make(chan struct{}), make(chan struct{})
		go p.sendByInterval(life)
	}
	return nil
}

func (p *pairer) startEngine(ctx context.Context, host component.Host) error {
	metrics, profiles := p.metrics.isConnected(), p.profiles.isConnected()
	for signal, settings := range p.cfg.withoutPipeline(p.traces != nil, metrics, profiles) {
		p.set.Logger.Warn("Settings have no effect, because the connector is no receiver of a pipeline of this signal. Add it to the receivers of one, or remove the settings",
			zap.String("signal", signal), zap.Strings("settings", settings))
	}
	if settings := p.cfg.withoutKeep(); p.traces != nil && len(settings) > 0 {
		p.set.Logger.Warn("Settings have no effect, because no call waits without keep and fold_repeated. Set one of these two, or remove the settings",
			zap.Strings("settings", settings))
	}
	set := engine.Settings{ID: p.set.ID, Logger: p.set.Logger, Instruments: instruments(p.telemetry), Next: p.traces}
	if metrics || profiles {
		p.sums = newSums(p.cfg, metrics, profiles, p.telemetry.ConnectorStackPairingMemory)
		p.metrics.holding, p.profiles.holding = p.sums.hold, p.sums.hold
		p.metrics.answered = p.sums.noteAnswered
		p.sums.folded = folded(p.telemetry.ConnectorStackPairingFoldedCalls, p.set.Logger)
		set.Sums = p.sums
		set.SumSettings = &callsum.Settings{
			By: summedBy(metrics, profiles), ByThread: p.cfg.Profiles.ByThread, MaxPaths: int64(p.cfg.Profiles.MaxPaths),
		}
	}
	if p.traces == nil {
		set.Next = &ignored{p.telemetry}
		set.SumsOnly = true
	} else if keep := p.cfg.keptTraces(); keep != nil {
		set.Keep, set.Selection = p.cfg.keep(keep), selectionInstruments(p.telemetry)
	}
	var err error
	if p.engine, err = engine.New(set, p.cfg.engine()); err != nil {
		return err
	}
	return p.engine.Start(ctx, host)
}

// shutdown ends all streams. It delivers their spans and sums until the shutdown timeout. The engine comes
// first: the sender may be in a component that does not return. An error names such a component.
func (p *pairer) shutdown(ctx context.Context) (err error) {
	p.stopping.Do(func() {
		p.forget()
		defer p.telemetry.Shutdown()
		inTime, cancel := context.WithTimeout(ctx, p.cfg.ShutdownTimeout)
		defer cancel()
		if p.done != nil {
			defer p.stop(inTime)()
		}
		if p.engine == nil {
			return
		}
		if err = p.shutdownEngine(inTime); err != nil && p.sums != nil {
			// The engine took longer than its half, and the sums still have theirs.
			inTime, cancel = context.WithTimeout(ctx, p.cfg.ShutdownTimeout/2)
			defer cancel()
		}
		err = errors.Join(err, p.sendLast(inTime))
		p.engine.CloseAccount()
	})
	return err
}

// stop makes the goroutine end. A canceled message may have arrived, and would be sent again. So the messages that
// the goroutine sends have three quarters of the time, and the last ones at least a quarter. The returned function
// cancels the former.
func (p *pairer) stop(ctx context.Context) context.CancelFunc {
	p.metrics.isStopped.Store(true)
	p.profiles.isStopped.Store(true)
	close(p.stopped)
	ctx, cancel := context.WithTimeout(ctx, p.cfg.ShutdownTimeout/4*3)
	context.AfterFunc(ctx, p.cancel)
	return cancel
}

// shutdownEngine leaves half of the time for the sums.
func (p *pairer) shutdownEngine(ctx context.Context) error {
	if p.sums != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.cfg.ShutdownTimeout/2)
		defer cancel()
	}
	return p.engine.Shutdown(ctx)
}

// ignored accepts spans that are no batches, where no pipeline takes spans.
type ignored struct{ telemetry *metadata.TelemetryBuilder }

func (*ignored) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (i *ignored) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	i.telemetry.ConnectorStackPairingIgnoredSpans.Add(ctx, int64(td.SpanCount()))
	return nil
}

// keep returns the criteria of pairing.
func (c *Config) keep(k *KeepConfig) *pairing.Keep {
	keep := &pairing.Keep{
		SlowerThan: k.SlowerThan.Nanoseconds(), Errors: k.Errors, Threshold: k.threshold(),
		FoldShorterThan: c.FoldRepeated.ShorterThan.Nanoseconds(),
		DecideAfter:     k.DecideAfter, MaxBytes: int64(c.Limits.MaxUndecidedMiB) << 20,
	}
	if k.MaxSpansPerSecond > 0 {
		start := time.Now()
		keep.Limiter = pairing.NewLimiter(int64(k.MaxSpansPerSecond), func() time.Duration { return time.Since(start) })
	}
	if len(k.Functions) > 0 {
		keep.Function = k.function()
	}
	return keep
}

// function reports whether a function is selected, and the least time of its calls.
func (k *KeepConfig) function() func(string) (int64, bool) {
	type selected struct {
		matches func(string) bool
		least   int64
	}
	all := make([]selected, len(k.Functions))
	for i, f := range k.Functions {
		all[i] = selected{engine.WholeName(regexp.MustCompile(f.Name)), f.SlowerThan.Nanoseconds()}
	}
	return func(qualified string) (least int64, found bool) {
		for _, s := range all {
			if s.matches(qualified) && (!found || s.least < least) {
				least, found = s.least, true
			}
		}
		return least, found
	}
}

// sendByInterval sends the outputs until the stop.
func (p *pairer) sendByInterval(ctx context.Context) {
	defer close(p.done)
	if p.sums == nil {
		return
	}
	ticker := time.NewTicker(p.cfg.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-p.stopped:
			return
		case <-ticker.C:
			p.send(ctx, max(p.cfg.Interval/2, time.Second))
		}
	}
}

// send sends what the sums have now. Neither output takes longer than the patience.
func (p *pairer) send(ctx context.Context, patience time.Duration) {
	metrics, profiles := p.take()
	p.metrics.begin(metrics)
	p.profiles.begin(profiles)
	within(ctx, patience, func(ctx context.Context) { p.metrics.sendLatest(ctx, metrics) })
	within(ctx, patience, func(ctx context.Context) { p.profiles.sendAll(ctx, profiles) })
}

// summedBy is what pipelines need that take metrics, profiles or both.
func summedBy(metrics, profiles bool) callsum.By {
	switch {
	case !profiles:
		return callsum.Functions
	case !metrics:
		return callsum.Paths
	}
	return callsum.FunctionsAndPaths
}

// take returns what the sums have now. The exemplars are older than the sums, so each is a call that the sums contain, if the
// engine has passed all.
func (p *pairer) take() (metrics interval[pmetric.Metrics], profiles interval[pprofile.Profiles]) {
	p.taking.Lock()
	defer p.taking.Unlock()
	exemplars := p.sums.swapExemplars()
	isComplete := p.engine.PassSums()
	now := time.Now()
	made := functionmetrics.Moment{Unix: pcommon.NewTimestampFromTime(now), Elapsed: now.Sub(p.created)}
	if p.metrics.isConnected() {
		md := p.sums.takeMetrics(made, exemplars, isComplete)
		all := p.metrics.measured(md)
		p.sums.hold(all.bytes)
		metrics = interval[pmetric.Metrics]{functionmetrics.Messages(md, maxMessageBytes), made.Elapsed, all.contents, all.bytes}
	}
	if p.profiles.isConnected() {
		growth := p.sums.takeGrowth()
		held := growth.Bytes()
		messages := growth.Messages(pcommon.NewTimestampFromTime(p.sent), made.Unix)
		profiles = interval[pprofile.Profiles]{messages, made.Elapsed, growth.SampleCount(), growth.Bytes()}
		p.sums.hold(profiles.bytes - held) // the count of samples merged the growth
	}
	p.sent = now
	return metrics, profiles
}

// within calls do with a timeout.
func within(ctx context.Context, timeout time.Duration, do func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	do(ctx)
}

// sendLast sends the last sums, after all streams ended and the goroutine has ended. Each output has the time until ctx is done,
// also if the other one blocks. If a component does not return soon after that, both outputs drop and count what they have left.
func (p *pairer) sendLast(ctx context.Context) error {
	if p.sums == nil {
		return nil
	}
	var late error
	abandon := func() {
		late = fmt.Errorf("expected components of metrics and profiles pipelines to return within %v after shutdown_timeout: one has not", engine.Overtime)
		p.metrics.abandon()
		p.profiles.abandon()
	}
	if p.done != nil && !engine.EndsInTime(ctx, p.done) {
		abandon()
	}
	metrics, profiles := p.take()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		var both sync.WaitGroup
		both.Go(func() { p.metrics.sendLatestLast(ctx, metrics) })
		both.Go(func() { p.profiles.sendLast(ctx, profiles) })
		both.Wait()
	}()
	if !engine.EndsInTime(ctx, sent) {
		abandon()
	}
	p.sums.release()
	return late
}
