// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const output = `goos: linux
BenchmarkOurs/fast-30s-2  1  20 ns/op  10 cpu-ns/event  100 events/op  50 allocs/op
BenchmarkTheirs         1  80 ns/op  40 cpu-ns/event  100 events/op
PASS
`

func tableOf(t *testing.T, missing bool, claims ...claim) (lines []string, missed int) {
	t.Helper()
	r := results{}
	require.NoError(t, r.read(output))
	var b strings.Builder
	missed, err := printTable(&b, claims, r, func(string) bool { return missing })
	require.NoError(t, err)
	for _, line := range strings.Split(strings.TrimSpace(b.String()), "\n")[1:] {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines, missed
}

func TestTheTableSaysWhatIsReached(t *testing.T) {
	lines, missed := tableOf(t, false,
		claim{what: "time", bound: 10, atMost: true, unit: "ns", benchmark: "BenchmarkOurs/fast-30s", metric: cpuPerEvent},
		claim{what: "memory", bound: 0.1, atMost: true, unit: "each", benchmark: "BenchmarkOurs/fast-30s", metric: allocationsPerEvent},
		claim{what: "ratio", bound: 5, unit: "times", benchmark: "BenchmarkTheirs", metric: cpuPerEvent, over: "BenchmarkOurs/fast-30s", overMetric: cpuPerEvent, peer: "other", remedy: "get it"},
		claim{what: "the machine", unit: "ns", benchmark: "BenchmarkTheirs", metric: cpuPerEvent},
	)
	assert.Equal(t, []string{
		"time at most 10 10 ns reached",
		"memory at most 0.1 0.5 each MISSED, see docs/performance.md",
		"ratio at least 5 4 times MISSED, see docs/performance.md",
		"the machine - 40 ns to compare with",
	}, lines)
	assert.Equal(t, 2, missed)
}

func TestTheTableSaysWhichPeerIsMissing(t *testing.T) {
	lines, missed := tableOf(t, true,
		claim{what: "ratio", bound: 5, unit: "times", benchmark: "BenchmarkNone", metric: cpuPerEvent, over: "BenchmarkOurs/fast-30s", overMetric: cpuPerEvent, peer: "other", remedy: "get it"},
	)
	assert.Equal(t, []string{"ratio at least 5 - times NOT COMPARED, there is no other: get it"}, lines)
	assert.Equal(t, 1, missed)
}

func TestAClaimNeedsItsBenchmark(t *testing.T) {
	_, err := printTable(&strings.Builder{}, []claim{{what: "nothing", benchmark: "BenchmarkNone", metric: cpuPerEvent}}, results{}, func(string) bool { return false })
	require.EqualError(t, err, "BenchmarkNone reported no cpu-ns/event")
}

func TestEveryClaimIsMeasuredBySomeSuite(t *testing.T) {
	for _, c := range claims {
		measuring := 0
		for _, s := range suites {
			if s.measures(c) {
				measuring++
			}
		}
		assert.Equal(t, 1, measuring, c.what)
	}
}
