// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"testing"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

func suspendedAt(at uint64) callevent.Barrier { return callevent.Point(at, callevent.CauseSuspended) }

func discarded(from, to uint64) callevent.Barrier {
	return callevent.Interval(from, to, callevent.CauseDiscarded)
}

func endAt(at uint64) callevent.Barrier { return callevent.End(at, callevent.CauseEnded) }

// Rule 4, points.
func TestBreaks(t *testing.T) {
	const truncatedInTime = `
		main#0 0..11 truncated suspended
		f#1 in #0 10..11 truncated suspended
		g#2 20..30`
	runStories(t, []story{
		{
			name: "calls that were entered before a break end 1 ns after the last event before it",
			do: []act{batch(`
				0 +main
				1 +f
				2 +g
				3 -g
				4 -f
				5 -main`, suspendedAt(2))},
			want: truncatedInTime,
			counts: `orphans 2
				truncated suspended 2
				breaks suspended 1`,
		},
		{
			name: "a break that arrives early waits for its number",
			do: []act{announce(0, suspendedAt(2)), batch(`
				0 +main
				1 +f
				2 +g
				3 -g`)},
			want: truncatedInTime,
			counts: `truncated suspended 2
				breaks suspended 1`,
		},
		{
			name: "a break that arrives between its events is in time",
			do: []act{batch(`
				0 +main
				1 +f`), announce(0, suspendedAt(2)), batch(`
				2 +g
				3 -g`)},
			want: truncatedInTime,
			counts: `truncated suspended 2
				breaks suspended 1`,
		},
		{
			name: "a break before which events are missing waits for them",
			do: []act{batch(`0 +main`), batch(`
				2 +g
				3 -g`, suspendedAt(2)), batch(`1 +f`)},
			want: truncatedInTime,
			counts: `truncated suspended 2
				breaks suspended 1`,
		},
		{
			name: "a break that arrives twice is one break",
			do: []act{announce(0, suspendedAt(2)), batch(`
				0 +main
				1 +f`, suspendedAt(2)), batch(`
				2 +g
				3 -g`, suspendedAt(2)), announce(4, suspendedAt(2))},
			want: truncatedInTime,
			counts: `truncated suspended 2
				breaks suspended 1`,
		},
		{
			name: "a break that arrives late truncates only earlier calls, at the last event inside each",
			do: []act{batch(`
				0 +main
				1 +f
				2 !f Boom
				3 +g
				4 +h`), announce(5, suspendedAt(3)), batch(`
				5 -h
				6 -g
				7 -f
				8 -main`)},
			want: `
				main#0 0..20 truncated suspended
				f#1 in #0 10..20 truncated suspended throws "Boom" at 20
				g#3 30..60
				h#4 in #3 40..50`,
			counts: `orphans 2
				truncated suspended 2
				breaks suspended 1`,
		},
		{
			name: "a frame without an event inside before a late break is 1 ns long",
			do: []act{batch(`
				0 +main
				1 2:+f
				2 2:-f`), announce(3, suspendedAt(1))},
			want: `
				main#0 0..1 truncated suspended
				f#1 10..20 lane 2`,
			counts: `truncated suspended 1
				breaks suspended 1`,
		},
		{
			name: "calls that ended in a frame before a late break arrived lie inside the frame",
			do: []act{batch(`
				0 +main
				1 +f
				2 -f
				3 +g
				4 -g`), announce(5, suspendedAt(3))},
			want: `
				main#0 0..40 truncated suspended
				f#1 in #0 10..20
				g#3 in #0 30..40`,
			counts: `truncated suspended 1
				breaks suspended 1`,
		},
		{
			name: "each of two late breaks truncates the calls that were entered before it",
			do: []act{batch(`
				0 +a
				1 +b
				2 +c
				3 +d`), announce(4, suspendedAt(3)), announce(4, suspendedAt(1)), batch(`4 -d`)},
			want: `
				a#0 0..21 truncated suspended
				b#1 in #0 10..21 truncated suspended
				c#2 in #1 20..21 truncated suspended
				d#3 30..40`,
			counts: `truncated suspended 3
				breaks suspended 2`,
		},
		{
			name: "a second late break finds a frame without its caller",
			do: []act{batch(`
				0 +a
				1 +b
				2 +c`), announce(3, suspendedAt(1)), announce(3, suspendedAt(2)), batch(`3 -c`)},
			want: `
				a#0 0..1 truncated suspended
				b#1 10..11 truncated suspended
				c#2 20..30`,
			counts: `truncated suspended 2
				breaks suspended 2`,
		},
		{
			name: "throws and attributes stay with their frames at a late break",
			do: []act{batch(`
				0 +a
				1 !a A
				2 +b
				3 !b B
				4 +c
				5 !c C
				6 !c D`), announce(7, suspendedAt(4)), batch(`7 ^c D`)},
			want: `
				a#0 0..30 truncated suspended throws "A" at 10
				b#2 in #0 20..30 truncated suspended throws "B" at 30
				c#4 40..70 unwound "D" throws "C" at 50 throws "D" at 60`,
			counts: `truncated suspended 2
				breaks suspended 1`,
		},
		{
			name: "all lanes break",
			do: []act{batch(`
				0 1:+f
				1 2:+f
				2 1:-f
				3 2:-f`, suspendedAt(2))},
			want: `
				f#0 0..11 truncated suspended
				f#1 10..11 lane 2 truncated suspended`,
			counts: `orphans 2
				truncated suspended 2
				breaks suspended 1`,
		},
	})
}

