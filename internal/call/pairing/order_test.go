// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// Rule 1.
func TestOrder(t *testing.T) {
	runStories(t, []story{
		{
			name: "events of one batch are paired in the order of their numbers",
			do: []act{batch(`
				3 -main
				1 +f
				0 +main
				2 -f`)},
			want: `
				main#0 0..30
				f#1 in #0 10..20`,
		},
		{
			name: "early events wait",
			do: []act{batch(`
				2 -f
				3 -main`), after(testWait - 1), batch(`
				0 +main
				1 +f`)},
			want: `
				main#0 0..30
				f#1 in #0 10..20`,
		},
		{
			name: "numbers that are missing for max_wait are a gap, and open calls are truncated",
			do: []act{batch(`
				0 +main
				1 +f
				4 +g
				5 -g`), after(testWait)},
			want: `
				main#0 0..11 truncated gap
				f#1 in #0 10..11 truncated gap
				g#4 40..50`,
			counts: `missing 2
				truncated gap 2
				breaks gap 1`,
		},
		{
			name: "only numbers that have been missing for max_wait are given up, not all up to the next waiting event",
			do: []act{batch(`
				0 +f
				1 -f`), announce(4), after(testWait / 2), batch(`9 +h`), after(testWait / 2), batch(`
				4 +g
				5 -g
				6 .
				7 .
				8 .
				10 -h`)},
			want: `
				f#0 0..10
				g#4 40..50
				h#9 90..100`,
			counts: `missing 2
				breaks gap 1`,
		},
		{
			name: "a keepalive shows that numbers are missing though no event waits",
			do:   []act{batch(`0 +f`), announce(5), after(testWait)},
			want: `f#0 0..1 truncated gap`,
			counts: `missing 4
				truncated gap 1
				breaks gap 1`,
		},
		{
			name: "a barrier far ahead starts the wait for the numbers before it",
			do: []act{batch(`0 +f`), announce(3), after(testWait / 2), announce(0, callevent.Point(100, callevent.CauseSuspended)),
				after(testWait / 2), batch(`
				3 +g
				4 -g`)},
			want: `
				f#0 0..1 truncated gap
				g#3 30..40`,
			counts: `missing 2
				truncated gap 1
				breaks gap 1`,
		},
		{
			name: "a number that arrives after it was given up is late, and the second time a duplicate",
			do: []act{batch(`
				0 +f
				3 +g`), after(testWait), batch(`
				1 -f
				2 +h`), batch(`1 -f`), batch(`0 +f`)},
			want: `f#0 0..1 truncated gap`,
			counts: `late 2
				duplicates 2
				missing 2
				truncated gap 1
				breaks gap 1`,
			open: 1,
		},
		{
			name: "a number that already waits is a duplicate",
			do:   []act{batch(`2 -f`), batch(`2 -f`), batch("1 +f"), batch("1 +f"), batch("0 .")},
			want: `f#1 10..20`, counts: `duplicates 2`,
		},
		{
			name: "a call stream that begins above 0 starts after max_wait with the cause joined",
			do: []act{batch(`
				1000 -f
				1001 +g
				1002 -g`), after(testWait)},
			want: `g#1001 10010..10020`,
			counts: `orphans 1
				breaks joined 1`,
		},
		{
			name:   "numbers before the first event of a joined stream are one break, and are not missing",
			do:     []act{announce(1000), after(testWait), announce(2000), after(testWait), announce(1 << 40), after(testWait), batch("1099511627776@0 +f\n1099511627777@10 -f")},
			want:   `f#1099511627776 0..10`,
			counts: `breaks joined 1`,
		},
		{
			name: "a gap that becomes known bit by bit is one break",
			do: []act{batch("0 +f"), announce(10), after(testWait), announce(20), after(testWait), batch("25 +g"), after(testWait),
				announce(30), after(testWait), announce(40), after(testWait)},
			want: `
				f#0 0..1 truncated gap
				g#25 250..251 truncated gap`,
			counts: `missing 38
				truncated gap 2
				breaks gap 2`,
		},
		{
			name: "a gap counts as no more than 2^32 numbers",
			do:   []act{batch("0 ."), announce(1 << 40), after(testWait)},
			counts: `missing 4294967296
				breaks gap 1`,
		},
		{
			name: "a break in the first batch is not another gap of a joined stream",
			do: []act{batch(`
				1000 +g
				1001 -g`, callevent.Point(900, callevent.CauseSuspended)), after(testWait)},
			want: `g#1000 10000..10010`,
			counts: `breaks suspended 1
				breaks joined 1`,
		},
		{
			name: "an interval inside a gap is a break of its own, and its numbers are not missing",
			do: []act{batch(`0 +f`), batch(`
				20 +g
				21 -g`, callevent.Interval(5, 10, callevent.CauseDiscarded)), after(testWait), batch(`6 +h`), batch(`4 +h`)},
			want: `
				f#0 0..1 truncated gap
				g#20 200..210`,
			counts: `late 1
				in break 1
				missing 14
				truncated gap 1
				breaks discarded 1
				breaks gap 1`,
		},
		{
			name:     "at max_events the oldest gap is given up, and the missing one is late",
			settings: func(s *Settings) { s.MaxEvents = 3 },
			do: []act{batch(`0 +f`), batch(`
				2 +g
				3 -g
				5 +h
				6 -h`), batch(`1 -f`)},
			want: `
				f#0 0..1 truncated gap
				g#2 20..30`,
			counts: `late 1
				missing 1
				truncated gap 1
				breaks gap 1`,
		},
		{
			name:     "an event that does not fit below the waiting events ends the gap, and is paired",
			settings: func(s *Settings) { s.MaxEvents = 10 },
			do: []act{batch(`
				0 +f
				20 +k`), batch(`
				5 +g
				6 -g
				7 +h
				8 -h`)},
			want: `
				f#0 0..1 truncated gap
				g#5 50..60
				h#7 70..80`,
			counts: `missing 4
				truncated gap 1
				breaks gap 1`,
		},
		{
			name: "at max_mib the oldest gap is given up, one at a time",
			do: []act{batch(`
				0 +f
				2 +g
				3 -g
				5 +h
				6 -h`), giveUpOldest},
			want: `
				f#0 0..1 truncated gap
				g#2 20..30`,
			counts: `missing 1
				truncated gap 1
				breaks gap 1`,
		},
		{
			name: "nothing is given up if nothing waits",
			do: []act{batch(`0 +f`), announce(5), giveUpOldest, batch(`
				1 .
				2 -f`)},
			want: `f#0 0..20`,
		},
		{
			name: "a skip uses a number and changes nothing else",
			do: []act{batch(`
				0 .
				1 +f
				2 .
				3 -f`)},
			want: `f#1 10..30`,
		},
		{
			name: "a stream with only skips has begun",
			do:   []act{batch(`0 .`), batch(`2 .`), after(testWait)},
			counts: `missing 1
				breaks gap 1`,
		},
		{
			name:     "numbers go on beyond 2^32",
			settings: func(s *Settings) { s.MaxEvents = 8 },
			do: []act{announce(0, callevent.Interval(0, 4294967294, callevent.CauseDropped)), batch(`
				4294967296@5 +g
				4294967297@6 -g
				4294967295@4 +f
				4294967298@7 -f
				4294967294@3 .`)},
			want: `
				f#4294967295 4..7
				g#4294967296 in #4294967295 5..6`,
			counts: `breaks dropped 1`,
		},
		{
			name: "a number far ahead gives up the numbers before it only if there is no room",
			do: []act{batch(`
				0 +f
				4611686018427387904@9 .`), batch(`1 -f`)},
			want: `f#0 0..10`,
		},
	})
}

