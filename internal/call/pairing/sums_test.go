// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callsum"
)

// ending is a function, and the way in which its calls ended.
type ending struct {
	function  callevent.Function
	failed    bool
	exception string
}

// functionTotal is the sum of the calls of an ending.
type functionTotal struct {
	calls     uint64
	sum       int64
	histogram callsum.Histogram
}

// totals are sums with names instead of numbers. A path is the names of its callers and its own.
type totals struct {
	functions map[ending]functionTotal
	paths     map[string]callsum.PathValues
	all       callsum.PathValues
}

func newTotals() *totals {
	return &totals{functions: map[ending]functionTotal{}, paths: map[string]callsum.PathValues{}}
}

func (s *totals) addFunction(e ending, calls uint64, sum int64, h *callsum.Histogram) {
	total := s.functions[e]
	total.calls, total.sum = total.calls+calls, total.sum+sum
	total.histogram.Merge(h)
	s.functions[e] = total
}

func (s *totals) addPath(path string, added callsum.PathValues) {
	if added == (callsum.PathValues{}) {
		return
	}
	total := s.paths[path]
	for _, t := range []*callsum.PathValues{&total, &s.all} {
		t.Calls, t.Errors, t.Self = t.Calls+added.Calls, t.Errors+added.Errors, t.Self+added.Self
	}
	s.paths[path] = total
}

