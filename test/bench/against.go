// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// hotPaths are benchmarks of the work for each event, one function each, so that turns are short.
// Benchmarks that the other checkout doesn't have are omitted.
var hotPaths = []suite{
	{pkg: bytefrog, pattern: "^BenchmarkDecodeEvents$", time: "0.5s"},
	{pkg: callevent, pattern: "^BenchmarkPackUnpack$", time: "0.5s"},
	{pkg: receiver, pattern: "^BenchmarkBytesToBatches$", time: "0.5s"},
	{pkg: receiver, pattern: "^BenchmarkBytesToSpans$", time: "1s"},
	{pkg: receiver, pattern: "^BenchmarkBytesToNothing$", time: "0.5s"},
	{pkg: pairing, pattern: "^BenchmarkConsumeTraces$", time: "0.5s"},
	{pkg: pairing, pattern: "^BenchmarkSmallHandOver$", time: "0.5s"},
	{pkg: pairing, pattern: "^BenchmarkOtherSpans$", time: "0.5s"},
	{pkg: guard, pattern: "^BenchmarkWalk$/^(first|later)$", time: "0.3s"},
	{pkg: guard, pattern: "^BenchmarkPass$/^guard$", time: "1x"},
	{pkg: lttng, pattern: "^BenchmarkReadLTTng$/^contexts$/^(fields|logRecords|spans)$", time: "1x", cores: 1},
	{pkg: rbkit, pattern: "^BenchmarkDecode$", time: "0.3s"},
	{pkg: rbkitToPdata, pattern: "^BenchmarkMessagesToPdata$", time: "0.5s"},
	{pkg: greysBinary, pattern: "^BenchmarkDecodeGP$/^(monitor|records|stack)$", time: "0.2s"},
	{pkg: greysConsole, pattern: "^BenchmarkDecodeConsole$/^(tables|trees|stacks|records|methods)$", time: "0.2s"},
	{pkg: greysToPdata, pattern: "^BenchmarkRowsToMetrics$/^500$", time: "0.5s"},
	{pkg: flameGraph, pattern: "^BenchmarkFoldTraces$/^(callees_first|callers_first)$", time: "0.5s"},
	{pkg: jsonFile, pattern: "^BenchmarkConsumeTraces$", time: "0.5s"},
}

// compare measures the hot paths of this checkout and another one by turns, and prints the ratio of
// their times. The first of a pair changes with each round, and so does the order of functions in the
// programs: it alone changes times by up to 10%. compare fails with errMissed if a ratio is above the
// bound.
func compare(other string, rounds int, within float64, only *regexp.Regexp) error {
	dir, err := os.MkdirTemp("", "callbraid-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	folders, measured := [2]string{filepath.Join(dir, "before"), filepath.Join(dir, "now")}, [2]results{{}, {}}
	for _, of := range folders {
		if err := os.Mkdir(of, 0o700); err != nil {
			return err
		}
	}
	began := time.Now()
	paths := slices.DeleteFunc(slices.Clone(hotPaths), func(s suite) bool {
		if !only.MatchString(s.pkg + " " + s.pattern) {
			return true
		}
		_, err := os.Stat(folder(other, s.pkg))
		if err != nil {
			progress(began, "omits %s %s, because %s does not have the package", s.pkg, s.pattern, other)
		}
		return err != nil
	})
	for round := range rounds {
		order := round + 1
		sides := [2]*programs{newPrograms(other, folders[0], order), newPrograms(".", folders[1], order)}
		for _, s := range paths {
			for _, side := range sides {
				if err := side.compile(began, s.pkg); err != nil {
					return err
				}
			}
		}
		for _, s := range paths {
			progress(began, "round %d of %d: %s %s", round+1, rounds, s.pkg, s.pattern)
			for turn := range sides {
				i := (turn + round) % 2
				if err := sides[i].run(s, measured[i]); err != nil {
					return err
				}
			}
		}
	}
	missed, err := printRatios(os.Stdout, measured[0], measured[1], within)
	if err != nil {
		return err
	}
	fmt.Printf("%d cost more than %.4g times as much as in %s; the measurement took %s\n", missed, within, other, time.Since(began).Round(time.Second))
	if missed > 0 {
		return errMissed
	}
	return nil
}

// printRatios prints the times before and now: medians, and the median of the ratios of all pairs,
// with the middle half of these. It returns the number of ratios above the bound.
func printRatios(w io.Writer, before, now results, within float64) (missed int, err error) {
	var both []measured
	for m, values := range now {
		if m.metric == cpuPerEvent && len(before[m]) == len(values) {
			both = append(both, m)
		}
	}
	slices.SortFunc(both, func(a, b measured) int {
		return strings.Compare(a.pkg+" "+a.benchmark, b.pkg+" "+b.benchmark)
	})
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CPU time of an event\tbefore, ns\tnow, ns\ttimes\thalf of all from\tto\t")
	for _, m := range both {
		var ratios []float64
		for i, value := range now[m] {
			ratios = append(ratios, value/before[m][i])
		}
		slices.Sort(ratios)
		ratio, verdict := median(ratios), "within"
		if ratio > within {
			verdict = "SLOWER"
			missed++
		}
		n := len(ratios)
		fmt.Fprintf(table, "%s %s\t%.4g\t%.4g\t%.3f\t%.3f\t%.3f\t%s\n", m.pkg, strings.TrimPrefix(m.benchmark, "Benchmark"),
			median(slices.Sorted(slices.Values(before[m]))), median(slices.Sorted(slices.Values(now[m]))),
			ratio, ratios[(n-1)/4], ratios[n-1-(n-1)/4], verdict)
	}
	return missed, table.Flush()
}