// The wait for a number begins when the first later number is known, to 1/64 of max_wait, also with many batches.
func TestWaitingBeginsWithTheFirstLaterNumber(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	batch(`0 +f`)(r)
	const last = 200
	for n := uint64(2); n < last; n++ {
		r.now += testWait / last
		batchOf(func(d *delivery) { d.events[0].sequence = n }, "2 .")(r)
		if r.stream.Due(r.now) {
			t.Fatalf("the gap is given up after %s, expected after %s", r.now, testWait)
		}
	}
	if n := r.stream.Waiting(); n != last-2 {
		t.Fatalf("%d events wait, expected %d", n, last-2)
	}
	r.now = testWait/last + testWait + testWait/64
	if !r.stream.Due(r.now) {
		t.Fatalf("the gap is not given up after %s, expected after %s", r.now, testWait)
	}
	r.expire()
	if n := r.stream.Waiting(); n != 0 || r.counters.Breaks[callevent.CauseGap] != 1 {
		t.Fatalf("%d events wait after %d gaps, expected none after 1", n, r.counters.Breaks[callevent.CauseGap])
	}
	checkNoFault(t, r)
	if len(r.stream.order.arrivals) > 66 {
		t.Errorf("%d arrivals are remembered", len(r.stream.order.arrivals))
	}
}

