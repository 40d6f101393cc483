// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Several receivers hand over at the same time, each batches of all streams out of order. They
// repeat refused hand-overs. The next component refuses now and then, all or a half. Every span is
// delivered exactly once.
func TestEverySpanIsDeliveredExactlyOnce(t *testing.T) {
	const (
		receivers  = 6
		streams    = 5
		batches    = 40 // of each stream
		perBatch   = 30 // calls
		hasOutcome = 4  // in so many calls something else than success
	)
	b := newBed(t)
	var asked atomic.Uint64
	b.next.answerWith(func(ctx context.Context, td ptrace.Traces) error {
		switch asked.Add(1) % hasOutcome {
		case 1:
			return errFull
		case 2:
			return b.next.acceptsHalf(ctx, td)
		default:
			return nil
		}
	})
	require.NoError(t, b.Start(context.Background(), componenttest.NewNopHost()))

	var all []ptrace.Traces
	want := map[string]int{}
	for n := range batches {
		for stream := byte(1); stream <= streams; stream++ {
			first := uint64(n * perBatch * 2)
			td := traces(t, batch{stream: stream, first: first, events: many(perBatch, "enter f", "exit f")})
			if n%3 == 0 {
				ordinary(td, fmt.Sprintf("request-%d-%d", stream, n))
				want[fmt.Sprintf("web/request-%d-%d", stream, n)]++
			}
			all = append(all, td)
			for call := range uint64(perBatch) {
				want[fmt.Sprintf("s%d/f %d", stream, first+2*call)]++
			}
		}
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })

	var next atomic.Int64
	var group sync.WaitGroup
	for range receivers {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(all); i = int(next.Add(1)) - 1 {
				handOver(t, b, all[i])
			}
		})
	}
	group.Wait()
	b.next.answerWith(nil)
	b.finish()

	got := map[string]int{}
	for _, line := range b.next.accepted() {
		got[line]++
	}
	assert.Equal(t, want, got)
	assert.Zero(t, b.sum("dropped_spans"))
	assert.Zero(t, b.sum("breaks"))
	assert.Zero(t, b.sum("truncated_frames"))
	assert.Zero(t, b.sum("held_spans"))
	assert.Zero(t, b.reserved.Load())
	assert.Zero(t, b.accounts.bytes.Load())
	assert.EqualValues(t, streams*batches, b.sum("batches"))
}

// handOver hands over until no part is refused. It repeats all, or the part that the error names.
func handOver(t *testing.T, b *bed, td ptrace.Traces) {
	for {
		err := b.ConsumeTraces(context.Background(), td)
		if err == nil {
			return
		}
		if !assert.False(t, consumererror.IsPermanent(err)) {
			return
		}
		if part, ok := refusedPart(err); ok {
			td = part
		}
	}
}

// The same at bounds that are always reached. Every finished span is delivered or counted as
// dropped, and at the end no memory is held.
func TestAtItsBoundsEverySpanIsDeliveredOrCounted(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Reorder.MaxMiB, c.Reorder.MaxEvents, c.Limits.MaxStreams, c.Limits.MaxHeldMiB = 1, 20_000, 7, 1
	})
	var asked atomic.Uint64
	b.next.answerWith(func(context.Context, ptrace.Traces) error {
		if asked.Add(1)%5 == 0 {
			return errFull
		}
		return nil
	})
	require.NoError(t, b.Start(context.Background(), componenttest.NewNopHost()))
	var group sync.WaitGroup
	for receiver := range uint64(4) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(2, receiver))
			for range 100 {
				first := random.Uint64N(60_000)
				handOver(t, b, traces(t, batch{
					stream: byte(1 + random.UintN(12)), first: first &^ 1, events: many(20, "enter f", "enter g", "exit g", "exit f"),
				}))
			}
		})
	}
	group.Wait()
	b.next.answerWith(nil)
	b.finish()
	delivered := int64(len(b.next.accepted()))
	assert.Equal(t, b.sum("spans"), delivered+b.sum("dropped_spans"), "every span that was made")
	assert.EqualValues(t, 4*100*80, b.sum("events"))
	for _, name := range []string{"streams", "open_frames", "memory", "waiting_events", "held_spans"} {
		assert.Zero(t, b.sum(name), name)
	}
	assert.Zero(t, b.accounts.bytes.Load())
	assert.Zero(t, b.accounts.waiting.Load())
}
