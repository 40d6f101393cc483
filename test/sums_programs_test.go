// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/lttng"
	"github.com/callbraid/callbraid/internal/testkit/reference"
)

// The connector stack_pairing counts the calls of traced programs: those of LTTng's own daemons, and
// those that the simulator plays.

// summedReader configures a receiver that reads from the relay daemon at an address.
func summedReader(relay string) string {
	return fmt.Sprintf(`lttng_live: {endpoint: %q, service_name: calls, poll: {list_interval: 20ms}, batch: {max_delay: 20ms}, max_delay: 1h, symbol_paths: ["/"]}`, relay)
}

// Programs in C and Java count their calls themselves. The connector's metrics and profiles have the same
// numbers. With a ratio of 0 only the traces of a named function are kept, and these completely.
func TestSumsAreTheCountsOfThePrograms(t *testing.T) {
	t.Parallel()
	daemons, b := lttng.Start(t), newSumBackend(t)
	c := b.start(summedReader(daemons.Relay.Live), `keep: {ratio: 0, functions: [{name: right}]}`, "")
	path := daemons.BuildC(t, callsInC)
	session := daemons.Create(t, lttng.Session{Name: "sums"})
	java := daemons.LaunchJava(t, daemons.BuildJava(t, callsInJava), "2", "20", "3")
	deep, flat := daemons.StartC(t, path, "3", "20", "4", "0"), daemons.StartC(t, path, "2", "20", "0", "0")
	for _, p := range []*lttng.Program{deep, flat, deep} {
		p.Step(t)
	}
	java.Ready(t)
	java.Step(t)
	programs := []*lttng.Program{java, deep, flat}
	all := 0
	for _, p := range programs {
		p.End(t)
		calls, _ := readTruth(t, p)
		all += calls.count()
	}
	session.Destroy(t)
	awaitClosed(t, c, 1)
	assert.Zero(t, c.Metric(t, lttngDiscarded))
	b.awaitCalls(all)
	c.Stop(t)

	for _, p := range programs {
		b.checkTruth(t, p)
	}
	kept := b.drain()
	require.Len(t, kept, 1, "programs with kept traces")
	of := kept.ofProcess(deep.PID, "sums")
	require.Len(t, of, 1)
	want, _ := readTruth(t, deep)
	threads, got := want.threads()[1:], of[0].calls(false) // all except that of main
	require.Len(t, got, len(threads))
	for _, thread := range threads {
		requireThread(t, thread, want[thread], got)
	}
}

// checkTruth compares the sums of a program with its own record.
func (b *sumBackend) checkTruth(t *testing.T, p *lttng.Program) {
	t.Helper()
	truth, _ := readTruth(t, p)
	instance := b.ofProcess(t, p.PID)
	functions, paths := b.sums(instance)

	// The record has no types of exceptions, and no exact times.
	want, got := map[string]float64{}, map[string]float64{}
	rootSeconds, seconds := 0.0, 0.0
	roots := map[string]bool{}
	for _, calls := range truth {
		roots[calls[0].function] = true
		for _, c := range calls {
			want["calls_total "+c.function]++
			want["duration_seconds_count "+c.function]++
			if c.thrown {
				want["errors_total "+c.function]++
			}
		}
	}
	for key, value := range functions {
		metric, rest, _ := strings.Cut(key, " ")
		function, _, _ := strings.Cut(rest, " ")
		if metric != "duration_seconds_sum" {
			got[metric+" "+function] += value
		} else if roots[function] {
			rootSeconds += value
		}
	}
	assertSame(t, want, got)

	counts := map[string][2]int64{}
	for path, v := range paths {
		counts[path] = [2]int64{v[0], v[1]}
		seconds += float64(v[2]) / 1e9
	}
	assertSame(t, pathsOfTruth(truth), counts)
	assert.InDelta(t, rootSeconds, seconds, 1e-6, "the own times of all paths are the times of the first calls")
}

// ofProcess returns the only instance of a process.
func (b *sumBackend) ofProcess(t *testing.T, pid int) string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []string
	for instance, resource := range b.resources {
		if resource["process.pid"] == int64(pid) {
			found = append(found, instance)
		}
	}
	require.Len(t, found, 1, "instances of process %d", pid)
	return found[0]
}

