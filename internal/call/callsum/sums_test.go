// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callsum

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/keytable"
)

// walk counts calls on random stacks of the functions, and returns their number and own time.
func walk(s *Sums, random *rand.Rand, functions, calls int) (own int64) {
	var paths []uint32
	for calls > 0 {
		caller := s.Lane(0, random.Uint64N(3), "lane")
		if len(paths) > 0 {
			caller = paths[len(paths)-1]
		}
		function := random.Uint32N(uint32(functions))
		path := s.Callee(caller, function)
		if len(paths) < 6 && random.IntN(2) == 0 {
			paths = append(paths, path)
			continue
		}
		paths = paths[:max(1, len(paths))-1]
		switch calls--; random.IntN(3) {
		case 0:
			s.CountReturned(function, path, 10, 3)
		case 1:
			s.CountUnwound(function, 1, path, 10, 3)
		default:
			s.CountTruncated(function, path, 10, 3)
		}
		own += 7
	}
	return own
}

func take(s *Sums, functions int) Increment {
	for s.Functions() < functions {
		s.AddFunction(&callevent.Function{})
	}
	return s.Take([]string{"", "Failure"})
}

func TestPathsBeyondTheBoundOfAllStreamsAreSummedAtTheRest(t *testing.T) {
	for _, byThread := range []bool{false, true} {
		settings := &Settings{By: FunctionsAndPaths, ByThread: byThread, MaxPaths: 50}
		random, streams := rand.New(rand.NewPCG(1, 1)), []*Sums{New(settings), New(settings)}
		// Each stream has half of what the others leave.
		half := []int{25, 13}
		for n, s := range streams {
			made := 0
			own := walk(s, random, 10, 2_000)
			increment, calls, errors, rest := take(s, 10), uint64(0), uint64(0), 0
			for _, grown := range increment.Grown {
				calls, errors, own = calls+grown.Calls, errors+grown.Errors, own-grown.Self
			}
			for i, p := range increment.Paths {
				switch {
				case p.Kind == PathRest:
					rest++
				case p.Kind != PathTop:
					made++
				}
				if p.Kind == PathRest && p.Parent != 0 || i > 0 && p.Parent >= uint32(i) || increment.Paths[p.Parent].Kind == PathRest {
					t.Errorf("path %d is %+v", i, p)
				}
			}
			failed := uint64(0)
			for _, f := range increment.ByFunction {
				if f.Failed {
					failed += f.Calls
				}
			}
			if calls != 2_000 || own != 0 || errors != failed || rest != 1 {
				t.Errorf("%d calls, %d ns are missing, %d errors and %d failed calls, %d rests", calls, own, errors, failed, rest)
			}
			if made != half[n] {
				t.Errorf("stream %d has %d paths, expected %d", n, made, half[n])
			}
		}
		if n := settings.Made(); n != 38 {
			t.Errorf("counted %d paths, expected 38", n)
		}
		for _, s := range streams {
			s.Release()
		}
		if n := settings.Made(); n != 0 {
			t.Errorf("%d paths after the end of all streams", n)
		}
	}
}

func TestAStreamMakesPathsAgainWhenAnotherOneEnds(t *testing.T) {
	settings := &Settings{By: FunctionsAndPaths, ByThread: true, MaxPaths: 5}
	others, second := []*Sums{New(settings), New(settings), New(settings)}, New(settings)
	for _, s := range others {
		for function := range uint32(5) {
			s.Callee(0, function)
		}
	}
	rest := second.Lane(0, 7, "lane")
	for _, caller := range []uint32{0, rest} {
		if path := second.Callee(caller, 1); path != rest {
			t.Errorf("without room the path is %d, expected the rest, %d", path, rest)
		}
	}
	for _, s := range others {
		s.Release()
	}
	if path := second.Callee(rest, 2); path != rest {
		t.Errorf("the callee of the rest has path %d, expected the rest, %d", path, rest)
	}
	if second.Callee(0, 1) == rest {
		t.Error("the path is the rest although there is room")
	}
	lane := second.Lane(rest, 7, "lane")
	second.CountReturned(1, second.Callee(lane, 1), 1, 0)
	paths := take(second, 2).Paths
	if got := paths[len(paths)-1]; got != (Path{Parent: lane, Label: 1}) || paths[lane].Kind != PathLane {
		t.Errorf("paths %+v", paths)
	}
}

