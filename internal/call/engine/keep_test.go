// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/pairing"
)

// Calls that wait for a decision do not count for reorder.max_mib. At their own bound the oldest
// traces of all streams are decided early.
func TestWaitingCallsHaveABoundOfTheirOwn(t *testing.T) {
	keep := &pairing.Keep{SlowerThan: math.MaxInt64, Threshold: pairing.NoThreshold, MaxBytes: 3 << 20}
	b := newBedKeeping(t, keep, &next{}, small)
	b.handOver(batch{stream: 1, events: []string{"enter main"}}, batch{stream: 2, events: []string{"enter main"}})
	most := int64(0)
	for n := range uint64(40) {
		b.handOver(batch{stream: byte(1 + n%2), first: 1 + 4_000*(n/2), events: many(2_000, "enter f", "exit f")})
		most = max(most, keep.HeldBytes())
		require.LessOrEqual(t, keep.HeldBytes(), keep.MaxBytes)
	}
	assert.Greater(t, most, int64(2<<20), "beyond reorder.max_mib")
	assert.Zero(t, b.sum("shed_streams", "max_mib"))
	assert.EqualValues(t, 2, b.sum("open_frames"))
	b.finish()
	assert.Zero(t, keep.HeldBytes())
}

// At reorder.max_mib the stream with the gap pays, and not the one with more undecided calls. Neither decides
// a trace early, because that would free nothing for this bound.
func TestAtMaxMiBNoTraceIsDecidedEarly(t *testing.T) {
	keep := &pairing.Keep{
		Function:  func(qualified string) (int64, bool) { return 0, qualified == "demo.main" },
		Threshold: pairing.NoThreshold, MaxBytes: 64 << 20,
	}
	b := newBedKeeping(t, keep, &next{}, small, func(c *Config) { c.MaxSpansPerTrace = 0 })
	b.handOver(batch{stream: 1, events: []string{"enter main"}}, batch{stream: 2, events: []string{"enter main", "enter f", "exit f"}})
	for n := range uint64(20) {
		b.handOver(batch{stream: 1, first: 1 + 4_000*n, events: many(2_000, "enter f", "exit f")})
	}
	require.Greater(t, keep.HeldBytes(), int64(2<<20))
	require.Zero(t, b.sum("shed_streams"))
	for n := range uint64(30) {
		b.handOver(batch{stream: 2, first: 4 + 2_000*n, events: many(1_000, "enter f", "exit f")})
	}
	assert.Positive(t, b.sum("shed_streams", "max_mib"))
	assert.Zero(t, b.sum("breaks", "limit"))
	assert.EqualValues(t, 1, b.sum("missing_numbers"))
	assert.EqualValues(t, 1, b.sum("open_frames"), "a gap ends the open calls of its stream")
	assert.Equal(t, []string{"s2/f 1", "s2/main 0 truncated:gap"}, b.next.accepted(), "one trace with main, which keeps it")
	assert.Greater(t, keep.HeldBytes(), int64(2<<20))
	b.finish()
}

// At the bound of the process a stream loses the rest of a trace rather than its open calls.
func TestAtTheMemoryBudgetTracesAreDecidedBeforeOpenCallsAreForgotten(t *testing.T) {
	keep := &pairing.Keep{SlowerThan: math.MaxInt64, Threshold: pairing.NoThreshold, MaxBytes: 64 << 20}
	b := newBedKeeping(t, keep, &next{}, func(c *Config) { c.MaxSpansPerTrace = 0 })
	all := b.budgetFor(8)
	b.handOver(batch{stream: 1, events: []string{"enter main"}})
	for n := range uint64(20) {
		b.handOver(batch{stream: 1, first: 1 + 20_000*n, events: many(10_000, "enter f", "exit f")})
		require.LessOrEqual(t, all.Used(), all.Limit()+all.Limit()/8)
	}
	assert.Positive(t, b.sum("shed_streams", "memory_budget"))
	assert.Zero(t, b.sum("breaks", "limit"))
	assert.EqualValues(t, 1, b.sum("open_frames"))
	b.finish()
}

// Traces are decided in time though the program is quiet, while the clock of gaps stands still.
func TestATraceOfAQuietProgramIsDecidedInTime(t *testing.T) {
	b := newBedKeeping(t, &pairing.Keep{DecideAfter: 20 * time.Second}, &next{})
	b.handOver(batch{stream: 1, events: []string{"enter main", "enter f", "exit f"}})
	b.pass(20*time.Second - 1)
	b.tick()
	require.Empty(t, b.next.accepted())
	b.pass(1)
	b.tick()
	assert.Equal(t, []string{"s1/f 1"}, b.next.accepted())
	b.finish()
}

// A thread that blocks inside a call makes no events. The call is slow all the same, and the calls before are kept with it.
func TestTheCallsBeforeALongSilenceAreKeptWithTheirSlowRoot(t *testing.T) {
	keep := &pairing.Keep{SlowerThan: (19 * time.Second).Nanoseconds(), Threshold: pairing.NoThreshold, DecideAfter: 20 * time.Second}
	b := newBedKeeping(t, keep, &next{})
	b.handOver(batch{stream: 1, events: []string{"enter main", "enter f", "exit f"}})
	for range 4 { // an agent that is alive sends empty batches
		b.pass(5 * time.Second)
		b.handOver(batch{stream: 1, first: 3})
	}
	b.tick()
	assert.Equal(t, []string{"s1/f 1"}, b.next.accepted())
	b.finish()
}

// Behind a limiter it is unknown for how many traces a kept one stands.
func TestOnlySpansWithoutALimiterHaveAThreshold(t *testing.T) {
	for want, limiter := range map[string]*pairing.Limiter{
		"ot=th:0": nil,
		"":        pairing.NewLimiter(1000, func() time.Duration { return time.Hour }),
	} {
		for _, keep := range []*pairing.Keep{{Threshold: 0, Limiter: limiter}, {SlowerThan: 1, Threshold: pairing.NoThreshold, Limiter: limiter}} {
			n := &next{}
			b := newBedKeeping(t, keep, n)
			n.answerWith(func(_ context.Context, td ptrace.Traces) error {
				assert.Equal(t, want, td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).TraceState().AsRaw())
				return nil
			})
			b.handOver(call(1, "f", 0))
			b.finish()
			assert.Len(t, n.accepted(), 1)
		}
	}
}
