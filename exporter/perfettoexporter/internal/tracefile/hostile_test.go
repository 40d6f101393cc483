// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tracefile

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit/cputime"
)

const mib = 1 << 20

// heap is the memory in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// long is a text of a mebibyte that differs from others at its end.
func long(n int) string { return strings.Repeat("x", mib) + fmt.Sprint(n) }

// Senders choose the length of every text. The writer keeps short parts of them.
func TestLongTextsDoNotStayInMemory(t *testing.T) {
	const count, most = 24, 8 * mib
	for name, add := range map[string]func(f *file, n int){
		"services": func(f *file, n int) {
			f.Begin(f.Process(ProcessID{Service: long(n)}, func() string { return "" }), nil, Slice{Start: 1, End: 2})
		},
		"instances": func(f *file, n int) {
			f.Begin(f.Process(ProcessID{Instance: long(n)}, func() string { return "" }), nil, Slice{Start: 1, End: 2})
		},
		"names":      func(f *file, n int) { f.Begin(f.process, nil, Slice{Name: long(n), Start: 1, End: 2}) },
		"categories": func(f *file, n int) { f.Begin(f.process, nil, Slice{Start: 1, End: 2}); f.Category(long(n)) },
		"functions": func(f *file, n int) {
			f.Begin(f.process, nil, Slice{Name: fmt.Sprint(n), Start: 1, End: 2})
			f.Location(Location{Function: long(n)})
		},
		"files": func(f *file, n int) {
			f.Begin(f.process, nil, Slice{Name: fmt.Sprint(n), Start: 1, End: 2})
			f.Location(Location{File: long(n)})
		},
		"keys": func(f *file, n int) {
			f.Begin(f.process, nil, Slice{Start: 1, End: 2})
			f.Annotate(long(n), func(a *Annotation) { a.Int(1) })
		},
		"threads": func(f *file, n int) {
			f.Begin(f.process, f.Thread(f.process, int64(n), long(n)), Slice{Start: 1, End: 2})
		},
		"counters": func(f *file, n int) { f.Int(f.Counter(f.process, CounterID{Name: long(n)}), 1, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFile(t)
			before := heap()
			for n := range count {
				add(f, n)
			}
			assert.Less(t, heap()-before, most)
			runtime.KeepAlive(f)
		})
	}
}

// Two services whose names differ behind the part that is kept are two processes, and so are two counters.
func TestLongTextsIdentifyByAllTheirBytes(t *testing.T) {
	f := newFile(t)
	none := func() string { return "" }
	a, b := f.Process(ProcessID{Service: long(1)}, none), f.Process(ProcessID{Service: long(2)}, none)
	assert.NotSame(t, a, b)
	assert.Same(t, a, f.Process(ProcessID{Service: long(1)}, none))
	assert.NotSame(t, f.Process(ProcessID{Service: long(1), PID: long(1)}, none), f.Process(ProcessID{Service: long(1), PID: long(2)}, none))
	assert.NotSame(t, f.Counter(a, CounterID{Name: long(1)}), f.Counter(a, CounterID{Name: long(2)}))
	assert.Same(t, f.Counter(a, CounterID{Name: long(1)}), f.Counter(a, CounterID{Name: long(1)}))
}

// Each of many resources has a description of 16 KiB. Neither a chunk nor a file has all of them.
func TestDescriptionsOfManyProcessesAreBounded(t *testing.T) {
	const count = 8000
	f := newFile(t)
	f.maxTracks = 10 * count
	before, most, crowded := heap(), 0, 0
	for n := range count {
		details := func() string { return strings.Repeat(fmt.Sprint(n, " "), maxValueBytes) }
		f.Begin(f.Process(ProcessID{Service: fmt.Sprint(n)}, details), nil, Slice{Start: 1, End: 2})
		require.Less(t, len(f.descriptors), maxChunkBytes)
		if n%250 == 0 {
			most = max(most, heap()-before)
		}
		if f.Full() {
			_, err := f.Record()
			require.NoError(t, err)
		}
		if f.Crowded() {
			crowded++
			f.Reset()
		}
	}
	assert.Less(t, most, 48*mib, "while they arrive")
	assert.NotZero(t, crowded)
	_, err := f.Record()
	require.NoError(t, err)
	f.Reset()
	assert.Less(t, heap()-before, 8*mib, "afterwards")
	runtime.KeepAlive(f)
}

