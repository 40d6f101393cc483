// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds the wait for a condition, also on a busy machine.
const patience = time.Minute

var (
	errRefused = errors.New("not now")
	errNever   = errors.New("never")
)

// bed has the settings of hand-overs, and records their log lines and counters.
type bed struct {
	t         testing.TB
	settings  Settings
	said      *observer.ObservedLogs
	telemetry *componenttest.Telemetry
	// over ends the time of the shutdown.
	over context.CancelFunc

	mu  sync.Mutex
	now time.Time
	// counts has the dropped items by reason, and the accepted and retried batches.
	counts map[string]int
}

const accepted, retried = "accepted", "retried"

func newBed(t testing.TB) *bed {
	t.Helper()
	core, said := observer.New(zapcore.DebugLevel)
	b := &bed{t: t, said: said, telemetry: componenttest.NewTelemetry(), now: time.Now(), counts: map[string]int{}}
	t.Cleanup(func() { assert.NoError(t, b.telemetry.Shutdown(context.Background())) })
	observed, err := NewObserver(receiver.Settings{ID: component.MustNewID("any"), TelemetrySettings: b.telemetry.NewTelemetrySettings()}, "tcp")
	require.NoError(t, err)
	ctx, over := context.WithCancel(context.Background())
	t.Cleanup(over)
	b.over = over
	b.settings = Settings{
		Context: ctx, Observer: observed, Format: "any", Logger: zap.New(core),
		Retry: backoff.Config{InitialInterval: time.Millisecond, MaxInterval: 2 * time.Millisecond}, Now: b.time,
	}
	return b
}

// time returns the time, which only pass changes.
func (b *bed) time() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bed) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

func (b *bed) add(n int, what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts[what] += n
}

func (b *bed) count(what string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts[what]
}

// dropped returns the numbers of dropped items by reason.
func (b *bed) dropped() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	dropped := maps.Clone(b.counts)
	delete(dropped, accepted)
	delete(dropped, retried)
	return dropped
}

func (b *bed) await(what string, condition func() bool) {
	b.t.Helper()
	require.True(b.t, testkit.Happens(condition), "waited for %s", what)
}

// lines returns the number of log lines with a text.
func (b *bed) lines(text string) int { return b.said.FilterMessageSnippet(text).Len() }

// observed returns a counter of the receiver helper.
func (b *bed) observed(name string) int64 {
	b.t.Helper()
	return telemetrytest.Sum(b.t, b.telemetry, "otelcol_receiver_"+name)
}

// pipeline is a pipeline for all signals. Its fields decide whether it accepts or refuses.
type pipeline struct {
	mu     sync.Mutex
	refuse error
	tries  int
	// refusesEveryOther: the pipeline refuses every other call.
	refusesEveryOther bool
	// hang, unless nil, blocks every call until it is closed.
	hang chan struct{}
	// spoils: the pipeline changes the data that it refuses.
	spoils   bool
	traces   []ptrace.Traces
	logs     []plog.Logs
	metrics  []pmetric.Metrics
	profiles []pprofile.Profiles
}

func (p *pipeline) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: p.spoils}
}

func (p *pipeline) ConsumeTraces(_ context.Context, traces ptrace.Traces) error {
	return p.consume(func() { p.traces = append(p.traces, traces) }, func() { traces.ResourceSpans().RemoveIf(func(ptrace.ResourceSpans) bool { return true }) })
}

func (p *pipeline) ConsumeLogs(_ context.Context, logs plog.Logs) error {
	return p.consume(func() { p.logs = append(p.logs, logs) }, func() { logs.ResourceLogs().RemoveIf(func(plog.ResourceLogs) bool { return true }) })
}

func (p *pipeline) ConsumeMetrics(_ context.Context, metrics pmetric.Metrics) error {
	return p.consume(func() { p.metrics = append(p.metrics, metrics) }, func() {})
}

func (p *pipeline) ConsumeProfiles(_ context.Context, profiles pprofile.Profiles) error {
	return p.consume(func() { p.profiles = append(p.profiles, profiles) }, func() {
		profiles.ResourceProfiles().RemoveIf(func(pprofile.ResourceProfiles) bool { return true })
	})
}

func (p *pipeline) consume(accept, spoil func()) error {
	p.mu.Lock()
	hang := p.hang
	p.mu.Unlock()
	if hang != nil {
		<-hang
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries++
	if p.refusesEveryOther && p.tries%2 == 1 {
		return errRefused
	}
	if p.refuse == nil {
		accept()
	} else if p.spoils {
		spoil()
	}
	return p.refuse
}

func (p *pipeline) refuseWith(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = err
}

func (p *pipeline) tried() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tries
}

// names returns a list for each accepted call, in order. A list has the start times of spans, the bodies of log records,
// or the times of profiles.
func (p *pipeline) names() [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all [][]string
	for _, traces := range p.traces {
		var names []string
		for _, resource := range traces.ResourceSpans().All() {
			for _, span := range resource.ScopeSpans().At(0).Spans().All() {
				names = append(names, strconv.Itoa(int(span.StartTimestamp())))
			}
		}
		all = append(all, names)
	}
	for _, logs := range p.logs {
		var bodies []string
		for _, resource := range logs.ResourceLogs().All() {
			for _, r := range resource.ScopeLogs().At(0).LogRecords().All() {
				bodies = append(bodies, r.Body().Str())
			}
		}
		all = append(all, bodies)
	}
	for _, profiles := range p.profiles {
		var times []string
		for _, resource := range profiles.ResourceProfiles().All() {
			for _, profile := range resource.ScopeProfiles().At(0).Profiles().All() {
				times = append(times, strconv.Itoa(int(profile.Time())))
			}
		}
		all = append(all, times)
	}
	return all
}

// flat returns all names in order.
func (p *pipeline) flat() []string { return slices.Concat(p.names()...) }