// String has a line for each total.
func (s *totals) String() string {
	var lines []string
	for e, total := range s.functions {
		lines = append(lines, fmt.Sprintf("%s %s failed %t %q: %d calls, %d ns, scale %d,%s\n", e.function.Qualified, e.function.Text,
			e.failed, e.exception, total.calls, total.sum, total.histogram.Scale, bucketsText(&total.histogram)))
	}
	for path, values := range s.paths {
		lines = append(lines, fmt.Sprintf("%s: %+v\n", path, values))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func bucketsText(h *callsum.Histogram) string {
	var b strings.Builder
	for i, n := range h.Counts {
		if n > 0 {
			fmt.Fprintf(&b, " %d in %d", n, int(h.Offset)+i)
		}
	}
	return b.String()
}

// addIncrement adds the growth of a stream. It returns the first fault; empty: none.
func (s *totals) addIncrement(from *callsum.Increment) string {
	for _, f := range from.ByFunction {
		e := ending{function: *from.Functions[f.Function], failed: f.Failed, exception: from.Exceptions[f.Exception]}
		s.addFunction(e, f.Calls, f.Sum, &f.Histogram)
	}
	paths, there := pathNames(from), map[string]bool{}
	for i, grown := range from.Grown {
		if i > 0 && grown.Path <= from.Grown[i-1].Path {
			return fmt.Sprintf("path %d stands after path %d", grown.Path, from.Grown[i-1].Path)
		}
		s.addPath(paths[grown.Path], grown.PathValues)
	}
	for i, name := range paths {
		if there[name] || int(from.Paths[i].Parent) > i {
			return fmt.Sprintf("path %s is there twice, or before its parent", name)
		}
		there[name] = true
	}
	return ""
}

// pathNames has the names of an increment's paths.
func pathNames(from *callsum.Increment) []string {
	names := make([]string, len(from.Paths))
	for i, p := range from.Paths {
		names[i] = names[p.Parent]
		switch p.Kind {
		case callsum.PathLane:
			names[i] += fmt.Sprintf("/lane %d", from.Lanes[p.Label].ID)
		case callsum.PathRest:
			names[i] += "/(rest)"
		case callsum.PathFunction:
			names[i] += functionStep(from.Functions[p.Label])
		case callsum.PathTruncated:
			names[i] += functionStep(from.Functions[p.Label]) + " truncated"
		}
	}
	return names
}

func functionStep(f *callevent.Function) string { return "/" + f.Qualified + f.Text }

// addCalls adds finished calls, of which none is left out.
func (s *totals) addCalls(settings *Settings, calls []finished) {
	byNumber, callees := map[uint64]*finished{}, map[uint64]int64{}
	for i := range calls {
		byNumber[calls[i].Sequence] = &calls[i]
	}
	dropped := func(c *finished) bool { return c.Truncated != 0 && settings.DropTruncated }
	for i := range calls {
		c := &calls[i]
		parent := c.Parent
		for parent != NoParent && dropped(byNumber[parent]) {
			parent = byNumber[parent].Parent
		}
		if !dropped(c) {
			callees[parent] += c.End - c.Start
		}
	}
	var path func(c *finished) string
	path = func(c *finished) string {
		switch {
		case c.Parent != NoParent:
			return path(byNumber[c.Parent]) + functionStep(&c.Function)
		case settings.Sums.ByThread:
			return fmt.Sprintf("/lane %d", c.Lane) + functionStep(&c.Function)
		}
		return functionStep(&c.Function)
	}
	for i := range calls {
		c := &calls[i]
		if dropped(c) {
			continue
		}
		duration := c.End - c.Start
		s.addFunction(ending{function: c.Function, failed: c.Unwound, exception: c.ErrorType}, 1, duration, histogramOf(duration))
		values, name := callsum.PathValues{Calls: 1, Self: duration - callees[c.Sequence]}, path(c)
		if c.Unwound {
			values.Errors = 1
		}
		if c.Truncated != 0 {
			name += " truncated"
		}
		if settings.Sums.By != callsum.Functions {
			s.addPath(name, values)
		}
	}
}

// histogramOf is the histogram of one duration. Tests of package callsum show that it is right.
func histogramOf(duration int64) *callsum.Histogram {
	s := callsum.New(&callsum.Settings{})
	s.CountReturned(0, 0, duration, 0)
	return &s.Take(nil).ByFunction[0].Histogram
}

// wrongPaths compares the paths of open frames with their functions; empty: no fault.
func (r *rig) wrongPaths(i *callsum.Increment) string {
	for _, l := range r.stream.stacks.lanes {
		for depth, f := range l.frames {
			if l.forgotten || len(i.Paths) == 0 || i.Paths[f.path].Kind == callsum.PathRest {
				continue
			}
			want := callsum.Path{Label: f.function}
			switch {
			case depth > 0 && !l.isShared():
				want.Parent = l.frames[depth-1].path
			case r.stream.settings.Sums.ByThread:
				want.Parent = l.path
			}
			if got := i.Paths[f.path]; got != want {
				return fmt.Sprintf("lane %d, frame %d has path %d %+v, expected %+v", l.id, depth, f.path, got, want)
			}
		}
	}
	return ""
}

// The sums do not depend on calls that are left out, on traces, on the moments of their increments, or on the order of
// batches. So they are those of another stream that leaves out nothing.
func TestSumsAreThoseOfAllCalls(t *testing.T) {
	forPlans(t, 2000, allFeatures, func(p plan) string {
		w, r := generate(p), p.dice(30)
		if p.has(withLimits) {
			w.settings.MaxNameBytes = 1 << (10 + r.IntN(10))
		}
		if r.IntN(2) == 0 {
			w.settings.MaxLanes = 1 + r.IntN(4)
		} else {
			w.reuse()
		}
		whole := w.settings
		whole.MinDuration, whole.MaxDepth, whole.DropTruncated = 0, 0, false
		// Here and there a path has no room.
		maxPaths := []int64{0, 3, 1 << 20, 1 << 20, 1 << 20, 1 << 20}[r.IntN(6)]
		by := []callsum.By{callsum.Functions, callsum.Paths, callsum.FunctionsAndPaths}[min(r.IntN(12), 2)]
		w.settings.Sums = &callsum.Settings{By: by, ByThread: r.IntN(2) == 0, MaxPaths: maxPaths}
		summed, plain := newRig(&w.settings, w.resolution), newRig(&whole, w.resolution)
		both := []*rig{summed, plain}
		for _, d := range w.deliveries {
			wait, action := time.Duration(r.IntN(3))*25*time.Second, r.IntN(20)
			for _, rig := range both {
				rig.take(d)
				if p.has(withExpiry) {
					rig.now += wait
					rig.expire()
				}
				switch {
				case action == 0 && p.has(withLimits):
					rig.forget()
				case action == 1 && p.has(withGiveUpOldest):
					rig.giveUpOldest()
				}
			}
			switch r.IntN(6) {
			case 0:
				summed.sums = append(summed.sums, summed.stream.TakeInterval())
			case 1, 2:
				summed.takeSums()
				if wrong := summed.wrongPaths(&summed.sums[len(summed.sums)-1]); wrong != "" {
					return wrong
				}
			}
		}
		for _, rig := range both {
			rig.end(callevent.CauseShutdown)
			if rig.fault != "" {
				return rig.fault
			}
		}
		got, want := newTotals(), newTotals()
		for i := range summed.sums {
			if wrong := got.addIncrement(&summed.sums[i]); wrong != "" {
				return wrong
			}
		}
		want.addCalls(&w.settings, plain.spans)
		if p.has(withLateBarriers) || maxPaths < 1<<20 {
			// A call whose caller's path changed later stays where it was counted.
			if got.all != want.all {
				return fmt.Sprintf("all paths have %+v, expected %+v", got.all, want.all)
			}
			got.paths, want.paths = nil, nil
		}
		if by == callsum.Paths {
			want.functions = nil
		}
		if d := difference(want.String(), got.String()); d != "" {
			return "sums (- expected, + got):\n" + d
		}
		if rest := summed.stream.TakeSums(); !rest.IsEmpty() {
			return "calls after the end"
		}
		if n := w.settings.Sums.Made(); n != 0 {
			return fmt.Sprintf("%d paths after the end", n)
		}
		return ""
	})
}

// reuse makes some renames those of threads that reuse a lane.
func (w *world) reuse() {
	if !w.plan.has(withRenames) {
		return
	}
	for i := range w.deliveries {
		for j := range w.deliveries[i].renames {
			if added := &w.deliveries[i].renames[j]; added.Rank%3 == 0 {
				added.Reused, added.After = true, w.events[int(added.Rank)*7%len(w.events)].sequence
			}
		}
	}
}

// sumsOf plays actions on a stream with sums by path and lane. It returns the names of the paths with calls.
func sumsOf(t *testing.T, do ...act) (r *rig, paths string) {
	t.Helper()
	settings := wide()
	settings.Sums = &callsum.Settings{By: callsum.FunctionsAndPaths, MaxPaths: 1000}
	r = newRig(&settings, 1)
	for _, act := range do {
		act(r)
	}
	r.takeSums()
	checkNoFault(t, r)
	got := newTotals()
	for i := range r.sums {
		got.addIncrement(&r.sums[i])
	}
	got.functions = nil
	return r, got.String()
}

func TestCallsAfterALateBreakAreAtTheTop(t *testing.T) {
	_, got := sumsOf(t,
		batch("0 +f\n1 +g\n2 +h\n3 -h\n4 +h\n5 -h"),
		batch("", callevent.Point(1, callevent.CauseSuspended)),
		batch("6 +h\n7 -h\n8 -g"),
	)
	const want = "" +
		"/f truncated: {Calls:1 Errors:0 Self:1}\n" +
		"/f/g/h: {Calls:2 Errors:0 Self:20}\n" +
		"/g/h: {Calls:1 Errors:0 Self:10}\n" +
		"/g: {Calls:1 Errors:0 Self:40}\n"
	if d := difference(want, got); d != "" {
		t.Error(d)
	}
}

func TestCallsOfASharedLaneAreAtTheTopAfterALateBreakToo(t *testing.T) {
	reused := callevent.Rename{Lane: 1, Name: "two", Time: testEpoch + 5, Rank: 1, Reused: true, After: 1}
	r, got := sumsOf(t,
		batch("0 +f"),
		batchOf(func(d *delivery) { d.renames = []callevent.Rename{reused} }, "1 +g\n2 +h\n3 +k"),
		batch("", callevent.Point(2, callevent.CauseSuspended)),
		batch("4 -k\n5 ^h Failure"),
	)
	const want = "" +
		"/f truncated: {Calls:1 Errors:0 Self:10}\n" +
		"/g truncated: {Calls:1 Errors:0 Self:1}\n" +
		"/h: {Calls:1 Errors:1 Self:30}\n" +
		"/k: {Calls:1 Errors:0 Self:10}\n"
	if d := difference(want, got); d != "" {
		t.Error(d)
	}
	if last := r.spans[len(r.spans)-1]; last.ErrorType != "Failure" {
		t.Errorf("the exception is %q", last.ErrorType)
	}
}

func TestALaneHasItsLatestName(t *testing.T) {
	settings := wide()
	settings.Sums = &callsum.Settings{By: callsum.FunctionsAndPaths, ByThread: true, MaxPaths: 1000}
	r := newRig(&settings, 1)
	name := func() string {
		r.takeSums()
		checkNoFault(t, r)
		lanes := r.sums[len(r.sums)-1].Lanes
		if len(lanes) != 1 || lanes[0].ID != 7 {
			t.Fatalf("lanes %+v", lanes)
		}
		return lanes[0].Name
	}
	batch("0 7:+f\n1 7:+g\n2 7:-g")(r)
	if got := name(); got != "lane 7" {
		t.Errorf("the name is %q", got)
	}
	renamed := callevent.Rename{Lane: 7, Name: "renamed", First: true, Time: testEpoch}
	batchOf(func(d *delivery) { d.renames = []callevent.Rename{renamed} }, "3 7:+g\n4 7:-g")(r)
	if got := name(); got != "renamed" {
		t.Errorf("the name of the lane with open calls is %q", got)
	}
	if first := r.sums[0].Lanes[0].Name; first != "lane 7" {
		t.Errorf("the name in the first increment is now %q", first)
	}
	again := callevent.Rename{Lane: 7, Name: "renamed again", Time: testEpoch + 55, Rank: 1}
	batchOf(func(d *delivery) { d.renames = []callevent.Rename{again} }, "5 7:-f\n6 7:+g\n7 7:-g")(r)
	if got := name(); got != "renamed again" {
		t.Errorf("the name of the lane with a new call is %q", got)
	}
}

// The reader of an increment is another goroutine than that of the stream.
func TestAnIncrementIsReadWhileTheStreamGoesOn(t *testing.T) {
	w := generate(plan{seed: 9, events: 4_000, with: withExceptions | withRenames})
	w.settings.Sums = &callsum.Settings{By: callsum.FunctionsAndPaths, ByThread: true, MaxPaths: 1 << 20}
	r := newRig(&w.settings, w.resolution)
	increments, calls := make(chan callsum.Increment, len(w.deliveries)+1), make(chan uint64)
	go func() {
		got := newTotals()
		for increment := range increments {
			got.addIncrement(&increment)
			bucketsText(&increment.ByFunction[0].Histogram)
		}
		calls <- got.all.Calls
	}()
	for _, d := range w.deliveries {
		r.take(d)
		if increment := r.stream.TakeSums(); !increment.IsEmpty() {
			increments <- increment
		}
	}
	r.end(callevent.CauseEnded)
	for _, increment := range r.sums {
		increments <- increment
	}
	close(increments)
	if got := <-calls; got != uint64(len(r.spans)) || got == 0 {
		t.Errorf("increments have %d calls of %d", got, len(r.spans))
	}
	checkNoFault(t, r)
}

// Calls of short threads and of new functions always have room, because the paths of earlier ones are forgotten. Open calls
// need their paths only once: those of parked threads with common frames, and those of threads that leave and enter them again.
func TestOpenCallsDoNotPreventThatIdlePathsAreForgotten(t *testing.T) {
	type program struct {
		sequence uint64
		events   strings.Builder
	}
	happen := func(p *program, lane int, what string, function int) {
		fmt.Fprintf(&p.events, "%d %d:%sf%d\n", p.sequence, lane, what, function)
		p.sequence++
	}
	nested := func(p *program, lane, from, to int, enter bool) {
		for i := range to - from {
			if enter {
				happen(p, lane, "+", from+i)
			} else {
				happen(p, lane, "-", to-1-i)
			}
		}
	}
	for name, c := range map[string]struct {
		settings *callsum.Settings
		// threads stay in frames calls of depth. They leave and enter again left of them in each interval.
		threads, frames, left int
		// interval plays the other threads.
		interval func(p *program, n int)
	}{
		"parked threads with common frames": {
			settings: &callsum.Settings{By: callsum.FunctionsAndPaths, MaxPaths: 100}, threads: 10, frames: 8,
			interval: func(p *program, n int) {
				for i := range 20 {
					function := 1000 + 20*n + i
					nested(p, 500, function, function+1, true)
					nested(p, 500, function, function+1, false)
				}
			},
		},
		"busy threads": {
			settings: &callsum.Settings{By: callsum.FunctionsAndPaths, ByThread: true, MaxPaths: 2000}, threads: 45, frames: 10, left: 5,
			interval: func(p *program, n int) {
				for i := range 10 {
					nested(p, 500+10*n+i, 0, 5, true)
					nested(p, 500+10*n+i, 0, 5, false)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			settings := wide()
			settings.Sums = c.settings
			r, p := newRig(&settings, 1), &program{}
			for lane := range c.threads {
				nested(p, lane, 0, c.frames, true)
			}
			for n := range 20 {
				for lane := range c.threads {
					nested(p, lane, c.frames-c.left, c.frames, false)
					nested(p, lane, c.frames-c.left, c.frames, true)
				}
				c.interval(p, n)
				batch(p.events.String())(r)
				p.events.Reset()
				taken := r.stream.TakeInterval()
				checkNoFault(t, r)
				for _, grown := range taken.Grown {
					if taken.Paths[grown.Path].Kind == callsum.PathRest {
						t.Fatalf("interval %d: %d calls have no path of their own", n, grown.Calls)
					}
				}
			}
		})
	}
}

// Pairing waits while an interval is taken. So the paths of open calls are not found again then, but with the next event of their lane.
func TestForgottenPathsAreFoundWithTheNextEventOfTheirLane(t *testing.T) {
	settings := wide()
	settings.Sums = &callsum.Settings{By: callsum.FunctionsAndPaths, ByThread: true, MaxPaths: 1000}
	r := newRig(&settings, 1)
	batch("0 1:+a\n1 1:+b\n2 2:+a\n3 2:+b\n4 3:+c\n5 3:-c\n6 4:+d\n7 4:-d")(r)
	r.stream.TakeInterval()
	batch("8 5:+d\n9 5:-d")(r)
	r.stream.TakeInterval()
	if n := settings.Sums.Made(); n != 0 {
		t.Fatalf("%d paths, expected none", n)
	}
	batch("10 1:-b")(r)
	if n := settings.Sums.Made(); n != 3 {
		t.Errorf("%d paths, expected those of a thread with two calls", n)
	}
	batch("", callevent.Point(3, callevent.CauseSuspended))(r)
	last := r.stream.TakeInterval()
	r.end(callevent.CauseShutdown)
	checkNoFault(t, r)
	totals := newTotals()
	for _, i := range append([]callsum.Increment{last}, r.sums...) {
		if wrong := totals.addIncrement(&i); wrong != "" {
			t.Fatal(wrong)
		}
	}
	if got := fmt.Sprint(slices.Sorted(maps.Keys(totals.paths))); got != "[/lane 1/a truncated /lane 1/a/b /lane 2/a truncated /lane 2/b truncated]" {
		t.Errorf("paths %s", got)
	}
}

// Once paths have no room, one idle path is enough that all are forgotten.
func TestCallsWithoutRoomHavePathsAfterAnInterval(t *testing.T) {
	settings := wide()
	settings.Sums = &callsum.Settings{By: callsum.FunctionsAndPaths, MaxPaths: 20}
	r := newRig(&settings, 1)
	batch("0 +a\n1 -a\n2 +b\n3 +c\n4 +d\n5 +e\n6 +g\n7 +h\n8 +i\n9 +j\n10 +k")(r)
	r.stream.TakeInterval()
	batch("11 +l\n12 -l")(r)
	if taken := r.stream.TakeInterval(); len(taken.Grown) != 1 || taken.Paths[taken.Grown[0].Path].Kind != callsum.PathRest {
		t.Fatalf("paths %+v", taken.Grown)
	}
	batch("13 +l\n14 -l")(r)
	checkNoFault(t, r)
	if taken := r.stream.TakeInterval(); len(taken.Grown) != 1 || taken.Paths[taken.Grown[0].Path].Kind != callsum.PathFunction {
		t.Errorf("paths %+v", taken.Grown)
	}
}

func TestTheMemoryOfAStreamIncludesItsSums(t *testing.T) {
	settings := wide()
	bytes := func(sums *callsum.Settings) int {
		settings.Sums = sums
		r := newRig(&settings, 1)
		for n := range uint64(500) {
			batch(fmt.Sprintf("%d +f%d", n, n))(r)
		}
		checkNoFault(t, r)
		return r.stream.Bytes()
	}
	none, paths := bytes(nil), bytes(&callsum.Settings{By: callsum.FunctionsAndPaths, MaxPaths: 1000})
	if more := paths - none; more < 500*44 || more > 500*500 {
		t.Errorf("%d bytes without sums, %d with 500 paths", none, paths)
	}
}

// The time of a dropped call stays with its caller, and that of the dropped call's callees with them.
func TestTheTimeOfADroppedCallIsThatOfItsCaller(t *testing.T) {
	settings := wide()
	settings.Sums, settings.DropTruncated = &callsum.Settings{By: callsum.FunctionsAndPaths, MaxPaths: 1000}, true
	r := newRig(&settings, 1)
	batch("0 +a\n1 +b\n2 +c\n4 -c\n9 -a")(r)
	batch("3 .\n5 .\n6 .\n7 .\n8 .")(r)
	r.takeSums()
	checkNoFault(t, r)
	got := newTotals()
	got.addIncrement(&r.sums[0])
	got.functions = nil
	if d := difference("/a/b/c: {Calls:1 Errors:0 Self:20}\n/a: {Calls:1 Errors:0 Self:70}\n", got.String()); d != "" {
		t.Error(d)
	}
}
