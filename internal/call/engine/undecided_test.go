// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/pairing"
)

// selects makes the bed select traces.
func (b *bed) selects(keep *pairing.Keep) *pairing.Keep {
	b.settings.Keep, keep.Now = keep, b.clock.now
	return keep
}

// endless is a batch of a server whose root never ends, from a number on.
func endless(stream int, first uint64, calls int) batch {
	events := many(calls, "enter f", "exit f")
	if first == 0 {
		events = append([]string{"enter serve"}, events...)
	}
	return batch{id: callevent.StreamID{8: byte(stream), 9: byte(stream >> 8), 15: 1}, service: fmt.Sprint(stream), first: first, events: events}
}

func TestBeyondMaxUndecidedTheOldestTracesOfAllStreamsAreDecided(t *testing.T) {
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			keep := b.selects(&pairing.Keep{Threshold: 0})
			for i := range 16 {
				b.handOver(endless(i*int(step), 0, 1))
				b.pass(time.Duration(i+1) * time.Second)
			}
			keep.MaxBytes = keep.HeldBytes()
			assert.Empty(t, b.next.accepted())
			// The first and the second stream have the oldest traces. Deciding both is enough.
			b.handOver(endless(0, 3, 40))
			lines := b.next.accepted()
			require.Len(t, lines, 42)
			assert.Equal(t, "0/f 1", lines[0])
			assert.Equal(t, fmt.Sprintf("%d/f 1", step), lines[41])
			assert.Zero(t, keep.Excess())
			b.finish()
		})
	}
}

// onLane is a batch of a root and of a call in it, on a lane.
func onLane(stream int, first uint64, lane int) batch {
	b := endless(stream, first, 0)
	b.events = []string{fmt.Sprint("enter serve @", lane), fmt.Sprint("enter f @", lane), fmt.Sprint("exit f @", lane)}
	return b
}

// A stream with several traces gives up only those that are the oldest of all.
func TestBeyondMaxUndecidedTheTracesOfAStreamWaitForOlderOnes(t *testing.T) {
	b := newBed(t)
	keep := b.selects(&pairing.Keep{Threshold: 0})
	b.handOver(onLane(1, 0, 1))
	b.pass(time.Hour)
	b.handOver(onLane(2, 0, 1))
	b.pass(time.Second)
	for lane := range 6 {
		b.handOver(onLane(1, uint64(3+3*lane), lane+2))
	}
	keep.MaxBytes = keep.HeldBytes()
	b.handOver(onLane(3, 0, 1))
	assert.Equal(t, []string{"1/f 1", "2/f 1"}, b.next.accepted())
	b.finish()
}

// A stream that met the bound decides nothing more after others have freed memory.
func TestAStreamThatWasAtTheBoundWaitsAgain(t *testing.T) {
	b := newBed(t)
	keep := b.selects(&pairing.Keep{Threshold: 0})
	for i := range 8 {
		b.handOver(onLane(i, 0, 1))
		b.pass(time.Second)
	}
	keep.MaxBytes = keep.HeldBytes()
	b.handOver(batch{id: endless(9, 0, 0).id, service: "9", events: slices.Concat(onLane(9, 0, 1).events, onLane(9, 3, 2).events)})
	assert.Equal(t, []string{"0/f 1", "1/f 1", "2/f 1"}, b.next.accepted())
	b.handOver(batch{id: endless(9, 0, 0).id, service: "9", first: 6, events: []string{"enter f", "exit f"}})
	assert.Empty(t, b.next.accepted())
	b.finish()
}

// The clock of a stream's gaps stands still while it is silent. That of its undecided traces does not.
func TestATraceOfASilentStreamIsDecidedInTime(t *testing.T) {
	b := newBed(t)
	b.selects(&pairing.Keep{Threshold: 0, DecideAfter: 10 * time.Second})
	b.handOver(endless(1, 0, 1))
	b.pass(9 * time.Second)
	b.tick()
	assert.Empty(t, b.next.accepted())
	b.pass(time.Second)
	b.tick()
	assert.Equal(t, []string{"1/f 1"}, b.next.accepted())
	b.finish()
}

// A hand-over of one of many streams with endless roots must not look at all streams.
func BenchmarkUndecidedCallsOfManyStreams(b *testing.B) {
	for _, streams := range []int{100, 10_000} {
		b.Run(fmt.Sprint(streams, " streams"), func(b *testing.B) {
			bed := newBed(b, func(c *Config) { c.Limits.MaxStreams = 20_000 })
			keep := bed.selects(&pairing.Keep{SlowerThan: math.MaxInt64, Threshold: pairing.NoThreshold})
			handOver := func(i int, first uint64) ptrace.Traces {
				return traces(b, endless(i, first, 10))
			}
			for i := range streams {
				require.NoError(b, bed.ConsumeTraces(b.Context(), handOver(i, 0)))
			}
			keep.MaxBytes = keep.HeldBytes() / 2
			next, numbers := 0, make([]uint64, streams)
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				td := handOver(next, 21+20*numbers[next])
				numbers[next]++
				b.StartTimer()
				require.NoError(b, bed.ConsumeTraces(b.Context(), td))
				next = (next + 1) % streams
			}
		})
	}
}
