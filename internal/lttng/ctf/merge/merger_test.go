// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
)

// step is an action on a bed.
type step func(*bed)

// bed is a merger with the streams of a script, by name.
type bed struct {
	*merge.Merger
	t       *testing.T
	trace   interface{ Append([]byte) error }
	streams map[string]*merge.Stream
	now     time.Duration
}

func newBed(t *testing.T, options merge.Options) *bed {
	trace := newTrace(t)
	return &bed{Merger: merge.New(trace, options), t: t, trace: trace, streams: map[string]*merge.Stream{}}
}

// stream returns the stream of that name, and adds it if there is none.
func (b *bed) stream(name string) *merge.Stream {
	s := b.streams[name]
	if s == nil {
		s = b.AddStream(uint64(len(b.streams)), name)
		b.streams[name] = s
	}
	return s
}

// drain returns the results: events as "name time", late ones with "late" after them.
func (b *bed) drain() []string {
	var out []string
	for kind := b.Next(); kind != merge.Nothing; kind = b.Next() {
		name := b.Stream.Name
		switch kind {
		case merge.Event:
			line := fmt.Sprintf("%s %d", name, b.Time)
			if b.Late {
				line += " late"
			}
			out = append(out, line)
		case merge.LossBegin:
			out = append(out, fmt.Sprintf("%s: %s from %d", name, b.Loss.Cause, b.Loss.From))
		case merge.LossEnd:
			out = append(out, fmt.Sprintf("%s: %d %s to %d", name, b.Loss.Count, b.Loss.Cause, b.Loss.To))
		case merge.StreamEnd:
			out = append(out, name+" ended")
		}
	}
	return out
}

func streams(names ...string) step {
	return func(b *bed) {
		for _, name := range names {
			b.stream(name)
		}
	}
}

func send(name string, packets ...packet) step {
	return func(b *bed) {
		for _, p := range packets {
			b.stream(name).Packet(p.bytes(), nil)
		}
	}
}

func promise(name string, time uint64) step {
	return func(b *bed) { b.stream(name).Promise(0, time) }
}

func end(name string) step { return func(b *bed) { b.stream(name).End() } }

func replay(name string) step { return func(b *bed) { b.stream(name).Replay() } }

func markLoss(name string, cause merge.Cause) step {
	return func(b *bed) { b.stream(name).MarkLoss(cause) }
}

func pass(d time.Duration) step {
	return func(b *bed) {
		b.now += d
		b.Advance(b.now)
	}
}

// passBy passes a stream by. want is the expected result of PassBy.
func passBy(name string, want bool) step {
	return func(b *bed) { assert.Equal(b.t, want, b.stream(name).PassBy(merge.NoRoom)) }
}

// after is a step and the expected results after it.
type after struct {
	step step
	want []string
}

