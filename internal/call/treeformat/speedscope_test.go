// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

func speedscope(t *testing.T, s calltree.Snapshot) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, WriteSpeedscope(&b, s))
	return b.Bytes()
}

func TestASpeedscopeFileOfCalls(t *testing.T) {
	assertGolden(t, "shop.speedscope.json", indented(t, speedscope(t, shop())))
}

func TestASpeedscopeFileOfAProfile(t *testing.T) {
	assertGolden(t, "allocations.speedscope.json", indented(t, speedscope(t, allocations())))
}

func TestASpeedscopeFileOfHostileNames(t *testing.T) {
	s := shop()
	s.Service = hostile
	s.Nodes[0].Function, s.Nodes[0].File = hostile, hostile
	var file struct {
		Name   string
		Shared struct {
			Frames []struct{ Name, File string }
		}
	}
	require.NoError(t, json.Unmarshal(speedscope(t, s), &file))
	assert.Equal(t, Printable(hostile), file.Name)
	assert.Equal(t, Printable(hostile), file.Shared.Frames[0].Name)
	assert.Equal(t, Printable(hostile), file.Shared.Frames[0].File)
}

func TestASpeedscopeFileOfNothing(t *testing.T) {
	speedscope(t, calltree.Snapshot{})
}

func TestUnitsOfSpeedscope(t *testing.T) {
	for unit, want := range map[string]string{
		"nanoseconds": "nanoseconds", "ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds",
		"s": "seconds", "bytes": "bytes", "By": "bytes", "count": "none", hostile: "none",
	} {
		s := allocations()
		s.Kind.Unit = unit
		var file struct{ Profiles []struct{ Unit string } }
		require.NoError(t, json.Unmarshal(speedscope(t, s), &file))
		assert.Equal(t, want, file.Profiles[0].Unit, unit)
	}
}

// speedscopeProfileRead is a profile for a reader of the format.
type speedscopeProfileRead struct {
	Name     string
	EndValue int64
	Events   []struct {
		Type  string
		Frame int
		At    int64
	}
}

// nested returns the profiles of a file. It fails if frames do not close in the order in which they
// opened, or if times go back or beyond the end.
func nested(t *testing.T, document []byte) []speedscopeProfileRead {
	t.Helper()
	var file struct{ Profiles []speedscopeProfileRead }
	require.NoError(t, json.Unmarshal(document, &file))
	for _, p := range file.Profiles {
		var open []int
		at := int64(0)
		for _, e := range p.Events {
			require.GreaterOrEqual(t, e.At, at)
			at = e.At
			if e.Type == "O" {
				open = append(open, e.Frame)
				continue
			}
			require.NotEmpty(t, open)
			require.Equal(t, open[len(open)-1], e.Frame)
			open = open[:len(open)-1]
		}
		require.Empty(t, open)
		require.LessOrEqual(t, at, p.EndValue)
	}
	return file.Profiles
}

func TestEventsNestAndNeverGoBack(t *testing.T) {
	for name, nodes := range map[string][]calltree.Node{
		"a tree with nodes without value":    tree("a 1\n  b\n    c\n  d 2\n    e\n      f 3\ng\nh 4\n  i 5"),
		"the largest numbers that there are": {{Parent: -1, Self: math.MaxInt64}, {Parent: 0, Self: math.MaxInt64}, {Parent: 0, Self: 5}, {Parent: -1, Self: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			profiles := nested(t, speedscope(t, calltree.Snapshot{Nodes: nodes}))
			p := profiles[0]
			require.NotEmpty(t, p.Events)
			assert.Equal(t, p.EndValue, p.Events[len(p.Events)-1].At)
		})
	}
}

func TestUnknownLinesAreOmitted(t *testing.T) {
	for line, want := range map[int64]bool{-1: false, 0: false, 1: true} {
		s := calltree.Snapshot{Nodes: []calltree.Node{{Parent: -1, Function: "f", Line: line, Self: 1}}}
		assert.Equal(t, want, bytes.Contains(speedscope(t, s), []byte(`"line":`)), line)
	}
}

// broken accepts so many bytes, and then fails.
type broken struct{ left int }

func (b *broken) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

// After a failed write the rest of the file is not built: names are quoted only until then.
func TestASpeedscopeFileIsNotBuiltAfterAFailedWrite(t *testing.T) {
	var s calltree.Snapshot
	for i := range 100 {
		s.Nodes = append(s.Nodes, calltree.Node{Parent: -1, Function: fmt.Sprint(i, strings.Repeat("x", 8000)), Calls: 1, Self: 1, Total: 1})
	}
	for _, taken := range []int{0, 100_000} {
		f := speedscopeFile{out: bufio.NewWriter(&broken{taken}), nodes: s.Nodes, frames: map[place]int{}}
		f.writeFrames()
		assert.Less(t, len(f.frames), taken/8000+3, taken)
		require.ErrorIs(t, WriteSpeedscope(&broken{taken}, s), io.ErrClosedPipe)
	}
}
