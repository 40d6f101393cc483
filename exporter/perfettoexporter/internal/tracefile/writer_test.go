// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tracefile

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/componentkit/recordfile"
	"github.com/callbraid/callbraid/internal/testkit/perfettofile"
)

func TestSlicesOfAThreadNestAsTheirSpansDo(t *testing.T) {
	const newChunk = ""
	for name, test := range map[string]struct {
		calls []call
		want  string
	}{
		"callees arrive before their caller": {
			[]call{{"c", 20, 30, 3, 2}, {"b", 10, 40, 2, 1}, {"d", 50, 60, 4, 1}, {"a", 5, 70, 1, 0}},
			"a 5-70; > b 10-40; > > c 20-30; > d 50-60",
		},
		"a caller begins and ends with its callee": {
			[]call{{"b", 10, 20, 2, 1}, {"a", 10, 20, 1, 0}}, "a 10-20; > b 10-20",
		},
		"a caller begins with its callee, which is in an earlier chunk": {
			[]call{{"b", 10, 20, 2, 1}, {name: newChunk}, {"a", 10, 30, 1, 0}}, "b 10-20 | a 10-30",
		},
		"a caller ends with its callee, which is in an earlier chunk": {
			[]call{{"b", 10, 20, 2, 1}, {name: newChunk}, {"a", 5, 20, 1, 0}}, "a 5-20; > b 10-20",
		},
		"a slice begins when the one before ends": {
			[]call{{"a", 10, 20, 1, 9}, {"b", 20, 30, 2, 9}, {name: newChunk}, {"c", 30, 40, 3, 9}, {"main", 5, 50, 9, 0}},
			"main 5-50; > a 10-20; > b 20-30; > c 30-40",
		},
		"a late slice ends when another one began": {
			[]call{{"b", 20, 30, 2, 9}, {"a", 10, 20, 1, 9}}, "a 10-20; b 20-30",
		},
		"a late slice ends when another one of an earlier chunk began": {
			[]call{{"b", 20, 30, 2, 9}, {name: newChunk}, {"a", 10, 20, 1, 9}}, "b 20-30 | a 10-20",
		},
		"a late slice fits between others": {
			[]call{{"a", 10, 20, 1, 9}, {"c", 40, 50, 3, 9}, {name: newChunk}, {"b", 25, 35, 2, 9}, {"main", 5, 60, 9, 0}},
			"main 5-60; > a 10-20; > b 25-35; > c 40-50",
		},
		"a slice crosses another one": {
			[]call{{"a", 10, 30, 1, 9}, {"b", 20, 40, 2, 9}}, "a 10-30 | b 20-40",
		},
		"siblings overlap completely": {
			[]call{{"inner", 20, 30, 1, 9}, {"outer", 10, 40, 2, 9}}, "inner 20-30 | outer 10-40",
		},
		"a callee arrives after its caller": {
			[]call{{"a", 10, 40, 1, 0}, {"b", 20, 30, 2, 1}}, "a 10-40 | b 20-30",
		},
		"the direct caller is unknown": {
			[]call{{"c", 20, 30, 3, 2}, {"a", 10, 40, 1, 0}}, "a 10-40; > c 20-30",
		},
		"empty slices": {
			[]call{{"x", 20, 20, 3, 1}, {"y", 20, 20, 4, 1}, {"b", 20, 30, 2, 1}, {"z", 30, 30, 5, 1}, {"a", 10, 40, 1, 0}},
			"a 10-40; > x 20-20; > y 20-20; > b 20-30; > z 30-30",
		},
		"the end before the begin": {
			[]call{{"a", 20, 10, 1, 0}}, "a 20-20",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFile(t)
			thread := f.Thread(f.process, 0, "main")
			for _, c := range test.calls {
				if c.name == newChunk {
					f.flush()
					continue
				}
				f.Begin(f.process, thread, c.slice())
			}
			assert.Equal(t, test.want, drawn(f.read()))
		})
	}
}

func TestSlicesWithoutAThreadNestOnlyBelowTheirCallers(t *testing.T) {
	for name, test := range map[string]struct {
		calls []call
		want  string
	}{
		"two requests at the same time": {
			[]call{{"b2", 12, 20, 4, 2}, {"a2", 5, 30, 3, 1}, {"b", 10, 50, 2, 0}, {"a", 0, 100, 1, 0}},
			"b 10-50; > b2 12-20 | a 0-100; > a2 5-30",
		},
		"one request after the other": {
			[]call{{"a", 10, 20, 1, 0}, {"b", 20, 30, 2, 0}, {"c", 40, 50, 3, 0}}, "a 10-20; b 20-30; c 40-50",
		},
		"callees that run at the same time": {
			[]call{{"x", 20, 30, 2, 1}, {"y", 10, 40, 3, 1}, {"a", 5, 50, 1, 0}}, "a 5-50; > x 20-30 | y 10-40",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFile(t)
			for _, c := range test.calls {
				s := c.slice()
				s.Trace = uint64(c.self)
				f.Begin(f.process, nil, s)
			}
			assert.Equal(t, test.want, drawn(f.read()))
		})
	}
}

