// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// allocationsPerEvent is allocs/op divided by the events of a round, for benchmarks that report
// both their time for a round and that for an event.
const allocationsPerEvent = "allocs/event"

// results are the measured values, one for each round.
type results map[measured][]float64

// cores is how many cores a benchmark had, at the end of its name.
var cores = regexp.MustCompile(`-\d+$`)

// read reads the output of a package's benchmarks: lines of a name, a number of rounds, and pairs
// of a value and its unit.
func (r results) read(pkg, output string) error {
	for _, line := range strings.Split(output, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
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
		for metric, value := range values {
			m := measured{pkg: pkg, benchmark: cores.ReplaceAllString(fields[0], ""), metric: metric}
			r[m] = append(r[m], value)
		}
	}
	return nil
}

// values are the figures of all rounds, sorted, or the ratios to figures of the same round. A benchmark with
// fewer rounds than its yardstick was measured in the first rounds.
func (c claim) values(r results) ([]float64, error) {
	values := slices.Clone(r[c.of])
	if len(values) == 0 {
		return nil, fmt.Errorf("%s of %s reported no %s", c.of.benchmark, c.of.pkg, c.of.metric)
	}
	for _, m := range []measured{c.over, c.base} {
		if m != (measured{}) && len(r[m]) == 0 {
			return nil, fmt.Errorf("%s of %s reported no %s", m.benchmark, m.pkg, m.metric)
		}
	}
	if c.over != (measured{}) {
		bases := r[c.over]
		values = values[:min(len(values), len(bases))]
		for i := range values {
			values[i] /= bases[i]
		}
	}
	if c.base != (measured{}) {
		least := slices.Min(r[c.base])
		for i := range values {
			values[i] -= least
		}
	}
	slices.Sort(values)
	return values, nil
}

// value is the one of sorted values that counts.
func (c claim) value(values []float64) float64 {
	if c.isTime {
		return values[0]
	}
	return median(values)
}

// median is that of sorted values.
func median(values []float64) float64 {
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// absolute is the value of our side on this machine.
func (c claim) absolute(r results) string {
	of := c.of
	if c.atLeast {
		of = c.over
	}
	if c.over == (measured{}) || len(r[of]) == 0 {
		return ""
	}
	values := slices.Sorted(slices.Values(r[of]))
	return fmt.Sprintf("%.3g %s", median(values), of.metric)
}

// columns are the heads of the table.
var columns = []string{"what", "against, or unit", "has to be", "is", "from", "to", "on this machine", ""}

// rowsOf are the claims as lines of the table, and how many of them are missed. A claim that
// could not be compared, since its peer is missing, is not reached either. One that is left out is not missed.
func rowsOf(claims []claim, r results, isMissing func(program string) bool) (rows [][]string, missed int, err error) {
	for _, c := range claims {
		bound := fmt.Sprintf("at most %.4g", c.bound)
		switch {
		case c.bound == 0:
			bound = "-"
		case c.atLeast:
			bound = fmt.Sprintf("at least %.4g", c.bound)
		}
		is, least, most, verdict := "-", "-", "-", ""
		switch {
		case c.isLeftOut():
			verdict = fmt.Sprintf("left out, set %s: %s", c.variable, c.remedy)
		case c.peer != "" && isMissing(c.peer):
			verdict = fmt.Sprintf("NOT COMPARED, there is no %s: %s", c.peer, c.remedy)
			missed++
		default:
			values, err := c.values(r)
			if err != nil {
				return nil, 0, err
			}
			value := c.value(values)
			is, least, most = fmt.Sprintf("%.3g", value), fmt.Sprintf("%.3g", values[0]), fmt.Sprintf("%.3g", values[len(values)-1])
			switch {
			case c.bound == 0:
				verdict = "not claimed"
			case c.atLeast && value < c.bound || !c.atLeast && value > c.bound:
				verdict = "MISSED, see docs/performance.md"
				missed++
			default:
				verdict = "reached"
			}
		}
		rows = append(rows, []string{c.what, c.against + c.unit, bound, is, least, most, c.absolute(r), verdict})
	}
	return rows, missed, nil
}

// printTable prints rows for a terminal.
func printTable(w io.Writer, rows [][]string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{columns}, rows...) {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}

// The table of a page is between these lines.
const tableBegins, tableEnds = "<!-- make bench: begin -->\n", "<!-- make bench: end -->\n"

// writeTable replaces the table of a page.
func writeTable(path string, rows [][]string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(page), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		return fmt.Errorf("expected a table in %s, between the lines %q and %q", path, tableBegins, tableEnds)
	}
	table := "| what | against, or unit | has to be | is | in rounds | on that machine |\n|---|---|---|---|---|---|\n"
	for _, row := range rows {
		what := strings.TrimSpace(row[0])
		if what != row[0] {
			what = "… " + what
		}
		table += fmt.Sprintf("| %s | %s | %s | %s | %s to %s | %s |\n", what, row[1], row[2], row[3], row[4], row[5], row[6])
	}
	return os.WriteFile(path, []byte(before+tableBegins+table+tableEnds+after), 0o644)
}
