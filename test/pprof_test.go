// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/test/reference"
	"github.com/callbraid/callbraid/test/testbed"
)

// flatCum are what pprof says of a function, as it prints them: what ended in it, and what
// ended in it or in what it called.
type flatCum struct{ flat, cum string }

// topOf has go tool pprof print the functions of a profile, by their names, in one sample
// type; those of value 0 not.
func topOf(t *testing.T, address, sampleType string) map[string]flatCum {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "tool", "pprof", "-top", "-unit=ns", "-nodecount=0", "-nodefraction=0",
		"-sample_index="+sampleType, address)
	// It keeps a copy of what it fetched, and looks for settings of the user's.
	command.Env = append(command.Environ(), "PPROF_TMPDIR="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	var said strings.Builder
	command.Stderr = &said
	output, err := command.Output()
	require.NoError(t, err, "%s", said.String())
	_, table, found := strings.Cut(string(output), "flat  flat%   sum%        cum   cum%\n")
	require.True(t, found, "%s", output)
	functions := map[string]flatCum{}
	for line := range strings.Lines(table) {
		fields := strings.Fields(line) // flat, flat%, sum%, cum, cum%, name
		require.Greater(t, len(fields), 5, line)
		name := strings.Join(fields[5:], " ")
		require.NotContains(t, functions, name, "a function has one line")
		if cum := strings.TrimSuffix(fields[3], "ns"); cum != "0" {
			functions[name] = flatCum{strings.TrimSuffix(fields[0], "ns"), cum}
		}
	}
	return functions
}

// sampleTypes are those of downloads of calls; values are a call's, or a sum of calls', in
// each.
var sampleTypes = []string{"calls", "errors", "time"}

type values [3]int64

func (v *values) add(w values) {
	for i := range v {
		v[i] += w[i]
	}
}

// byFunction are the sums of calls' values by the function that they ended in, and by each
// that was on their stack, as pprof counts them: there a call is once, however often the
// function is.
func byFunction(spans map[int64]*reference.Span) (flat, cum map[string]*values) {
	called := map[int64]int64{} // how long what a call called took
	for _, s := range spans {
		called[s.Parent] += s.End - s.Start
	}
	flat, cum = map[string]*values{}, map[string]*values{}
	of := func(sums map[string]*values, name string) *values {
		if sums[name] == nil {
			sums[name] = &values{}
		}
		return sums[name]
	}
	for _, s := range spans {
		own := values{1, 0, max(0, s.End-s.Start-called[s.Sequence])}
		if s.Unwound {
			own[1] = 1
		}
		of(flat, shownName(s)).add(own)
		var counted []string
		for at := s; at != nil; at = spans[at.Parent] {
			if name := shownName(at); !slices.Contains(counted, name) {
				counted = append(counted, name)
				of(cum, name).add(own)
			}
		}
	}
	return flat, cum
}

// shownName is how a call's function is called in downloads.
func shownName(s *reference.Span) string {
	if s.Truncated != "" {
		return reference.Qualified(s.Function) + " (truncated)"
	}
	return reference.Qualified(s.Function)
}

// What Go's own program says of the download of a build of Maven, that came through the
// built distribution, is what its capture has: for each function, to the nanosecond.
func TestGoToolPprofSaysOfAMavenBuildWhatItsCaptureDoes(t *testing.T) {
	pages, endpoint := testbed.Address(t), testbed.Address(t)
	c := testbed.Start(t, pipeline(endpoint, "service_name: maven", "", fmt.Sprintf("flame_graph: {endpoint: %q}", pages)))
	agent{endpoint: endpoint, capture: "maven"}.complete(t)
	c.AwaitMetric(t, mavenSpans, spansFolded)

	spans := reference.Spans(openCapture(t, "maven"), defaultRules).Spans
	require.Len(t, spans, mavenSpans)
	flat, cum := byFunction(spans)
	for i, sampleType := range sampleTypes {
		want := map[string]flatCum{}
		for name, v := range cum {
			if v[i] != 0 {
				want[name] = flatCum{fmt.Sprint(flat[name][i]), fmt.Sprint(v[i])}
			}
		}
		require.NotEmpty(t, want, sampleType)
		got := topOf(t, "http://"+pages+"/services/maven/profile.pb.gz", sampleType)
		assert.Equal(t, len(want), len(got), "functions that have %s", sampleType)
		differ := 0
		for name, w := range want {
			if g := got[name]; g != w {
				if differ++; differ <= 5 {
					t.Errorf("%s of %s: expected %v, got %v", sampleType, name, w, g)
				}
			}
		}
		assert.Zero(t, differ, "functions of which it says something else")
	}
	c.Stop(t)
}