func TestEventsAreReturnedWhenNothingOlderCanArrive(t *testing.T) {
	const second = time.Second
	for name, script := range map[string][]after{
		"one stream does not wait": {
			{send("a", packet{begin: 1, end: 9, events: at(2, 3)}), []string{"a 2", "a 3"}},
			{send("a", packet{sequence: 1, begin: 9, end: 12, events: at(9, 11)}), []string{"a 9", "a 11"}},
			{end("a"), []string{"a ended"}},
		},
		"a stream without input delays all": {
			{streams("a", "b"), nil},
			{send("a", packet{begin: 1, end: 9, events: at(2, 3)}), nil},
			{send("b", packet{begin: 3, end: 5, events: at(3)}), []string{"a 2", "a 3", "b 3"}},
			{end("b"), []string{"b ended"}},
		},
		"a promise releases older events": {
			{streams("a", "b"), nil},
			{send("a", packet{begin: 1, end: 9, events: at(2, 3, 8)}), nil},
			{promise("b", 3), []string{"a 2", "a 3"}},
			{promise("b", 8), []string{"a 8"}},
		},
		"an event at the time of a promise waits only for earlier streams": {
			{streams("a", "b"), nil},
			{send("b", packet{begin: 1, end: 9, events: at(2, 3)}), nil},
			{promise("a", 3), []string{"b 2"}},
			{promise("a", 4), []string{"b 3"}},
		},
		"a promise never decreases": {
			{streams("a", "b"), nil},
			{promise("b", 7), nil},
			{promise("b", 3), nil},
			{send("a", packet{begin: 1, end: 9, events: at(6, 8)}), []string{"a 6"}},
		},
		"a packet's begin and end are promises": {
			{streams("a", "b"), nil},
			{send("a", packet{begin: 1, end: 20, events: at(2, 4, 6, 10)}), nil},
			{send("b", packet{begin: 3, end: 5}), []string{"a 2", "a 4"}},
			{send("b", packet{sequence: 1, begin: 7, end: 9, events: at(8)}), []string{"a 6", "b 8"}},
		},
		"events of equal times are in the order of the streams": {
			{streams("a", "b", "c"), nil},
			{send("c", packet{begin: 1, end: 5, events: at(4, 4)}), nil},
			{send("b", packet{begin: 1, end: 5, events: at(4)}), nil},
			{send("a", packet{begin: 1, end: 5, events: at(4)}), []string{"a 4", "b 4", "c 4", "c 4"}},
		},
		"an ended stream delays nothing": {
			{streams("a", "b"), nil},
			{send("b", packet{begin: 1, end: 9, events: at(2, 3)}), nil},
			{end("a"), []string{"a ended", "b 2", "b 3"}},
		},
		"a new stream delays newer events": {
			{send("a", packet{begin: 1, end: 5, events: at(4)}), []string{"a 4"}},
			{streams("b"), nil},
			{send("a", packet{sequence: 1, begin: 5, end: 9, events: at(6)}), nil},
			{send("b", packet{begin: 5, end: 9, events: at(5)}), []string{"b 5", "a 6"}},
		},
		"a new stream with older events is disordered": {
			{send("a", packet{begin: 1, end: 9, events: at(4, 8)}), []string{"a 4", "a 8"}},
			{send("b", packet{begin: 5, end: 7, events: at(5, 6)}), []string{"b: disordered from 5", "b 5 late", "b 6 late"}},
			{send("a", packet{sequence: 1, begin: 9, end: 20, events: at(9, 12)}), []string{"a 9", "a 12"}},
			{send("b", packet{sequence: 1, begin: 10, end: 14, events: at(11, 13)}), []string{"b 11 late", "b: 3 disordered to 12", "b 13"}},
		},
		"a stream with decreasing times is disordered": {
			{send("a", packet{begin: 1, end: 9, events: at(4, 8, 6, 7, 9)}), []string{"a 4", "a 8", "a: disordered from 6", "a 6 late", "a 7 late", "a: 2 disordered to 8", "a 9"}},
		},
		"a stream that ends without input is not disordered": {
			{send("a", packet{begin: 1, end: 5, events: at(4)}), []string{"a 4"}},
			{streams("b"), nil},
			{end("b"), []string{"b ended"}},
		},
		"a stream without clock delays no other": {
			{streams("a", "b"), nil},
			{send("b", packet{class: 1, events: at(0)}), nil},
			{send("a", packet{begin: 1, end: 5, events: at(4)}), []string{"b -9223372036854775808", "a 4"}},
			{send("b", packet{class: 1, events: at(0, 0)}), []string{"b 4", "b 4"}},
			{end("b"), []string{"b ended"}},
		},
		"a stalled stream is overtaken after the delay": {
			{streams("a", "b"), nil},
			{promise("b", 3), nil},
			{send("a", packet{begin: 1, end: 20, events: at(2, 4, 6)}), []string{"a 2"}},
			{pass(second - 1), nil},
			{pass(1), []string{"b: overtaken from 3", "a 4", "a 6"}},
			{send("b", packet{begin: 3, end: 5, events: at(4)}), []string{"b 4 late"}},
			{promise("b", 6), []string{"b: 1 overtaken to 6"}},
			{send("a", packet{sequence: 1, begin: 20, end: 30, events: at(21)}), nil},
			{promise("b", 22), []string{"a 21"}},
		},
		"two stalled streams delay as long as one": {
			{streams("a", "b", "c"), nil},
			{promise("b", 3), nil},
			{promise("c", 4), nil},
			{send("a", packet{begin: 1, end: 20, events: at(5)}), nil},
			{pass(second), []string{"b: overtaken from 3", "c: overtaken from 4", "a 5"}},
		},
		"a stream with input is not stalled": {
			{streams("a", "b"), nil},
			{promise("b", 3), nil},
			{send("a", packet{begin: 1, end: 20, events: at(5)}), nil},
			{pass(second - 1), nil},
			{promise("b", 4), nil},
			{pass(second - 1), nil},
			{promise("b", 4), nil},
			{pass(1), []string{"b: overtaken from 4", "a 5"}},
		},
		"a stream without room is passed by immediately": {
			{streams("a", "b", "c"), nil},
			{promise("b", 3), nil},
			{promise("c", 9), nil},
			{send("a", packet{begin: 1, end: 9, events: at(2, 4, 6)}), []string{"a 2"}},
			{passBy("c", false), nil},
			{passBy("b", true), []string{"b: no room from 3", "a 4", "a 6"}},
			{passBy("b", false), nil},
			{send("b", packet{begin: 3, end: 8, events: at(5, 7)}), []string{"b 5 late", "b: 1 no room to 6", "b 7"}},
		},
		"a stream is passed by only if others wait": {
			{streams("a", "b"), nil},
			{passBy("a", false), nil},
			{send("a", packet{begin: 1, end: 9, events: at(2)}), nil},
			{passBy("a", false), nil},
			{end("b"), []string{"b ended", "a 2"}},
			{passBy("b", false), nil},
		},
		"a stream is overtaken only if others wait": {
			{streams("a", "b"), nil},
			{promise("a", 3), nil},
			{promise("b", 5), nil},
			{pass(10 * second), nil},
			{send("b", packet{begin: 5, end: 20, events: at(6)}), nil},
			{pass(second - 1), nil},
			{promise("a", 9), []string{"b 6"}},
		},
		"an overtaken stream that ends has caught up": {
			{streams("a", "b"), nil},
			{send("a", packet{begin: 1, end: 20, events: at(5)}), nil},
			{pass(second), []string{"b: overtaken from -9223372036854775808", "a 5"}},
			{end("b"), []string{"b: 0 overtaken to 5", "b ended"}},
		},
		"discarded events lie after the last event that had room, or at the end of the previous packet": {
			{send("a", packet{begin: 1, end: 9, events: at(2)}), []string{"a 2"}},
			{send("a", packet{sequence: 1, begin: 9, end: 30, discarded: 7, events: at(10, 11, 12), room: 10}), []string{
				"a: discarded events from 9", "a 10", "a: 0 discarded events to 11", "a 11", "a 12", "a: discarded events from 12",
			}},
			{end("a"), []string{"a: 7 discarded events to 30", "a ended"}},
		},
		"discarded events may lie before a packet that does not begin at the end of the previous one": {
			{streams("a", "b"), nil},
			{send("a", packet{begin: 1, end: 9, events: at(2)}), nil},
			{send("b", packet{begin: 1, end: 50, events: at(8, 12, 16, 40)}), []string{"a 2", "b 8"}},
			{send("a", packet{sequence: 1, begin: 15, end: 30, discarded: 7, events: at(15, 17, 18), room: 10}), []string{
				"a: discarded events from 9", "b 12", "a 15", "b 16", "a: 0 discarded events to 17", "a 17", "a 18",
				"a: discarded events from 18",
			}},
			{promise("a", 32), []string{"a: 7 discarded events to 32"}},
		},
		"a loss at the end of a packet ends with the second event of the packet that follows": {
			{streams("a", "b"), nil},
			{send("a", packet{begin: 9, end: 30, discarded: 7, events: at(10, 12), room: 10}), nil},
			{send("b", packet{begin: 9, end: 50, events: at(20, 31, 41)}), []string{"a 10", "a 12", "a: discarded events from 12", "b 20"}},
			{send("a", packet{sequence: 1, begin: 30, end: 60, discarded: 7, events: at(30, 40, 42)}), []string{
				"a 30", "b 31", "a: 7 discarded events to 40", "a 40", "b 41", "a 42",
			}},
		},
		"a loss at the end of a packet ends with the only event of the packet that follows": {
			{send("a", packet{begin: 9, end: 30, discarded: 7, events: at(10, 12), room: 10}), []string{"a 10", "a 12", "a: discarded events from 12"}},
			{send("a", packet{sequence: 1, begin: 30, end: 60, discarded: 7, events: at(30)}), []string{"a 30", "a: 7 discarded events to 60"}},
		},
		"a loss at the end of a packet ends at the begin of one that does not follow": {
			{send("a", packet{begin: 9, end: 30, discarded: 7, events: at(10, 12), room: 10}), []string{"a 10", "a 12", "a: discarded events from 12"}},
			{send("a", packet{sequence: 1, begin: 35, end: 60, discarded: 7, events: at(36, 40)}), []string{"a: 7 discarded events to 35", "a 36", "a 40"}},
		},
		"events discarded at the end of a full packet may be counted by the next one": {
			{streams("a", "b"), nil},
			{send("a", packet{begin: 1, end: 20, events: at(2, 5), room: 1}), nil},
			{send("b", packet{begin: 1, end: 50, events: at(3, 10, 40)}), []string{"a 2", "b 3", "a 5", "b 10"}},
			{send("a", packet{sequence: 1, begin: 20, end: 30, discarded: 7, events: at(20, 21)}), []string{
				"a: discarded events from 20", "a 20", "a 21", "a: 7 discarded events to 30",
			}},
		},
		"streams do not wait for the packet after a full one": {
			{streams("a", "b"), nil},
			{send("a", packet{begin: 1, end: 20, events: at(2, 5), room: 1}), nil},
			{send("b", packet{begin: 1, end: 50, events: at(3, 10, 40)}), []string{"a 2", "b 3", "a 5", "b 10"}},
		},
		"events of other streams at that time lie inside the loss": {
			{streams("a", "b"), nil},
			{send("a", packet{begin: 9, end: 30, discarded: 7, events: at(10, 12), room: 10}), nil},
			{send("b", packet{begin: 9, end: 40, events: at(11, 13, 31)}), []string{"a 10", "b 11", "a 12", "a: discarded events from 12", "b 13"}},
			{promise("a", 32), []string{"b 31", "a: 7 discarded events to 32"}},
		},
		"after a large event, the loss begins earlier": {
			{send("a", packet{begin: 9, end: 30, discarded: 7, events: []event{{10, text(40)}, {11, ""}, {12, text(20)}, {13, ""}, {14, ""}}, room: 10}), []string{
				"a 10", "a 11", "a 12", "a: discarded events from 12", "a 13", "a 14",
			}},
			{end("a"), []string{"a: 7 discarded events to 30", "a ended"}},
		},
		"in a packet with room, the place of the loss is unknown": {
			{send("a", packet{begin: 1, end: 9, events: at(2)}), []string{"a 2"}},
			{send("a", packet{sequence: 1, begin: 10, end: 30, discarded: 7, events: at(10, 12), room: 1000}), []string{
				"a: discarded events from 9", "a 10", "a 12", "a: 7 discarded events to 30",
			}},
		},
		"a packet without end ends at its last event": {
			{func(b *bed) { require.NoError(b.t, b.trace.Append([]byte(moreText))) }, nil},
			{send("a", packet{class: 3, begin: 1, discarded: 7, events: at(2, 12, 14), room: 1000}), []string{
				"a: discarded events from 1", "a 2", "a 12", "a 14", "a: 7 discarded events to 14",
			}},
		},
		"a counter that runs backwards is a loss with an unknown number": {
			{send("a", packet{begin: 1, end: 9, discarded: 5, events: at(2), room: 10}), []string{"a 2", "a: discarded events from 2"}},
			{send("a", packet{sequence: 1, begin: 10, end: 30, discarded: 4, events: at(11)}), []string{"a: discarded events from 9", "a: 5 discarded events to 10", "a 11", "a: 0 discarded events to 30"}},
			{send("a", packet{sequence: 1, begin: 30, end: 40, discarded: 4}), []string{
				"a: lost packets from 30", "a: 0 lost packets to 30", "a: discarded events from 30", "a: 0 discarded events to 40",
			}},
			{send("a", packet{sequence: 2, begin: 40, end: 50, discarded: 6, events: at(41), room: 10}), []string{
				"a: discarded events from 40", "a 41", "a: discarded events from 41", "a: 0 discarded events to 50",
			}},
			{end("a"), []string{"a: 1 discarded events to 50", "a ended"}},
		},
		"lost packets lie between two packets": {
			{streams("a", "b"), nil},
			{send("a", packet{begin: 1, end: 9, events: at(2)}), nil},
			{promise("a", 12), nil},
			{send("a", packet{sequence: 4, begin: 20, end: 30, events: at(21)}), nil},
			{send("b", packet{begin: 1, end: 50, events: at(11, 15, 20, 40)}), []string{"a 2", "b 11", "a: lost packets from 12", "b 15", "a: 3 lost packets to 20", "b 20", "a 21"}},
		},
		"a loss reported by the caller ends at the next packet": {
			{streams("a", "b"), nil},
			{send("b", packet{begin: 1, end: 50, events: at(2, 8, 15, 40)}), nil},
			{send("a", packet{begin: 1, end: 5}), []string{"b 2"}},
			{markLoss("a", merge.Cleared), []string{"a: cleared from 5"}},
			{send("a", packet{sequence: 1, begin: 20, end: 30, events: at(21)}), []string{"b 8", "b 15", "a: 0 cleared to 20", "a 21"}},
		},
		"a loss reported by the caller ends at the next promise": {
			{streams("a"), nil},
			{send("a", packet{begin: 1, end: 5}), nil},
			{promise("a", 6), nil},
			{markLoss("a", merge.Cleared), []string{"a: cleared from 6"}},
			{promise("a", 8), []string{"a: 0 cleared to 8"}},
		},
		"a loss reported by the caller ends at the end": {
			{send("a", packet{begin: 1, end: 5}), nil},
			{markLoss("a", merge.Cleared), []string{"a: cleared from 5"}},
			{end("a"), []string{"a: 0 cleared to 5", "a ended"}},
		},
		"a second loss reported by the caller is part of the first": {
			{send("a", packet{begin: 1, end: 5}), nil},
			{markLoss("a", merge.Cleared), []string{"a: cleared from 5"}},
			{markLoss("a", merge.Interrupted), nil},
			{end("a"), []string{"a: 0 cleared to 5", "a ended"}},
			{markLoss("a", merge.Cleared), nil},
		},
		"replayed packets are skipped": {
			{send("a", packet{begin: 1, end: 9, events: at(2)}), []string{"a 2"}},
			{send("a", packet{sequence: 1, begin: 9, end: 19, events: at(12)}), []string{"a 12"}},
			{replay("a"), nil},
			{send("a", packet{begin: 1, end: 9, events: at(2)}), nil},
			{send("a", packet{sequence: 1, begin: 9, end: 19, events: at(12)}), nil},
			{send("a", packet{sequence: 2, begin: 19, end: 29, events: at(22)}), []string{"a 22"}},
		},
		"an ended stream with waiting events continues after a replay": {
			{streams("a", "b"), nil},
			{send("a", packet{begin: 1, end: 9, events: at(2)}), nil},
			{end("a"), nil},
			{replay("a"), nil},
			{send("a", packet{begin: 1, end: 9, events: at(2)}), nil},
			{send("a", packet{sequence: 1, begin: 9, end: 19, events: at(12)}), nil},
			{promise("b", 10), []string{"a 2"}},
			{promise("b", 30), []string{"a 12"}},
			{end("a"), []string{"a ended"}},
		},
		"an ended stream without waiting events continues after a replay": {
			{streams("a", "b"), nil},
			{promise("b", 5), nil},
			{send("a", packet{begin: 1, end: 9, events: at(2)}), []string{"a 2"}},
			{end("a"), nil},
			{replay("a"), nil},
			{promise("b", 30), nil},
			{send("a", packet{sequence: 1, begin: 9, end: 19, events: at(12)}), []string{"a 12"}},
			{end("a"), []string{"a ended"}},
		},
		"a stream does not continue after its end was returned": {
			{send("a", packet{begin: 1, end: 9, events: at(2)}), []string{"a 2"}},
			{end("a"), []string{"a ended"}},
			{replay("a"), nil},
			{send("a", packet{sequence: 1, begin: 9, end: 19, events: at(12)}), nil},
		},
		"packets missing from the replay are lost": {
			{send("a", packet{begin: 1, end: 9, events: at(2)}), []string{"a 2"}},
			{replay("a"), nil},
			{send("a", packet{sequence: 3, begin: 29, end: 39, events: at(32)}), []string{"a: lost packets from 9", "a: 2 lost packets to 29", "a 32"}},
		},
		"a replay before the first packet skips nothing": {
			{streams("a"), nil},
			{replay("a"), nil},
			{send("a", packet{begin: 1, end: 9, events: at(2)}), []string{"a 2"}},
		},
		"without sequence numbers an interruption is a loss": {
			{func(b *bed) { require.NoError(b.t, b.trace.Append([]byte(moreText))) }, nil},
			{send("a", packet{class: 2, begin: 1, end: 9, events: at(2)}), []string{"a 2"}},
			{replay("a"), nil},
			{send("a", packet{class: 2, begin: 1, end: 9, events: at(2)}), nil},
			{send("a", packet{class: 2, begin: 10, end: 19, events: at(12)}), []string{"a: interrupted from 9", "a: 0 interrupted to 10", "a 12"}},
		},
		"a promise of an unknown class waits for metadata": {
			{streams("a", "b"), nil},
			{send("a", packet{begin: 1, end: 9, events: at(2, 8)}), nil},
			{func(b *bed) { b.stream("b").Promise(2, 5) }, nil},
			{func(b *bed) { b.stream("b").Promise(2, 6) }, nil},
			{func(b *bed) { require.NoError(b.t, b.trace.Append([]byte(moreText))) }, nil},
			{pass(0), []string{"a 2"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, merge.Options{MaxDelay: second})
			for i, s := range script {
				s.step(b)
				assert.Equal(t, s.want, b.drain(), "after step %d", i)
				require.NoError(t, b.Err())
			}
		})
	}
}
