// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package receivertestbed

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/pairingmark"
)

// ErrRefused is an error that may pass.
var ErrRefused = errors.New("not now")

// Gate decides whether a pipeline accepts, refuses or hangs in a call. Its zero value accepts. Many
// goroutines can call it.
type Gate struct {
	mu     sync.Mutex
	refuse error
	hang   chan struct{}
	deaf   bool
	calls  Calls
}

// Calls counts the calls of a pipeline.
type Calls struct {
	// Begun counts all calls, Returned those that were accepted or refused, and BrokenOff those
	// whose context ended while the pipeline hung.
	Begun, Returned, BrokenOff int
}

// RefuseWith makes the pipeline return an error; nil: it accepts again.
func (g *Gate) RefuseWith(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuse = err
}

// Hang makes calls wait until release is called, or until their context ends. A deaf pipeline
// ignores the context.
func (g *Gate) Hang(deaf bool) (release func()) {
	hang := make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hang, g.deaf = hang, deaf
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.hang, g.deaf = nil, false
		close(hang)
	})
}

// Calls returns how many calls there were.
func (g *Gate) Calls() Calls {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls
}

// pass waits while the pipeline hangs, and returns the error with which it refuses.
func (g *Gate) pass(ctx context.Context) error {
	g.mu.Lock()
	g.calls.Begun++
	hang, ended := g.hang, ctx.Done()
	if g.deaf {
		ended = nil
	}
	g.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ended:
			g.mu.Lock()
			defer g.mu.Unlock()
			g.calls.BrokenOff++
			return ctx.Err()
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls.Returned++
	return g.refuse
}

// Traces is a pipeline of spans and of batches of call events.
type Traces struct {
	Gate
	consumertest.TracesSink
	// Unpaired says that the pipeline has no stack_pairing. A test sets it before Bed.Start.
	Unpaired bool
}

// ConsumeTraces keeps accepted traces in the sink.
func (t *Traces) ConsumeTraces(ctx context.Context, traces ptrace.Traces) error {
	if !t.Unpaired {
		pairingmark.Set(ctx)
	}
	if err := t.pass(ctx); err != nil {
		return err
	}
	return t.TracesSink.ConsumeTraces(ctx, traces)
}

// Logs is a pipeline of log records.
type Logs struct {
	Gate
	consumertest.LogsSink
}

// ConsumeLogs keeps accepted log records in the sink.
func (l *Logs) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	if err := l.pass(ctx); err != nil {
		return err
	}
	return l.LogsSink.ConsumeLogs(ctx, logs)
}

// Metrics is a pipeline of metrics.
type Metrics struct {
	Gate
	consumertest.MetricsSink
}

// ConsumeMetrics keeps accepted metrics in the sink.
func (m *Metrics) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	if err := m.pass(ctx); err != nil {
		return err
	}
	return m.MetricsSink.ConsumeMetrics(ctx, metrics)
}

// Profiles is a pipeline of profiles.
type Profiles struct {
	Gate
	consumertest.ProfilesSink
}

// ConsumeProfiles keeps accepted profiles in the sink.
func (p *Profiles) ConsumeProfiles(ctx context.Context, profiles pprofile.Profiles) error {
	if err := p.pass(ctx); err != nil {
		return err
	}
	return p.ProfilesSink.ConsumeProfiles(ctx, profiles)
}
