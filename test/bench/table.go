// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"regexp"
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

// cores is how many cores a benchmark had, at the end of its name.
var cores = regexp.MustCompile(`-\d+$`)

// read takes the lines of `go test -bench`: a name, a number of rounds, and
// pairs of a value and its unit.
func (r results) read(output string) error {
	for _, line := range strings.Split(output, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := cores.ReplaceAllString(fields[0], "")
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

// value is the median of all rounds: of a value, or of the ratio of two that
// were measured in the same round.
func (c claim) value(r results) (float64, error) {
	values := slices.Clone(r[c.benchmark][c.metric])
	if len(values) == 0 {
		return 0, fmt.Errorf("%s reported no %s", c.benchmark, c.metric)
	}
	if c.over != "" {
		bases := r[c.over][c.overMetric]
		if len(bases) != len(values) {
			return 0, fmt.Errorf("%s reported %d times %s, expected %d", c.over, len(bases), c.overMetric, len(values))
		}
		for i := range values {
			values[i] /= bases[i]
		}
	}
	slices.Sort(values)
	return values[len(values)/2], nil
}

// printTable prints what is claimed beside what was measured, and says how many
// claims are missed. A claim that could not be compared, since its peer is missing, is
// not reached either.
func printTable(w io.Writer, claims []claim, r results, isMissing func(program string) bool) (missed int, err error) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\thas to be\tis\t\t")
	for _, c := range claims {
		bound := fmt.Sprintf("at least %.4g", c.bound)
		switch {
		case c.bound == 0:
			bound = "-"
		case c.atMost:
			bound = fmt.Sprintf("at most %.4g", c.bound)
		}
		is, verdict := "-", ""
		if c.peer != "" && isMissing(c.peer) {
			verdict = fmt.Sprintf("NOT COMPARED, there is no %s: %s", c.peer, c.remedy)
			missed++
		} else {
			value, err := c.value(r)
			if err != nil {
				return 0, err
			}
			is, verdict = fmt.Sprintf("%.3g", value), "reached"
			switch {
			case c.bound == 0:
				verdict = "to compare with"
			case c.atMost && value > c.bound || !c.atMost && value < c.bound:
				verdict = "MISSED, see docs/performance.md"
				missed++
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", c.what, bound, is, c.unit, verdict)
	}
	return missed, table.Flush()
}
