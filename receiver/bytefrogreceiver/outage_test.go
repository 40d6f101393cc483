// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor"
)

// outlet takes spans, or refuses them.
type outlet struct {
	refusing atomic.Bool
	spans    atomic.Int64
}

func (o *outlet) consume(_ context.Context, td ptrace.Traces) error {
	if o.refusing.Load() {
		return receivertestbed.ErrRefused
	}
	o.spans.Add(int64(td.SpanCount()))
	return nil
}

// limiter stands in front of stack_pairing, and refuses batches as memory_limiter does.
type limiter struct {
	next consumer.Traces
	// waiting reports whether events wait in stack_pairing.
	waiting func() bool

	mu sync.Mutex
	// asked: it refuses as soon as events wait.
	asked, refusing bool
}

func (l *limiter) consume(ctx context.Context, td ptrace.Traces) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refusing {
		return receivertestbed.ErrRefused
	}
	err := l.next.ConsumeTraces(ctx, td)
	l.refusing = l.asked && l.waiting()
	return err
}

func (l *limiter) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = true
}

func (l *limiter) accept() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked, l.refusing = false, false
}

func (l *limiter) isRefusing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusing
}

// Two connections send calls in turn. After an outage that is longer than reorder.max_wait, the
// processor receives all events of both, and gives up none.
func TestAnOutageThatIsLongerThanMaxWaitLosesNothing(t *testing.T) {
	t.Parallel()
	for name, inFront := range map[string]bool{
		"a component behind stack_pairing refuses":      false,
		"a component in front of stack_pairing refuses": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loseNothingInAnOutage(t, inFront)
		})
	}
}

func loseNothingInAnOutage(t *testing.T, inFront bool) {
	// A stream's clock stands still after half of maxWait without a batch. The other half must suffice
	// for a refused batch to be sent again on a busy machine, which takes one retry at most.
	const maxWait = 8 * time.Second
	o, telemetry := &outlet{}, componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, telemetry.Shutdown(context.Background())) })
	sink, err := consumer.NewTraces(o.consume)
	require.NoError(t, err)
	factory := stackpairingprocessor.NewFactory()
	config := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"reorder": map[string]any{"max_wait": maxWait.String()},
	}).Unmarshal(config))
	settings := processortest.NewNopSettings(factory.Type())
	settings.TelemetrySettings = telemetry.NewTelemetrySettings()
	pairing, err := factory.CreateTraces(context.Background(), settings, config, sink)
	require.NoError(t, err)
	require.NoError(t, pairing.Start(context.Background(), componenttest.NewNopHost()))

	b := unstartedBed(t, withDataConnections(2), func(_ *bed, c *Config) {
		c.NameWait = maxWait / 2
		// This agent sends no heartbeats, and a busy machine needs much time.
		c.MissedHeartbeats = 1000
		c.Retry = receiverkit.RetryConfig{InitialInterval: 20 * time.Millisecond, MaxInterval: maxWait / 20}
	})
	b.Next.Traces = pairing
	limiter := &limiter{next: pairing, waiting: func() bool { return sumOf(t, telemetry, "processor_stack_pairing_waiting_events") > 0 }}
	if inFront {
		b.Next.Traces, err = consumer.NewTraces(limiter.consume)
		require.NoError(t, err)
	}
	b.Start()
	a := connect(b, 1)
	a.join()
	a.join()
	for _, p := range a.data {
		p.bufferLittle()
		p.write(namesOne())
	}
	// Both take the next numbers when they have sent the last, as an agent does.
	const perBlock = 500
	var next atomic.Uint32
	var stop atomic.Bool
	var sending sync.WaitGroup
	for _, p := range a.data {
		sending.Go(func() {
			for !stop.Load() {
				if _, err := p.conn.Write(calls(2*perBlock*(next.Add(1)-1), perBlock)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	run := b.receiver.env.registry.lookup(1)
	b.Await("spans", func() bool { return o.spans.Load() > 0 })
	if inFront {
		limiter.refuse()
		b.Await("a batch that leaves a gap", limiter.isRefusing)
	} else {
		o.refusing.Store(true)
	}
	// The other is refused too, or waits for the one that is.
	b.Await("a connection to be refused", func() bool { return run.State().Waiting > 0 })
	began := time.Now()
	b.Await("a long outage", func() bool { return time.Since(began) > maxWait*3/2 })
	o.refusing.Store(false)
	limiter.accept()
	before := o.spans.Load()
	b.Await("spans again", func() bool { return o.spans.Load() > before+10*perBlock })
	stop.Store(true)
	sending.Wait()
	a.finish()
	b.awaitRuns(0)
	require.NoError(t, pairing.Shutdown(context.Background()))
	assert.EqualValues(t, int64(next.Load())*perBlock, o.spans.Load())
	for _, lost := range []string{"late_events", "missing_numbers", "truncated_frames", "orphans", "breaks"} {
		assert.Zero(t, sumOf(t, telemetry, "processor_stack_pairing_"+lost), lost)
	}
}