// A chunk has as many instants and annotations of a slice as it has room for, so its memory is bounded.
func TestALargeSliceNeedsBoundedMemory(t *testing.T) {
	const count = 200_000
	f := newFile(t)
	before := heap()
	f.Begin(f.process, nil, Slice{Name: "a", Start: 1, End: count})
	f.Annotate("list", func(a *Annotation) {
		for range count / 2 {
			a.Element(func(a *Annotation) { a.Int(1) })
		}
	})
	written := 0
	for n := range uint64(count) {
		if f.Instant(f.process, fmt.Sprint("instant-", n), n+1) {
			written++
		}
		f.Flow(n)
	}
	assert.Less(t, f.size(), maxChunkBytes+maxNameBytes)
	read := f.read()
	assert.Less(t, heap()-before, 16*mib)
	require.Len(t, read.Slices, 1+written)
	flows := 0
	for _, s := range read.Slices {
		flows += len(s.Flows)
	}
	elements := len(read.Slices[0].Args["list"].([]any))
	assert.EqualValues(t, 2*count+count/2, f.Omitted()+int64(written+flows+elements))
	runtime.KeepAlive(f)
}

// Senders choose the process numbers, so they can choose those that the writer would choose.
func TestNumbersOfProcessesAreFoundAtOnce(t *testing.T) {
	const count = 20_000
	none := func() string { return "" }
	f := newFile(t)
	used := cputime.Of(func() {
		for n := range count {
			f.Process(ProcessID{PID: fmt.Sprint(leastSyntheticPID + count + n)}, none)
		}
		for n := range count {
			f.Process(ProcessID{Service: fmt.Sprint(n)}, none)
		}
	})
	t.Logf("%v", used)
	seen := map[int32]bool{}
	for _, p := range f.tracks.processes {
		seen[p.pid] = true
	}
	assert.Len(t, seen, 2*count+1)
}

// hostile are slices in orders that need a track, or an interval, for each of them.
var hostile = []struct {
	name string
	of   func(n, count uint64) Slice
}{
	{"all overlap", func(n, count uint64) Slice {
		return Slice{Start: n + 1, End: n + 1 + count, Self: Key(n + 1), Parent: Key(n + 1 + count)}
	}},
	{"back in time", func(n, count uint64) Slice {
		return Slice{Start: 3 * (count - n), End: 3*(count-n) + 2, Self: Key(n + 1), Parent: Key(n + 1 + count)}
	}},
	{"on in time, each with another caller", func(n, count uint64) Slice {
		return Slice{Start: 3*n + 1, End: 3*n + 3, Self: Key(n + 1), Parent: Key(n + 1 + count)}
	}},
	{"callers first", func(n, count uint64) Slice {
		return Slice{Start: n + 1, End: 3*count - n, Self: Key(n + 1), Parent: Key(n)}
	}},
	{"around everything", func(n, count uint64) Slice {
		if n%2 == 0 {
			return Slice{Start: count + 3*n, End: count + 3*n + 2, Self: Key(n + 1), Parent: Key(n + 1 + count)}
		}
		return Slice{Start: count - n, End: 10*count + n, Self: Key(n + 1), Parent: Key(n)}
	}},
}

// Time and memory of each slice are bounded, in any order, and no slice is lost or wrong.
func TestHostileOrderIsBounded(t *testing.T) {
	count := uint64(20_000)
	if testing.Short() {
		count = 2000
	}
	for _, test := range hostile {
		for _, withThread := range []bool{true, false} {
			t.Run(fmt.Sprint(test.name, ", with a thread: ", withThread), func(t *testing.T) {
				f := newFile(t)
				var thread *Thread
				if withThread {
					thread = f.Thread(f.process, 1, "main")
				}
				for n := range count {
					s := test.of(n, count)
					s.Trace, s.Name = n, fmt.Sprint(n)
					f.Begin(f.process, thread, s)
					lanes := f.process.lanes
					if withThread {
						lanes = thread.lanes
					}
					require.LessOrEqual(t, len(lanes), maxLanes)
					if n%1000 == 999 {
						intervals := 0
						for _, on := range lanes {
							require.LessOrEqual(t, len(on.intervals), maxIntervalsOfLane)
							intervals += len(on.intervals)
						}
						require.Equal(t, intervals, f.tracks.intervals)
						f.flush()
					}
				}
				found := map[string]bool{}
				for _, s := range f.read().Slices {
					require.False(t, s.Open)
					n := uint64(0)
					_, err := fmt.Sscan(s.Name, &n)
					require.NoError(t, err)
					want := test.of(n, count)
					require.Equal(t, [2]uint64{want.Start, want.End}, [2]uint64{s.Start, s.End})
					found[s.Name] = true
				}
				assert.Len(t, found, int(count))
			})
		}
	}
}

