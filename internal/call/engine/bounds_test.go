// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/testkit"
)

// steps are the distances of stream numbers whose streams are in several shards, and in one.
var steps = map[string]byte{"in several shards": 1, "in one shard": shardCount}

func TestBeyondMaxStreamsTheLongestSilentStreamEnds(t *testing.T) {
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(c *Config) { c.Limits.MaxStreams = 3 })
			for i := range byte(3) {
				b.handOver(batch{stream: i * step, events: []string{"enter main"}})
				b.pass(time.Second)
			}
			b.handOver(batch{stream: 0, next: 1}) // it is alive
			b.pass(time.Second)
			b.handOver(batch{stream: 3 * step, events: []string{"enter main"}})
			assert.Equal(t, []string{fmt.Sprintf("s%d/main 0 truncated:limit", step)}, b.next.accepted())
			assert.EqualValues(t, 3, b.sum("streams"))
			b.finish()
		})
	}
}

// An ended stream has no contents, so it goes first.
func TestBeyondMaxStreamsAnEndedStreamGoesFirst(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxStreams = 3 })
	b.handOver(batch{stream: 1, events: []string{"enter main"}})
	b.pass(time.Second)
	b.handOver(batch{stream: 2, barriers: []callevent.Barrier{callevent.End(0, callevent.CauseEnded)}})
	b.handOver(batch{stream: 3, events: []string{"enter main"}})
	b.pass(time.Second)
	b.handOver(batch{stream: 4, events: []string{"enter main"}})
	assert.Empty(t, b.next.accepted())
	assert.EqualValues(t, 3, b.sum("streams"))
	b.finish()
}

// A stream can also end when a gap before its end is given up.
func TestBeyondMaxStreamsAStreamThatATimerEndedGoesFirst(t *testing.T) {
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(c *Config) { c.Limits.MaxStreams = 2 })
			b.handOver(batch{stream: 0, events: []string{"enter main"}})
			b.handOver(batch{stream: step, events: []string{"skip"}}, batch{
				stream: step, first: 2, events: []string{"skip"},
				barriers: []callevent.Barrier{callevent.End(3, callevent.CauseEnded)},
			})
			b.pass(5 * time.Second)
			b.tick()
			b.handOver(batch{stream: 2 * step, events: []string{"enter main"}})
			assert.Empty(t, b.next.accepted())
			assert.EqualValues(t, 2, b.sum("streams"))
			b.finish()
		})
	}
}

// The stream that makes room is at the front of a list, so no search is necessary. Every stream is
// always in a list.
func TestEveryStreamIsInTheListOfItsStanding(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxStreams = 100 })
	for stream := byte(1); stream <= 200; stream++ {
		next := batch{stream: stream, events: []string{"enter main"}}
		if stream%3 == 0 {
			next.barriers = []callevent.Barrier{callevent.End(1, callevent.CauseEnded)}
		}
		b.handOver(next)
		b.handOver(batch{stream: stream/2 + 1, next: 1})
		b.pass(time.Second)
		b.checkPlaces()
	}
	assert.EqualValues(t, 100, b.sum("streams"))
	b.pass(time.Minute)
	b.tick()
	b.checkPlaces()
	assert.Zero(t, b.sum("streams"))
	b.finish()
}

func TestAStreamThatEndsWhenItsGapIsGivenUpAtMaxMiBIsInTheListOfEndedOnes(t *testing.T) {
	b := newBed(t, small)
	b.handOver(batch{
		stream: 1, first: 1, events: many(20_000, "enter f", "exit f"),
		barriers: []callevent.Barrier{callevent.End(40_001, callevent.CauseEnded)},
	})
	assert.Len(t, b.next.accepted(), 20_000)
	assert.Equal(t, 1, b.shardOf(streamID(1)).standing[hasEnded].Len())
	b.checkPlaces()
	b.finish()
}

// checkPlaces checks that every stream is in one list, and in the right one.
func (b *bed) checkPlaces() {
	b.t.Helper()
	for i := range b.shards {
		sh := &b.shards[i]
		standing := 0
		for of := range sh.standing {
			standing += sh.standing[of].Len()
			for e := sh.standing[of].Front(); e != nil; e = e.Next() {
				s := sh.streams[e.Value.(callevent.StreamID)]
				require.Same(b.t, e, s.place)
				require.EqualValues(b.t, of, s.standing)
				require.Equal(b.t, s.Ended(), s.standing == hasEnded)
			}
		}
		require.Equal(b.t, len(sh.streams), standing)
	}
}

