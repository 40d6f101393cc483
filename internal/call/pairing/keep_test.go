// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
)

// decideOldest decides the oldest trace.
func decideOldest(r *rig) { r.stream.DecideOldest(&r.out); r.collect() }

// anyCallOf keeps traces with a call of the function.
func anyCallOf(function string) func(string) (int64, bool) {
	return func(qualified string) (int64, bool) { return 0, qualified == function }
}

func TestKeep(t *testing.T) {
	keep := func(k *Keep) func(*Settings) { return func(s *Settings) { s.Keep = k } }
	slow := func(k *Keep) func(*Settings) {
		k.SlowerThan, k.Threshold = 50, NoThreshold
		return keep(k)
	}
	failed := keep(&Keep{Errors: true, Threshold: NoThreshold})
	ownClock := &testClock{}
	runStories(t, []story{
		{
			name:     "a trace is kept whole if its root took slower_than",
			settings: slow(&Keep{}),
			do:       []act{batch("0 +a\n1 +b\n2 -b\n3@50 -a\n4@60 +a\n5@70 +b\n6@80 -b\n7@109 -a")},
			want: `
				a#0 0..50 kept: slow
				b#1 in #0 10..20 kept: slow`,
			counts: `kept none: 1 traces, 2 calls
				kept slow: 1 traces, 2 calls`,
		},
		{
			name:     "a call keeps its trace if an exception leaves it, and not if the exception is caught",
			settings: failed,
			do:       []act{batch("0 +a\n1 +b\n2 ^b Boom\n3 -a\n4 +a\n5 !a Boom\n6 -a")},
			want: `
				a#0 0..30 kept: error
				b#1 in #0 10..20 unwound "Boom" throws "Boom" at 20 kept: error`,
			counts: `kept none: 1 traces, 1 calls
				kept error: 1 traces, 2 calls`,
		},
		{
			name:     "a left-out call keeps its trace if an exception leaves it",
			settings: func(s *Settings) { failed(s); s.MinDuration = 15 },
			do:       []act{batch("0 +a\n1 +b\n2 ^b Boom\n3 -a")},
			want:     `a#0 0..30 left out 1 calls, 1 errors, 10 ns kept: error`,
			counts: `left out 1
				kept error: 1 traces, 1 calls`,
		},
		{
			name: "a left-out call that an exception leaves keeps the piece of its trace in which it ended, also while its caller is open",
			settings: func(s *Settings) {
				keep(&Keep{Errors: true, Threshold: NoThreshold, DecideAfter: time.Second})(s)
				s.MinDuration = 15
			},
			do:   []act{batch("0 +main\n1 +a\n2 .\n3 -a\n4 +b\n5 ^b Boom"), after(time.Second), batch("6 +a\n7 .\n8 -a"), after(time.Second)},
			want: `a#1 in #0 10..30 kept: error`,
			counts: `left out 1
				kept none: 1 traces, 1 calls
				kept error: 1 traces, 1 calls
				early at decide_after: 2`,
			open: 1,
		},
		{
			name: "a left-out short call of a wanted function keeps its trace, and not the next one",
			settings: func(s *Settings) {
				keep(&Keep{Threshold: NoThreshold, Function: anyCallOf("w")})(s)
				s.MinDuration = 15
			},
			do:   []act{batch("0 +a\n1 +w\n2 -w\n3 -a\n4 +a\n5 .\n6 -a\n7 +w\n8 -w\n9 +a\n10 .\n11 -a")},
			want: `a#0 0..30 left out 1 calls, 0 errors, 10 ns kept: function`,
			counts: `left out 2
				kept none: 2 traces, 2 calls
				kept function: 1 traces, 1 calls`,
		},
		{
			name: "a left-out deep call of a wanted function keeps its trace, and not the next one",
			settings: func(s *Settings) {
				keep(&Keep{Threshold: NoThreshold, Function: anyCallOf("w")})(s)
				s.MaxDepth = 1
			},
			do:   []act{batch("0 +a\n1 +b\n2 +w\n3 -w\n4 -b\n5 -a\n6 +a\n7 +b\n8 -b\n9 -a")},
			want: `a#0 0..50 left out 2 calls, 0 errors, 30 ns kept: function`,
			counts: `left out 3
				kept none: 1 traces, 1 calls
				kept function: 1 traces, 1 calls`,
		},
		{
			name: "a wanted function keeps its trace if its call took long enough",
			settings: keep(&Keep{Threshold: NoThreshold, Function: func(qualified string) (int64, bool) {
				return 20, qualified == "b"
			}}),
			do: []act{batch("0 +a\n1 +b\n2 -b\n3 -a\n4 +a\n5 +b\n6 .\n7 -b\n8 -a")},
			want: `
				a#4 40..80 kept: function
				b#5 in #4 50..70 kept: function`,
			counts: `kept none: 1 traces, 2 calls
				kept function: 1 traces, 2 calls`,
		},
		{
			name:     "of all criteria that apply the first counts",
			settings: keep(&Keep{SlowerThan: 50, Errors: true, Function: func(string) (int64, bool) { return 0, true }}),
			do:       []act{batch("0 +a\n1@60 ^a Boom\n2@70 +a\n3@80 ^a Boom\n4@90 +a\n5@100 -a")},
			want: `
				a#0 0..60 unwound "Boom" throws "Boom" at 60 kept: slow
				a#2 70..80 unwound "Boom" throws "Boom" at 80 kept: error
				a#4 90..100 kept: function`,
			counts: `kept slow: 1 traces, 1 calls
				kept error: 1 traces, 1 calls
				kept function: 1 traces, 1 calls`,
		},
		{
			name:     "a threshold of 0 keeps all traces by ratio",
			settings: keep(&Keep{}),
			do:       []act{batch("0 +a\n1 -a")},
			want:     `a#0 0..10 kept: ratio`,
			counts:   `kept ratio: 1 traces, 1 calls`,
		},
		{
			name:     "a trace waits until its root ends",
			settings: keep(&Keep{}),
			do:       []act{batch("0 +a\n1 +b\n2 -b"), after(testWait)},
			open:     1,
		},
		{
			name:     "after a time a trace is decided in pieces, and each piece on its own",
			settings: keep(&Keep{Errors: true, Threshold: NoThreshold, DecideAfter: time.Second}),
			do: []act{
				batch("0 +a\n1 +b\n2 -b"), after(time.Second - 1), after(1),
				batch("3 +c\n4 ^c Boom"), after(time.Second),
				batch("5 +b\n6 -b\n7 -a"),
			},
			want: `c#3 in #0 30..40 unwound "Boom" throws "Boom" at 40 kept: error`,
			counts: `kept none: 2 traces, 3 calls
				kept error: 1 traces, 1 calls
				early at decide_after: 2`,
		},
		{
			name:     "traces wait by the clock of Keep, if it has one",
			settings: keep(&Keep{DecideAfter: time.Second, Now: ownClock.read}),
			do: []act{
				batch("0 +a\n1 +b\n2 -b"), after(testWait),
				func(*rig) { ownClock.now += time.Second }, after(0),
			},
			want: `b#1 in #0 10..20 kept: ratio`,
			counts: `kept ratio: 1 traces, 1 calls
				early at decide_after: 1`,
			open: 1,
		},
		{
			name:     "an open root is slow after a silence, because its thread is still inside it",
			settings: slow(&Keep{DecideAfter: time.Second}),
			do:       []act{batch("0 +a\n1 +b\n2 -b"), after(time.Second), batch("3@40 +b\n4@45 -b\n5@46 -a\n6@47 +a\n7@48 -a")},
			want: `
				a#0 0..46 kept: slow
				b#1 in #0 10..20 kept: slow
				b#3 in #0 40..45 kept: slow`,
			counts: `kept none: 1 traces, 1 calls
				kept slow: 2 traces, 3 calls
				early at decide_after: 1`,
		},
		{
			name:     "events after a silence have times of their own, so the silence does not count twice",
			settings: slow(&Keep{MaxBytes: 1}),
			do: []act{
				batch("0 +a\n1 +b\n2 -b"), func(r *rig) { r.now += time.Second }, batch("3@21 +b\n4@22 -b"), decideOldest,
			},
			counts: `kept none: 2 traces, 2 calls
				early at max_undecided_mib: 2`,
			open: 1,
		},
		{
			name:     "while an earlier event is missing the end of a root may wait, so a silence does not count",
			settings: slow(&Keep{}),
			do: []act{
				batch("0 +a\n1 +b\n2 -b"), batch("4 -a"), func(r *rig) { r.now += time.Second }, batch(""), decideOldest, batch("3 -b"),
			},
			counts: `orphans 1
				kept none: 2 traces, 2 calls
				early at max_undecided_mib: 1`,
		},
		{
			name: "an open call of a wanted function keeps all pieces of its trace until it ends",
			settings: keep(&Keep{Threshold: NoThreshold, Function: func(qualified string) (int64, bool) {
				return 20, qualified == "w"
			}}),
			do: []act{
				batch("0 +a\n1 +b\n2 -b\n3 +w"), decideOldest, batch("4 +b\n5 -b"), decideOldest,
				batch("6 +b\n7 -b\n8 -w"), decideOldest, batch("9 +b\n10 -b"), decideOldest,
			},
			want: `
				w#3 in #0 30..80 kept: function
				b#4 in #3 40..50 kept: function
				b#6 in #3 60..70 kept: function`,
			counts: `kept none: 2 traces, 2 calls
				kept function: 2 traces, 3 calls
				early at max_undecided_mib: 4`,
			open: 1,
		},
		{
			name: "an open call that is too deep keeps its trace too, and no other trace of its lane",
			settings: func(s *Settings) {
				keep(&Keep{Threshold: NoThreshold, Function: anyCallOf("w")})(s)
				s.MaxDepth, s.TraceRoot = 3, func(f string) bool { return f == "r" }
			},
			do: []act{batch("0 +a\n1 +b\n2 -b\n3 +r\n4 +b\n5 -b\n6 +x\n7 +w"), decideOldest, decideOldest, batch("8 -w\n9 -x\n10 -r\n11 -a")},
			want: `
				r#3 in #0 30..100 trace 3 root from 0 kept: function
				b#4 in #3 40..50 trace 3 kept: function
				x#6 in #3 60..90 trace 3 left out 1 calls, 0 errors, 10 ns kept: function`,
			counts: `left out 1
				kept none: 2 traces, 2 calls
				kept function: 2 traces, 3 calls
				early at max_undecided_mib: 2`,
		},
		{
			name:     "once an open root is slow, all further pieces are kept",
			settings: slow(&Keep{}),
			do:       []act{batch("0 +a\n1 +b\n2 -b"), decideOldest, batch("3 +b\n4 .\n5 -b"), decideOldest, batch("6 +b\n7 -b\n8@80 -a\n9 +a\n10 -a")},
			want: `
				a#0 0..80 kept: slow
				b#3 in #0 30..50 kept: slow
				b#6 in #0 60..70 kept: slow`,
			counts: `kept none: 2 traces, 2 calls
				kept slow: 2 traces, 3 calls
				early at max_undecided_mib: 2`,
		},
		{
			name:     "a slow call whose end was not seen keeps its trace, also if it is dropped",
			settings: func(s *Settings) { slow(&Keep{})(s); s.DropTruncated = true },
			do:       []act{batch("0 +a\n1 +b\n2@30 -b\n3@500 +c\n4@501 -c"), end(callevent.CauseEnded)},
			want: `
				b#1 in #0 10..30 kept: slow
				c#3 in #0 500..501 kept: slow`,
			counts: `truncated ended 1
				kept slow: 1 traces, 2 calls`,
		},
		{
			name: "errors below a dropped call, and a dropped call of a wanted function, keep their traces",
			settings: func(s *Settings) {
				keep(&Keep{Errors: true, Threshold: NoThreshold, Function: wants("w")})(s)
				s.DropTruncated, s.MinDuration = true, 5
			},
			do: []act{
				batch("0 1:+a\n1 1:+b\n2 1:-b\n3@30 1:+e\n4@31 1:^e E"),
				batch("5 2:+w\n6 2:+b\n7@120 2:-b"), end(callevent.CauseEnded),
			},
			want: `
				b#1 in #0 10..20 kept: error
				b#6 in #5 60..120 lane 2 kept: function`,
			counts: `left out 1
				truncated ended 2
				kept error: 1 traces, 1 calls
				kept function: 1 traces, 1 calls`,
		},
		{
			name:     "the oldest trace is that whose first call ended first",
			settings: keep(&Keep{}),
			do:       []act{batch("0 1:+a\n1 2:+a\n2 2:+b\n3 2:-b\n4 1:+b\n5 1:-b\n6 2:+c\n7 2:-c"), decideOldest},
			want: `
				b#2 in #1 20..30 lane 2 kept: ratio
				c#6 in #1 60..70 lane 2 kept: ratio`,
			counts: `kept ratio: 1 traces, 2 calls
				early at max_undecided_mib: 1`,
			open: 2,
		},
		{
			name:     "a trace root is decided before the trace that it leaves",
			settings: func(s *Settings) { slow(&Keep{})(s); s.TraceRoot = func(f string) bool { return f == "r" } },
			do:       []act{batch("0 +a\n1 +r\n2 -r\n3@30 +r\n4@85 -r\n5 .\n6@90 -a")},
			want: `
				a#0 0..90 trace 0 kept: slow
				r#3 in #0 30..85 trace 3 root from 0 kept: slow`,
			counts: `kept none: 1 traces, 1 calls
				kept slow: 2 traces, 2 calls`,
		},
		{
			name:     "at the end of the stream all traces are decided",
			settings: func(s *Settings) { keep(&Keep{})(s); s.MaxSpansPerTrace = 1 },
			do:       []act{batch("0 +a\n1 +b\n2 -b\n3 -a"), end(callevent.CauseEnded)},
			want: `
				a#0 0..30 trace 0 kept: ratio
				b#1 in #0 10..20 trace 1 continues 0 kept: ratio`,
			counts: `kept ratio: 2 traces, 2 calls`,
		},
	})
}

