// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// loop are the events of a loop in a function, which calls others in turn. A call takes 10 ns.
func loop(first uint64, rounds int, functions ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d +loop\n", first)
	for range rounds {
		for _, f := range functions {
			fmt.Fprintf(&b, "%d +%s\n%d -%s\n", first+1, f, first+2, f)
			first += 2
		}
	}
	fmt.Fprintf(&b, "%d -loop\n", first+1)
	return b.String()
}

func TestRepeatedCalls(t *testing.T) {
	// So the limiter lets the spans of a second pass, and the trace that exceeds them.
	still := func() time.Duration { return time.Hour }
	fold := func(k *Keep) func(*Settings) {
		k.FoldShorterThan = 100
		return func(s *Settings) { s.Keep = k }
	}
	oneOf := func(s *Settings) { fold(&Keep{})(s); s.MaxSpansPerTrace = 3 }
	var many []string
	var folded, unfolded strings.Builder
	for i := range 16 + 1 {
		many = append(many, fmt.Sprint("f", i))
		if i < 16 {
			fmt.Fprintf(&folded, "f%d#%d in #0 %d..%d 3 calls of 10 to 10 ns, 30 ns kept: ratio\n", i, 1+2*i, 10+20*i, 20+20*(i+2*16))
		}
	}
	for i := range 2 * len(many) {
		fmt.Fprintf(&unfolded, "f%d#%d in #0 %d..%d kept: ratio\n", i%len(many), 1+2*i, 10+20*i, 20+20*i)
	}
	runStories(t, []story{
		{
			name:     "the short calls of a function by one caller are one call, from the start of the first to the end of the last",
			settings: fold(&Keep{}),
			do:       []act{batch("0 +a\n1 +b\n2@25 -b\n3 +b\n4 -b\n5 +b\n6@90 -b\n7@100 -a")},
			want: `
				a#0 0..100 kept: ratio
				b#1 in #0 10..90 3 calls of 10 to 40 ns, 65 ns kept: ratio`,
			counts: "kept ratio: 1 traces, 4 calls\nrepeated 2 calls",
		},
		{
			name:     "without the setting each call is a call",
			settings: func(s *Settings) { s.Keep = &Keep{} },
			do:       []act{batch(loop(0, 2, "b"))},
			want: `
				loop#0 0..50 kept: ratio
				b#1 in #0 10..20 kept: ratio
				b#3 in #0 30..40 kept: ratio`,
			counts: "kept ratio: 1 traces, 3 calls",
		},
		{
			name:     "calls of several functions in a loop are one call for each function",
			settings: fold(&Keep{}),
			do:       []act{batch(loop(0, 2, "b", "c"))},
			want: `
				loop#0 0..90 kept: ratio
				b#1 in #0 10..60 2 calls of 10 to 10 ns, 20 ns kept: ratio
				c#3 in #0 30..80 2 calls of 10 to 10 ns, 20 ns kept: ratio`,
			counts: "kept ratio: 1 traces, 5 calls\nrepeated 2 calls",
		},
		{
			name:     "a call that is not short stays a call, and those after it join the group before it",
			settings: fold(&Keep{}),
			do:       []act{batch("0 +a\n1 +b\n2 -b\n3 +b\n4@130 -b\n5@140 +b\n6@150 -b\n7@160 -a")},
			want: `
				a#0 0..160 kept: ratio
				b#1 in #0 10..150 2 calls of 10 to 10 ns, 20 ns kept: ratio
				b#3 in #0 30..130 kept: ratio`,
			counts: "kept ratio: 1 traces, 4 calls\nrepeated 1 calls",
		},
		{
			name:     "each caller has calls of its own, also a caller that called another one meanwhile",
			settings: fold(&Keep{}),
			do:       []act{batch("0 +a\n1 +x\n2 -x\n3 +b\n4 +x\n5 -x\n6 +x\n7 -x\n8 -b\n9 +x\n10 -x\n11 -a")},
			want: `
				a#0 0..110 kept: ratio
				x#1 in #0 10..100 2 calls of 10 to 10 ns, 20 ns kept: ratio
				b#3 in #0 30..80 kept: ratio
				x#4 in #3 40..70 2 calls of 10 to 10 ns, 20 ns kept: ratio`,
			counts: "kept ratio: 1 traces, 6 calls\nrepeated 2 calls",
		},
		{
			name:     "calls with an exception or a callee stay calls",
			settings: fold(&Keep{}),
			do:       []act{batch("0 +a\n1 +b\n2 -b\n3 +b\n4 !b E\n5 -b\n6 +b\n7 ^b E\n8 +b\n9 +c\n10 -c\n11 -b\n12 +b\n13 -b\n14 -a")},
			want: `
				a#0 0..140 kept: ratio
				b#1 in #0 10..130 2 calls of 10 to 10 ns, 20 ns kept: ratio
				b#3 in #0 30..50 throws "E" at 40 kept: ratio
				b#6 in #0 60..70 unwound "E" throws "E" at 70 kept: ratio
				b#8 in #0 80..110 kept: ratio
				c#9 in #8 90..100 kept: ratio`,
			counts: "kept ratio: 1 traces, 7 calls\nrepeated 1 calls",
		},
		{
			name:     "calls that returned an error stay calls",
			settings: fold(&Keep{}),
			do:       []act{batch("0 +a\n1 +b\n2 ~b E\n3 +b\n4 -b\n5 +b\n6 ~b E\n7 +b\n8 -b\n9 -a")},
			want: `
				a#0 0..90 kept: ratio
				b#1 in #0 10..20 unwound "E" kept: ratio
				b#3 in #0 30..80 2 calls of 10 to 10 ns, 20 ns kept: ratio
				b#5 in #0 50..60 unwound "E" kept: ratio`,
			counts: "kept ratio: 1 traces, 5 calls\nrepeated 1 calls",
		},
		{
			name:     "a call that returned an error keeps its trace, also among repeated ones",
			settings: fold(&Keep{Errors: true, Threshold: NoThreshold}),
			do:       []act{batch("0 +a\n1 +b\n2 -b\n3 +b\n4 ~b E\n5 +b\n6 -b\n7 -a")},
			want: `
				a#0 0..70 kept: error
				b#1 in #0 10..60 2 calls of 10 to 10 ns, 20 ns kept: error
				b#3 in #0 30..40 unwound "E" kept: error`,
			counts: "kept error: 1 traces, 4 calls\nrepeated 1 calls",
		},
		{
			name:     "calls with an exception that is not shown stay calls",
			settings: func(s *Settings) { fold(&Keep{})(s); s.MaxThrows = 0 },
			do:       []act{batch("0 +a\n1 +b\n2 -b\n3 +b\n4 !b E\n5 -b\n6 +b\n7 ^b E\n8 -a")},
			want: `
				a#0 0..80 kept: ratio
				b#1 in #0 10..20 kept: ratio
				b#3 in #0 30..50 and 1 more kept: ratio
				b#6 in #0 60..70 unwound "E" and 1 more kept: ratio`,
			counts: "dropped throws 2\nkept ratio: 1 traces, 4 calls",
		},
		{
			name:     "calls with an attribute of their entry or of their exit stay calls",
			settings: fold(&Keep{}),
			do: []act{batchOf(func(d *delivery) {
				d.events[3].attributes = []Attribute{{"k", callevent.IntValue(1)}}
				d.events[6].attributes = []Attribute{{"k", callevent.IntValue(2)}}
			}, loop(0, 4, "b"))},
			want: `
				loop#0 0..90 kept: ratio
				b#1 in #0 10..80 2 calls of 10 to 10 ns, 20 ns kept: ratio
				b#3 in #0 30..40 k=1 kept: ratio
				b#5 in #0 50..60 k=2 kept: ratio`,
			counts: "kept ratio: 1 traces, 5 calls\nrepeated 1 calls",
		},
		{
			name:     "a call with left-out callees is folded with them",
			settings: func(s *Settings) { fold(&Keep{})(s); s.MinDuration = 15 },
			do:       []act{batch("0 +a\n1 +b\n2 +c\n3 -c\n4 -b\n5 +b\n6 -b\n7 +b\n8 +c\n9 ^c E\n10 -b\n11 +b\n12@140 -b\n13@150 -a")},
			want: `
				a#0 0..150 left out 1 calls, 0 errors, 10 ns kept: ratio
				b#1 in #0 10..140 left out 2 calls, 1 errors, 20 ns 3 calls of 30 to 30 ns, 90 ns kept: ratio`,
			counts: "left out 3\nkept ratio: 1 traces, 4 calls\nrepeated 2 calls",
		},
		{
			name:     "after an early decision the next call begins a group of its own",
			settings: fold(&Keep{}),
			do:       []act{batch("0 +a\n1 +b\n2 -b\n3 +b\n4 -b"), decideOldest, batch("5 +b\n6 -b\n7 +b\n8 -b\n9 -a")},
			want: `
				a#0 0..90 kept: ratio
				b#1 in #0 10..40 2 calls of 10 to 10 ns, 20 ns kept: ratio
				b#5 in #0 50..80 2 calls of 10 to 10 ns, 20 ns kept: ratio`,
			counts: "kept ratio: 2 traces, 5 calls\nrepeated 2 calls\nearly at max_undecided_mib: 1",
		},
		{
			name:     "a caller's loop over 16 functions is folded",
			settings: fold(&Keep{}),
			do:       []act{batch(loop(0, 3, many[:16]...))},
			want:     "loop#0 0..970 kept: ratio\n" + folded.String(),
			counts:   "kept ratio: 1 traces, 49 calls\nrepeated 32 calls",
		},
		{
			name:     "a caller does not remember 17 functions",
			settings: fold(&Keep{}),
			do:       []act{batch(loop(0, 2, many...))},
			want:     "loop#0 0..690 kept: ratio\n" + unfolded.String(),
			counts:   "kept ratio: 1 traces, 35 calls",
		},
		{
			name:     "a trace is full and continues as without folding",
			settings: oneOf,
			do:       []act{batch(loop(0, 6, "b")), end(callevent.CauseEnded)},
			want: `
				loop#0 0..130 trace 0 kept: ratio
				b#1 in #0 10..40 trace 0 2 calls of 10 to 10 ns, 20 ns kept: ratio
				b#5 in #0 50..100 trace 5 continues 0 3 calls of 10 to 10 ns, 30 ns kept: ratio
				b#11 in #0 110..120 trace 11 continues 0 kept: ratio`,
			counts: "kept ratio: 3 traces, 7 calls\nrepeated 3 calls",
		},
		{
			name: "calls that begin traces of their own stay calls",
			settings: func(s *Settings) {
				fold(&Keep{SlowerThan: 50, Threshold: NoThreshold})(s)
				s.TraceRoot = func(f string) bool { return f == "r" }
			},
			do: []act{batch("0 +a\n1 +r\n2@70 -r\n3@80 +r\n4@90 -r\n5@93 -a\n6@94 +a\n7@95 -a")},
			want: `
				a#0 0..93 trace 0 kept: slow
				r#1 in #0 10..70 trace 1 root from 0 kept: slow`,
			counts: "kept none: 2 traces, 2 calls\nkept slow: 2 traces, 2 calls",
		},
		{
			name:     "a slow call keeps its continuation trace also after shorter ones",
			settings: func(s *Settings) { fold(&Keep{SlowerThan: 50, Threshold: NoThreshold})(s); s.MaxSpansPerTrace = 2 },
			do:       []act{batch("0 +a\n1 +b\n2 -b\n3@21 +b\n4@22 -b\n5@23 +b\n6@90 -b\n7@91 -a"), end(callevent.CauseEnded)},
			want: `
				a#0 0..91 trace 0 kept: slow
				b#1 in #0 10..20 trace 0 kept: slow
				b#3 in #0 21..90 trace 3 continues 0 2 calls of 1 to 67 ns, 68 ns kept: slow`,
			counts: "kept slow: 2 traces, 4 calls\nrepeated 1 calls",
		},
		{
			name: "a short call of a wanted function keeps its trace, and a left-out error too",
			settings: func(s *Settings) {
				fold(&Keep{Errors: true, Threshold: NoThreshold, Function: wants("b")})(s)
				s.MinDuration = 15
			},
			do: []act{
				batch("0 +a\n1 +b\n2@30 -b\n3@40 +b\n4@90 -b\n5@100 -a"),
				batch("6@110 +c\n7@120 +d\n8@140 -d\n9@150 +d\n10@160 +e\n11@165 ^e E\n12@170 -d\n13@180 -c"),
				batch("14@190 +c\n15@200 +b\n16@220 -b\n17@230 +b\n18@250 -b\n19@260 -c"),
			},
			want: `
				a#0 0..100 kept: function
				b#1 in #0 10..90 2 calls of 20 to 50 ns, 70 ns kept: function
				c#6 110..180 kept: error
				d#7 in #6 120..170 left out 1 calls, 1 errors, 5 ns 2 calls of 20 to 20 ns, 40 ns kept: error`,
			counts: "left out 1\nkept none: 1 traces, 3 calls\nkept error: 1 traces, 3 calls\nkept function: 1 traces, 3 calls\nrepeated 2 calls",
		},
		{
			name:     "the limiter counts repeated calls as one",
			settings: fold(&Keep{Limiter: NewLimiter(2, still)}),
			do:       []act{batch(loop(0, 3, "b")), batch(loop(8, 3, "b")), batch(loop(16, 3, "b"))},
			want:     "loop#0 0..70 kept: ratio\nb#1 in #0 10..60 3 calls of 10 to 10 ns, 30 ns kept: ratio\nloop#8 80..150 kept: ratio\nb#9 in #8 90..140 3 calls of 10 to 10 ns, 30 ns kept: ratio",
			counts:   "kept ratio: 2 traces, 8 calls\nlimited ratio: 1 traces, 4 calls\nrepeated 4 calls",
		},
	})
}