func TestTheNewestStreamNeverEnds(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxStreams = 1 })
	for stream := byte(1); stream <= 100; stream++ {
		b.handOver(batch{stream: stream, events: []string{"enter main", "enter f", "exit f"}})
		require.Contains(t, b.next.accepted(), fmt.Sprintf("s%d/f 1", stream))
		require.Contains(t, b.shardOf(streamID(stream)).streams, streamID(stream))
	}
	assert.EqualValues(t, 1, b.sum("streams"))
	assert.EqualValues(t, 99, b.sum("truncated_frames", "limit"))
	b.finish()
}

// waiting returns a batch that makes its stream hold 512 KiB: one event on each end of a window of
// 16,384 numbers.
func waiting(stream byte, missing uint64) batch {
	return batch{stream: stream, numbers: []uint64{missing + 1, missing + 16_384}, events: []string{"enter f", "enter g"}}
}

func TestAtMaxMiBTheLargestStreamGivesUpItsOldestGap(t *testing.T) {
	b := newBed(t, small)
	b.handOver(waiting(1, 0))
	// Many events wait in another stream, but they take less memory.
	b.handOver(batch{stream: 2, first: 1, events: many(1_000, "enter h", "exit h")})
	require.Empty(t, b.next.accepted())
	b.handOver(batch{stream: 3, first: 1, events: many(8_200, "enter k", "exit k")})
	assert.EqualValues(t, 1, b.sum("breaks", "joined"))
	assert.EqualValues(t, 2_002, b.sum("waiting_events"), "of the streams that hold less")
	assert.LessOrEqual(t, b.sum("memory"), int64(1<<20))
	for _, line := range b.next.accepted() {
		require.Contains(t, line, "s3/k")
	}
	b.finish()
}

// The largest stream gives up a gap rather than all stacks and names.
func TestAtMaxMiBTheLargestStreamGivesUpGapsBeforeNames(t *testing.T) {
	b := newBed(t, small)
	b.handOver(batch{stream: 1, events: []string{"enter main"}})
	b.handOver(waiting(1, 1))
	for stream := byte(2); stream <= 3; stream++ {
		b.handOver(batch{stream: stream, events: many(3_000, "enter h")})
	}
	assert.EqualValues(t, 1, b.sum("breaks", "gap"))
	assert.Zero(t, b.sum("breaks", "limit"))
	assert.EqualValues(t, 1, b.sum("waiting_events"), "behind a younger gap")
	assert.EqualValues(t, 6_001, b.sum("open_frames"))
	b.finish()
}

// A hostile stream without waiting events does not make smaller streams give up gaps.
func TestAtMaxMiBSmallerStreamsContinueToWait(t *testing.T) {
	b := newBed(t, small)
	// The last three are in the hostile stream's shard.
	innocent := []byte{10, 11, 12, 13, 14, 15, 16, 1 + shardCount, 1 + 2*shardCount, 1 + 3*shardCount}
	b.handOver(batch{stream: 1})
	for _, stream := range innocent {
		b.handOver(batch{stream: stream, first: 1, events: []string{"enter f"}})
	}
	for i := range uint64(5) {
		b.handOver(batch{stream: 1, first: 12_000 * i, events: many(12_000, "enter main")})
	}
	assert.EqualValues(t, 60_000, b.sum("truncated_frames", "limit"))
	assert.Zero(t, b.sum("breaks", "joined"))
	assert.EqualValues(t, 10, b.sum("waiting_events"))
	b.next.accepted()
	for _, stream := range innocent {
		b.handOver(batch{stream: stream, events: []string{"skip"}}, batch{stream: stream, first: 2, events: []string{"exit f"}})
		assert.Equal(t, []string{fmt.Sprintf("s%d/f 1", stream)}, b.next.accepted())
	}
	b.finish()
}

// One missing connection makes a gap at every other number. The processor gives them up together,
// not with a search through all streams for each.
func TestAtMaxMiBManyGapsAreGivenUpTogether(t *testing.T) {
	b := newBed(t, small)
	var numbers []uint64
	for n := range uint64(10_000) {
		numbers = append(numbers, 1+2*n)
	}
	b.handOver(waiting(2, 0))
	b.handOver(batch{stream: 1, numbers: numbers, events: many(10_000, "enter f")})
	assert.Greater(t, b.sum("missing_numbers"), int64(5_000))
	assert.LessOrEqual(t, b.sum("memory"), int64(1<<20))
	assert.LessOrEqual(t, b.next.timesAsked(), 10_000/maxSpansPerCall+1)
	b.finish()
}

// The missing batch is not refused, and is not late if it arrives in the same call.
func TestAtMaxMiBTheMissingBatchIsAccepted(t *testing.T) {
	b := newBed(t, small)
	b.handOver(batch{stream: 1, first: 1, events: many(8_000, "enter f", "exit f")})
	require.Greater(t, b.sum("memory"), int64(512<<10))
	b.handOver(
		batch{stream: 2, first: 1, events: many(8_000, "enter g", "exit g")},
		batch{stream: 2, events: []string{"skip"}},
		batch{stream: 1, events: []string{"skip"}})
	assert.Len(t, b.next.accepted(), 16_000)
	assert.Zero(t, b.sum("breaks"))
	b.finish()
}

