// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package receiverkit_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
)

// openBatches opens the batches of one peer of a started clock.
func (b *bed) openBatches(ctx context.Context, config *receiverkit.BatchesConfig) *handover.Batches {
	return receiverkit.NewBatches(ctx, b.run, b.run.Logger.With(zap.String("peer", "some")), config, handover.BatchesSettings{
		WhileRefused: "the clock stands still", Accepted: func() {}, Retried: func() {},
		Dropped: func(events int, _ string) { b.dropped.Add(int64(events)) },
	})
}

// packed returns a batch that says that it has so many events.
func packed(events int) callevent.Packed {
	return callevent.Packed{Stream: callevent.StreamID{1}, Data: make([]byte, 1<<10), Events: events}
}

func TestBatchesHaveTheScopeOfTheReceiver(t *testing.T) {
	b := newBed(t, receivertestbed.Patience)
	require.NoError(t, b.start())
	config := receiverkit.DefaultBatchesConfig()
	b.openBatches(b.run.Delivering, &config).Send(packed(1), pcommon.NewResource())
	require.ErrorIs(t, b.shutdown(), errClose)
	require.Len(t, b.Spans(), 1)
	scope := b.Traces.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Scope()
	assert.Equal(t, "clocks", scope.Name())
	assert.Equal(t, receivertestbed.Version, scope.Version())
}

func TestWithoutATracesPipelineThereAreNoBatches(t *testing.T) {
	b := newBed(t, receivertestbed.Patience)
	b.Next.Traces = nil
	require.NoError(t, b.start())
	config := receiverkit.DefaultBatchesConfig()
	assert.Nil(t, b.openBatches(b.run.Delivering, &config))
	require.ErrorIs(t, b.shutdown(), errClose)
}

func TestBatchesOfAPeerAreDroppedAtTheEndOfItsContext(t *testing.T) {
	b := newBed(t, receivertestbed.Patience)
	require.NoError(t, b.start())
	b.Traces.RefuseWith(receivertestbed.ErrRefused)
	ctx, cancel := context.WithCancel(b.run.Delivering)
	config := receiverkit.DefaultBatchesConfig()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		b.openBatches(ctx, &config).Send(packed(7), pcommon.NewResource())
	}()
	line := b.AwaitLine("The pipeline refuses call events: the clock stands still")
	assert.Equal(t, "some", line.ContextMap()["peer"])
	cancel()
	<-sent
	assert.EqualValues(t, 7, b.dropped.Load())
	require.ErrorIs(t, b.shutdown(), errClose)
}

func TestOneLineForAllPeersWarnsThatNoStackPairingFollows(t *testing.T) {
	const line = "No stack_pairing follows: backends receive packed call events in place of spans of functions. " +
		"Put stack_pairing into the traces pipeline of this receiver. " +
		"If another collector pairs the batches, or a queue stands in front of stack_pairing, set expect_pairing: false"
	for name, c := range map[string]struct {
		unpaired, expected bool
		lines              int
	}{
		"stack_pairing follows":     {expected: true},
		"stack_pairing is missing":  {expected: true, unpaired: true, lines: 1},
		"expect_pairing is set off": {unpaired: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, receivertestbed.Patience)
			b.Traces.Unpaired = c.unpaired
			require.NoError(t, b.start())
			config := receiverkit.DefaultBatchesConfig()
			config.ExpectPairing = c.expected
			for range 2 {
				b.openBatches(b.run.Delivering, &config).Send(packed(1), pcommon.NewResource())
			}
			assert.Equal(t, c.lines, b.Lines(line))
			require.ErrorIs(t, b.shutdown(), errClose)
		})
	}
}

func TestErrorsOfSettingsOfBatchesNameTheRange(t *testing.T) {
	for want, change := range map[string]func(*receiverkit.Config, *receiverkit.BatchesConfig){
		"retry.max_interval is 5s: set it to 50ms to 3s, because": func(c *receiverkit.Config, _ *receiverkit.BatchesConfig) { c.Retry.MaxInterval = 5 * time.Second },
		"shutdown_timeout is 0s: set it to 1ms to 10m0s":          func(c *receiverkit.Config, _ *receiverkit.BatchesConfig) { c.ShutdownTimeout = 0 },
		"batch.max_bytes is 1: set it to 163840 to 1048576":       func(_ *receiverkit.Config, c *receiverkit.BatchesConfig) { c.Batch.MaxBytes = 1 },
		"batch.max_delay is 1h0m0s: set it to 1ms to 1m0s":        func(_ *receiverkit.Config, c *receiverkit.BatchesConfig) { c.Batch.MaxDelay = time.Hour },
		"keepalive_interval is 0s: set it to 100ms to 1h0m0s":     func(_ *receiverkit.Config, c *receiverkit.BatchesConfig) { c.KeepaliveInterval = 0 },
	} {
		common, config := receiverkit.DefaultConfig(), receiverkit.DefaultBatchesConfig()
		require.NoError(t, config.ValidateWith(&common, ", because"))
		change(&common, &config)
		assert.EqualError(t, config.ValidateWith(&common, ", because"), want)
	}
}