// Rule 4, intervals.
func TestIntervals(t *testing.T) {
	runStories(t, []story{
		{
			name: "frames open at the begin end there, events inside are not paired, and stacks are empty at the end",
			do: []act{batch(`
				0 +main
				1 +f
				2 -f
				3 +g
				4 -main
				5 +h
				6 -h`, discarded(2, 5))},
			want: `
				main#0 0..11 truncated discarded
				f#1 in #0 10..11 truncated discarded
				h#5 50..60`,
			counts: `in break 3
				truncated discarded 2
				breaks discarded 1`,
		},
		{
			name: "the stream does not wait for events inside",
			do: []act{batch(`0 +main`), batch(`
				100 +h
				101 -h`, discarded(1, 100))},
			want: `
				main#0 0..1 truncated discarded
				h#100 1000..1010`,
			counts: `truncated discarded 1
				breaks discarded 1`,
		},
		{
			name: "an event inside that waited, or arrives later, counts once, and then as a duplicate",
			do: []act{batch(`
				3 +f
				4 -f`), batch(`0 .`, discarded(1, 6)), batch(`3 +f`), batch(`2 +f`), batch(`2 +f`)},
			counts: `duplicates 2
				in break 3
				breaks discarded 1`,
		},
		{
			name: "an interval that arrives after events inside were paired truncates all open calls",
			do: []act{batch(`
				0 +main
				1 +f
				2 +g`), announce(0, discarded(1, 5)), batch(`
				3 -g
				4 -f
				5 +h
				6 -h`)},
			want: `
				main#0 0..21 truncated discarded
				f#1 in #0 10..21 truncated discarded
				g#2 in #1 20..21 truncated discarded
				h#5 50..60`,
			counts: `in break 2
				truncated discarded 3
				breaks discarded 1`,
		},
		{
			name: "an interval that arrives late truncates the calls that were entered before its end",
			do: []act{batch(`
				0 +main
				1 +f
				2 -f
				3 +g
				4 +h`), announce(5, discarded(1, 4)), batch(`5 -h`)},
			want: `
				main#0 0..31 truncated discarded
				f#1 in #0 10..20
				g#3 in #0 30..31 truncated discarded
				h#4 40..50`,
			counts: `truncated discarded 2
				breaks discarded 1`,
		},
		{
			name: "events that wait behind an interval are paired when the interval arrives",
			do: []act{batch(`
				5 +h
				6 -h`), announce(0, discarded(0, 5)), batch(`7 .`)},
			want:   `h#5 50..60`,
			counts: `breaks discarded 1`,
		},
		{
			name: "a barrier inside or behind an interval is obeyed when the interval arrives",
			do: []act{batch(`
				5 +h
				6 -h`, suspendedAt(3), suspendedAt(6)), announce(0, discarded(0, 5))},
			want: `h#5 50..51 truncated suspended`,
			counts: `orphans 1
				truncated suspended 1
				breaks suspended 2
				breaks discarded 1`,
		},
		{
			name: "intervals that overlap reach from the first begin to the last end",
			do: []act{batch(`
				0 +a
				1 +b
				2 +c
				3 +d
				4 +e
				5 -e
				6 -d`, discarded(1, 3), discarded(2, 4))},
			want: `
				a#0 0..1 truncated discarded
				e#4 40..50`,
			counts: `orphans 1
				in break 3
				truncated discarded 1
				breaks discarded 2`,
		},
		{
			name: "an interval inside another changes nothing",
			do: []act{batch(`
				0 +a
				1 +b
				2 +c
				3 +d
				4 +e
				5 -e`, discarded(1, 4), discarded(2, 3))},
			want: `
				a#0 0..1 truncated discarded
				e#4 40..50`,
			counts: `in break 3
				truncated discarded 1
				breaks discarded 2`,
		},
		{
			name: "the second of two adjacent intervals begins at the end of the first",
			do: []act{batch(`
				0 +a
				1 +b
				2 +c
				3 +d
				4 -d`, discarded(1, 2), discarded(2, 3))},
			want: `
				a#0 0..1 truncated discarded
				d#3 30..40`,
			counts: `in break 2
				truncated discarded 1
				breaks discarded 2`,
		},
		{
			name: "an interval at the beginning is not counted as joined",
			do: []act{announce(0, discarded(0, 1000)), batch(`
				1000 +f
				1001 -f`)},
			want:   `f#1000 10000..10010`,
			counts: `breaks discarded 1`,
		},
	})
}