// One call can have thousands of batches that each make a stream wait.
func TestMaxMiBHoldsWithinACall(t *testing.T) {
	b := newBed(t, small)
	var most int64
	b.next.answerWith(func(context.Context, ptrace.Traces) error {
		most = max(most, b.accounts.bytes.Load())
		return nil
	})
	var batches []batch
	for stream := byte(1); stream <= 200; stream++ {
		hostile := waiting(stream, 0)
		hostile.events = []string{"exit f", "skip"}
		batches = append(batches, hostile, call(201, "seen", 2*uint64(stream-1)))
	}
	b.handOver(batches...)
	assert.Len(t, b.next.accepted(), 200)
	assert.Positive(t, most)
	assert.Less(t, most, int64(3<<20), "not 200 times 512 KiB")
	assert.LessOrEqual(t, b.sum("memory"), int64(1<<20))
	b.finish()
}

// If no events wait in it, the largest stream forgets its names and open frames.
func TestAtMaxMiBTheLargestStreamForgetsItsNamesIfNoEventWaits(t *testing.T) {
	b := newBed(t, small)
	b.handOver(batch{stream: 1, events: many(10, "enter main")})
	b.handOver(batch{stream: 2, events: many(12_000, "enter f")})
	assert.Len(t, b.next.accepted(), 12_000)
	assert.EqualValues(t, 12_000, b.sum("truncated_frames", "limit"))
	assert.EqualValues(t, 1, b.sum("breaks", "limit"))
	assert.EqualValues(t, 10, b.sum("open_frames"))
	b.handOver(batch{stream: 2, first: 12_000, events: []string{"exit f", "enter g", "exit g"}})
	assert.Equal(t, []string{"s2/g 12001"}, b.next.accepted(), "it continues")
	assert.EqualValues(t, 1, b.sum("orphans"))
	b.finish()
}

// A resource also uses memory. If it is too large, its stream has to end.
func TestAStreamWithAHugeResourceEnds(t *testing.T) {
	b := newBed(t, small)
	b.handOver(batch{stream: 1, events: []string{"enter main"}})
	b.handOver(batch{stream: 2, service: strings.Repeat("x", 2<<20), events: []string{"enter main"}})
	lines := b.next.accepted()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "x/main 0 truncated:limit")
	assert.EqualValues(t, 1, b.sum("streams"))
	assert.EqualValues(t, 1, b.sum("open_frames"))
	assert.LessOrEqual(t, b.sum("memory"), int64(1<<20))
	b.finish()
}

// While the next component blocks the spans of given-up gaps, memory grows only by the running
// calls.
func TestAHandOverBeyondMaxMiBWaitsForTheNextComponent(t *testing.T) {
	b := newBed(t, small)
	b.handOver(waiting(1, 0))
	inside, goOn := make(chan struct{}), make(chan struct{})
	b.next.answerWith(func(context.Context, ptrace.Traces) error {
		b.next.answerWith(nil)
		close(inside)
		<-goOn
		return nil
	})
	first := traces(t, batch{stream: 2, first: 1, events: many(8_200, "enter f", "exit f")})
	second := traces(t, waiting(3, 0))
	done := make(chan error, 2)
	go func() { done <- b.ConsumeTraces(context.Background(), first) }()
	<-inside
	go func() { done <- b.ConsumeTraces(context.Background(), second) }()
	require.True(t, testkit.Happens(func() bool { return b.accounts.streams.Load() == 3 }))
	assert.Empty(t, done)
	close(goOn)
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	assert.LessOrEqual(t, b.sum("memory"), int64(1<<20))
	b.finish()
}

