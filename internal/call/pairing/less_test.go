// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"testing"
)

// Rules 6 and 10.
func TestLess(t *testing.T) {
	shorter := func(d int64) func(*Settings) { return func(s *Settings) { s.MinDuration = d } }
	deeper := func(n int) func(*Settings) { return func(s *Settings) { s.MaxDepth = n } }
	drop := func(s *Settings) { s.DropTruncated = true }
	runStories(t, []story{
		{
			name:     "short calls of any status are left out and summed up in the caller",
			settings: shorter(15),
			do: []act{batch(`
				0 +main
				1 +a
				2 -a
				3 +b
				4 ^b Boom
				5 -main`)},
			want:   `main#0 0..50 left out 2 calls, 1 errors, 20 ns`,
			counts: `left out 2`,
		},
		{
			name:     "a call as long as min_duration has a span",
			settings: shorter(10),
			do:       []act{batch("0 +a\n1 -a\n2@20 +b\n3@29 -b")},
			want:     `a#0 0..10`, counts: `left out 1`,
		},
		{
			name:     "a call inside a left-out call is summed up with it, and its time counts once",
			settings: shorter(100),
			do: []act{batch(`
				0 +main
				1 +a
				2 +b
				3 ^b Boom
				4 -a
				20 -main`), after(testWait), batch(`5 .`)},
			want: `main#0 0..41 truncated gap left out 2 calls, 1 errors, 30 ns`,
			counts: `left out 2
				orphans 1
				late 1
				missing 15
				truncated gap 1
				breaks gap 1`,
		},
		{
			name:     "a truncated call is never short, and its callers have spans",
			settings: shorter(1000),
			do: []act{batch(`
				0 +a
				1 +b
				2 +c
				3 -b
				4 -a`)},
			want: `
				a#0 0..40
				b#1 in #0 10..30
				c#2 in #1 20..30 truncated mismatch`,
			counts: `truncated mismatch 1`,
		},
		{
			name:     "a dropped truncated call adds no span for its caller",
			settings: func(s *Settings) { s.MinDuration = 1000; s.DropTruncated = true },
			do: []act{batch(`
				0 +a
				1 +b
				2 -a`)},
			counts: `left out 1
				truncated mismatch 1`,
		},
		{
			name:     "a call below a dropped truncated call adds spans for the callers of that call",
			settings: func(s *Settings) { s.MinDuration = 15; s.DropTruncated = true },
			do: []act{batch(`
				0@0 +a
				1@1 +b
				2@2 +c
				3@17 -c
				4@18 -a`)},
			want: `
				a#0 0..18
				c#2 in #1 2..17`,
			counts: `truncated mismatch 1`,
		},
		{
			name:     "calls deeper than max_depth are left out, even long ones",
			settings: deeper(2),
			do: []act{batch(`
				0 +a
				1 +b
				2 +c
				3 +d
				4 ^d Boom
				5 -c
				6 -b
				7 -a`)},
			want: `
				a#0 0..70
				b#1 in #0 10..60 left out 2 calls, 1 errors, 30 ns`,
			counts: `left out 2`,
		},
		{
			name:     "a trace root below max_depth is left out as well",
			settings: func(s *Settings) { s.MaxDepth = 1; s.TraceRoot = func(string) bool { return true } },
			do:       []act{batch("0 +a\n1 +b\n2 -b\n3 -a")},
			want:     `a#0 0..30 trace 0 left out 1 calls, 0 errors, 10 ns`, counts: `left out 1`,
		},
		{
			name:     "calls below a call without its caller stay left out",
			settings: deeper(1),
			do:       []act{batch("0 +a\n1 +b\n2 +c"), announce(3, suspendedAt(1)), batch("3 -c\n4 -b\n5 +d\n6 -d")},
			want: `
				a#0 0..1 truncated suspended
				d#5 50..60`,
			counts: `left out 2
				truncated suspended 1
				breaks suspended 1`,
		},
		{
			name:     "calls inside a left-out call without callers are left out too",
			settings: deeper(2),
			do:       []act{batch("0 +a\n1 +b\n2 +c"), announce(3, suspendedAt(2)), batch("3 +d\n4 -d\n5 -c\n6 +e\n7 -e")},
			want: `
				a#0 0..11 truncated suspended
				b#1 in #0 10..11 truncated suspended
				e#6 60..70`,
			counts: `left out 2
				truncated suspended 2
				breaks suspended 1`,
		},
		{
			name:     "dropped truncated calls are counted, and the calls inside them are emitted",
			settings: drop,
			do:       []act{batch("0 +a\n1 +b\n2 -b\n3 +c", endAt(4))},
			want:     `b#1 in #0 10..20`,
			counts:   `truncated ended 2`,
		},
	})
}

func TestAMinDurationBelowTheClocksResolutionIsReported(t *testing.T) {
	for _, c := range []struct {
		min, resolution int64
		told            bool
	}{{0, 1000, false}, {999, 1000, true}, {1000, 1000, false}} {
		settings := wide()
		settings.MinDuration = c.min
		r := newRig(&settings, c.resolution)
		announce(1)(r)
		if r.counters.BelowResolution != c.told {
			t.Errorf("min_duration %d with resolution %d: reported %t", c.min, c.resolution, r.counters.BelowResolution)
		}
	}
}
