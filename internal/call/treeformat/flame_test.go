// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// flameText formats a flame graph: a frame for each line, with its value, and how many paths it stands for.
func flameText(f *Flame) string {
	var b strings.Builder
	depths := make([]int, len(f.Frames))
	for i, frame := range f.Frames {
		if frame.Caller >= 0 {
			depths[i] = depths[frame.Caller] + 1
		}
		fmt.Fprintf(&b, "%s%s %d", strings.Repeat("  ", depths[i]), f.Functions[frame.Function].Name, frame.Value)
		if frame.Paths > 0 {
			fmt.Fprintf(&b, " of %d", frame.Paths)
		}
		if frame.Found {
			b.WriteString(" found")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// idOf returns the ID of the first frame of a function.
func idOf(t *testing.T, f *Flame, name string) string {
	t.Helper()
	for i := range f.Frames {
		if f.Functions[f.Frames[i].Function].Name == name {
			return f.Frames[i].ID
		}
	}
	require.Fail(t, "no frame", name)
	return ""
}

func flameOf(t *testing.T, nodes []calltree.Node, o FlameOptions) *Flame {
	t.Helper()
	f, err := NewFlame(calltree.Snapshot{Nodes: nodes}, o)
	require.NoError(t, err)
	return f
}

func TestPathsNarrowerThanAPixelAreFolded(t *testing.T) {
	const text = "a\n  b 950\n  c 20\n    d 20\n  e 5\n    f 4\n  g 1\nh 6\n"
	for _, test := range []struct {
		name           string
		pixels, frames int
		want           string
		folded         int
	}{
		{"nothing is narrower", 10_000, everything, "a 1000\n  b 950\n  c 40\n    d 20\n  e 9\n    f 4\n  g 1\nh 6\n", 0},
		{"narrow ones are one frame below their caller", 100, everything, "a 1000\n  b 950\n  c 40\n    d 20\n  (smaller paths) 10 of 3\n(smaller paths) 6 of 1\n", 4},
		{"those below them, too", 30, everything, "a 1000\n  b 950\n  c 40\n    (smaller paths) 20 of 1\n  (smaller paths) 10 of 3\n(smaller paths) 6 of 1\n", 5},
		{"frames are bounded", 10_000, 2, "a 1000\n  b 950\n  (smaller paths) 50 of 5\n(smaller paths) 6 of 1\n", 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := flameOf(t, tree(text), FlameOptions{Pixels: test.pixels, Frames: test.frames})
			assert.Equal(t, test.want, flameText(f))
			assert.Equal(t, 8, f.Paths)
			assert.Equal(t, test.folded, f.Folded)
			assert.EqualValues(t, 1006, f.Whole)
			assert.EqualValues(t, -1, f.At)
		})
	}
}

func TestAFrameAloneHasItsCallersAndWhatWasTooNarrow(t *testing.T) {
	nodes := tree("a 1\n  b 9\n    c 5\n    d 500\n  e 100000\n")
	whole := flameOf(t, nodes, FlameOptions{Pixels: 1000, Frames: everything})
	require.Equal(t, "a 100515\n  b 514\n    (smaller paths) 5 of 1\n    d 500\n  e 100000\n", flameText(whole))
	part := flameOf(t, nodes, FlameOptions{Pixels: 1000, Frames: everything, At: idOf(t, whole, "b")})
	assert.Equal(t, "a 514\n  b 514\n    c 5\n    d 500\n", flameText(part))
	assert.EqualValues(t, 1, part.At)
	assert.EqualValues(t, 514, part.Whole)
	assert.Equal(t, []int{3, 0}, []int{part.Paths, part.Folded})
	assert.Equal(t, idOf(t, whole, "a"), idOf(t, part, "a"), "the ID of a path is the same in all pictures")

	for _, id := range []string{"0", "1", "zzzzzzzzzzzzzzzzzzzzzzz", "-1", "<b>", idOf(t, whole, "a") + "a"} {
		_, err := NewFlame(calltree.Snapshot{Nodes: nodes}, FlameOptions{Pixels: 1000, Frames: everything, At: id})
		assert.ErrorIs(t, err, ErrNoFrame, id)
	}
}

func TestIDsOfPathsDiffer(t *testing.T) {
	nodes := []calltree.Node{
		{Parent: -1, Function: "f"}, {Parent: 0, Function: "f"}, {Parent: 1, Function: "f"},
		{Parent: -1, Function: "f", Mark: calltree.Truncated}, {Parent: -1, Function: "f", File: "a"}, {Parent: -1, Function: "fa"},
		{Parent: -1, Function: "g"}, {Parent: 6, Function: "f"},
	}
	for i := range nodes {
		nodes[i].Self = 1
	}
	ids := map[string]bool{}
	for _, frame := range flameOf(t, nodes, FlameOptions{Pixels: 1000, Frames: everything}).Frames {
		ids[frame.ID] = true
	}
	assert.Len(t, ids, len(nodes))
}

func TestASearchFindsWhatIsFolded(t *testing.T) {
	nodes := tree("main\n  find 5\n    find 3\n  other 10000\n    deep\n      find 1\n  x 2\n")
	f := flameOf(t, nodes, FlameOptions{Pixels: 1000, Frames: everything, Search: func(name string) (bool, error) { return name == "find", nil }})
	assert.Equal(t, "main 10011\n  (smaller paths) 10 of 3 found\n  other 10001\n    (smaller paths) 1 of 2 found\n", flameText(f))
	assert.Equal(t, &FlameFound{Functions: 1, Paths: 3, Value: 9}, f.Found, "a found path counts all below it, once")

	fails := errors.New("it takes too long")
	_, err := NewFlame(calltree.Snapshot{Nodes: nodes}, FlameOptions{Pixels: 1, Frames: 1, Search: func(string) (bool, error) { return false, fails }})
	assert.ErrorIs(t, err, fails)
}

func TestGroupsAreRankedInAllOfTheTree(t *testing.T) {
	var nodes []calltree.Node
	for i := range MaxFlameGroups + 3 {
		nodes = append(nodes, calltree.Node{Parent: -1, Function: fmt.Sprintf("com.example.p%02d.Class.run", i), Self: int64(100 - i)})
	}
	nodes = append(nodes, calltree.Node{Parent: -1, Function: calltree.MissingParent.String(), Mark: calltree.MissingParent, Self: 7})
	f := flameOf(t, nodes, FlameOptions{Pixels: 100_000, Frames: everything})
	require.Len(t, f.Groups, MaxFlameGroups+1)
	assert.Equal(t, FlameGroup{"com.example.p00", 100}, f.Groups[0])
	assert.Equal(t, FlameGroup{otherGroups, 88 + 87 + 86}, f.Groups[MaxFlameGroups])
	groups := map[string]int32{}
	for _, function := range f.Functions {
		groups[function.Name] = function.Group
	}
	assert.EqualValues(t, 2, groups["com.example.p02.Class.run"])
	assert.EqualValues(t, MaxFlameGroups, groups["com.example.p14.Class.run"])
	assert.EqualValues(t, -1, groups[calltree.MissingParent.String()], "no function, so no group")

	part := flameOf(t, nodes, FlameOptions{Pixels: 100_000, Frames: everything, At: idOf(t, f, "com.example.p02.Class.run")})
	assert.Equal(t, f.Groups, part.Groups, "colours stay when a frame is shown alone")
	assert.EqualValues(t, 2, part.Functions[part.Frames[0].Function].Group)
}

func TestFramesHaveTheirMarksAndPlaces(t *testing.T) {
	f := flameOf(t, shop().Nodes, FlameOptions{Pixels: 1000, Frames: everything, By: Value{of: callsOf}})
	marks, places := map[string]string{}, map[string]string{}
	for _, function := range f.Functions {
		marks[function.Name], places[function.Name] = function.Mark, function.Place
	}
	assert.Equal(t, "truncated", marks["com.example.Cart.add (truncated)"])
	assert.Equal(t, "missing", marks["(parent not seen)"])
	assert.Equal(t, "folded", marks["(folded: small paths)"])
	assert.Equal(t, "small", marks["(smaller paths)"])
	assert.Empty(t, marks["com.example.Cart.add"])
	assert.Equal(t, "Cart.java:40", places["com.example.Cart.add"])
}

func TestNamesOfAFlameGraphArePrintable(t *testing.T) {
	f := flameOf(t, []calltree.Node{{Parent: -1, Function: hostile, File: hostile, Self: 1}}, FlameOptions{Pixels: 1, Frames: 1})
	shown := f.Functions[f.Frames[0].Function]
	assert.Equal(t, Printable(hostile), shown.Name)
	assert.Equal(t, Printable(hostile), shown.Place)
	for _, group := range f.Groups {
		assert.Equal(t, Printable(group.Name), group.Name)
	}
}

// The test compares with a plain recursion, for random trees: no value and no path is lost.
func TestFlameGraphsKeepAllValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		nodes := make([]calltree.Node, r.IntN(60))
		for i := range nodes {
			nodes[i] = calltree.Node{Parent: -1, Function: string(rune('a' + r.IntN(5))), Calls: r.Uint64N(4), Self: r.Int64N(100) - 3}
			if i > 0 {
				nodes[i].Parent = int32(r.IntN(i+1)) - 1
			}
		}
		nodes = preOrder(nodes)
		f := flameOf(t, nodes, FlameOptions{Pixels: 1 + r.IntN(100), Frames: 1 + r.IntN(30)})
		var calls, want uint64
		paths := 0
		below := make([]int64, len(f.Frames))
		var top int64
		for i, frame := range f.Frames {
			calls += frame.Calls
			paths += max(frame.Paths, 1)
			if frame.Caller >= 0 {
				require.Less(t, int(frame.Caller), i)
				below[frame.Caller] += frame.Value
			} else {
				top += frame.Value
			}
		}
		for i := range nodes {
			want += nodes[i].Calls
		}
		assert.Equal(t, want, calls)
		assert.Equal(t, len(nodes), paths)
		assert.Equal(t, f.Whole, top)
		for i, frame := range f.Frames {
			assert.LessOrEqual(t, below[i], frame.Value, "callees are not wider than their caller")
		}
	}
}

func TestAFlameGraphOfNothingAndOfTheLargestValues(t *testing.T) {
	f := flameOf(t, nil, FlameOptions{Pixels: 1, Frames: 1})
	assert.Empty(t, f.Frames)
	f = flameOf(t, []calltree.Node{{Parent: -1, Self: math.MaxInt64}, {Parent: 0, Self: math.MaxInt64}}, FlameOptions{Pixels: 1, Frames: 1})
	assert.Equal(t, int64(math.MaxInt64), f.Whole)
	assert.Empty(t, flameOf(t, []calltree.Node{{Parent: -1}}, FlameOptions{Pixels: 1, Frames: 1}).Frames[0].ID, "without a value it has no width")
}