// Each setting reaches package pairing.
func TestSettingsReachThePairing(t *testing.T) {
	nested := []string{"enter a", "enter b", "enter c", "exit c", "exit b", "exit a"}
	for _, test := range []struct {
		name    string
		setting func(*Config)
		batches []batch
		want    []string
		metric  string
		cause   string
		count   int64
	}{
		{
			name:    "reorder.max_events",
			setting: func(c *Config) { c.Reorder.MaxEvents = 4 },
			batches: []batch{{stream: 1, first: 1, events: many(4, "enter f", "exit f")}},
			want:    []string{"s1/f 1", "s1/f 3", "s1/f 5", "s1/f 7"},
			metric:  "breaks", cause: "joined", count: 1,
		},
		{
			name:    "limits.max_frames",
			setting: func(c *Config) { c.Limits.MaxFrames = 2 },
			batches: []batch{{stream: 1, events: nested}},
			want:    []string{"s1/b 1 truncated:limit", "s1/a 0 truncated:limit", "s1/c 2"},
			metric:  "truncated_frames", cause: "limit", count: 2,
		},
		{
			name:    "limits.max_lanes",
			setting: func(c *Config) { c.Limits.MaxLanes = 1 },
			batches: []batch{{stream: 1, events: []string{"enter a @1", "enter b @2", "exit b @2"}}},
			want:    []string{"s1/a 0 truncated:limit", "s1/b 1"},
			metric:  "truncated_frames", cause: "limit", count: 1,
		},
		{
			name:    "limits.max_exceptions_per_span",
			setting: func(c *Config) { c.Limits.MaxExceptionsPerSpan = 1 },
			batches: []batch{{stream: 1, events: []string{"enter a", "throw a E", "throw a F", "exit a"}}},
			want:    []string{"s1/a 0"},
			metric:  "dropped_exceptions", count: 1,
		},
		{
			name:    "max_depth",
			setting: func(c *Config) { c.MaxDepth = 2 },
			batches: []batch{{stream: 1, events: nested}},
			want:    []string{"s1/b 1", "s1/a 0"},
			metric:  "left_out", count: 1,
		},
		{
			name:    "min_duration",
			setting: func(c *Config) { c.MinDuration = 3 * time.Millisecond },
			batches: []batch{{stream: 1, events: nested}},
			want:    []string{"s1/b 1", "s1/a 0"},
			metric:  "left_out", count: 1,
		},
		{
			name:    "truncated",
			setting: func(c *Config) { c.Truncated = truncatedDrop },
			batches: []batch{{stream: 1, events: []string{"enter a", "enter b", "exit a"}}},
			want:    []string{"s1/a 0"},
			metric:  "truncated_frames", cause: "mismatch", count: 1,
		},
		{
			name:    "max_clock_jump",
			setting: func(c *Config) { c.MaxClockJump = 2 * time.Hour },
			batches: []batch{{stream: 1, numbers: []uint64{0, 1}, events: []string{"enter a", "exit a"}}},
			want:    []string{"s1/a 0"},
			metric:  "breaks", count: 0,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t, test.setting)
			b.handOver(test.batches...)
			assert.Equal(t, test.want, b.next.accepted())
			if test.cause == "" {
				assert.Equal(t, test.count, b.sum(test.metric))
			} else {
				assert.Equal(t, test.count, b.sum(test.metric, test.cause))
			}
			b.finish()
		})
	}
}

func TestNamesBeyondMaxNamesMiBAreDropped(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxNamesMiB = 1 })
	first := uint64(0)
	for range 2 {
		var events []string
		for i := range 20 {
			events = append(events, fmt.Sprintf("enter %s%d", strings.Repeat("n", 15_000), first+uint64(i)))
		}
		b.handOver(batch{stream: 1, first: first, events: events})
		first += uint64(len(events))
	}
	require.Zero(t, len(b.next.accepted()), "the bound is looked at before a batch is taken")
	b.handOver(batch{stream: 1, next: first})
	assert.Equal(t, 40, len(b.next.accepted()))
	assert.EqualValues(t, 40, b.sum("truncated_frames", "limit"))
	assert.EqualValues(t, 1, b.sum("breaks", "limit"))
	assert.Less(t, b.sum("memory"), int64(10_000))
	b.finish()
}

func TestAClockThatIsAheadIsABreak(t *testing.T) {
	ahead := batch{stream: 1, numbers: []uint64{0, 2 * 3_600_000}, events: []string{"enter a", "exit a"}}
	ahead.numbers[1] = 2 * 3_600_000
	for _, test := range []struct {
		jump   time.Duration
		breaks int64
	}{{30 * time.Minute, 1}, {3 * time.Hour, 0}} {
		b := newBed(t, func(c *Config) { c.MaxClockJump, c.Reorder.MaxEvents = test.jump, 1 })
		b.handOver(ahead, batch{stream: 1, numbers: []uint64{2*3_600_000 + 1}, events: []string{"skip"}})
		b.finish()
		assert.Equal(t, test.breaks, b.sum("breaks", "clock"), test.jump)
	}
}

// One warning for any number of batches and streams.
func TestMinDurationBelowTheResolutionOfAClockLogsOneWarning(t *testing.T) {
	b := newBed(t, func(c *Config) { c.MinDuration = time.Microsecond })
	b.handOver(call(1, "f", 0), call(2, "f", 0), call(1, "f", 2))
	require.Len(t, b.logs.All(), 1)
	assert.Contains(t, b.logs.All()[0].Message, "below the resolution")
	b.finish()
}
