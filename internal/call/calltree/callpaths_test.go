// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// grown are paths of functions with one call of 10 ns each.
func grown(paths ...string) *CallPaths {
	p := NewCallPaths()
	for _, path := range paths {
		p.Add(walked(p, path), 1, 0, 10, false)
	}
	return p
}

// walked is the path of functions, of which the last can be truncated, or stand for several.
func walked(p *CallPaths, path string) uint32 { return walkedFrames(p, map[string]uint32{}, path) }

// walkedFrames is walked with frames that were added before.
func walkedFrames(p *CallPaths, frames map[string]uint32, path string) (at uint32) {
	for _, name := range strings.Split(path, "/") {
		switch name {
		case Folded.String():
			at = p.RestBelow(at, Folded)
		case Deep.String():
			at = p.RestBelow(at, Deep)
		default:
			name, truncated := strings.CutSuffix(name, " truncated")
			mark := Plain
			if truncated {
				mark = Truncated
			}
			if _, ok := frames[name]; !ok {
				frames[name] = p.AddFrame(Frame{Function: name})
			}
			at = p.Below(at, frames[name], mark)
		}
	}
	return at
}

// pathModel has the values of call paths, in the slow and obvious way.
type pathModel map[string]values

func (m pathModel) add(path string, v values) {
	for at := path; ; {
		sum := m[at]
		if at == path {
			sum.add(&values{calls: v.calls, errors: v.errors, self: v.self})
		}
		sum.total = plus(sum.total, v.self)
		if m[at] = sum; sum == (values{}) {
			delete(m, at)
		}
		end := strings.LastIndexByte(at, '/')
		if end < 0 {
			return
		}
		at = at[:end]
	}
}

// At every moment a tree has all call paths that arrived, beside spans of the same service; after a
// reset those since then; and a window those since its begin.
func TestTheTreeIsThatOfAllCallPathsThatArrived(t *testing.T) {
	for seed := range stories(testing.Short()) {
		random := rand.New(rand.NewPCG(seed, 4))
		s, all, since := NewStore(settings()), pathModel{}, pathModel{}
		var watched *tree
		var w *window
		p, frames := NewCallPaths(), map[string]uint32{}
		for range 1 + random.IntN(20) {
			p.Clear()
			for range random.IntN(20) {
				path := "main"
				for range random.IntN(6) {
					path += fmt.Sprint("/f", random.IntN(3))
				}
				path += []string{"", "", " truncated", "/" + Folded.String(), "/" + Deep.String()}[random.IntN(5)]
				v := values{calls: random.Uint64N(9), errors: random.Uint64N(2), self: random.Int64N(100)}
				p.Add(walkedFrames(p, frames, path), v.calls, v.errors, v.self, false)
				all.add(path, v)
				since.add(path, v)
			}
			s.FoldPaths(Origin{Service: "s"}, p, time.Second)
			if random.IntN(10) == 0 {
				s.room.compact(func(*tree) bool { return true })
			}
			if random.IntN(10) == 0 {
				s.Reset("s")
				all, since = pathModel{}, pathModel{}
			}
			if tree, window, err := s.openWindow("s", Calls); err == nil && w == nil {
				watched, w, since = tree, window, pathModel{}
			} else if err == nil {
				s.closeWindow(tree, window)
			}
			check(t, s)
			snapshot, _ := s.Snapshot("s", Calls)
			require.Equal(t, lines(all), lines(paths(t, snapshot.Nodes)), "seed %d", seed)
		}
		if w != nil {
			copied := s.copyAndCloseWindow(watched, w)
			showWindow(copied, w.values)
			require.Equal(t, lines(since), lines(paths(t, snapshotNodes(copied))), "seed %d", seed)
		}
	}
}

// With too little room paths are folded, also those with a node for deeper calls, but no call is
// lost.
func TestNoCallOfACallPathIsLostIfThereIsTooLittleRoom(t *testing.T) {
	set := settings()
	set.MaxNodes, set.MaxServices = LeastNodes, 10
	s := NewStore(set)
	for i := range 100 {
		p := NewCallPaths()
		for j := range 50 {
			p.Add(walked(p, fmt.Sprint("f", i, "/g", j, "/", Deep)), 1, 0, int64(i), false)
		}
		s.FoldPaths(Origin{Service: fmt.Sprint(i % 3)}, p, time.Second)
		require.LessOrEqual(t, s.Usage().Nodes, set.MaxNodes)
		check(t, s)
	}
	assert.Positive(t, s.Counters().FoldedPaths)
	assert.EqualValues(t, 5000, s.Counters().Calls)
	calls, self := uint64(0), int64(0)
	for _, service := range s.Services() {
		snapshot, _ := s.Snapshot(service.Name, Calls)
		for _, n := range snapshot.Nodes {
			calls += n.Calls
			self += n.Self
		}
	}
	assert.EqualValues(t, 5000, calls)
	assert.EqualValues(t, 50*99*100/2, self)
}