// Arrivals within a grain are one entry. No number appears known earlier than it was.
func TestArrivalsAreNeverRememberedAsEarlier(t *testing.T) {
	var a arrivals
	a.rise(5, 100, 10)
	a.rise(4, 105, 10)
	a.rise(9, 110, 10)
	a.rise(12, 111, 10)
	for _, c := range []struct {
		at    time.Duration
		known uint64
	}{{99, 0}, {100, 0}, {109, 0}, {110, 9}, {111, 12}, {1000, 12}} {
		if known := a.knownBefore(c.at); known != c.known {
			t.Errorf("at %d the numbers below %d were known, expected %d", c.at, known, c.known)
		}
	}
	if a.forget(9); len(a) != 1 || a.knownBefore(1000) != 12 {
		t.Errorf("arrivals %v", a)
	}
	if a.forget(12); len(a) != 0 {
		t.Errorf("arrivals %v", a)
	}
}

// The time stands still while the processor refuses.
func TestNothingIsGivenUpWhileTimeStandsStill(t *testing.T) {
	settings := wide()
	r := newRig(&settings, 1)
	batch("0 +f\n2 -f")(r)
	for range 1000 {
		r.expire()
	}
	batch("1 .")(r)
	checkNoFault(t, r)
	if len(r.spans) != 1 || r.counters.Breaks[callevent.CauseGap] != 0 {
		t.Errorf("spans %v, counters %s", r.spans, countersText(r.counters))
	}
}

// The stream gives up more ranges than it remembers. Then the oldest numbers count as duplicates, and the newest
// still as late.
func TestTheOldestGivenUpNumbersAreForgotten(t *testing.T) {
	settings := wide()
	settings.MaxEvents = 1
	r := newRig(&settings, 1)
	for n := uint64(0); n < 4*maxRanges; n += 2 {
		batchOf(func(d *delivery) { d.events[0].sequence = n }, "0 .")(r)
	}
	if gaps := r.counters.Breaks[callevent.CauseGap]; gaps != 2*maxRanges-2 {
		t.Fatalf("%d gaps", gaps)
	}
	batch("1 .")(r)
	batchOf(func(d *delivery) { d.events[0].sequence = 4*maxRanges - 5 }, "0 .")(r)
	checkNoFault(t, r)
	if r.counters.Duplicates != 1 || r.counters.Late != 1 {
		t.Errorf("counters %s", countersText(r.counters))
	}
}

// Arrivals are forgotten when no number is missing, also without a call of Expire.
func TestAStreamThatLosesNothingRemembersFewArrivals(t *testing.T) {
	settings := wide()
	settings.MaxWait = 5 * time.Second
	r := newRig(&settings, 1)
	const step = 100 * time.Millisecond
	for n := uint64(0); r.now < time.Hour; n++ {
		// Each two neighbours change places.
		batchOf(func(d *delivery) { d.events[0].sequence = n ^ 1 }, "0 .")(r)
		if len(r.stream.order.arrivals) > 1 || r.stream.Due(r.now) {
			t.Fatalf("after %s, %d arrivals are remembered, due: %t", r.now, len(r.stream.order.arrivals), r.stream.Due(r.now))
		}
		r.now += step
	}
	checkNoFault(t, r)
}
