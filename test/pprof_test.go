// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
)

// flatCum are pprof's values of a function, as it prints them: flat and cumulative.
type flatCum struct{ flat, cum string }

// topOf has go tool pprof print the functions of a profile, by their names, in one sample
// type; those of value 0 not.
func topOf(t *testing.T, address, sampleType string) map[string]flatCum {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "tool", "pprof", "-top", "-unit=ns", "-nodecount=0", "-nodefraction=0",
		"-sample_index="+sampleType, address)
	// It saves a copy of the fetched profile, and looks for settings of the user.
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
		_, twice := functions[name]
		require.False(t, twice, "a function has one line: %s", name)
		if cum := strings.TrimSuffix(fields[3], "ns"); cum != "0" {
			functions[name] = flatCum{strings.TrimSuffix(fields[0], "ns"), cum}
		}
	}
	return functions
}

// Go's own pprof prints for the download of the begin of a Maven build, from the built distribution, the numbers
// of its capture: for each function, to the nanosecond.
func TestGoToolPprofHasTheTimesOfTheCaptureOfAMavenBuild(t *testing.T) {
	t.Parallel()
	pages, endpoint := testkit.Address(t), testkit.Address(t)
	c := kit.Start(t, pipeline(endpoint, "service_name: maven", "", fmt.Sprintf("flame_graph: {endpoint: %q}", pages)))
	agent{endpoint: endpoint, capture: mavenBegin}.complete(t)
	c.AwaitMetric(t, float64(len(reference.Spans(openCapture(t, mavenBegin), defaultRules).Spans)), spansFolded)

	flat, cum := pathsOf(t, mavenBegin).byFunction()
	for i, sampleType := range sampleTypes {
		want := map[string]flatCum{}
		for name, v := range cum {
			if v[i] != 0 {
				want[name] = flatCum{fmt.Sprint(flat[name][i]), fmt.Sprint(v[i])}
			}
		}
		require.NotEmpty(t, want, sampleType)
		assertSame(t, want, topOf(t, "http://"+pages+"/services/maven/profile.pb.gz", sampleType))
	}
	c.Stop(t)
}
