// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// tree is a call of a program. It determines the events and the expected calls, without a model of the rules.
type tree struct {
	function *callevent.Function
	children []*tree
	// thrown are exceptions that the call threw and caught.
	thrown []string
	// unwound: the exception left the call.
	unwound   bool
	exception string
	// The numbers of the call's events.
	entered, left uint64
}

// grow makes a call and the calls below it. An exception that leaves the call also leaves its caller, or the caller
// catches it.
func grow(r *rand.Rand, depth int) *tree {
	t := &tree{function: testFunctions[r.IntN(len(testFunctions))]}
	for range r.IntN(4) {
		if depth == 0 {
			break
		}
		child := grow(r, depth-1)
		t.children = append(t.children, child)
		if child.unwound && r.IntN(2) == 0 {
			t.unwound, t.exception = true, child.exception
			return t
		}
	}
	if r.IntN(6) == 0 {
		t.thrown = append(t.thrown, "caught.Here")
	}
	if r.IntN(8) == 0 {
		t.unwound, t.exception = true, testExceptions[1+r.IntN(2)]
		if r.IntN(2) == 0 {
			t.thrown = append(t.thrown, t.exception)
		}
	}
	return t
}

// step is an event of a tree. mark notes its number.
type step struct {
	event happened
	mark  func(uint64)
}

func (t *tree) steps(lane callevent.Lane) (steps []step) {
	event := func(kind callevent.Kind, exception string, mark func(uint64)) {
		steps = append(steps, step{plain(happened{kind: kind, lane: lane, function: t.function, exception: exception}), mark})
	}
	event(callevent.KindEnter, "", func(n uint64) { t.entered = n })
	for _, child := range t.children {
		steps = append(steps, child.steps(lane)...)
	}
	for _, exception := range t.thrown {
		event(callevent.KindThrow, exception, func(uint64) {})
	}
	if t.unwound {
		event(callevent.KindUnwind, t.exception, func(n uint64) { t.left = n })
	} else {
		event(callevent.KindExit, "", func(n uint64) { t.left = n })
	}
	return steps
}

// lines are the expected calls, without times.
func (t *tree) lines(lane uint64, parent uint64) (lines []string) {
	thrown := slices.Clone(t.thrown)
	if t.unwound && !slices.Contains(thrown, t.exception) {
		thrown = append(thrown, t.exception)
	}
	lines = append(lines, treeLine(lane, t.entered, parent, t.left-t.entered, *t.function, t.unwound, t.exception, thrown))
	for _, child := range t.children {
		lines = append(lines, child.lines(lane, t.entered)...)
	}
	return lines
}

func treeLine(lane, entered, parent, length uint64, f callevent.Function, unwound bool, exception string, thrown []string) string {
	return fmt.Sprintf("lane %d, %d in %d, %d long: %s unwound %t %s, thrown %v", lane, entered, int64(parent), length, f.Text, unwound, exception, thrown)
}

// Events of call trees on several lanes arrive in any order. The clock shows the sequence number, so the length of a
// call is the count of its numbers.
func TestTheCallsOfRandomTreesAreTheTrees(t *testing.T) {
	forPlans(t, 1000, withSkips|withConnections|withShuffle|withDuplicates, func(p plan) string {
		r := p.dice(20)
		var want []string
		var queues [][]step
		var trees [][]*tree
		for lane := range 1 + r.IntN(4) {
			queues, trees = append(queues, nil), append(trees, nil)
			for range 1 + r.IntN(3) {
				grown := grow(r, r.IntN(6))
				trees[lane] = append(trees[lane], grown)
				queues[lane] = append(queues[lane], grown.steps(callevent.Lane{ID: uint64(lane), Name: "t"})...)
			}
		}
		w := &world{plan: p, settings: wide(), resolution: 1}
		for rest := len(slices.Concat(queues...)); rest > 0; {
			n := uint64(len(w.events))
			at := testEpoch + int64(n)
			if p.has(withSkips) && r.IntN(10) == 0 {
				w.events = append(w.events, happened{sequence: n, time: at, kind: callevent.KindSkip})
				continue
			}
			lane := r.IntN(len(queues))
			if len(queues[lane]) == 0 {
				continue
			}
			next := queues[lane][0]
			queues[lane] = queues[lane][1:]
			rest--
			next.event.sequence, next.event.time = n, at
			next.mark(n)
			w.events = append(w.events, next.event)
		}
		w.deliver()
		for lane, grown := range trees {
			for _, tree := range grown {
				want = append(want, tree.lines(uint64(lane), NoParent)...)
			}
		}
		return w.differsFromTrees(want)
	})
}

func (w *world) differsFromTrees(want []string) string {
	rig := newRig(&w.settings, w.resolution)
	for _, d := range w.deliveries {
		rig.take(d)
	}
	var got []string
	for _, s := range rig.spans {
		var thrown []string
		for _, throw := range s.Throws {
			thrown = append(thrown, throw.Type)
		}
		got = append(got, treeLine(s.Lane, s.Sequence, s.Parent, uint64(s.End-s.Start), s.Function, s.Unwound, s.ErrorType, thrown))
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := difference(strings.Join(want, "\n"), strings.Join(got, "\n")); d != "" {
		return "calls (- expected, + got):\n" + d
	}
	if rig.fault == "" && (rig.stream.OpenFrames() != 0 || rig.counters.Orphans != 0) {
		rig.blame("%d frames are open, %d orphans", rig.stream.OpenFrames(), rig.counters.Orphans)
	}
	if rig.fault == "" {
		rig.blame("%s", wrongSpans(&w.settings, rig.spans, false))
	}
	return rig.fault
}
