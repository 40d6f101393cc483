// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
)

// numbered returns a message with the events of each function, under a number.
func numbered(t testing.TB, dialect rbkit.Dialect, number uint64, write ...func(*rbkit.Collection) error) []byte {
	t.Helper()
	c := rbkit.NewCollection(dialect)
	for _, w := range write {
		require.NoError(t, w(c))
	}
	return c.AppendTo(nil, 1, number)
}

// at is an event of a garbage collection.
func at(millis rbkit.Time, what rbkit.Kind) func(*rbkit.Collection) error {
	return func(c *rbkit.Collection) error { return c.GC(what, millis) }
}

func TestAGarbageCollectionEndsWhereEventsAreMissed(t *testing.T) {
	const start, mark, sweep = rbkit.GCStart, rbkit.GCEndMark, rbkit.GCEndSweep
	message := func(number uint64, write ...func(*rbkit.Collection) error) []byte {
		return numbered(t, rbkit.Released, number, write...)
	}
	begin, end := message(0, at(1, start)), func(number uint64) []byte { return message(number, at(3_600_001, mark), at(3_600_002, sweep)) }
	wrong := append(message(1, at(2, mark)), 0)                                   // with something behind it
	short := message(1, at(2, mark), at(3, sweep))[:len(message(1, at(2, mark)))] // which announces one event more
	var garbage [][]byte
	for i := range rbkitserver.GarbageKinds() {
		garbage = append(garbage, rbkitserver.Garbage(i))
	}
	for name, c := range map[string]struct {
		messages        [][]byte
		spans           int
		noStart, noEnd  int64
		marked, lost    int64
		markedAtTheMost float64
	}{
		"nothing missed":                         {messages: [][]byte{begin, end(1)}, spans: 3, marked: 1, markedAtTheMost: 3600},
		"a gap":                                  {messages: [][]byte{begin, end(9)}, noStart: 2, noEnd: 1, lost: 8},
		"a gap before it":                        {messages: [][]byte{message(7), message(9, at(1, start)), end(10)}, spans: 3, marked: 1, lost: 1, markedAtTheMost: 3600},
		"after a malformed event":                {messages: [][]byte{begin, wrong, message(2, at(3_600_002, sweep))}, noStart: 1, noEnd: 1, marked: 1, markedAtTheMost: 0.001},
		"a truncated message":                    {messages: [][]byte{begin, short, message(2, at(3, sweep))}, spans: 3, marked: 1, markedAtTheMost: 0.001},
		"messages that are none of the server's": {messages: slices.Concat([][]byte{begin}, garbage, [][]byte{end(1)}), spans: 3, marked: 1, markedAtTheMost: 3600},
		"some in the place of the server's":      {messages: slices.Concat([][]byte{begin}, garbage, [][]byte{end(2)}), noStart: 2, noEnd: 1, lost: 1},
		"the end of the process":                 {messages: [][]byte{begin}, noEnd: 1},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := alone(t)
			s.Begin(origin.Identity{})
			for _, m := range c.messages {
				s.Receive(zmtp.Message{m})
			}
			b.finish(s)
			counted := b.Points()
			assert.Equal(t, c.spans, b.Traces.SpanCount())
			assert.Equal(t, [...]int64{c.noStart, c.noEnd, c.lost},
				[...]int64{counted["gc_unpaired{missing=start}"], counted["gc_unpaired{missing=end}"], counted["messages_lost"]})
			marking := stateOf(s).Marking
			assert.EqualValues(t, c.marked, marking.Count)
			assert.Equal(t, c.markedAtTheMost, marking.Max.Seconds())
		})
	}
}

func TestAGarbageCollectionEndsWithTheConnection(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server))
	server.awaitSubscriber()
	server.Publish(numbered(t, rbkit.Released, 0, at(1, rbkit.GCStart)))
	b.Await("the start", func() bool { return b.Counter("messages") == 1 })
	server.restart(server.options) // which is the same process to the receiver
	server.awaitSubscriber()
	server.Publish(numbered(t, rbkit.Released, 1, at(3_600_001, rbkit.GCEndMark), at(3_600_002, rbkit.GCEndSweep)))
	b.Await("the end", func() bool { return b.Counter("messages") == 2 })
	b.Shutdown()
	assert.Zero(t, b.Counter("restarts"))
	assert.Zero(t, b.Traces.SpanCount())
	assert.Zero(t, b.state().Marking.Count)
	assert.EqualValues(t, 1, b.Points()["gc_unpaired{missing=end}"])
}

// The first snapshot after a loss also has the allocations of a lost snapshot.
func TestASnapshotAfterALossHasNoBegin(t *testing.T) {
	snapshot := func(c *rbkit.Collection) error {
		return c.Snapshot(rbkit.Time(1000*(c.Len()+1)), nil, []rbkit.FileAllocations{{
			File: []byte("a.rb"), Allocations: []rbkit.PlaceAllocations{{Line: 1, Class: []byte("A"), Size: 40, Count: 1}},
		}})
	}
	for name, c := range map[string]struct {
		second uint64 // number
		want   []uint64
	}{
		"no loss": {second: 1, want: []uint64{0, 0, 1e9, 1e9}},
		"a loss":  {second: 2, want: []uint64{0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := alone(t)
			s.Begin(origin.Identity{})
			s.Receive(zmtp.Message{numbered(t, rbkit.Documented, 0, snapshot)})
			s.Receive(zmtp.Message{numbered(t, rbkit.Documented, c.second, at(1, rbkit.GCStart), snapshot)})
			b.finish(s)
			var durations []uint64
			for _, p := range b.Profiles.AllProfiles() {
				for _, one := range p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
					durations = append(durations, one.DurationNano())
				}
			}
			assert.Equal(t, c.want, durations)
		})
	}
}