// testClock is a clock that a test sets.
type testClock struct{ now time.Duration }

func (c *testClock) read() time.Duration { return c.now }

func TestTheLimiterBoundsTheMeanRateOfKeptCalls(t *testing.T) {
	clock := &testClock{now: time.Hour}
	l := NewLimiter(10, clock.read)
	passed := func(calls int) (traces int) {
		for l.allows(CriterionRatio, calls) {
			traces++
		}
		return traces
	}
	if n := passed(2); n != 6 {
		t.Errorf("after a long rest %d traces of 2 calls passed, expected 6: the second's 10 calls, and the trace that exceeds them", n)
	}
	clock.now += 400 * time.Millisecond
	if n := passed(1); n != 3 {
		t.Errorf("after 0.4 s %d calls passed, expected 3", n)
	}
	clock.now += time.Hour
	if n := passed(1000); n != 1 {
		t.Errorf("%d traces of 1,000 calls passed, expected 1", n)
	}
	clock.now += 98 * time.Second
	if n := passed(1); n != 0 {
		t.Errorf("%d calls passed while a large trace uses up 99 s", n)
	}
	clock.now += time.Second
	if n := passed(1); n != 1 {
		t.Errorf("%d calls passed after that, expected 1", n)
	}
}

// Traces of one criterion use up the time at a rate above the limit. A trace of another one still passes, also a large one.
func TestTheLimiterHasAReserveForEachCriterion(t *testing.T) {
	for flood := CriterionSlow; flood < CriterionCount; flood++ {
		for by := CriterionSlow; by < CriterionCount; by++ {
			clock := &testClock{now: time.Hour}
			l := NewLimiter(1000, clock.read)
			passed, calls := 0, 0
			for range 10_000 { // for 100 s
				for l.allows(flood, 7) {
					calls += 7
				}
				if clock.now += 10 * time.Millisecond; clock.now%(10*time.Second) == 0 && l.allows(by, 2000) {
					passed++
					calls += 2000
				}
			}
			expected := 10
			if by == flood {
				expected = 0
			}
			// The first second was saved, and each allowance can be exceeded by a trace.
			if passed < expected || calls > 101_000+2*2000 {
				t.Errorf("%s beside many of %s: %d of 10 large traces passed, and %d calls in 100 s", by, flood, passed, calls)
			}
		}
	}
}

