// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/figures"
)

// topMethods is the number of printed methods.
const topMethods = 10

func (s *summary) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range []struct {
		name  string
		count uint64
		note  string
	}{
		{"calls", s.calls, ""},
		{"methods", uint64(len(s.methods)), ""},
		{"paths", uint64(s.paths), "from main, or the first method of a thread, to a method"},
		{"errors", s.errors, "left by an exception"},
		{"truncated", s.truncated, "open when the program ended"},
	} {
		fmt.Fprintf(table, "%s\t%s\t", row.name, figures.Count(row.count))
		if row.note != "" {
			fmt.Fprintf(table, "  %s", row.note)
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nThe %d methods with most self time (without the methods they call):\n\n", topMethods)
	table = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "self\ttotal\tcalls\terrors\t  method")
	for _, m := range s.top(topMethods) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t  %s\n", duration(m.self), duration(m.total),
			figures.Count(m.calls), figures.Count(m.errors), m.name)
	}
	return table.Flush()
}

// duration writes a time in the tracer's unit, milliseconds.
func duration(d time.Duration) string {
	return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
}
