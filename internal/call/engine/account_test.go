// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/budget/budgettest"
	"github.com/callbraid/callbraid/internal/testkit"
)

// budgetFor starts the processor with a memory budget in MiB.
func (b *bed) budgetFor(mib int64) *budget.Budget {
	b.t.Helper()
	all := budget.New(mib << 20)
	b.t.Cleanup(all.Stop)
	require.NoError(b.t, b.Start(b.t.Context(), budgettest.Host(componenttest.NewNopHost(), all)))
	return all
}

// other opens an account of another component, which closes it when the budget demands memory.
func other(t *testing.T, b *budget.Budget, group string) *budget.Account {
	t.Helper()
	return b.Group(group).Open(budget.Settings{Leave: func(why *budget.Error) { t.Error(why) }})
}

// Many forged streams, each with an open or a returned call, make room for themselves. A slow
// stream that began earlier, and one that begins meanwhile, are complete.
func TestForgedStreamsDontEndHonestOnes(t *testing.T) {
	forged, most := 100_000, 2_000
	if testing.Short() {
		forged, most = 4_000, 160
	}
	for name, events := range map[string][]string{
		"with an open call":             {"enter f"},
		"with a call that has returned": {"enter f", "exit f"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(c *Config) { c.Limits.MaxStreams = most })
			next := map[byte]uint64{}
			send := func(stream byte, events ...string) {
				b.handOver(batch{stream: stream, first: next[stream], events: events})
				next[stream] += uint64(len(events))
			}
			const early, late = 1, 2
			td := traces(t, batch{service: "forged", events: events})
			send(early, "enter main")
			b.pass(time.Second)
			send(early, "enter f", "exit f")
			for i := range forged {
				renumber(td, i)
				require.NoError(t, b.ConsumeTraces(t.Context(), td))
				switch i % (most / 8) {
				case 0: // the late one comes a second time before it would have to make room
					if i >= forged/2 && i < forged/2+most/4 {
						send(late, "enter g", "exit g")
						b.pass(time.Second)
					}
				}
				if i%(forged/10) == 0 {
					send(early, "enter f", "exit f")
					b.pass(time.Second)
				}
			}
			send(early, "exit main")
			var honest []string
			for _, line := range b.next.accepted() {
				if line[0] == 's' {
					honest = append(honest, line)
				}
			}
			want := []string{"s1/f 1"}
			for i := range uint64(10) {
				want = append(want, fmt.Sprintf("s1/f %d", 3+2*i))
			}
			want = append(want, "s2/g 0", "s2/g 2", "s1/main 0")
			assert.ElementsMatch(t, want, honest, "none is truncated, and none is missing")
			assert.EqualValues(t, most, b.sum("streams"))
			assert.EqualValues(t, forged+2-most, b.sum("shed_streams", "max_streams"))
			assert.Contains(t, b.shardOf(streamID(late)).streams, streamID(late))
			b.finish()
		})
	}
}

// Silent streams do not keep new ones out, even if they are proven.
func TestProvenStreamsThatAreSilentMakeRoomForNewOnes(t *testing.T) {
	const most = 40
	b := newBed(t, func(c *Config) { c.Limits.MaxStreams = most })
	td := traces(t, call(0, "f", 0))
	send := func(from, to int) {
		for i := from; i < to; i++ {
			renumber(td, i)
			require.NoError(t, b.ConsumeTraces(t.Context(), td))
		}
		b.pass(provenAfter)
	}
	send(0, most)
	send(0, most)
	const atOnce = 5
	for i := 0; i < 10*most; i += atOnce {
		send(most+i, most+i+atOnce)
		send(most+i, most+i+atOnce)
		b.checkPlaces()
	}
	for i := range most * 3 / 4 {
		id := numbered(most + 10*most - 1 - i)
		require.Contains(t, b.shardOf(id).streams, id, "the newest have proved themselves")
	}
	b.finish()
}