func TestAnInstantIsInItsSlice(t *testing.T) {
	f := newFile(t)
	thread := f.Thread(f.process, 7, "worker")
	for _, c := range []call{{"c", 20, 30, 3, 2}, {"b", 10, 30, 2, 1}, {"a", 10, 40, 1, 0}} {
		f.Begin(f.process, thread, c.slice())
		for _, at := range []uint64{c.start, 25, c.end} {
			f.Instant(f.process, "in "+c.name, at)
		}
	}
	f.Instant(f.process, "outside", 50)
	assert.Equal(t, "outside 50 | a 10-40; > in a 10; > b 10-30; > > in b 10; > > c 20-30; > > > in c 20; "+
		"> > > in c 25; > > > in b 25; > > > in a 25; > > > in c 30; > > in b 30; > in a 40", drawn(f.read()),
		"an instant inside two slices is in the inner one: that is what the time says")
}

// Random calls of a thread, in their order and in a random one, in chunks of random sizes, and in one chunk.
func TestNoSliceIsWrongInAnyOrder(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		var calls []call
		var grow func(start, end uint64, parent Key, depth int)
		grow = func(start, end uint64, parent Key, depth int) {
			for start < end && len(calls) < 200 {
				from := start + random.Uint64N(3)
				to := min(end, from+random.Uint64N(20))
				if from > to {
					return
				}
				at := len(calls)
				calls = append(calls, call{"", from, to, Key(at + 1), parent})
				if depth < 6 {
					grow(from, to, Key(at+1), depth+1)
				}
				start = to + random.Uint64N(2)
			}
		}
		grow(1, 500, 0, 0)
		for i := range calls {
			calls[i].name = string(rune('a'+i%26)) + string(rune('0'+i/26))
		}
		slices.Reverse(calls)
		slices.SortStableFunc(calls, func(a, b call) int { return int(a.end) - int(b.end) })
		if seed%2 == 1 {
			random.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		}
		f := newFile(t)
		thread := f.Thread(f.process, 1, "main")
		if seed%4 >= 2 {
			thread = nil
		}
		for _, c := range calls {
			f.Begin(f.process, thread, c.slice())
			if seed%3 > 0 && random.IntN(20) == 0 {
				f.flush()
			}
		}
		type shape struct {
			name       string
			start, end uint64
		}
		var want, got []shape
		parents := map[string]string{}
		for _, c := range calls {
			want = append(want, shape{c.name, c.start, c.end})
			if c.parent != 0 {
				i := slices.IndexFunc(calls, func(p call) bool { return p.self == c.parent })
				parents[c.name] = calls[i].name
			}
		}
		for _, s := range f.read().Slices {
			require.False(t, s.Open, "seed %d: %s", seed, s.Name)
			got = append(got, shape{s.Name, s.Start, s.End})
			if s.Parent != nil && thread == nil {
				require.Equal(t, parents[s.Name], s.Parent.Name, "seed %d: %s is in a slice that did not call it", seed, s.Name)
			}
		}
		require.ElementsMatch(t, want, got, "seed %d", seed)
	}
}

// Threads have many calls in a chunk, or few, and some begin long before.
func TestBusyTracksAreGroupsOfTheFile(t *testing.T) {
	const busy, quiet, calls = 3, 5, 4 * leastOfGroup
	for name, test := range map[string]struct{ earliest uint64 }{
		"calls are close in time": {1 << 62},
		"the times need all bits": {1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFile(t)
			type shape struct {
				thread, name string
				start, end   uint64
				parent       string
			}
			var want, got []shape
			add := func(thread int, name string, start, end uint64, self, parent Key, caller string) {
				text := fmt.Sprint("worker-", thread)
				f.Begin(f.process, f.Thread(f.process, int64(thread), text), Slice{Name: name, Start: start, End: end, Self: self, Parent: parent})
				f.Instant(f.process, "in "+name, start)
				want = append(want, shape{text, name, start, end, caller}, shape{text, "in " + name, start, start, name})
			}
			now := uint64(1 << 62)
			for n := range Key(calls) {
				for thread := range busy {
					add(thread, fmt.Sprint("call", n%7), now, now+10, 1+n, calls+1, "main")
					now += 3
				}
				now += 10
			}
			for thread := range busy + quiet {
				add(thread, "main", test.earliest+uint64(thread), now, calls+1, 0, "")
			}
			for _, s := range f.read().Slices {
				require.False(t, s.Open)
				end, parent := s.End, ""
				if s.Instant {
					end = s.Start
				}
				if s.Parent != nil {
					parent = s.Parent.Name
				}
				got = append(got, shape{s.Track.Thread.Name, s.Name, s.Start, end, parent})
			}
			require.ElementsMatch(t, want, got)
			packets, err := zlib.NewReader(&f.compressed)
			require.NoError(t, err)
			content, err := io.ReadAll(packets)
			require.NoError(t, err)
			groups := 0
			for _, track := range f.tracks.all {
				groups += bytes.Count(content, appendGroup(nil, track.uuid))
			}
			assert.Equal(t, busy, groups)
			assert.Len(t, f.sorter.few, 3*quiet)
			assert.True(t, slices.IsSortedFunc(f.sorter.few, f.sorter.compare), "the clock goes forward")
		})
	}
}