// pathsOfTruth returns the numbers of calls and of thrown ones, by path as in callPaths.stacks.
func pathsOfTruth(of truth) map[string][2]int64 {
	paths := map[string][2]int64{}
	for _, calls := range of {
		var stack []string
		for _, c := range calls {
			stack = append(stack[:c.depth], c.function)
			path := strings.Join(stack, ";")
			v := paths[path]
			v[0]++
			if c.thrown {
				v[1]++
			}
			paths[path] = v
		}
	}
	return paths
}

// notSeen is the frame that stands for callers that are not known in flame graphs of spans.
const notSeen = "(parent_not_seen)"

// stacksOfPage returns the stacks of the flame graph of a service.
func stacksOfPage(t *testing.T, pages, service string) map[string]values {
	t.Helper()
	path := filepath.Join(t.TempDir(), "profile.pb.gz")
	require.NoError(t, os.WriteFile(path, []byte(fetch(t, "http://"+pages+"/services/"+service+"/profile.pb.gz")), 0o600))
	return stacksOfProfile(t, path)
}

// A program in C calls a tree of functions again and again and does not leave main. Flame graph and profiles
// show all these calls below main.
func TestProfilesOfLTTngAreRootedWhileMainRuns(t *testing.T) {
	t.Parallel()
	const rounds, steps = 20, 3
	daemons, b, pages := lttng.Start(t), newSumBackend(t), testkit.Address(t)
	c := b.start(summedReader(daemons.Relay.Live), "", pages)
	path := daemons.BuildC(t, callsInC)
	session := daemons.Create(t, lttng.Session{Name: "rooted"})
	p := daemons.StartC(t, path, "0", fmt.Sprint(rounds), "4", "0")
	for step := 1; step <= steps; step++ {
		p.Step(t)
		b.awaitCalls(step * (1 + rounds*callsOfTree)) // so each step is in another interval
	}
	_, paths := b.sums(b.ofProcess(t, p.PID))
	var graph map[string]values
	testkit.Eventually(t, "the flame graph has the profiles", func() (bool, string) {
		graph = stacksOfPage(t, pages, "calls")
		return maps.Equal(graph, paths), fmt.Sprintf("%d of %d stacks", len(graph), len(paths))
	})
	assert.Equal(t, values{steps, 0, graph["main;work"][2]}, graph["main;work"])
	assert.EqualValues(t, steps*rounds, graph["main;work;tree"][0])
	for stack := range graph {
		require.True(t, strings.HasPrefix(stack, "main;work"), stack)
		require.NotContains(t, stack, notSeen)
	}
	requireLinesOfPage(t, pages, "calls", callsInC)

	p.End(t)
	session.Destroy(t)
	awaitClosed(t, c, 1)
	b.awaitCalls(1 + steps*(1+rounds*callsOfTree))
	c.Stop(t)
	b.checkTruth(t, p)
}

// The same with the begin of a captured build of Maven, whose agent stops twice in the middle: the flame graph has all
// calls that have ended by then, exactly, below their running callers.
func TestProfilesOfBytefrogAreRootedWhileMainRuns(t *testing.T) {
	t.Parallel()
	b, endpoint, pages := newSumBackend(t), testkit.Address(t), testkit.Address(t)
	c := b.start(fmt.Sprintf("bytefrog: {endpoint: %q, service_name: build}", endpoint), "", pages)
	run := openCapture(t, mavenBegin)
	stages := []*stage{newStage(mavenBeginEvents / 3), newStage(2 * mavenBeginEvents / 3)}
	f := startFleet(t, 1, []string{endpoint}, run, stages...)
	for _, s := range stages {
		f.at(t, s)
		want := endedPaths(run.Before(s.before))
		for stack := range want {
			require.NotContains(t, stack, notSeen)
		}
		b.awaitCalls(callsIn(want))
		testkit.Eventually(t, "the flame graph has all calls that have ended", func() (bool, string) {
			graph := stacksOfPage(t, pages, "build")
			return maps.Equal(graph, want), fmt.Sprintf("%d of %d stacks", len(graph), len(want))
		})
		close(s.open)
	}
	f.complete(t)
	want := reference.Spans(run, defaultRules)
	b.awaitCalls(len(want.Spans))
	b.check(t, want, b.only(t))
	c.Stop(t)
}

// endedPaths returns the stacks of the calls of a run that have ended, below their callers.
func endedPaths(run *reference.Run) map[string]values {
	stacks := pathsOfSpans(reference.Spans(run, defaultRules).Spans, true).stacks()
	maps.DeleteFunc(stacks, func(stack string, _ values) bool { return strings.HasSuffix(stack, truncatedPath) })
	return stacks
}