// Rule 5.
func TestEnds(t *testing.T) {
	runStories(t, []story{
		{
			name: "open calls are truncated at the end, with its cause",
			do: []act{batch(`
				0 +main
				1 +f
				2 -f`), announce(3, endAt(3))},
			want: `
				main#0 0..21 truncated ended
				f#1 in #0 10..20`,
			counts: `truncated ended 1`,
		},
		{
			name: "an end that arrives early waits for the events before it",
			do:   []act{announce(2, endAt(2)), batch(`1 -f`), batch(`0 +f`)},
			want: `f#0 0..10`,
		},
		{
			name: "an end before which numbers stay missing takes effect after max_wait",
			do:   []act{batch(`0 +f`), announce(0, endAt(3)), after(testWait), batch(`1 -f`), batch(`0 +f`)},
			want: `f#0 0..1 truncated gap`,
			counts: `late 1
				duplicates 1
				missing 2
				truncated gap 1
				breaks gap 1`,
		},
		{
			name:   "an end that arrives late ends everything",
			do:     []act{batch("0 +f\n1 +g"), announce(0, endAt(1)), batch(`2 -g`)},
			want:   "f#0 0..11 truncated ended\ng#1 in #0 10..11 truncated ended",
			counts: "late 1\ntruncated ended 2",
		},
		{
			name:   "a repeated end changes nothing",
			do:     []act{batch("0 +f", endAt(1)), announce(1, endAt(1)), end(callevent.CauseIdle), batch("0 +f", endAt(1))},
			want:   `f#0 0..1 truncated ended`,
			counts: "duplicates 1\ntruncated ended 1",
		},
		{
			name:   "events behind the end are late, if they arrive before it or after it",
			do:     []act{batch("0 +f\n1 -f\n2 +g\n5 +h", endAt(2)), batch("3 -g")},
			want:   `f#0 0..10`,
			counts: `late 3`,
		},
		{
			name: "barriers behind the end change nothing",
			do:   []act{batch("0 +f\n1 -f", endAt(2), suspendedAt(3), discarded(2, 5)), announce(9, suspendedAt(0), suspendedAt(7))},
			want: `f#0 0..10`,
			// The break before the end has the same place.
			counts: ``,
		},
		{
			name: "at an end without a barrier the waiting events are paired, with gaps between them",
			do:   []act{batch("0 +f\n2 +g\n3 -g\n5 +h"), end(callevent.CauseShutdown)},
			want: `
				f#0 0..1 truncated gap
				g#2 20..30
				h#5 50..51 truncated shutdown`,
			counts: `missing 2
				truncated shutdown 1
				truncated gap 1
				breaks gap 2`,
		},
		{
			name: "no number is given up behind an end",
			do:   []act{batch("0 +f\n10 +g", endAt(5)), end(callevent.CauseShutdown)},
			want: `f#0 0..1 truncated gap`,
			counts: `late 1
				missing 4
				truncated gap 1
				breaks gap 1`,
		},
		{
			name:     "no gap behind an end is given up to make room",
			settings: func(s *Settings) { s.MaxEvents = 4 },
			do:       []act{batch("0 +f\n10 +g", endAt(5)), batch("1000 .")},
			want:     `f#0 0..1 truncated gap`,
			counts: `late 2
				missing 4
				truncated gap 1
				breaks gap 1`,
		},
		{
			name:   "an end before waiting events ends the forgetting of names",
			do:     []act{batch("0 +f\n10 +g", endAt(5)), func(r *rig) { r.stream.Forget(&r.out); r.collect() }, batch("1 -f")},
			want:   `f#0 0..1 truncated gap`,
			counts: "late 2\nmissing 4\ntruncated gap 1\nbreaks gap 1",
		},
		{
			name: "a stream that ends before its first batch has no calls",
			do:   []act{announce(0, endAt(0)), batch("0 +f")}, counts: `late 1`,
		},
	})
}