// Traces of random sizes and criteria, at random times: in each span of time the calls that passed are those of the limit, of
// two seconds and of four traces at most. A criterion that always has traces passes a quarter of the limit.
func TestTheLimiterHoldsItsLimitAndEachReserve(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		perSecond := []int64{1, 2, 3, 5, 100, 20_000}[random.IntN(6)]
		least := 1 + int(perSecond)/20
		largest := least + random.IntN([]int{1, int(perSecond), 20_000}[random.IntN(3)])
		criteria := int(CriterionRatio)
		steady := CriterionSlow + Criterion(random.IntN(criteria))
		clock := &testClock{now: time.Hour}
		l := NewLimiter(perSecond, clock.read)
		atLimit := func() float64 { return float64(perSecond) * (clock.now - time.Hour).Seconds() }
		total, ofSteady := 0.0, 0.0
		lowest := 0.0 // the lowest difference so far between the calls that passed and the limit
		passes := func(by Criterion) bool {
			calls := least + random.IntN(1+largest-least)
			lowest = min(lowest, total-atLimit())
			if !l.allows(by, calls) {
				return false
			}
			if by == steady {
				ofSteady += float64(calls)
			}
			total += float64(calls)
			if more, most := total-atLimit()-lowest, float64(2*perSecond+int64(4*largest)); more > most {
				t.Fatalf("seed %d: %v calls more than at the limit of %d passed, expected at most %v", seed, more, perSecond, most)
			}
			return true
		}
		for range 1000 {
			clock.now += time.Duration(random.Int64N(int64(time.Second)))
			for range random.IntN(10) {
				passes(CriterionSlow + Criterion(random.IntN(criteria)))
			}
			for passes(steady) {
			}
			if ofSteady < atLimit()/reserveShare {
				t.Fatalf("seed %d: %v calls of %s passed, expected a quarter of %v", seed, ofSteady, steady, atLimit())
			}
		}
	}
}