// 40,000 threads that run for three months and end together have more time than 2^63 ns.
func TestSumsOfTimesAreNeverNegative(t *testing.T) {
	s := New(&Settings{By: FunctionsAndPaths, MaxPaths: 1})
	path := s.Callee(0, 0)
	for range 40_000 {
		s.CountReturned(0, path, 90*24*3600*1e9, 0)
	}
	i := take(s, 1)
	if f, p := i.ByFunction[0], i.Grown[0]; p.Path != path || f.Sum != math.MaxInt64 || p.Self != math.MaxInt64 || f.Calls != 40_000 {
		t.Errorf("%d calls, %d ns, %d ns without callees", f.Calls, f.Sum, p.Self)
	}
}

func TestAnIncrementWithoutCallsIsEmpty(t *testing.T) {
	s := New(&Settings{By: FunctionsAndPaths, MaxPaths: 10})
	s.CountReturned(0, s.Callee(0, 0), 1, 0)
	take(s, 1)
	if again := take(s, 1); again.ByFunction != nil || again.Paths != nil || again.Functions != nil {
		t.Errorf("%+v", again)
	}
}

func TestAnEventAllocatesNothing(t *testing.T) {
	settings := &Settings{By: FunctionsAndPaths, ByThread: true, MaxPaths: 1_000}
	s, seed := New(settings), uint64(0)
	again := func() {
		walk(s, rand.New(rand.NewPCG(seed%4, 1)), 5, 3_000)
		seed++
	}
	for range 4 {
		again()
	}
	// Each makes a source of random numbers, and one stack of six.
	const ofWalk = 6
	if n := testing.AllocsPerRun(20, again); n > ofWalk {
		t.Errorf("%v allocations for 3000 calls", n)
	}
}

func TestBytesGrowWithPathsFunctionsAndLanes(t *testing.T) {
	settings := &Settings{By: FunctionsAndPaths, ByThread: true, MaxPaths: 1 << 20}
	s, before := New(settings), 0
	grows := func(what string, least int, grow func()) {
		t.Helper()
		grow()
		if after := s.Bytes(); after-before < least {
			t.Errorf("%s: %d bytes after %d", what, after, before)
		}
		before = s.Bytes()
	}
	grows("paths", 10_000*(pathBytes+stateBytes+keytable.SlotBytes), func() {
		path := uint32(0)
		for function := range uint32(10_000) {
			path = s.Callee(path, function)
		}
	})
	grows("functions", 10_000*(functionBytes+bucketStep*8), func() {
		for function := range uint32(10_000) {
			s.CountReturned(function, 1, 1, 0)
		}
	})
	grows("a long histogram", 100*8, func() {
		for shift := range 9 {
			s.CountReturned(0, 1, 1<<shift, 0)
		}
	})
	grows("exceptions", 10_000*(unwoundBytes+keytable.SlotBytes), func() {
		for exception := range uint32(10_000) {
			s.CountUnwound(0, exception, 1, 1, 0)
		}
	})
	grows("lanes", 10_000*(laneBytes+4+keytable.SlotBytes), func() {
		for id := range uint64(10_000) {
			s.Lane(0, id, "lane")
		}
	})
	grows("long names", 10_000*96, func() {
		for id := range uint64(10_000) {
			s.Lane(0, id, string(make([]byte, 100)))
		}
	})
}

// BenchmarkTake takes the increment of 100,000 paths and 1,000 functions.
func BenchmarkTake(b *testing.B) {
	const paths, functions = 100_000, 1_000
	s := New(&Settings{By: FunctionsAndPaths, MaxPaths: paths})
	random := rand.New(rand.NewPCG(1, 1))
	for n := range uint32(paths) {
		function := n % functions
		s.CountReturned(function, s.Callee(n/2, function), someDuration(random, 5), 0)
	}
	take(s, functions)
	for b.Loop() {
		s.CountReturned(0, s.Callee(0, 0), 1_000, 0)
		take(s, functions)
	}
}
