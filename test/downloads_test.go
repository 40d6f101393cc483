// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit/reference"
)

// The content of downloads of call trees, as programs read them.

// stacksOfProfile are the samples of a profile of pprof, by their stacks.
func stacksOfProfile(t *testing.T, path string) map[string]values {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close() // read only
	p, err := profile.Parse(file)
	require.NoError(t, err)
	require.NoError(t, p.CheckValid())
	var types []string
	for _, sampleType := range p.SampleType {
		types = append(types, sampleType.Type)
	}
	require.Equal(t, sampleTypes, types)
	stacks := map[string]values{}
	for _, sample := range p.Sample {
		var names []string
		for _, location := range slices.Backward(sample.Location) {
			require.Len(t, location.Line, 1)
			names = append(names, strings.ReplaceAll(location.Line[0].Function.Name, " ", "_"))
		}
		stack := strings.Join(names, ";")
		_, twice := stacks[stack]
		require.False(t, twice, "a path is one sample: %s", stack)
		stacks[stack] = values(sample.Value)
	}
	return stacks
}

// stacksOfSpeedscope are the values of stacks, by the names of the profiles in the file: the time
// between the opening and the closing of frames, without that of inner frames.
func stacksOfSpeedscope(t *testing.T, path string) map[string]map[string]int64 {
	t.Helper()
	var file struct {
		Shared   struct{ Frames []struct{ Name string } }
		Profiles []struct {
			Name                 string
			StartValue, EndValue int64
			Events               []struct {
				Type  string
				Frame int
				At    int64
			}
		}
	}
	readJSON(t, path, &file)
	all := map[string]map[string]int64{}
	for _, p := range file.Profiles {
		stacks, at := map[string]int64{}, p.StartValue
		var open []int
		var texts []string
		for _, e := range p.Events {
			require.GreaterOrEqual(t, e.At, at, "events are in the order of their time")
			if len(open) > 0 && e.At > at {
				stacks[texts[len(texts)-1]] += e.At - at
			}
			at = e.At
			if e.Type == "C" {
				require.Equal(t, open[len(open)-1], e.Frame, "the innermost is closed")
				open, texts = open[:len(open)-1], texts[:len(texts)-1]
				continue
			}
			text := strings.ReplaceAll(file.Shared.Frames[e.Frame].Name, " ", "_")
			if len(texts) > 0 {
				text = texts[len(texts)-1] + ";" + text
			}
			open, texts = append(open, e.Frame), append(texts, text)
		}
		require.Empty(t, open)
		require.Equal(t, p.EndValue, at)
		all[p.Name] = stacks
	}
	return all
}

// tracedCall is a call of a trace. Times are nanoseconds from the trace's first on.
type tracedCall struct {
	name          string
	start, length int64
}

// isTraceOf fails unless a file of speedscope is one of the traces of a capture, with all its calls.
func isTraceOf(t *testing.T, capture, path string) {
	t.Helper()
	var file struct {
		Shared   struct{ Frames []struct{ Name string } }
		Profiles []struct {
			Name   string
			Events []struct {
				Type  string
				Frame int
				At    int64
			}
		}
	}
	readJSON(t, path, &file)
	require.Len(t, file.Profiles, 1, "the trace has one thread")
	assert.Regexp(t, "^"+capture+` \(.+\): main$`, file.Profiles[0].Name, "with its instance")
	got := map[tracedCall]int{}
	var open []int64
	for _, e := range file.Profiles[0].Events {
		if e.Type == "O" {
			open = append(open, e.At)
			continue
		}
		start := open[len(open)-1]
		open = open[:len(open)-1]
		got[tracedCall{strings.TrimSuffix(file.Shared.Frames[e.Frame].Name, " (truncated)"), start, e.At - start}]++
	}
	require.Empty(t, open)
	require.Greater(t, len(got), 1_000)

	traces := map[int64][]*reference.Span{}
	for _, s := range reference.Spans(openCapture(t, capture), defaultRules).Spans {
		traces[s.Trace] = append(traces[s.Trace], s)
	}
	for _, spans := range traces {
		start := slices.MinFunc(spans, func(a, b *reference.Span) int { return int(a.Start - b.Start) }).Start
		want := map[tracedCall]int{}
		for _, s := range spans {
			want[tracedCall{reference.Qualified(s.Function), s.Start - start, s.End - s.Start}]++
		}
		if assert.ObjectsAreEqual(want, got) {
			return
		}
	}
	assert.Fail(t, "no trace of the capture", "it has %d calls, there are %d traces", len(got), len(traces))
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, into), path)
}