func TestALimitIsExactAlsoIfACallTakesAPartOfANanosecond(t *testing.T) {
	for perSecond, step := range map[int64]time.Duration{700_000_000: 10 * time.Microsecond, 300_000: 10 * time.Millisecond} {
		clock := &testClock{now: time.Hour}
		l := NewLimiter(perSecond, clock.read)
		l.allows(CriterionRatio, int(perSecond)) // The saved second.
		passed := int64(0)
		for range 100 {
			clock.now += step
			for l.allows(CriterionRatio, 1) {
				passed++
			}
		}
		if want := perSecond * int64(100*step) / int64(time.Second); passed < want || passed > want+1 {
			t.Errorf("%d a second: %d calls passed, expected %d", perSecond, passed, want)
		}
	}
}

func TestLimitedTracesAreForgottenAndCounted(t *testing.T) {
	clock := &testClock{now: time.Hour}
	limited := func(s *Settings) { s.Keep = &Keep{Limiter: NewLimiter(1, clock.read)} }
	runStories(t, []story{{
		name: "of three traces the first two pass", settings: limited,
		do:     []act{batch("0 +a\n1 -a\n2 +a\n3 -a\n4 +a\n5 +b\n6 -b\n7 -a")},
		want:   "a#0 0..10 kept: ratio\na#2 20..30 kept: ratio",
		counts: "kept ratio: 2 traces, 2 calls\nlimited ratio: 1 traces, 2 calls",
	}})
}

