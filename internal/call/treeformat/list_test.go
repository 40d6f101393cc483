// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// values are a function's flat and cumulative value in a profile.
type values struct{ flat, cumulative int64 }

// byFunction sums a profile up as pprof does.
func byFunction(p *profile.Profile, column int) map[string]values {
	sums := map[string]values{}
	for _, sample := range p.Sample {
		seen := map[string]bool{}
		for i, location := range sample.Location {
			name := location.Line[0].Function.Name
			sum := sums[name]
			if i == 0 {
				sum.flat += sample.Value[column]
			}
			if !seen[name] {
				sum.cumulative += sample.Value[column]
			}
			seen[name] = true
			sums[name] = sum
		}
	}
	return sums
}

func TestListsHaveTheValuesOfTheWholeProfile(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		s := calltree.Snapshot{Nodes: random(r, r.IntN(80))}
		for column, sampleType := range []string{"calls", "errors", "time"} {
			by, err := SampleValue(s.Kind, sampleType)
			require.NoError(t, err)
			want, list := byFunction(Profile(s), column), ListProfile(s, by)
			require.NoError(t, list.CheckValid())
			got := byFunction(list, column)
			for name, sums := range want {
				if sums.cumulative == 0 {
					delete(want, name)
				}
			}
			assert.Equal(t, want, got, sampleType)
		}
	}
}

func TestListsSumUpOtherFunctions(t *testing.T) {
	nodes := tree("main 1000000\n")
	for i := range 3000 {
		nodes = append(nodes, calltree.Node{Parent: 0, Function: strconv.Itoa(i), Self: 100})
	}
	got := byFunction(ListProfile(calltree.Snapshot{Nodes: nodes}, Value{}), 2)
	assert.Less(t, len(got), listedPart)
	assert.Equal(t, values{1_000_000, 1_300_000}, got["main"])
	var sum int64
	for name, v := range got {
		sum += v.flat
		if name != "main" {
			assert.Less(t, v.cumulative, int64(1_300_000/listedPart), name)
		}
	}
	assert.EqualValues(t, 1_300_000, sum)
}

func TestAListOfNothing(t *testing.T) {
	require.NoError(t, ListProfile(calltree.Snapshot{}, Value{}).CheckValid())
	list := ListProfile(calltree.Snapshot{Nodes: tree("a\n")}, Value{})
	assert.Empty(t, list.Sample, "no function has self time")
	assert.Empty(t, list.Location)
}

// The total stays at the largest number, and a small function is a small part of it.
func TestAListOfTheLargestNumbers(t *testing.T) {
	got := byFunction(ListProfile(calltree.Snapshot{Nodes: []calltree.Node{
		{Parent: -1, Function: "a", Self: math.MaxInt64 - 1000}, {Parent: -1, Function: "b", Self: 900}, {Parent: -1, Function: "c", Self: 800},
	}}, Value{}), 2)
	assert.Equal(t, map[string]values{
		"a": {math.MaxInt64 - 1000, math.MaxInt64 - 1000}, "(smaller paths) 1": {1000, 1000},
	}, got)
}

func TestSampleValues(t *testing.T) {
	node := calltree.Node{Calls: 2, Errors: 1, Self: 7}
	bytes := calltree.Kind{Type: "alloc_space", Unit: "bytes"}
	for _, test := range []struct {
		kind       calltree.Kind
		sampleType string
		want       int64
	}{
		{calltree.Calls, "", 7},
		{calltree.Calls, "calls", 2},
		{calltree.Calls, "errors", 1},
		{calltree.Calls, "time", 7},
		{calltree.Calls, "0", 2},
		{bytes, "", 7},
		{bytes, "samples", 2},
		{bytes, "alloc_space", 7},
	} {
		by, err := SampleValue(test.kind, test.sampleType)
		require.NoError(t, err)
		assert.Equal(t, test.want, by.function()(&node), "%v %s", test.kind, test.sampleType)
	}
	_, err := SampleValue(bytes, "calls")
	assert.Error(t, err)
}

func TestFunctionsWithTheNameOfLeftOutAreFunctions(t *testing.T) {
	for _, name := range []string{"(left out)", LeftOut} {
		s := calltree.Snapshot{Nodes: tree("main 100\n  x 100\n    inner 800\nother 50\n")}
		s.Nodes[1].Function = name
		s, err := Focus(s, nil, matching("^other$"))
		require.NoError(t, err)
		want := map[string]values{
			"main": {100, 1000}, Printable(name): {100, 900}, "inner": {800, 800}, LeftOut: {50, 50},
		}
		assert.Equal(t, want, byFunction(ListProfile(s, Value{}), 2), "list")
		assert.Equal(t, want, byFunction(Profile(s), 2), "profile")
	}
}

func TestSumsOfFunctionsStayWithinNumbers(t *testing.T) {
	most, least := int64(math.MaxInt64), int64(math.MinInt64)
	got := Functions(calltree.Snapshot{Nodes: []calltree.Node{
		{Parent: -1, Function: "a", Total: most, Self: most},
		{Parent: -1, Function: "b", Total: 100, Self: 50},
		{Parent: 1, Function: "a", Total: most, Self: 1},
		{Parent: -1, Function: "c", Total: least, Self: least},
		{Parent: -1, Function: "c", Total: -1, Self: -1},
		{Parent: -1, Function: "d", Total: most, Self: -3},
		{Parent: -1, Function: "d", Total: least, Self: 5},
	}})
	want := map[string][2]int64{"a": {most, most}, "b": {50, 100}, "c": {least, least}, "d": {2, -1}}
	names := ""
	for _, f := range got {
		assert.Equal(t, want[f.Name], [2]int64{f.Self, f.Total}, f.Name)
		names += f.Name
	}
	assert.Equal(t, "abdc", names)
}

// In this tree a function's part of the ring would reach the node LeftOut.
func TestLeftOutIsAloneOnItsStack(t *testing.T) {
	s, err := Focus(calltree.Snapshot{Nodes: tree("inner 500\nmain 100\n  x 100\n    inner 300\nother 50\n")}, nil, matching("^other$"))
	require.NoError(t, err)
	found := 0
	for _, sample := range ListProfile(s, Value{}).Sample {
		for _, location := range sample.Location {
			if location.Line[0].Function.Name == LeftOut {
				found++
				assert.Len(t, sample.Location, 1)
			}
		}
	}
	assert.Equal(t, 1, found)
}
