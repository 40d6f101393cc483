// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// allocationsPerEvent is allocs/op by the events of a round, which a benchmark
// says by reporting both its time for a round and that for an event.
const allocationsPerEvent = "allocs/event"

// results are the values of each metric of each benchmark, one for each run.
type results map[string]map[string][]float64

// read takes the lines of `go test -bench`: a name, a number of rounds, and
// pairs of a value and its unit.
func (r results) read(output string) error {
	for _, line := range strings.Split(output, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name, _, _ := strings.Cut(fields[0], "-")
		if r[name] == nil {
			r[name] = map[string][]float64{}
		}
		values := map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return fmt.Errorf("expected a value and a unit in %q, got %q", line, fields[i])
			}
			values[fields[i+1]] = value
		}
		if n, ok := values["events/op"]; ok {
			values[allocationsPerEvent] = values[allocations] / n
		}
		for unit, value := range values {
			r[name][unit] = append(r[name][unit], value)
		}
	}
	return nil
}

// median is that of all runs of a benchmark.
func (r results) median(benchmark, metric string) (float64, error) {
	values := slices.Clone(r[benchmark][metric])
	if len(values) == 0 {
		return 0, fmt.Errorf("%s reported no %s", benchmark, metric)
	}
	slices.Sort(values)
	return values[len(values)/2], nil
}

// printTable prints what is claimed beside what was measured, and says how many
// claims are missed.
func printTable(w io.Writer, claims []claim, r results) (missed int, err error) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\thas to be\tis\t\t")
	for _, c := range claims {
		value, err := r.median(c.benchmark, c.metric)
		if err != nil {
			return 0, err
		}
		if c.over != "" {
			base, err := r.median(c.over, c.overMetric)
			if err != nil {
				return 0, err
			}
			value /= base
		}
		bound, reached := "at least", value >= c.bound
		if c.atMost {
			bound, reached = "at most", value <= c.bound
		}
		verdict := "reached"
		if !reached {
			verdict = "MISSED, see docs/performance.md"
			missed++
		}
		fmt.Fprintf(table, "%s\t%s %.4g\t%.3g\t%s\t%s\n", c.what, bound, c.bound, value, c.unit, verdict)
	}
	return missed, table.Flush()
}
