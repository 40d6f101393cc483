// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"testing"
)

// Rule 9.
func TestTraces(t *testing.T) {
	atMost := func(n int) func(*Settings) { return func(s *Settings) { s.MaxSpansPerTrace = n } }
	roots := func(s *Settings) { s.TraceRoot = func(qualified string) bool { return qualified == "serve" } }
	runStories(t, []story{
		{
			name:     "the bottom frame of a lane is the root of a trace",
			settings: atMost(100),
			do: []act{batch(`
				0 1:+f
				1 2:+f
				2 1:+g
				3 1:-g
				4 1:-f
				5 2:-f
				6 1:+f
				7 1:-f`)},
			want: `
				f#0 0..40 trace 0
				f#1 10..50 lane 2 trace 1
				g#2 in #0 20..30 trace 0
				f#6 60..70 trace 6`,
		},
		{
			name:     "frames of a full trace continue in one continuation trace of their lane, until that trace is full",
			settings: atMost(2),
			do: []act{batch(`
				0 +main
				1 +a
				2 -a
				3 +b
				4 -b
				5 +c
				6 +d
				7 -d
				8 -c
				9 -main`)},
			want: `
				main#0 0..90 trace 0
				a#1 in #0 10..20 trace 0
				b#3 in #0 30..40 trace 3 continues 0
				c#5 in #0 50..80 trace 3 continues 0
				d#6 in #5 60..70 trace 6 continues 3`,
		},
		{
			name:     "a continuation trace continues after the lane has returned to the bottom",
			settings: atMost(3),
			do: []act{batch(`
				0 +a
				1 +b
				2 +c
				3 +d
				4 -d
				5 -c
				6 -b
				7 -a
				8 +a
				9 +b
				10 +c
				11 +d
				12 +e
				13 -e
				14 -d
				15 -c
				16 -b
				17 -a
				18 +a
				19 +b
				20 +c
				21 +d
				22 -d
				23 -c
				24 -b
				25 -a`)},
			want: `
				a#0 0..70 trace 0
				b#1 in #0 10..60 trace 0
				c#2 in #1 20..50 trace 0
				d#3 in #2 30..40 trace 3 continues 0
				a#8 80..170 trace 8
				b#9 in #8 90..160 trace 8
				c#10 in #9 100..150 trace 8
				d#11 in #10 110..140 trace 3 continues 8
				e#12 in #11 120..130 trace 3
				a#18 180..250 trace 18
				b#19 in #18 190..240 trace 18
				c#20 in #19 200..230 trace 18
				d#21 in #20 210..220 trace 21 continues 18`,
		},
		{
			name:     "each lane has a continuation trace of its own",
			settings: atMost(1),
			do: []act{batch(`
				0 1:+a
				1 2:+a
				2 1:+b
				3 2:+b
				4 1:-b
				5 2:-b
				6 1:-a
				7 2:-a`)},
			want: `
				a#0 0..60 trace 0
				a#1 10..70 lane 2 trace 1
				b#2 in #0 20..40 trace 2 continues 0
				b#3 in #1 30..50 lane 2 trace 3 continues 1`,
		},
		{
			name:     "left-out frames make room in their trace",
			settings: func(s *Settings) { s.MaxSpansPerTrace, s.MinDuration = 2, 15 },
			do: []act{batch(`
				0 +main
				1 +a
				2 -a
				3 +b
				5 -b
				6 +c
				8 -c
				4 .
				7 .
				9 -main`)},
			want: `
				main#0 0..90 trace 0 left out 1 calls, 0 errors, 10 ns
				b#3 in #0 30..50 trace 0
				c#6 in #0 60..80 trace 6 continues 0`,
			counts: `left out 1`,
		},
		{
			name:     "dropped frames make room in their trace",
			settings: func(s *Settings) { s.MaxSpansPerTrace, s.DropTruncated = 2, true },
			do: []act{batch(`
				0 +main
				1 +a
				2 !main Boom
				3 +b
				4 -b
				5 -main`)},
			want: `
				main#0 0..50 trace 0 throws "Boom" at 20
				b#3 in #0 30..40 trace 0`,
			counts: `truncated mismatch 1`,
		},
		{
			name:     "a trace root starts a trace at any depth, with a link to its caller's trace",
			settings: roots,
			do: []act{batch(`
				0 +main
				1 +serve
				2 +a
				3 -a
				4 +serve
				5 -serve
				6 -serve
				7 +b
				8 -b
				9 -main
				10 +serve
				11 -serve`)},
			want: `
				main#0 0..90 trace 0
				serve#1 in #0 10..60 trace 1 root from 0
				a#2 in #1 20..30 trace 1
				serve#4 in #1 40..50 trace 4 root from 1
				b#7 in #0 70..80 trace 0
				serve#10 100..110 trace 10`,
		},
		{
			name:     "a trace root starts a trace even if its caller's trace is full",
			settings: func(s *Settings) { roots(s); s.MaxSpansPerTrace = 1 },
			do: []act{batch(`
				0 +main
				1 +serve
				2 +a
				3 -a
				4 -serve
				5 -main`)},
			want: `
				main#0 0..50 trace 0
				serve#1 in #0 10..40 trace 1 root from 0
				a#2 in #1 20..30 trace 2 continues 1`,
		},
		{
			name:     "a frame without its caller stays in its trace, without a link",
			settings: atMost(1),
			do: []act{batch(`
				0 +main
				1 +a`), announce(2, suspendedAt(1)), batch(`2 -a`)},
			want: `
				main#0 0..1 trace 0 truncated suspended
				a#1 10..20 trace 1`,
			counts: `truncated suspended 1
				breaks suspended 1`,
		},
	})
}