// A call around more callees than a lane remembers is on a track of its own. Shorter ones stay around their callees.
func TestALaneForgetsTheOldestTimes(t *testing.T) {
	f := newFile(t)
	thread := f.Thread(f.process, 1, "main")
	const count, remembered = 2 * maxIntervalsOfLane, 100
	for n := range uint64(count) {
		f.Begin(f.process, thread, Slice{Name: "a", Start: 10 * n, End: 10*n + 5, Self: Key(n + 1), Parent: Key(n + 1 + count)})
	}
	f.Begin(f.process, thread, Slice{Name: "b", Start: 10*(count-remembered) - 3, End: 10 * count, Self: 5 * count, Parent: 6 * count})
	require.Len(t, thread.lanes, 1)
	f.Begin(f.process, thread, Slice{Name: "c", Start: 1, End: 10*count + 1, Self: 5*count + 1, Parent: 7 * count})
	assert.Len(t, thread.lanes, 2)
	inB := 0
	for _, s := range f.read().Slices {
		if s.Depth > 0 {
			require.Equal(t, "b", s.Parent.Name)
			inB++
		}
	}
	assert.Equal(t, remembered, inB)
}

// A slice that begins and ends before many others is on another track, because these would have to be moved.
func TestALaneAcceptsNoSliceBeforeManyOthers(t *testing.T) {
	f := newFile(t)
	thread := f.Thread(f.process, 1, "main")
	add := func(start uint64, self Key) int {
		f.Begin(f.process, thread, Slice{Name: "a", Start: start, End: start + 5, Self: self, Parent: 1_000_000 + self})
		return len(thread.lanes)
	}
	for n := range uint64(maxIntervalsBehind) {
		require.Equal(t, 1, add(1000+10*n, Key(n+1)))
	}
	assert.Equal(t, 1, add(980, 100_000))
	assert.Equal(t, 2, add(970, 100_001))
	assert.Equal(t, 2, add(987, 100_002), "it is before as many as allowed")
}

// A slice is compared with a bounded number of others. Beyond it the slice is on a track of its own, though a later track has a
// place for it.
func TestASliceIsComparedWithABoundedNumberOfOthers(t *testing.T) {
	for name, test := range map[string]struct {
		overlapping uint64 // slices on each of the first two tracks
		want        int    // tracks in the end
	}{
		"few":  {100, 3},
		"many": {maxCallees/2 + 1000, 4},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFile(t)
			thread := f.Thread(f.process, 1, "main")
			self := Key(0)
			add := func(start, end uint64) int {
				self++
				f.Begin(f.process, thread, Slice{Name: "a", Start: start, End: end, Self: self, Parent: 1_000_000 + self})
				return len(thread.lanes)
			}
			last := 100 + 20*(test.overlapping-1)
			for at := uint64(100); at <= last; at += 20 {
				add(at, at+10)
				require.Equal(t, 2, add(at+5, at+15))
			}
			require.Equal(t, 3, add(last+7, last+20), "it overlaps the last slices of both tracks")
			assert.Equal(t, test.want, add(107, last+6), "it overlaps all slices of both tracks, and none of the third")
		})
	}
}

// BenchmarkHostileOrder writes slices in the orders that need most tracks and intervals.
func BenchmarkHostileOrder(b *testing.B) {
	for _, count := range []uint64{5000, 20_000} {
		for _, test := range hostile {
			for _, withThread := range []bool{true, false} {
				b.Run(fmt.Sprintf("%s/thread=%v/%d", test.name, withThread, count), func(b *testing.B) {
					cputime.Events(b, int(count), func() {
						f := newFile(b)
						var thread *Thread
						if withThread {
							thread = f.Thread(f.process, 1, "main")
						}
						for n := range count {
							s := test.of(n, count)
							s.Trace = n
							f.Begin(f.process, thread, s)
							if n%1000 == 999 {
								_, err := f.Record()
								require.NoError(b, err)
							}
						}
					})
				})
			}
		}
	}
}