// endlessRoots are batches of a program that never leaves the bottom function of any lane. Each call of another function
// throws, and has an attribute with a text of its own.
func endlessRoots(lanes, batches int, text string) (all []delivery) {
	sequence := uint64(0)
	happen := func(d *delivery, lane int, kind callevent.Kind, name string, attributes ...Attribute) {
		d.events = append(d.events, happened{
			sequence: sequence, time: testEpoch + int64(sequence)*1000, kind: kind, function: functionNamed(name), exception: "Boom",
			lane: callevent.Lane{ID: uint64(lane), Name: fmt.Sprint("lane ", lane)}, attributes: attributes,
		})
		d.events[len(d.events)-1] = plain(d.events[len(d.events)-1])
		sequence++
	}
	for i := range batches {
		d := delivery{received: testEpoch + int64(time.Hour)}
		for lane := range lanes {
			if i == 0 {
				happen(&d, lane, callevent.KindEnter, "main")
			}
			for range 1000 / lanes {
				happen(&d, lane, callevent.KindEnter, "f", Attribute{"text", callevent.StringValue(fmt.Sprint(sequence, text))})
				happen(&d, lane, callevent.KindThrow, "f")
				happen(&d, lane, callevent.KindExit, "f")
			}
		}
		all = append(all, d)
	}
	return all
}