// Names and memory are bounded in the same way.
func TestNamesAndMemoryOfCallPathsAreBounded(t *testing.T) {
	set := settings()
	set.MaxNameBytes, set.MaxNamesBytes = 20, 20_000
	limit := int64(200_000)
	set.Hold = func(bytes int64) int64 { return max(0, bytes-limit) }
	s := NewStore(set)
	for i := range 100 {
		p := NewCallPaths()
		for j := range 20 {
			p.Add(walked(p, fmt.Sprintf("a function with a long name %d/%08d", i, i*20+j)), 1, 0, 1, false)
		}
		s.FoldPaths(Origin{Service: "s"}, p, time.Second)
		require.Less(t, s.Usage().NameBytes, set.MaxNamesBytes)
		require.LessOrEqual(t, s.Bytes(), limit)
		check(t, s)
		if i == 50 {
			limit = s.Bytes() / 2
			s.GiveWay()
		}
	}
	assert.Positive(t, s.Counters().Shed.Paths)
	assert.EqualValues(t, 2000, s.Services()[0].Calls)
}

// A report of an interval counts as calls of each second of it.
func TestTheRateOfCallPathsIsEven(t *testing.T) {
	set := settings()
	c := newClock(&set)
	s := NewStore(set)
	c.pass(100 * time.Second)
	for range 20 {
		p := NewCallPaths()
		p.Add(walked(p, "main"), 1505, 0, 1, false)
		s.FoldPaths(Origin{Service: "s"}, p, 15*time.Second)
		for range 15 {
			c.pass(time.Second)
			if c.now.Sub(s.start) > 111*time.Second {
				require.InDelta(t, 100, s.Services()[0].Rate, 1)
			}
		}
	}
	c.pass(10 * time.Second)
	assert.Zero(t, s.Services()[0].Rate)

	var r rate
	r.add(91, 25)
	r.add(99, 25)
	r.spread(100, 6000, 1000*time.Hour) // at most a minute
	assert.InDelta(t, 5, r.of(100), 0.01)
	assert.InDelta(t, 15, r.of(101), 0.01)
	assert.InDelta(t, 22.5, r.of(102), 0.01)
	for second := range uint32(50) {
		require.InDelta(t, 100, r.of(110+second+1), 0.01)
	}
	assert.InDelta(t, 90, r.of(161), 0.01)
	assert.Zero(t, r.of(170))
}

// Spans that are only kept are in no tree. Duplicates are found, and the service stays while they
// are remembered.
func TestSpansThatAreOnlyKeptDoNotCount(t *testing.T) {
	set := settings()
	set.KeepOnly, set.MaxPending, set.MaxServices = true, 40, 2
	c := newClock(&set)
	s := NewStore(set)
	for i := range 100 {
		span := Span{Trace: traceID(i / 10), ID: spanID(i), ParentTrace: traceID(i / 10), Function: "f", Start: 1, End: 5, HasThread: true, Thread: 3}
		if i%10 > 0 {
			span.Parent = spanID(i - 1)
		}
		from := Origin{Service: fmt.Sprint(i / 50)}
		s.Fold(from, []Span{span, span})
		check(t, s)
	}
	s.room.compact(func(*tree) bool { return true })
	s.ResetAll()
	check(t, s)
	s.FoldPaths(Origin{Service: "1"}, grown("main/f"), time.Second)
	counters := s.Counters()
	assert.EqualValues(t, 100, counters.UncountedSpans)
	assert.EqualValues(t, 100, counters.Duplicates)
	assert.Zero(t, counters.Spans+counters.ParentsNotSeen.Limit+counters.MixedServices)
	snapshot, ok := s.Snapshot("1", Calls)
	require.True(t, ok)
	assert.Equal(t, "main: 0 calls, 0 errors, total 10, self 0\nmain/f: 1 calls, 0 errors, total 10, self 10\n", lines(paths(t, snapshot.Nodes)))
	s.Fold(Origin{Service: "1"}, []Span{{Trace: traceID(1), ID: spanID(1000), Function: "g"}})
	trace, ok := s.Trace(traceID(1))
	assert.True(t, ok)
	assert.Len(t, trace, 1)

	c.pass(2 * time.Hour)
	s.Services()
	s.ResetAll()
	check(t, s)
	assert.Empty(t, s.Services())
}