// wants keeps traces with a call of the function that took 50 ns.
func wants(function string) func(string) (int64, bool) {
	return func(qualified string) (int64, bool) { return 50, qualified == function }
}

// The calls of a long loop take the memory of one record for each function, and no allocations.
func TestRepeatedCallsTakeTheMemoryOfOne(t *testing.T) {
	const calls = 40_000
	settings := wide()
	settings.Keep = &Keep{FoldShorterThan: int64(time.Second)}
	r := newRig(&settings, 1)
	all := []happened{{kind: callevent.KindEnter, function: functionNamed("loop")}}
	for range calls / 2 {
		for _, f := range []string{"f", "g"} {
			all = append(all, happened{kind: callevent.KindEnter, function: functionNamed(f)}, happened{kind: callevent.KindExit, function: functionNamed(f)})
		}
	}
	for i := range all {
		all[i].sequence, all[i].time, all[i].lane = uint64(i), testEpoch+int64(i)*1000, callevent.Lane{ID: 1}
	}
	packed := batches(t, all)
	var before, after runtime.MemStats
	for i, b := range packed {
		if i == 1 {
			runtime.ReadMemStats(&before)
		}
		r.stream.Accept(b, 0, &r.out)
	}
	runtime.ReadMemStats(&after)
	if n := after.Mallocs - before.Mallocs; n > 10 || len(packed) < 3 {
		t.Errorf("%d allocations for %d batches", n, len(packed))
	}
	u := r.stream.stacks.traces.undecided
	if n := u.records.heldBytes() + u.repeats.heldBytes(); n != u.records.chunkBytes()+u.repeats.chunkBytes() {
		t.Errorf("%d bytes", n)
	}
	if held := settings.Keep.HeldBytes(); held > 8<<10 {
		t.Errorf("%d bytes are held", held)
	}
	r.end(callevent.CauseShutdown)
	checkNoFault(t, r)
	if len(r.spans) != 3 || r.spans[0].Repeated.Calls != calls/2 || r.counters.Keep.RepeatedCalls != calls-2 {
		t.Errorf("%d spans, counters %s", len(r.spans), countersText(r.counters))
	}
	if held := settings.Keep.HeldBytes(); held != 0 {
		t.Errorf("%d bytes are held after the end", held)
	}
}

