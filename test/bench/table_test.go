// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
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

var (
	ours   = at("./p", "Ours/fast-30s")
	theirs = at("./p", "Theirs")
)

func tableOf(t *testing.T, missing bool, claims ...claim) (lines []string, missed int) {
	t.Helper()
	r := results{}
	require.NoError(t, r.read("./p", output))
	var b strings.Builder
	rows, missed, err := rowsOf(claims, r, func(string) bool { return missing })
	require.NoError(t, err)
	require.NoError(t, printTable(&b, rows))
	for _, line := range strings.Split(strings.TrimSpace(b.String()), "\n")[1:] {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines, missed
}

func TestTheTableShowsReachedClaims(t *testing.T) {
	lines, missed := tableOf(t, false,
		below(0.1, "memory", "each", ours.in(allocationsPerEvent)),
		atMost(0.3, "time", "theirs", ours, theirs),
		atMost(0.2, "less time", "theirs", ours, theirs),
		claim{what: "speed", against: "theirs", bound: 5, atLeast: true, of: theirs, over: ours, peer: "other", remedy: "get it"},
		figure("the machine", "ns", theirs),
		within(9, "time of its own", "ns", ours),
		adds(30, "added time", "ns", theirs, ours),
	)
	assert.Equal(t, []string{
		"memory each at most 0.1 0.5 0.5 0.5 MISSED, see docs/performance.md",
		"time theirs at most 0.3 0.25 0.25 0.25 10 cpu-ns/event reached",
		"less time theirs at most 0.2 0.25 0.25 0.25 10 cpu-ns/event MISSED, see docs/performance.md",
		"speed theirs at least 5 4 4 4 10 cpu-ns/event MISSED, see docs/performance.md",
		"the machine ns - 40 40 40 not claimed",
		"time of its own ns at most 9 10 10 10 MISSED, see docs/performance.md",
		"added time ns at most 30 30 30 30 reached",
	}, lines)
	assert.Equal(t, 4, missed)
}

func TestTheMedianOfRatiosOfEachRoundCounts(t *testing.T) {
	r := results{ours: {10, 30, 90}, theirs: {10, 10, 10, 50}}
	values, err := atMost(1, "time", "theirs", ours, theirs).values(r)
	require.NoError(t, err)
	assert.Equal(t, []float64{1, 3, 9}, values, "the fourth round of theirs has no other side")
	assert.InDelta(t, 3, median(values), 0)
	assert.InDelta(t, 2, median(values[:2]), 0)
}

func TestTheLeastTimeOfAllRoundsCounts(t *testing.T) {
	r := results{ours: {30, 20, 25}, theirs: {12, 15, 11}}
	c := adds(10, "time", "ns", ours, theirs)
	values, err := c.values(r)
	require.NoError(t, err)
	assert.Equal(t, []float64{9, 14, 19}, values)
	assert.InDelta(t, 9, c.value(values), 0)
}

func TestTheTableNamesAMissingPeer(t *testing.T) {
	lines, missed := tableOf(t, true,
		claim{what: "speed", against: "theirs", bound: 5, atLeast: true, of: at("./p", "None"), over: ours, peer: "other", remedy: "get it"},
	)
	assert.Equal(t, []string{"speed theirs at least 5 - - - 10 cpu-ns/event NOT COMPARED, there is no other: get it"}, lines)
	assert.Equal(t, 1, missed)
}

func TestALineIsLeftOutIfTheEnvironmentDoesNotNameItsFile(t *testing.T) {
	const variable = "CALLBRAID_TEST_OF_BENCH"
	speed := claim{what: "speed", against: "theirs", bound: 5, atLeast: true, of: theirs, over: ours, variable: variable, remedy: "the file of theirs"}
	lines, missed := tableOf(t, false, speed)
	assert.Equal(t, []string{"speed theirs at least 5 - - - 10 cpu-ns/event left out, set " + variable + ": the file of theirs"}, lines)
	assert.Zero(t, missed)
	assert.Zero(t, countClaims([]claim{speed}))

	t.Setenv(variable, "/theirs")
	lines, missed = tableOf(t, false, speed)
	assert.Equal(t, []string{"speed theirs at least 5 4 4 4 10 cpu-ns/event MISSED, see docs/performance.md"}, lines)
	assert.Equal(t, 1, missed)
	assert.Equal(t, 1, countClaims([]claim{speed}))
}

func TestAClaimNeedsItsBenchmark(t *testing.T) {
	_, _, err := rowsOf([]claim{figure("nothing", "", at("./p", "None"))}, results{}, func(string) bool { return false })
	require.EqualError(t, err, "BenchmarkNone of ./p reported no cpu-ns/event")
}

func TestAClaimNeedsItsYardstick(t *testing.T) {
	_, _, err := rowsOf([]claim{atMost(1, "time", "nothing", ours, at("./p", "None"))}, results{ours: {1}}, func(string) bool { return false })
	require.EqualError(t, err, "BenchmarkNone of ./p reported no cpu-ns/event")
	_, _, err = rowsOf([]claim{adds(1, "time", "ns", ours, at("./p", "None"))}, results{ours: {1}}, func(string) bool { return false })
	require.EqualError(t, err, "BenchmarkNone of ./p reported no cpu-ns/event")
}

func TestEveryClaimAndItsYardstickAreMeasuredByOneSuite(t *testing.T) {
	for _, c := range claims {
		for _, m := range []measured{c.of, c.over, c.base} {
			measuring := 0
			for _, s := range suites {
				if s.has(m) {
					measuring++
				}
			}
			if m != (measured{}) {
				assert.Equal(t, 1, measuring, "%s: %s", c.what, m.benchmark)
			}
		}
	}
}

// Absolute figures depend on the machine, so only those of memory and allocations are claimed. A few processor times
// are claimed too, and the time of one picture in a browser, whose processes have no common processor time.
func TestTimesAreClaimedAsRatiosOrAsProcessorTime(t *testing.T) {
	for _, c := range claims {
		if c.bound > 0 && c.over == (measured{}) {
			metrics := []string{allocationsPerEvent, "mallocs/event", peak, "B/path", "B/slice", "times-at-50M"}
			if c.isTime {
				metrics = []string{cpuPerEvent, perInterval, perPage, blocked, perPicture}
			}
			assert.Contains(t, metrics, c.of.metric, c.what)
		}
	}
}

func TestTheTableOfAPageIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(path, []byte("before\n"+tableBegins+"| old |\n"+tableEnds+"after\n"), 0o600))
	require.NoError(t, writeTable(path, [][]string{{"  time", "theirs", "at most 1", "0.5", "0.4", "0.6", "5 ns", "reached"}}))
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "before\n"+tableBegins+`| what | against, or unit | has to be | is | in rounds | on that machine |
|---|---|---|---|---|---|
| … time | theirs | at most 1 | 0.5 | 0.4 to 0.6 | 5 ns |
`+tableEnds+"after\n", string(page))
	require.NoError(t, os.WriteFile(path, []byte("nothing"), 0o600))
	require.ErrorContains(t, writeTable(path, nil), "expected a table in "+path)
}

func TestTwoCheckoutsAreComparedByTheMedianOfPairs(t *testing.T) {
	before := results{ours: {10, 10, 10}, theirs: {10, 20, 40}, at("./p", "Gone"): {1}}
	now := results{ours: {10, 10.2, 14}, theirs: {11, 22, 44}, at("./p", "New"): {1}}
	var b strings.Builder
	missed, err := printRatios(&b, before, now, 1.03)
	require.NoError(t, err)
	var lines []string
	for _, line := range strings.Split(strings.TrimSpace(b.String()), "\n")[1:] {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	assert.Equal(t, []string{
		"./p Ours/fast-30s 10 10.2 1.020 1.000 1.400 within",
		"./p Theirs 20 22 1.100 1.100 1.100 SLOWER",
	}, lines)
	assert.Equal(t, 1, missed)
}