// A trace that never ends uses bounded memory: the stream decides it in pieces.
func TestWaitingCallsStayBelowTheirBound(t *testing.T) {
	const bound = 256 << 10
	for _, c := range []struct {
		lanes int
		text  string
	}{{1, ""}, {100, ""}, {4, string(make([]byte, 2000))}} {
		settings := wide()
		settings.Keep = &Keep{MaxBytes: bound}
		r := newRig(&settings, 1)
		calls, most := 0, 0
		for i, d := range endlessRoots(c.lanes, 20, c.text) {
			calls += 1000
			r.take(d)
			checkNoFault(t, r)
			// One call and one chunk of each kind can exceed the bound.
			held := settings.Keep.bytes.Load()
			if chunks := int64(10 << 10); held > bound+bound/stepShare+chunks+int64(len(c.text)) {
				t.Fatalf("%d lanes, batch %d: calls take %d bytes", c.lanes, i, held)
			}
			most = max(most, r.stream.Bytes())
			for settings.Keep.Excess() > 0 && r.stream.DecideOldest(&r.out) {
				r.collect()
			}
			if held := settings.Keep.bytes.Load(); held > bound {
				t.Fatalf("%d lanes, batch %d: calls take %d bytes after the step", c.lanes, i, held)
			}
		}
		if most > 2*bound+64<<10+c.lanes*4096 {
			t.Errorf("%d lanes: the stream takes %d bytes", c.lanes, most)
		}
		if _, waits := r.stream.OldestUndecided(); !waits {
			t.Errorf("%d lanes: no trace waits", c.lanes)
		}
		r.end(callevent.CauseShutdown)
		if n := uint64(calls + c.lanes); uint64(len(r.spans)) != n || r.counters.Keep.Calls[CriterionRatio] != n {
			t.Errorf("%d lanes: %d of %d calls kept, counted %d", c.lanes, len(r.spans), n, r.counters.Keep.Calls[CriterionRatio])
		}
		if r.counters.Keep.decidedEarly(EarlyByBound) == 0 || settings.Keep.bytes.Load() != 0 {
			t.Errorf("%d lanes: %d early decisions, %d bytes after the end", c.lanes, r.counters.Keep.decidedEarly(EarlyByBound), settings.Keep.bytes.Load())
		}
	}
}

// A lane that is renamed with every request in one endless trace has no more names than the bound allows. No name of a
// lane, and no open call, is lost because of that. functions is the memory of other names.
func TestWaitingCallsDoNotExhaustTheNames(t *testing.T) {
	for _, functions := range []int{0, 40 << 10} {
		settings := wide()
		settings.MaxNameBytes = 64 << 10
		settings.Keep = &Keep{}
		r := newRig(&settings, 1)
		batch("0 +main\n1 +" + strings.Repeat("f", functions/3) + "\n2 -")(r)
		const requests, first = 5000, 3
		for i := range uint64(requests) {
			name, sequence := fmt.Sprint("request ", i), first+2*i
			d := delivery{received: testEpoch + int64(time.Hour)}
			for j, kind := range []callevent.Kind{callevent.KindEnter, callevent.KindExit} {
				d.events = append(d.events, happened{
					sequence: sequence + uint64(j), time: testEpoch + int64(sequence+uint64(j))*testJump/4, kind: kind, function: functionNamed("f"),
					lane: callevent.Lane{ID: 1, Name: "unknown"},
				})
			}
			d.renames = []callevent.Rename{{Lane: 1, Name: name, Time: d.events[0].time, Rank: uint32(i)}}
			r.take(d)
			if bytes := r.stream.names.bytes; bytes > settings.MaxNameBytes+1024 {
				t.Fatalf("names take %d bytes", bytes)
			}
		}
		r.end(callevent.CauseShutdown)
		checkNoFault(t, r)
		c := r.counters
		if len(r.spans) != requests+2 || c.Breaks[callevent.CauseLimit] != 0 || c.DroppedRenames != 0 || c.Keep.decidedEarly(EarlyByNames) == 0 {
			t.Fatalf("%d bytes of functions: %d calls, counters %s", functions, len(r.spans), countersText(r.counters))
		}
		for i, f := range r.spans[1 : requests+1] {
			if want := fmt.Sprint("request ", i); f.LaneName != want {
				t.Fatalf("call %d has the lane name %q, expected %q", i, f.LaneName, want)
			}
		}
	}
}

// expireAll runs the timers until they are not due.
func expireAll(r *rig) {
	r.expire()
	for r.stream.Due(r.now) {
		r.expire()
	}
}