func TestFieldsOfEvents(t *testing.T) {
	f := newFile(t)
	thread := f.Thread(f.process, 7, "worker")
	f.Begin(f.process, thread, Slice{Name: "a", Start: 10, End: 20, Self: 1})
	f.Category("scope")
	f.Category("error")
	f.Location(Location{Function: "shop.A.a", File: "A.java", Line: 12})
	f.Flow(1 << 63)
	f.Annotate("text", func(a *Annotation) { a.String("b\xff") })
	f.Annotate("long", func(a *Annotation) { a.String(string(bytes.Repeat([]byte("ä"), maxValueBytes))) })
	f.Annotate("map", func(a *Annotation) {
		a.Entry("yes", func(a *Annotation) { a.Bool(true) })
		a.Entry("list", func(a *Annotation) {
			a.Element(func(a *Annotation) { a.Int(-1) })
			a.Element(func(a *Annotation) { a.Double(0.5) })
		})
	})
	f.Instant(f.process, "thrown", 15)
	f.Annotate("text", func(a *Annotation) { a.String("b\xff") })
	read := f.read()
	require.Len(t, read.Slices, 2)
	s := read.Slices[0]
	assert.Equal(t, []string{"scope", "error"}, s.Categories)
	assert.Equal(t, []uint64{1 << 63}, s.Flows)
	long := s.Args["long"].(string)
	assert.Len(t, long, maxValueBytes-1)
	delete(s.Args, "long")
	assert.Equal(t, map[string]any{
		"source.function_name": "shop.A.a", "source.file_name": "A.java", "source.line_number": int64(12),
		"text": "b\uFFFD", "map": map[string]any{"yes": true, "list": []any{int64(-1), 0.5}},
	}, s.Args)
	assert.Equal(t, map[string]any{"text": "b\uFFFD"}, read.Slices[1].Args)
	assert.Equal(t, &perfettofile.Process{PID: 42, Name: "shop"}, s.Track.Process)
	assert.Equal(t, &perfettofile.Thread{PID: 42, TID: 7, Name: "worker"}, s.Track.Thread)
}

func TestProcessesHaveDifferentNumbers(t *testing.T) {
	f := newFile(t)
	seen := map[int64]bool{}
	for _, id := range []ProcessID{{Service: "shop", PID: "42"}, {Service: "b", PID: "42"}, {Service: "c"}, {Service: "d", PID: "-7"}, {Service: "e", PID: "43"}} {
		f.Begin(f.Process(id, func() string { return "" }), nil, Slice{Name: id.Service, Start: 1, End: 2})
	}
	for _, s := range f.read().Slices {
		seen[s.Track.Process.PID] = true
	}
	assert.Len(t, seen, 5)
	assert.True(t, seen[42] && seen[43], "%v", seen)
}

func TestEachChunkIsReadAlone(t *testing.T) {
	f := newFile(t)
	thread := f.Thread(f.process, 7, "worker")
	for n := range uint64(3) {
		f.content = nil
		f.Begin(f.process, thread, Slice{Name: "a", Start: 10 * n, End: 10*n + 5, Self: Key(n + 1)})
		f.Category("c")
		read := f.read()
		require.Len(t, read.Slices, 1)
		assert.Equal(t, "worker", read.Slices[0].Track.Thread.Name)
	}
}

func TestTheEndOfTheLastWholePacketIsFound(t *testing.T) {
	f := newFile(t)
	for n := range uint64(3) {
		f.Begin(f.process, nil, Slice{Name: "a", Start: 10 * n, End: 10*n + 5, Self: Key(n + 1)})
		f.flush()
	}
	whole := f.content
	ends := map[int64]bool{}
	for size := range len(whole) + 1 {
		end, err := recordfile.LastPacketEnd(bytes.NewReader(whole[:size]), int64(size))
		require.NoError(t, err)
		require.LessOrEqual(t, end, int64(size))
		ends[end] = true
		_, err = perfettofile.Read(whole[:end])
		require.NoError(t, err, "cut at %d", size)
	}
	assert.Len(t, ends, 1+2*3, "the beginning, and the end of each packet")
	for _, garbage := range []string{"\x00\x00\x00", "\xff", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
		end, err := recordfile.LastPacketEnd(bytes.NewReader(append(slices.Clone(whole), garbage...)), int64(len(whole)+len(garbage)))
		require.NoError(t, err)
		assert.EqualValues(t, len(whole), end)
	}
}

func TestALengthMayNeedMoreThanTwoBytes(t *testing.T) {
	for _, size := range []int{0, 1, 127, 128, 1<<14 - 1, 1 << 14, 1 << 21} {
		b, m := begin([]byte("x"), 3)
		b = m.end(append(b, make([]byte, size)...))
		b = append(b, "y"...)
		got := 0
		for i, c := range b[2:] {
			got |= int(c&127) << (7 * i)
			if c < 128 {
				require.Len(t, b, 2+i+1+size+1)
				break
			}
		}
		assert.Equal(t, size, got)
	}
}
