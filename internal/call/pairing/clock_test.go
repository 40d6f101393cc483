// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"math"
	"testing"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// Rule 7.
func TestTime(t *testing.T) {
	const jump = testJump
	// from is a batch that was received the given time after the epoch.
	from := func(received int64, events string) act {
		return batchOf(func(d *delivery) { d.received = testEpoch + received }, events)
	}
	runStories(t, []story{
		{
			name: "equal times, and times that go back a little, become 1 ns apart",
			do: []act{batch(`
				0@1000 +a
				1@1000 +b
				2@999 -b
				3@500 +c
				4@1003 -c
				5@2000 -a`)},
			want: `
				a#0 1000..2000
				b#1 in #0 1001..1002
				c#3 in #0 1003..1004`,
		},
		{
			name: "the times of skips and of waiting events have no effect before their turn",
			do:   []act{batch("2@7 -a"), batch("0@5 +a"), batch("1@900000000000 .")},
			want: `a#0 5..7`,
		},
		{
			name: "a time that is max_clock_jump behind the last becomes 1 ns later than the last",
			do:   []act{from(jump, "0@1000000000 +a\n1@0 -a\n2@1000000005 +b\n3@1000000006 -b")},
			want: `
				a#0 1000000000..1000000001
				b#2 1000000005..1000000006`,
		},
		{
			name: "a time that is further behind the last is a break, and the clock continues from it",
			do:   []act{from(jump, "0@1000000001 +a\n1@0 -a\n2@10 +b\n3@20 -b")},
			want: `
				a#0 1000000001..1000000002 truncated clock
				b#2 10..20`,
			counts: `orphans 1
				truncated clock 1
				breaks clock 1`,
		},
		{
			name: "a time that is max_clock_jump ahead of the receipt is no jump",
			do:   []act{from(0, "0 +a\n1@1000000000 -a")},
			want: `a#0 0..1000000000`,
		},
		{
			name: "a time that is further ahead of the receipt is a break, and the clock is set to the time of receipt",
			do:   []act{from(0, "0 +a\n1@1000000001 +b\n2@1000000011 -b\n3@1000000021 -a")},
			want: `
				a#0 0..1 truncated clock
				b#1 0..10`,
			counts: `orphans 1
				truncated clock 1
				breaks clock 1`,
		},
		{
			name: "a clock that is always ahead makes one break, at the first event",
			do: []act{from(4*jump+3244032, "0@100000000000 +a\n1@100000000005 -a"), from(4*jump+receivedGrain+3244032, `
				2@100004194304 +b
				3@100004194309 -b`)},
			want: `
				a#0 4001366016..4001366021
				b#2 4005560320..4005560325`,
			counts: `breaks clock 1`,
		},
		{
			name: "an event is compared with the receipt of its own batch, not of later batches",
			do:   []act{from(0, "0 +a"), from(0, "2@1000000001 +b"), from(100*jump, "3@1000000011 -b"), from(100*jump, "1@10 +c")},
			want: `
				a#0 0..11 truncated clock
				c#1 in #0 10..11 truncated clock
				b#2 0..10`,
			counts: `truncated clock 2
				breaks clock 1`,
		},
	})
}

// A time before 1970 becomes the start of 1970.
func TestATimeBefore1970Is1970(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	batchOf(func(d *delivery) {
		for i, at := range []int64{testJump + 1, -10, 5} {
			d.events[i].time = at
		}
	}, "0 +a\n1 +b\n2 -b")(r)
	checkNoFault(t, r)
	if n := r.counters.Breaks[callevent.CauseClock]; n != 1 || len(r.spans) != 2 || r.spans[1].Start != 0 || r.spans[1].End != 5 {
		t.Errorf("%d breaks, spans\n%s", n, lines(r.spans))
	}
}

func TestTheLeastAndTheLargestTimesMakeNoWrongSpans(t *testing.T) {
	for _, jump := range []int64{1, testJump, math.MaxInt64} {
		settings := wide()
		settings.MaxClockJump = jump
		r := newRig(&settings, 1_000_000_000)
		times := []int64{0, 1 << 62, 0, -(1 << 60), 1 << 61, 1<<62 - 1, 5, 1 << 62}
		for i, at := range times {
			batchOf(func(d *delivery) {
				for j := range d.events {
					d.events[j].sequence = uint64(2*i + j)
					// The packer's times are ticks from its epoch.
					d.events[j].time = testEpoch + (at-testEpoch)/1_000_000_000*1_000_000_000
				}
				d.received = []int64{0, 1 << 62, testEpoch}[i%3]
			}, "0 +a\n1 -a")(r)
		}
		checkNoFault(t, r)
		if wrong := wrongSpans(&settings, r.spans, true); wrong != "" {
			t.Errorf("jump %d: %s", jump, wrong)
		}
		for _, s := range r.spans {
			if s.Start < 0 {
				t.Errorf("jump %d: a span starts before 1970: %s", jump, s)
			}
		}
	}
}