// At the bound of the process the largest stream makes room, and a small one continues.
func TestAtTheMemoryBudgetTheLargestStreamMakesRoom(t *testing.T) {
	b := newBed(t)
	all := b.budgetFor(8)
	receiver := other(t, all, "bytefrog")
	require.NoError(t, receiver.Reserve(3<<20))
	b.handOver(batch{stream: 1, events: []string{"enter main"}}, batch{stream: 1, first: 2, events: []string{"enter f"}})
	for n := range uint64(20) { // 32 bytes each
		b.handOver(batch{stream: 2, first: 1 + 20_000*n, events: many(10_000, "enter f", "exit f")})
		require.LessOrEqual(t, all.Used(), all.Limit()+all.Limit()/8)
	}
	assert.Positive(t, b.sum("shed_streams", "memory_budget"))
	assert.EqualValues(t, 1, b.sum("breaks", "joined"), "of the large one")
	assert.Zero(t, b.sum("breaks", "gap"))
	lines := b.logs.FilterMessageSnippet("hold too much memory").All()
	require.Len(t, lines, 1)
	assert.Equal(t, "memory_budget", lines[0].ContextMap()["bound"])
	assert.Equal(t, streamID(2).String(), lines[0].ContextMap()["stream"])
	b.next.accepted()
	b.handOver(batch{stream: 1, first: 1, events: []string{"skip"}}, batch{stream: 1, first: 3, events: []string{"exit f", "exit main"}})
	assert.Equal(t, []string{"s1/f 2", "s1/main 0"}, b.next.accepted())
	b.finish()
	assert.EqualValues(t, 3<<20, all.Used(), "the shutdown returns all memory")
}

// demandedSums counts demands.
type demandedSums struct {
	Sums
	demands atomic.Int64
}

func (*demandedSums) Bytes() int64 { return 0 }
func (s *demandedSums) GiveWay()   { s.demands.Add(1) }

// The budget can demand memory while no hand-over arrives.
func TestTheMemoryBudgetGetsItsMemoryWhileNoHandOverArrives(t *testing.T) {
	b := newBed(t)
	sums := &demandedSums{}
	b.sums = sums
	all := b.budgetFor(8)
	b.handOver(batch{stream: 1, first: 1, events: []string{"enter f"}})
	for n := range uint64(8) {
		b.handOver(batch{stream: 2, first: 1 + 20_000*n, events: many(10_000, "enter f", "exit f")})
	}
	require.Greater(t, all.Used(), int64(4<<20))
	receiver := other(t, all, "bytefrog")
	require.NoError(t, receiver.Reserve(4<<20), "the processor holds most, so it makes room")
	require.True(t, testkit.Happens(func() bool { return all.Used() <= all.Limit() && b.sum("shed_streams", "memory_budget") > 0 }))
	assert.EqualValues(t, 1, b.sum("shed_streams", "memory_budget"))
	assert.EqualValues(t, 1, b.sum("waiting_events"), "of the small one")
	assert.Positive(t, sums.demands.Load(), "the sums give way too")
	b.finish()
}

// While the next component refuses, the spans of a stream that makes room for the budget are not
// held, because they take more memory than the stream.
func TestTheMemoryBudgetGetsItsMemoryWhileSpansAreHeld(t *testing.T) {
	b := newBed(t)
	all := b.budgetFor(16)
	for n := range uint64(16) {
		b.handOver(batch{stream: 2, first: 1 + 20_000*n, events: many(10_000, "enter f", "exit f")})
	}
	b.next.answerWith(refuses)
	b.handOver(call(1, "f", 0))
	require.Positive(t, b.sum("held_spans"))
	receiver := other(t, all, "bytefrog")
	require.NoError(t, receiver.Reserve(7<<20))
	require.True(t, testkit.Happens(func() bool { return all.Used() <= all.Limit() }))
	assert.EqualValues(t, 160_000, b.sum("dropped_spans", "memory_budget"))
	assert.EqualValues(t, 1, b.sum("held_spans"), "the held span stays")
	b.next.answerWith(nil)
	b.tick()
	assert.Equal(t, []string{"s1/f 0"}, b.next.accepted())
	b.finish()
}

// Running hand-overs count. Another one is refused meanwhile, and can be tried again.
func TestAHandOverIsRefusedWhileTheMemoryBudgetIsExceeded(t *testing.T) {
	b := newBed(t)
	all := b.budgetFor(1)
	other(t, all, "bytefrog")
	b.reserved.Add(2 << 20)
	require.ErrorIs(t, b.refuse(call(1, "f", 0)), errNoRoom)
	b.reserved.Add(-2 << 20)
	b.handOver(call(1, "f", 0))
	b.finish()
}

func TestTheStandingOfAStreamDoesNotDependOnDroppedCalls(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Truncated = truncatedDrop })
	b.handOver(call(1, "f", 0), batch{stream: 2, events: []string{"enter f"}},
		batch{stream: 3, events: []string{"enter f"}, barriers: []callevent.Barrier{callevent.End(1, callevent.CauseEnded)}})
	for stream, want := range map[byte]standing{1: hasReturned, 2: isNew, 3: hasEnded} {
		assert.Equal(t, want, b.shardOf(streamID(stream)).streams[streamID(stream)].standing)
	}
	b.finish()
}