// After a large trace the stream returns the memory of its calls.
func TestMemoryOfCallsGoesDownAfterTheirTrace(t *testing.T) {
	settings := wide()
	settings.Keep = &Keep{}
	for what, release := range map[string]act{
		"expiry":   expireAll,
		"sparing":  func(r *rig) { r.stream.Spare() },
		"the end":  end(callevent.CauseShutdown),
		"deciding": func(r *rig) { r.stream.DecideAll(EarlyByBudget, &r.out); r.collect() },
	} {
		r := newRig(&settings, 1)
		empty := r.stream.Bytes()
		for _, d := range endlessRoots(1, 10, "") {
			r.take(d)
		}
		if got := r.stream.Bytes() - empty; got < 10_000*48 {
			t.Errorf("%d bytes while calls wait", got)
		}
		if what != "the end" && what != "deciding" {
			batch("30001@99999999 0:-main")(r)
		}
		if what == "expiry" {
			held := r.stream.Bytes()
			r.expire()
			r.expire()
			if got := r.stream.Bytes(); got < held*9/10 || got == held {
				t.Errorf("%d bytes of %d after two expiries: the next large trace needs most of them", got, held)
			}
		}
		release(r)
		checkNoFault(t, r)
		if got := r.stream.Bytes() - empty; got > keptStack+8192 {
			t.Errorf("after %s: %d bytes", what, got)
		}
	}
}

// Waiting calls use the memory of earlier ones.
func TestSelectingAllocatesNothingForEachCall(t *testing.T) {
	events := program()[:200_000]
	order := batches(t, events)
	for _, threshold := range []uint64{0, NoThreshold} {
		settings := wide()
		settings.Keep = &Keep{Threshold: threshold, MaxBytes: 4 << 20, SlowerThan: int64(time.Hour), Errors: true}
		s := NewStream(&settings, testRandom)
		var out Output
		out.MaxCalls, out.Full = 2048, out.ClearCalls
		var before, after runtime.MemStats
		for i, b := range order {
			if i == len(order)/2 {
				runtime.ReadMemStats(&before)
			}
			s.Accept(b, 0, &out)
			out.ClearCalls()
		}
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n > 500 {
			t.Errorf("threshold %d: %d allocations for %d events", threshold, n, len(events)/2)
		}
		if k := out.Counters.Keep; out.Counters.Finished < 90_000 || k.Calls[CriterionNone]+k.Calls[CriterionRatio]+k.Calls[CriterionError] < 40_000 {
			t.Errorf("%d calls, %+v", out.Counters.Finished, k)
		}
	}
}

// Streams of several goroutines share one account and one limiter.
func TestStreamsShareTheAccount(t *testing.T) {
	settings := wide()
	settings.Keep = &Keep{MaxBytes: 64 << 10, Limiter: NewLimiter(1_000_000_000, func() time.Duration { return 0 })}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			r := newRig(&settings, 1)
			for _, d := range endlessRoots(3, 10, "") {
				r.take(d)
			}
			r.end(callevent.CauseShutdown)
			checkNoFault(t, r)
		})
	}
	all.Wait()
	if held := settings.Keep.bytes.Load(); held != 0 {
		t.Errorf("%d bytes after the end of all streams", held)
	}
}

// A recursive function of trace_roots has a trace for each of its open calls. Deciding all of them early costs less than pairing
// their calls.
func TestManyTracesOnOneStackAreDecidedInLittleTime(t *testing.T) {
	settings := wide()
	settings.TraceRoot = func(qualified string) bool { return qualified == "root" }
	settings.Keep = &Keep{Errors: true, Threshold: NoThreshold}
	root, leaf := &callevent.Function{Qualified: "root"}, &callevent.Function{Qualified: "leaf"}
	const roots = 16_000
	events := make([]happened, 0, 3*roots)
	for range roots {
		for _, h := range []happened{{kind: callevent.KindEnter, function: root}, {kind: callevent.KindEnter, function: leaf}, {kind: callevent.KindExit, function: leaf}} {
			h.sequence, h.time, h.lane = uint64(len(events)), testEpoch, callevent.Lane{ID: 1, Name: "main"}
			events = append(events, h)
		}
	}
	all, s, out := batches(t, events), NewStream(&settings, testRandom), Output{}
	pairing := cputime.Of(func() {
		for _, b := range all {
			s.Accept(b, 0, &out)
		}
	})
	deciding := cputime.Of(func() { s.DecideAll(EarlyByBudget, &out) })
	if n := out.Counters.Keep.decidedEarly(EarlyByBudget); n != roots {
		t.Fatalf("decided %d traces", n)
	}
	if deciding > pairing {
		t.Errorf("deciding took %v, and pairing %v", deciding, pairing)
	}
}