// A short call at each level of a deep stack takes bounded memory.
func TestGroupsOfDeepStacksCountInTheBound(t *testing.T) {
	const bound = 256 << 10
	settings := wide()
	settings.Keep = &Keep{FoldShorterThan: int64(time.Second), MaxBytes: bound}
	r := newRig(&settings, 1)
	most := int64(0)
	var all []happened
	for n := range uint64(20_000) {
		for i, name := range []string{"deep", "f", "f"} {
			e := happened{sequence: 3*n + uint64(i), kind: callevent.KindEnter, function: functionNamed(name), lane: callevent.Lane{ID: 1}}
			e.time = testEpoch + int64(e.sequence)*1000
			if i == 2 {
				e.kind = callevent.KindExit
			}
			all = append(all, e)
		}
	}
	for _, b := range batches(t, all) {
		r.stream.Accept(b, 0, &r.out)
		most = max(most, settings.Keep.HeldBytes())
	}
	r.collect()
	if most > bound+bound/stepShare+10<<10 || r.counters.Keep.decidedEarly(EarlyByBound) == 0 {
		t.Errorf("%d bytes are held, counters %s", most, countersText(r.counters))
	}
	r.end(callevent.CauseShutdown)
	expireAll(r)
	checkNoFault(t, r)
	if n := len(r.spans); n != 40_000 {
		t.Errorf("%d spans", n)
	}
}
